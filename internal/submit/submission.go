package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// Answer is how a question ended.
type Answer struct {
	Status dispatch.Status
	Result *marchwarden.Result
	Err    error // why there is no result
}

// Ask asks one question and waits for its answer. A question that failed has one, too: an
// error says that the submission cannot go on. It is safe for concurrent use.
type Ask func(ctx context.Context, q Question) (Answer, error)

// Submission asks questions, a few at a time, and writes their lines.
type Submission struct {
	Ask    Ask
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
			a, err := s.Ask(within, q)
			var line Line
			if err == nil {
				line, err = lineOf(q, a)
			}
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
	// Home brings the record of a task home, with its result if it has one; nil leaves it in the
	// cluster.
	Home func(ctx context.Context, id marchwarden.TraceID, end *dispatch.End, res *marchwarden.Result) error
}

// Ask submits a question and waits for its end.
func (w *There) Ask(ctx context.Context, q Question) (Answer, error) {
	t := w.Like
	t.ID, t.Record, t.Investigation, t.Request = q.Task, q.Task, q.Task, q.Request
	if err := w.Engine.Submit(ctx, t); err != nil {
		return Answer{}, fmt.Errorf("submit it: %w", err)
	}
	end, err := Follow(ctx, w.Engine, &dispatch.Watching{Task: t.ID}, nil)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: end.Status}
	a.Result, a.Err = ResultOf(ctx, w.Engine.Blobs(), t.ID.String(), end)
	if end.Result.Valid() && a.Err != nil && !errors.Is(a.Err, marchwarden.CodeMalformed) {
		return a, a.Err // it is there, and cannot be had now
	}
	if w.Home == nil || !end.Trace.Valid() {
		return a, nil
	}
	return a, w.Home(ctx, t.Record, end, a.Result)
}

// ResultOf is what a task ended with. One without a result is the error that says why.
func ResultOf(ctx context.Context, blobs blob.Store, of string, end *dispatch.End) (*marchwarden.Result, error) {
	if !end.Result.Valid() {
		return nil, &marchwarden.Error{Code: cmp.Or(end.Code, marchwarden.CodeUnavailable), Message: cmp.Or(end.Message, "the research was "+string(end.Status)), Hint: end.Hint}
	}
	stored, err := blobs.Get(ctx, end.Result)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the result of %s", of)
	}
	res, err := marchwarden.DecodeResult(stored)
	return res, marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the result of %s", of)
}

// lineOf is the line of an answer.
func lineOf(q Question, a Answer) (Line, error) {
	line := Line{Line: q.Line, ID: cmp.Or(q.ID, q.Task.String()), Status: a.Status, TraceID: q.Task}
	if a.Err == nil {
		encoded, err := marchwarden.EncodeResult(a.Result)
		line.Result = encoded
		return line, err
	}
	line.Error = &Failure{Code: marchwarden.CodeOf(a.Err), Message: a.Err.Error(), Hint: marchwarden.HintOf(a.Err)}
	if line.Status == dispatch.Done {
		line.Status = dispatch.Failed
	}
	return line, nil
}
