package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/relay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// recorder is an engine whose records can be read while they are written.
type recorder interface {
	dispatch.Engine
	Record(ctx context.Context, t dispatch.Task) ([]byte, error)
}

// front is a cluster as one researcher: what it is asked becomes a task for the
// investigators there.
type front struct {
	engine  recorder
	newID   func() marchwarden.TraceID
	now     func() time.Time
	timeout time.Duration // 0 leaves it to the workers
}

// openFront makes the desk of a cluster. The caller closes the engine after it.
func (a *app) openFront(c *settings.Settings, o network.Options, e recorder) (*network.Runner, error) {
	limit, err := flagTime("--timeout", o.Timeout, false)
	if err != nil {
		return nil, err
	}
	f := &front{engine: e, newID: a.NewID, now: a.Now, timeout: limit}
	place := a.NewWorkerRecords(e)
	return &network.Runner{Name: settings.PI, Scope: pi.Scope, OpenWorld: true, Silent: true, Researcher: f, Host: &a.Host, Settings: c, Records: place.Records(c), Shown: f, Warn: o.Warn, Told: o.Told}, nil
}

// Research has the cluster answer, in the name of the principal of ctx. A caller that goes
// cancels its task; a server that ends does not.
func (f *front) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	id, chosen := marchwarden.ChosenTraceID(ctx)
	if !chosen {
		id = f.newID()
	}
	run := id
	if req.Resume != "" {
		parsed, err := marchwarden.ParseTraceID(req.Resume)
		if err != nil {
			return nil, err
		}
		run = parsed
	}
	d := relay.New(relay.Config{
		Engine: f.engine, Blobs: f.engine.Blobs(), Investigation: run, Owner: access.From(ctx).ID, Priority: dispatch.Normal, Now: f.now,
		Members: func() []dispatch.Member { return []dispatch.Member{{Name: settings.PI}} },
	})
	ctx, done := untilShutdown(marchwarden.WithTraceID(ctx, id))
	defer done()
	if f.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, f.timeout)
		defer stop()
	}
	return d.Dispatch(ctx, settings.PI, req, sink)
}

// untilShutdown is a context that ends as ctx does, and with ErrReleased if that is
// because the server ends: then another process waits for the task.
func untilShutdown(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if errors.Is(cause, runs.ErrShutdown) {
			cause = dispatch.ErrReleased
		}
		cancel(cause)
	})
	done := func() { stop(); cancel(nil) }
	if end, ok := ctx.Deadline(); ok {
		timed, late := context.WithDeadline(inner, end)
		return timed, func() { late(); done() }
	}
	return inner, done
}

// Trace gives the lines of a task's record.
func (f *front) Trace(ctx context.Context, id marchwarden.TraceID) ([]byte, error) {
	lines, _, err := f.record(ctx, id)
	return lines, err
}

// Size is how long the record is, and whether the task has ended.
func (f *front) Size(ctx context.Context, id marchwarden.TraceID) (int64, bool, error) {
	lines, ended, err := f.record(ctx, id)
	return int64(len(lines)), ended, err
}

// Result gives the result of a task that has ended.
func (f *front) Result(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	state, err := f.engine.Look(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case state.End == nil || !state.End.Result.Valid():
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "run %s has no result", id)
	}
	stored, err := f.engine.Blobs().Get(ctx, state.End.Result)
	if err != nil {
		return nil, err
	}
	return marchwarden.DecodeResult(stored)
}

// SoFar gives what a task has found that goes on, or nil.
func (f *front) SoFar(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	lines, _, err := f.record(ctx, id)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	log, err := trace.Read(bytes.NewReader(lines))
	if err != nil {
		return nil, err
	}
	return run.SoFar(ctx, f.engine.Blobs(), log)
}

// record gives the lines of a task, as far as it has come.
func (f *front) record(ctx context.Context, id marchwarden.TraceID) (lines []byte, ended bool, err error) {
	state, err := f.engine.Look(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if state.End != nil {
		if !state.End.Trace.Valid() {
			return nil, true, nil
		}
		lines, err = f.engine.Blobs().Get(ctx, state.End.Trace)
		return lines, true, err
	}
	lines, err = f.engine.Record(ctx, state.Task)
	return lines, false, err
}
