package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/relay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// submission hands questions in, a few at a time, and writes down what becomes of them.
type submission struct {
	a      *app
	cfg    *settings.Settings
	like   dispatch.Task // what all tasks have
	work   *engagement
	out    *results
	window int
	tally  *tally
	// charged are the runs that are in the ledger from before.
	charged map[marchwarden.TraceID]bool
}

// run asks all questions. It returns when each has its line, when ctx ends, or with the
// first thing that keeps it from going on.
func (s *submission) run(ctx context.Context, all []question) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		if err := s.work.wait(ctx); err != nil {
			stop(err)
		}
	}()
	ended := make(chan resultLine, s.window)
	room := make(chan struct{}, s.window)
	var asking sync.WaitGroup
	asking.Go(func() {
		for _, q := range all {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			asking.Go(func() {
				defer func() { <-room }()
				line, err := s.ask(ctx, q)
				if err != nil {
					stop(err)
					return
				}
				ended <- line
			})
		}
	})
	go func() {
		asking.Wait()
		close(ended)
	}()
	var failed error
	for line := range ended {
		if failed != nil {
			continue
		}
		if failed = s.keep(line, ended); failed != nil {
			stop(failed)
		}
	}
	if cause := context.Cause(ctx); failed == nil && cause != nil && !errors.Is(cause, errInterrupted) {
		failed = cause
	}
	return failed
}

// keep writes a line, and those that are there already, to the disk at once.
func (s *submission) keep(first resultLine, more <-chan resultLine) error {
	lines := []resultLine{first}
	for len(lines) < s.window {
		select {
		case line, open := <-more:
			if !open {
				return s.write(lines)
			}
			lines = append(lines, line)
			continue
		default:
		}
		break
	}
	return s.write(lines)
}

func (s *submission) write(lines []resultLine) error {
	if err := s.out.add(lines); err != nil {
		return err
	}
	for _, l := range lines {
		s.tally.count(l.Status == dispatch.Done)
	}
	return nil
}

// ask submits a question and waits for its end.
func (s *submission) ask(ctx context.Context, q question) (resultLine, error) {
	t := s.like
	t.ID, t.Record, t.Investigation, t.Request = q.task, q.task, q.task, q.req
	if err := s.a.handIn(ctx, s.work.engine, t); err != nil {
		return resultLine{}, fmt.Errorf("submit line %d: %w", q.line, err)
	}
	end, err := await(ctx, s.work.engine, t.ID, nil)
	if err != nil {
		return resultLine{}, fmt.Errorf("wait for line %d: %w", q.line, err)
	}
	line := resultLine{Line: q.line, ID: q.name(), Status: end.Status, TraceID: t.Record}
	if !end.Result.Valid() {
		line.Error = &resultError{Code: end.Code, Message: cmp.Or(end.Message, "it was "+string(end.Status)), Hint: end.Hint}
		if line.Status == dispatch.Done {
			line.Status = dispatch.Failed
		}
	} else {
		stored, err := s.work.engine.Blobs().Get(ctx, end.Result)
		if err != nil {
			return line, fmt.Errorf("read the result of line %d: %w", q.line, err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, stored); err != nil {
			return line, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read the result of line %d", q.line)
		}
		line.Result = compact.Bytes()
	}
	if s.work.home != nil && end.Trace.Valid() {
		b, err := s.work.home.bring(ctx, t.Record, end)
		if err != nil {
			return line, err
		}
		s.charge(b, line.Result)
	}
	return line, nil
}

// charge puts a question into the ledger, unless a run before this one did.
func (s *submission) charge(b brought, result json.RawMessage) {
	res, err := marchwarden.DecodeResult(result)
	if err != nil || s.charged[b.id] {
		return
	}
	d := &network.Runner{Name: b.start.Researcher, Host: &s.a.Host, Settings: s.cfg, Records: s.work.home.home, Warn: s.a.warn}
	d.Enter(network.Finished{Start: b.start, Result: res})
}

// chargedBefore are the runs that the ledger knows.
func chargedBefore(c *settings.Settings) map[marchwarden.TraceID]bool {
	known := map[marchwarden.TraceID]bool{}
	entries, _, err := ledger.Read(c.Text(settings.Ledger))
	if err != nil {
		return known // a ledger that cannot be read costs no answer
	}
	for _, e := range entries {
		known[e.TraceID] = true
	}
	return known
}

// await waits for the end of a task that is an investigation of its own.
func await(ctx context.Context, e dispatch.Client, id marchwarden.TraceID, hear func(dispatch.Event)) (*dispatch.End, error) {
	end, err := relay.Follow(ctx, e, &dispatch.Watching{Investigation: id, Task: id}, hear)
	if ctx.Err() != nil && end == nil {
		return nil, marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for %s", id)
	}
	return end, err
}

// engagement is an engine that a submission uses, with those who work for it here, if
// any do.
type engagement struct {
	engine dispatch.Engine
	home   *homeward // nil leaves the records where they are
	// wait returns the error of those who work here.
	wait  func(context.Context) error
	close []func() error
}

// Close ends the work and closes everything.
func (e *engagement) Close() error {
	var errs []error
	for _, c := range e.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// openSubmission opens the cluster at an address, or the engine of the home folder with
// the researchers of the options at work in this process.
func (a *app) openSubmission(ctx context.Context, c *settings.Settings, at string, o submitOptions) (*engagement, error) {
	if at == "" {
		return a.openHere(ctx, c, o)
	}
	return a.openThere(ctx, c, at, o.records)
}

func (a *app) openHere(ctx context.Context, c *settings.Settings, o submitOptions) (*engagement, error) {
	rec, err := a.OpenRecords(c)
	if err != nil {
		return nil, err
	}
	log := a.logger(c)
	engine, err := a.openQueue(c, rec, log)
	if err != nil {
		return nil, errors.Join(err, rec.Close())
	}
	e := &engagement{engine: engine, home: &homeward{engine: engine, from: rec.Blobs, home: rec, here: true}, close: []func() error{engine.Close, rec.Close}}
	o.desk.Warn = sayOnce(a.warn)
	if name := o.desk.Researcher; name != "" && name != settings.PI {
		if o.desk.Researchers, err = []string{name}, o.desk.Check(&a.Host, c, name); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	a.Limits = engine.Limit
	s, err := a.OpenWorker(c, o.desk, engine, log)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	failed, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		failed <- s.Work(working, s.Jobs(o.parallel, o.parallel, handBack))
	}()
	e.wait = func(ctx context.Context) error {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	e.close = append([]func() error{func() error { stop(); <-over; return s.Close() }}, e.close...)
	return e, nil
}

// openThere opens a cluster that does the work.
func (a *app) openThere(ctx context.Context, c *settings.Settings, at string, records bool) (*engagement, error) {
	engine, err := a.openCluster(ctx, c, at, a.logger(c))
	if err != nil {
		return nil, err
	}
	e := &engagement{engine: engine, wait: func(ctx context.Context) error { <-ctx.Done(); return nil }, close: []func() error{engine.Close}}
	if !records {
		return e, nil
	}
	rec, err := a.OpenRecords(c)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.home, e.close = &homeward{engine: engine, from: engine.Blobs(), home: rec}, append(e.close, rec.Close)
	return e, nil
}
