package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
)

// hold is a task that this process has, and its record while it does.
type hold struct {
	e       *Engine
	crew    *crew
	task    dispatch.Task
	pointer *streams.Pointer
	head    head // of what is written under this claim

	// life ends when nothing can be written any more, since another worker may have the task or it
	// is over; work is the handler's, and ends with life or when the task is canceled.
	life   context.Context
	die    context.CancelCauseFunc
	work   context.Context
	cancel context.CancelCauseFunc

	wish atomic.Pointer[wish] // that it be canceled

	mu     sync.Mutex // guards what follows, and is held while something is written
	record *record
}

// Read is all that is written.
func (h *hold) Read(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return bytes.Clone(h.record.lines.Bytes()), nil
}

// Append adds a line. Once it has begun, the end of ctx does not stop it: if a line may or may not
// be there, no worker can continue the record.
func (h *hold) Append(ctx context.Context, line []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.life.Err() != nil {
		return released(h.task.ID, context.Cause(h.life))
	}
	head := h.head
	head.kind = kindLine
	seq, err := h.e.write(h.life, h.task, head, line, h.record.last, rand.Text())
	if err != nil {
		h.die(released(h.task.ID, err))
		return released(h.task.ID, context.Cause(h.life))
	}
	h.record.last, h.record.begun = seq, true
	h.record.lines.Write(line)
	return nil
}

// Begun says whether a line was written for this task, in whatever attempt, and not only
// for an earlier one that it resumes.
func (h *hold) Begun() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.record.begun
}

// released has ErrReleased in its chain, and the cause.
func released(id marchwarden.TraceID, cause error) error {
	if errors.Is(cause, dispatch.ErrReleased) {
		return cause
	}
	return fmt.Errorf("task %s: %w: %w", id, dispatch.ErrReleased, cause)
}

// release forgets a hold.
func (h *hold) release() {
	h.e.mu.Lock()
	if h.e.holds[h.task.ID] == h {
		delete(h.e.holds, h.task.ID)
	}
	h.e.mu.Unlock()
	h.die(dispatch.ErrReleased)
}

// heed ends the work on a task that is to be canceled.
func (h *hold) heed(ctx context.Context) {
	w, err := h.e.canceled(ctx, h.task)
	if err != nil && ctx.Err() == nil {
		h.e.log.Warn("could not read whether a task is canceled", "task", h.task.ID, "error", err)
	}
	if w == nil {
		return
	}
	h.wish.Store(w)
	h.cancel(marchwarden.Wrap(context.Canceled, marchwarden.CodeCanceled, "task %s: %s", h.task.ID, w.Reason))
}

// heedAgain looks for a wish to cancel at once, since one may have come while no worker had the
// task, and once a lease until the hold ends: what told of one may have been lost.
func (h *hold) heedAgain() {
	for h.life.Err() == nil {
		h.heed(h.life)
		_ = httpapi.Sleep(h.life, h.e.facts.Lease) // its end shows
	}
}

// run has the handler work on the task.
func (h *hold) run(handle dispatch.Handler) (result *marchwarden.Result, err error) {
	defer panics.Caught(&err, "the handler of queue "+h.task.Queue)
	return handle(h.work, h.task, h, h.tell)
}

// tell passes progress on to those who watch just now.
func (h *hold) tell(event marchwarden.Event) {
	data, err := json.Marshal(event)
	if err == nil && h.life.Err() == nil {
		_ = h.e.conn.NATS().Publish(streams.LiveSubject(h.task.Investigation, h.task.ID), data) // nothing depends on it
	}
}

// conclude writes how the task ended, unless it is not this process's to say.
func (h *hold) conclude(result *marchwarden.Result, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.die(dispatch.ErrReleased)
	if errors.Is(context.Cause(h.work), dispatch.ErrReleased) {
		return
	}
	if errors.Is(err, dispatch.ErrReleased) { // the handler could not write: nothing is over
		h.e.log.Warn("a handler gave up a task that it holds", "task", h.task.ID, "error", err)
		_ = h.pointer.Return(returnAfter) // its lease ends by itself
		return
	}
	end, err := h.end(result, err)
	if err == nil {
		err = h.e.finish(h.life, h.task, h.record, end, rand.Text())
	}
	if err == nil {
		err = h.pointer.Drop(h.life)
	}
	if err != nil {
		h.e.log.Warn("could not end a task; another worker will resume it", "task", h.task.ID, "error", err)
	}
}

// end is what the handler's outcome comes to.
func (h *hold) end(result *marchwarden.Result, err error) (dispatch.End, error) {
	end := dispatch.End{Status: dispatch.Done, Worker: h.e.cfg.Name, Attempt: h.head.attempt, At: h.e.cfg.Now().UTC()}
	canceled := h.wish.Load() != nil
	if err == nil && result == nil {
		err = marchwarden.Errorf(marchwarden.CodeInternal, "the handler gave neither a result nor an error")
	}
	if err != nil {
		end.Fail(err)
	} else {
		end.Warned = len(result.Warnings) > 0
		data, err := marchwarden.EncodeResult(result)
		if err != nil {
			return end, fmt.Errorf("task %s: %w", h.task.ID, err)
		}
		if end.Result, err = h.e.blobs.Put(h.life, data); err != nil {
			return end, fmt.Errorf("store the result of task %s: %w", h.task.ID, err)
		}
	}
	if canceled {
		end.Status = dispatch.Canceled
	}
	return end, nil
}

// handBack frees the task for another worker before its lease ends.
func (h *hold) handBack() {
	h.cancel(dispatch.ErrReleased)
	h.mu.Lock() // a write that is under way ends first
	defer h.mu.Unlock()
	if h.life.Err() != nil {
		return
	}
	ctx, stop := context.WithTimeout(h.life, handBackFor)
	defer stop()
	head := h.head
	head.kind = kindRelease
	_, err := h.e.write(ctx, h.task, head, nil, h.record.last, rand.Text())
	h.die(dispatch.ErrReleased)
	if err == nil {
		err = h.pointer.Return(0)
	}
	if err != nil {
		h.e.log.Warn("could not hand back a task; its lease will end", "task", h.task.ID, "error", err)
	}
}
