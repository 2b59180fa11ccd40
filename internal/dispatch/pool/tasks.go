package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool/register"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// parting is how long a handler whose task was handed back is waited for.
const parting = 500 * time.Millisecond

// hold is a task while this process works on it.
type hold struct {
	e       *Engine
	task    dispatch.Task
	attempt int
	folio   *register.Folio
	done    func() // of the folio
	lock    *register.Lease
	over    atomic.Bool     // it is not held any more
	ctx     context.Context // the handler's
	cancel  context.CancelCauseFunc
}

var _ dispatch.Lines = (*hold)(nil)

// Read is all that is written.
func (h *hold) Read(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.folio.Lines(h.task.Record)
}

// Append adds a line, if the task is still this holder's.
func (h *hold) Append(_ context.Context, line []byte) error {
	return h.write(&register.Entry{Kind: register.Written, Line: line})
}

// Begun reports whether a line was written for the task.
func (h *hold) Begun() bool {
	a, _ := h.folio.Account(h.task.ID)
	return a.Begun
}

// write adds an entry of this attempt.
func (h *hold) write(entry *register.Entry) error {
	entry.Task, entry.Attempt = h.task.ID, h.attempt
	return h.folio.Write(func() (*register.Entry, error) {
		if h.over.Load() || !h.folio.Holds(h.task, h.attempt) {
			return nil, fmt.Errorf("task %s: %w", h.task.ID, dispatch.ErrReleased)
		}
		return entry, nil
	})
}

// free gives the record up. It reports whether this call did. The lock of a record that
// has ended need not stay.
func (h *hold) free(ended bool) bool {
	if h.over.Swap(true) {
		return false
	}
	h.e.mu.Lock()
	delete(h.e.held, h)
	h.e.mu.Unlock()
	h.lock.Release(ended)
	h.done()
	return true
}

// release hands a task back: its worker here cannot write any more. It is told first, so that it
// does nothing without a record.
func (h *hold) release() {
	h.cancel(dispatch.ErrReleased)
	if err := h.write(&register.Entry{Kind: register.HandedBack}); err != nil && !errors.Is(err, dispatch.ErrReleased) {
		h.e.cfg.Log.Warn("a task was given up without a word in its record", "task", h.task.ID.String(), "error", err)
	}
	if h.free(false) {
		h.e.queues.Back(h.task.ID, false)
	}
}

// giveUp releases a task, with a word in its record or as the end of the process would.
func (e *Engine) giveUp(h *hold) {
	e.mu.Lock()
	dead := e.dead
	e.mu.Unlock()
	if !dead {
		h.release()
		return
	}
	h.cancel(dispatch.ErrReleased)
	h.free(false)
}

// giveUpAll releases everything that is held.
func (e *Engine) giveUpAll() {
	e.mu.Lock()
	all := slices.Collect(maps.Keys(e.held))
	e.mu.Unlock()
	for _, h := range all {
		e.giveUp(h)
	}
}

// claim takes a task up. Without a hold there is nothing to work on here, now or ever.
func (e *Engine) claim(p *register.Pointer) (*hold, error) {
	lock, err := register.Take(e.path("lease", p.Record, ""))
	if err != nil {
		e.queues.Back(p.Task, true)
		if errors.Is(err, durable.ErrLocked) {
			err = nil
		}
		return nil, err
	}
	f, done, err := e.folio(p.Investigation)
	if err != nil {
		e.later(p.Task, err)
		lock.Release(false)
		return nil, err
	}
	h := &hold{e: e, folio: f, done: done, lock: lock}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	var end *dispatch.End
	err = f.Write(func() (*register.Entry, error) {
		a, known := f.Account(p.Task)
		if !known || a.End != nil {
			return nil, errNothing
		}
		if err := e.usable(context.Background()); err != nil { // it waits on, for others
			return nil, err
		}
		h.task = a.Task
		if end = a.Beforehand(); end != nil {
			return nil, register.ErrKnown
		}
		h.attempt = a.Attempts + 1
		return &register.Entry{Kind: register.Taken, Task: p.Task, Worker: e.cfg.Name, Attempt: h.attempt}, nil
	})
	if err == nil && end != nil {
		err = h.conclude(end)
	}
	switch {
	case errors.Is(err, errNothing):
		err = e.queues.Done(p.Task)
	case err != nil:
		e.later(p.Task, err)
	case end == nil:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.held[h] = true
		return h, nil
	}
	h.free(err == nil)
	return nil, err
}

// later has a task tried again that could not be taken up. One whose log is damaged stays as it is,
// for a person to look at.
func (e *Engine) later(id marchwarden.TraceID, why error) {
	if !errors.Is(why, marchwarden.CodeCorrupt) {
		e.queues.Back(id, true)
	}
}

// errNothing says that a task is not to be worked on.
var errNothing = errors.New("nothing to do")

// settle ends a canceled task if no worker has it.
func (e *Engine) settle(t dispatch.Task) {
	_, err := e.claim(&register.Pointer{Task: t.ID, Investigation: t.Investigation, Record: t.Record})
	if err != nil {
		e.cfg.Log.Warn("a canceled task could not be ended", "task", t.ID.String(), "error", err)
	}
}

// conclude seals the record of a task and writes its end.
func (h *hold) conclude(end *dispatch.End) error {
	lines, err := h.folio.Lines(h.task.Record)
	if err != nil {
		return err
	}
	ctx := context.Background() // what was done is kept, even if the caller has gone
	if len(lines) > 0 {
		if end.Trace, err = h.e.cfg.Blobs.Put(ctx, lines); err != nil {
			return fmt.Errorf("seal the record of %s: %w", h.task.ID, err)
		}
		if err := blob.Settle(ctx, h.e.cfg.Blobs, end.Trace); err != nil {
			return err
		}
	}
	end.At = h.e.cfg.Now().UTC()
	entry := &register.Entry{Kind: register.Ended, End: end}
	if h.attempt > 0 {
		err = h.write(entry)
	} else { // it was not begun here, and its record is locked
		entry.Task = h.task.ID
		err = h.folio.Write(func() (*register.Entry, error) { return entry, nil })
	}
	if err != nil {
		return err
	}
	if len(h.folio.Open()) == 0 {
		h.e.live(h.task.Investigation).Hush()
	}
	return h.e.queues.Done(h.task.ID)
}

// follow ends the handler's context when the task is canceled, or another worker has it.
func (h *hold) follow() (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			news := h.folio.News()
			if a, _ := h.folio.Account(h.task.ID); a.Cancel != nil {
				h.cancel(marchwarden.Errorf(marchwarden.CodeCanceled, "canceled: %s", *a.Cancel))
				return
			}
			if !h.folio.Holds(h.task, h.attempt) {
				h.cancel(dispatch.ErrReleased)
				return
			}
			select {
			case <-over:
				return
			case <-news:
			case <-tick.C:
				if err := h.folio.Refresh(); err != nil {
					h.e.cfg.Log.Warn("the log of a task cannot be read", "task", h.task.ID.String(), "error", err)
				}
			}
		}
	}()
	return func() { close(over); <-done }
}

// finish writes the end of a task with what its handler gave.
func (h *hold) finish(res *marchwarden.Result, err error) error {
	end := &dispatch.End{Status: dispatch.Done, Worker: h.e.cfg.Name, Attempt: h.attempt}
	switch {
	case errors.Is(err, dispatch.ErrReleased), errors.Is(context.Cause(h.ctx), dispatch.ErrReleased):
		return fmt.Errorf("task %s: %w", h.task.ID, dispatch.ErrReleased)
	case err == nil && res == nil:
		err = marchwarden.Errorf(marchwarden.CodeInternal, "there is neither a result nor an error")
	}
	if err == nil {
		encoded, err := marchwarden.EncodeResult(res)
		if err == nil {
			end.Result, err = h.e.cfg.Blobs.Put(context.Background(), encoded)
		}
		if err == nil {
			err = blob.Settle(context.Background(), h.e.cfg.Blobs, end.Result)
		}
		if err != nil {
			return fmt.Errorf("store the result of %s: %w", h.task.ID, err)
		}
	} else {
		end.Fail(err)
	}
	if h.ctx.Err() != nil { // it was canceled: what was released is not written
		end.Status = dispatch.Canceled
	}
	return h.conclude(end)
}
