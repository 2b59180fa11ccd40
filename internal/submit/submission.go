package submit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// Asker asks one question and waits for its answer. It is safe for concurrent use.
type Asker interface {
	// Ask returns the line of a question. A question that failed has a line, too: an error
	// says that the submission cannot go on.
	Ask(ctx context.Context, q Question) (Line, error)
}

// Submission asks questions, a few at a time, and writes their lines.
type Submission struct {
	Asker  Asker
	Out    *Results
	Window int             // questions at once
	Count  func(line Line) // hears of each line that is kept, one at a time
}

// Run asks all questions. It returns nil when each has its line or ctx has ended, and the
// first error that keeps it from going on.
func (s *Submission) Run(ctx context.Context, all []Question) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(s.Window)
	var keeping sync.Mutex // held while a line is written and counted
	for _, q := range all {
		if within.Err() != nil {
			break
		}
		group.Go(func() error {
			line, err := s.Asker.Ask(within, q)
			if err != nil {
				return fmt.Errorf("line %d: %w", q.Line, err)
			}
			keeping.Lock()
			defer keeping.Unlock()
			if err := s.Out.add(line); err != nil {
				return err
			}
			s.Count(line)
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// There asks the investigators of a cluster.
type There struct {
	Engine dispatch.Engine
	Like   dispatch.Task // what all tasks have in common
	// Home is where the records come; nil leaves them in the cluster.
	Home *Home
	// Charge enters a record that came home into the ledger.
	Charge func(b Brought, res *marchwarden.Result)
}

// Ask submits a question and waits for its end.
func (w *There) Ask(ctx context.Context, q Question) (Line, error) {
	t := w.Like
	t.ID, t.Record, t.Investigation, t.Request = q.Task, q.Task, q.Task, q.Request
	if err := w.Engine.Submit(ctx, t); err != nil {
		return Line{}, fmt.Errorf("submit it: %w", err)
	}
	end, err := Await(ctx, w.Engine, t.ID, nil)
	if err != nil {
		return Line{}, err
	}
	line := Line{Line: q.Line, ID: q.name(), Status: end.Status, TraceID: t.Record}
	res, stored, err := ResultOf(ctx, w.Engine.Blobs(), t.ID.String(), end)
	switch {
	case err == nil:
		err = line.answer(stored)
	case !end.Result.Valid() || errors.Is(err, marchwarden.CodeMalformed):
		line.fail(err)
		err = nil
	}
	if err != nil || w.Home == nil || !end.Trace.Valid() {
		return line, err
	}
	b, err := w.Home.Bring(ctx, t.Record, end)
	if err == nil && res != nil {
		w.Charge(b, res)
	}
	return line, err
}

// ResultOf is what a task ended with, and as it is stored. One without a result is the error that
// says why.
func ResultOf(ctx context.Context, blobs blob.Store, of string, end *dispatch.End) (res *marchwarden.Result, stored []byte, err error) {
	if !end.Result.Valid() {
		return nil, nil, &marchwarden.Error{Code: cmp.Or(end.Code, marchwarden.CodeUnavailable), Message: cmp.Or(end.Message, "the research was "+string(end.Status)), Hint: end.Hint}
	}
	if stored, err = blobs.Get(ctx, end.Result); err != nil {
		return nil, nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the result of %s", of)
	}
	res, err = marchwarden.DecodeResult(stored)
	return res, stored, marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the result of %s", of)
}

// fail says why there is no result.
func (l *Line) fail(err error) {
	l.Error = &Failure{Code: marchwarden.CodeOf(err), Message: err.Error(), Hint: marchwarden.HintOf(err)}
	if l.Status == dispatch.Done {
		l.Status = dispatch.Failed
	}
}

// answer takes over an encoded result.
func (l *Line) answer(encoded []byte) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, encoded); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCorrupt, "decode it")
	}
	l.Result = compact.Bytes()
	return nil
}

// Await waits for the end of a task that is an investigation of its own. Events are told to
// hear, which may be nil.
func Await(ctx context.Context, e dispatch.Client, id marchwarden.TraceID, hear func(dispatch.Event)) (*dispatch.End, error) {
	end, err := Follow(ctx, e, &dispatch.Watching{Task: id}, hear)
	if ctx.Err() != nil && end == nil {
		return nil, marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for %s", id)
	}
	return end, err
}
