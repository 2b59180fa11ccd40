package relay

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Research answers a request as a part of a task. Under its context a new run has the
// id that marchwarden.ChosenTraceID tells.
type Research func(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error)

// Serve is the handler of a worker whose researchers record their runs in held. A task
// of which nothing is recorded is begun; one that was begun goes on, with what it had
// and no more; a task that goes on with an earlier one's run gives that more, once. The
// time of a task is kept here. One that is not sound is an error before anything runs.
// When a line cannot be written, the work ends at once, with ErrReleased: what goes on
// without a record would be paid for twice, and somebody else may have it by now.
func Serve(held *trace.Held, research Research) dispatch.Handler {
	return func(ctx context.Context, t dispatch.Task, lines dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if err := Check(t); err != nil {
			return nil, err
		}
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		mine := &watched{Lines: lines, stop: stop}
		defer held.Hold(t.Record, mine)()
		written, err := lines.Read(ctx)
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the record of task %s", t.ID)
		}
		if t.Within > 0 {
			var done context.CancelFunc
			ctx, done = context.WithTimeout(ctx, t.Within)
			defer done()
		}
		ctx = marchwarden.WithTraceID(ctx, t.Record)
		res, err := research(ctx, t, requestOf(t, lines, len(written) > 0), sink)
		if why := mine.failed.Load(); why != nil {
			return nil, fmt.Errorf("task %s: %w", t.ID, errors.Join(dispatch.ErrReleased, *why))
		}
		if errors.Is(context.Cause(ctx), dispatch.ErrReleased) {
			return nil, fmt.Errorf("task %s: %w", t.ID, dispatch.ErrReleased)
		}
		return res, err
	}
}

// Begun is what the Lines of an engine may have besides: whether anything was written
// since the task was taken for the first time, by whomever.
type Begun interface{ Begun() bool }

// requestOf is what a researcher is asked to do about a task. What the request of a run
// adds is added once: a run that was begun has it.
func requestOf(t dispatch.Task, lines dispatch.Lines, written bool) marchwarden.Request {
	begun := written
	if t.ID != t.Record { // what is written may be what it goes on with
		b, tells := lines.(Begun)
		begun = tells && b.Begun() // a run that is cut off takes the same addition once, where nobody can tell
	}
	if !begun {
		return t.Request
	}
	return marchwarden.Request{Question: t.Request.Question, Resume: t.Record.String()}
}

// watched are lines that stop the work when one cannot be written, before it goes on
// without.
type watched struct {
	dispatch.Lines
	stop   context.CancelCauseFunc
	failed atomic.Pointer[error]
}

func (w *watched) Append(ctx context.Context, line []byte) error {
	err := w.Lines.Append(ctx, line)
	if err != nil {
		w.failed.CompareAndSwap(nil, &err)
		w.stop(dispatch.ErrReleased)
	}
	return err
}

// validQueue is what a queue may be called: a researcher's name, or the investigator's.
var validQueue = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// Check says what is wrong with a task, as CodeInvalid. Workers verify what they run.
func Check(t dispatch.Task) error {
	bad := func(field, format string, args ...any) error {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case !t.ID.Valid() || !t.Record.Valid() || !t.Investigation.Valid():
		return bad("id", "a task needs an id, a record and an investigation")
	case !validQueue.MatchString(t.Queue):
		return bad("queue", "%.60q is no queue: it has 1 to 40 of a-z, 0-9, _ and -, and begins with a letter", t.Queue)
	case t.Priority < dispatch.Urgent || t.Priority > dispatch.Low:
		return bad("priority", "%d is not from %d to %d", t.Priority, dispatch.Urgent, dispatch.Low)
	case t.Within < 0:
		return bad("within_ns", "%s is less than 0", t.Within)
	case t.ID == t.Record && t.Request.Resume != "":
		return bad("request.resume", "a task that makes its own run goes on with none")
	case t.ID != t.Record && t.Request.Resume != t.Record.String():
		return bad("request.resume", "a task that goes on with run %s asks for %.60q", t.Record, t.Request.Resume)
	}
	return t.Request.Validate()
}

// Bring stores what a member's result cites, as far as the member hands it over, so that
// everybody who has the store can check it: for a worker whose member keeps its evidence
// elsewhere. What it does not hand over stays unchecked, as it would if it were asked
// directly; a store that cannot keep it is an error.
func Bring(ctx context.Context, to blob.Store, from dispatch.Dispatcher, member string, res *marchwarden.Result) error {
	had := map[string]bool{}
	for _, c := range res.Citations {
		ref, err := blob.Parse(c.ContentHash)
		if err != nil || had[c.ContentHash] {
			continue
		}
		had[c.ContentHash] = true
		if _, err := to.Stat(ctx, ref); err == nil {
			continue
		}
		content, err := from.Evidence(ctx, member, c.ContentHash)
		if err != nil || blob.Of(content) != ref {
			continue
		}
		if _, err := to.Put(ctx, content); err != nil {
			return fmt.Errorf("keep what %s cites: %w", member, err)
		}
	}
	return nil
}
