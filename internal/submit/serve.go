package submit

import (
	"context"
	"errors"
	"fmt"
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
// of which nothing is recorded is begun; one that was begun continues, with what it had and no
// more; a task that resumes an earlier one's run gives that more, once. The time of a task is kept
// here. One that is not sound is an error before anything runs. When a line cannot be written, the
// work ends at once, with ErrReleased: work without a record would be paid for twice, and another
// worker may have it by now.
func Serve(held *trace.Held, research Research) dispatch.Handler {
	return func(ctx context.Context, t dispatch.Task, lines dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if err := t.Check(); err != nil { // workers verify what they run
			return nil, err
		}
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		mine := &watched{Lines: lines, stop: stop}
		defer held.Hold(t.Record, mine)()
		if t.Within > 0 {
			var done context.CancelFunc
			ctx, done = context.WithTimeout(ctx, t.Within)
			defer done()
		}
		ctx = marchwarden.WithTraceID(ctx, t.Record)
		res, err := research(ctx, t, requestOf(t, lines.Begun()), sink)
		if why := mine.failed.Load(); why != nil {
			return nil, fmt.Errorf("task %s: %w", t.ID, errors.Join(dispatch.ErrReleased, *why))
		}
		if errors.Is(context.Cause(ctx), dispatch.ErrReleased) {
			return nil, fmt.Errorf("task %s: %w", t.ID, dispatch.ErrReleased)
		}
		return res, err
	}
}

// requestOf is what a researcher is asked to do about a task. What the request of a run
// adds is added once: a run that was begun has it.
func requestOf(t dispatch.Task, begun bool) marchwarden.Request {
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

// Bring stores what a member's result cites, as far as the member hands it over, so that every user
// of the store can check it: for a worker whose member keeps its evidence elsewhere. What it does
// not hand over stays unchecked, as it would if it were asked directly; a store that cannot keep it
// is an error.
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
