package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// maxSpec is the longest specification of a task, in bytes: it travels in one message.
const maxSpec = 512 << 10

// workSubject is where the pointer to a task waits.
func workSubject(t dispatch.Task) string {
	return streams.WorkSubject(t.Queue, int(t.Priority), t.Owner, t.ID)
}

// logSubject is where the record of a task is.
func logSubject(t dispatch.Task) string { return streams.LogSubject(t.Investigation, t.Record) }

// Submit implements dispatch.Client.
func (e *Engine) Submit(ctx context.Context, t dispatch.Task) error {
	t = t.Completed()
	if err := t.Check(); err != nil {
		return err
	}
	spec, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode task %s: %w", t.ID, err)
	}
	if len(spec) > maxSpec {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "request",
			Message: fmt.Sprintf("the task takes %d bytes; at most %d are allowed", len(spec), maxSpec)}
	}
	old, err := e.once(ctx, streams.Message{Subject: streams.TaskSubject(t.ID), Data: spec, ID: "task." + t.ID.String()})
	switch {
	case err != nil:
		return fmt.Errorf("submit task %s: %w", t.ID, err)
	case old: // its first client may have died before it was queued
		known, end, err := e.known(ctx, t.ID)
		if end != nil || err != nil {
			return err
		}
		t = known
	}
	return e.requeue(ctx, t)
}

// once publishes what is the first on its subject, and says whether there was one before.
func (e *Engine) once(ctx context.Context, m streams.Message) (old bool, err error) {
	m.After = new(uint64)
	_, old, err = e.conn.Publish(ctx, m)
	if errors.Is(err, streams.ErrFenced) || errors.Is(err, streams.ErrFull) {
		return true, nil
	}
	return old, err
}

// requeue makes sure that a worker looks at a task. One that waits already waits once. The worker
// finds out if the task has ended.
func (e *Engine) requeue(ctx context.Context, t dispatch.Task) error {
	// The id of the publication is not the task's alone: one who was in the queue before
	// must be able to come back.
	_, _, err := e.conn.Publish(ctx, streams.Message{Subject: workSubject(t), ID: "work." + t.ID.String() + "." + rand.Text()})
	if err != nil && !errors.Is(err, streams.ErrFull) {
		return fmt.Errorf("queue task %s: %w", t.ID, err)
	}
	return nil
}

// spec is a task as it was submitted. An unknown one is CodeNotFound. One that has no place in the
// queue, so that no worker could take it, is CodeCorrupt: Submit did not write it. Its worker
// reports any other fault as the task's end.
func (e *Engine) spec(ctx context.Context, id marchwarden.TraceID) (t dispatch.Task, err error) {
	entry, found, err := e.conn.Last(ctx, streams.TaskSubject(id))
	if err != nil {
		return t, fmt.Errorf("read task %s: %w", id, err)
	}
	if !found {
		return t, marchwarden.Errorf(marchwarden.CodeNotFound, "task %s is not known", id)
	}
	if err := json.Unmarshal(entry.Data, &t); err != nil {
		return t, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read task %s", id)
	}
	if t.ID != id {
		return t, marchwarden.Errorf(marchwarden.CodeCorrupt, "read task %s: it says that it is %s", id, t.ID)
	}
	if t.Priority < dispatch.Urgent || t.Priority > dispatch.Low {
		return t, marchwarden.Errorf(marchwarden.CodeCorrupt, "read task %s: it has the priority %d", id, t.Priority)
	}
	queue := dispatch.Job{Queue: t.Queue, Slots: 1}
	return t.Completed(), marchwarden.Wrap(queue.Check(), marchwarden.CodeCorrupt, "read task %s", id)
}

// done is what is kept of a task when it has ended: all of it but the request.
type done struct {
	Task dispatch.Task `json:"task"`
	End  dispatch.End  `json:"end"`
}

// ended is how a task ended, if it has.
func (e *Engine) ended(ctx context.Context, id marchwarden.TraceID) (*done, error) {
	entry, found, err := e.conn.Last(ctx, streams.DoneSubject(id))
	if err != nil {
		return nil, fmt.Errorf("read the end of task %s: %w", id, err)
	}
	if !found {
		return nil, nil
	}
	return decoded[done](entry, "the end of the task")
}

// known is a task, as far as it is still kept, and its end if it has one.
func (e *Engine) known(ctx context.Context, id marchwarden.TraceID) (dispatch.Task, *dispatch.End, error) {
	d, err := e.ended(ctx, id)
	if err != nil {
		return dispatch.Task{}, nil, err
	}
	t, err := e.spec(ctx, id)
	switch {
	case d == nil:
		return t, nil, err
	case err != nil:
		t = d.Task // the specification is not kept as long as the end
	}
	return t, &d.End, nil
}

// copyEnd keeps the end of a task, as its record has it, for longer than the record is
// kept. It may be repeated.
func (e *Engine) copyEnd(ctx context.Context, t dispatch.Task, end dispatch.End) error {
	t.Request, t.Wishes = marchwarden.Request{}, dispatch.Wishes{}
	data, err := json.Marshal(done{t, end})
	if err != nil {
		return fmt.Errorf("encode the end of task %s: %w", t.ID, err)
	}
	header := nats.Header{}
	if t.ID == t.Investigation && (end.Warned || end.Status == dispatch.Failed) {
		header.Set(headerFlawed, string(end.Status))
	}
	_, err = e.once(ctx, streams.Message{Subject: streams.DoneSubject(t.ID), Header: header, Data: data, ID: "done." + t.ID.String()})
	return wrap("keep the end of task "+t.ID.String(), err)
}

// wish is that a task be canceled. By and At are for people who look into the stream.
type wish struct {
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
}

// Cancel says that a task is no longer wanted, or what is open of the investigation that it began.
// An unknown task is CodeNotFound.
func (e *Engine) Cancel(ctx context.Context, id marchwarden.TraceID, reason string) error {
	state, err := e.Look(ctx, id)
	if err != nil {
		return err
	}
	whole := state.Task.Investigation == id
	if state.End != nil && !whole {
		return nil
	}
	w, at, err := e.wished(ctx, id)
	if err != nil {
		return err
	}
	if w == nil || whole { // of which more may be open than by then
		data, _ := json.Marshal(wish{dispatch.Words(reason), e.cfg.Name, e.cfg.Now().UTC()}) // texts and times always marshal
		subject := streams.CancelSubject(id, at)
		// If another client writes one at the same moment, that is as good.
		if _, err := e.once(ctx, streams.Message{Subject: subject, Data: data, ID: subject}); err != nil {
			return fmt.Errorf("cancel task %s: %w", id, err)
		}
	}
	// Workers end what they have, and the steward what waits; both look now and then, told or not.
	if err := e.conn.NATS().Publish(streams.StopSubject(id), nil); err != nil {
		e.log.Warn("told no worker of a canceled task", "task", id, "error", err)
	}
	return nil
}

// canceled is the wish to cancel a task, nil if there is none. That an investigation be
// canceled concerns the tasks of it that there were by then.
func (e *Engine) canceled(ctx context.Context, t dispatch.Task) (*wish, error) {
	w, _, err := e.wished(ctx, t.ID)
	if w != nil || err != nil || t.Investigation == t.ID {
		return w, err
	}
	w, at, err := e.wished(ctx, t.Investigation)
	if w == nil || err != nil {
		return nil, err
	}
	spec, found, err := e.conn.Last(ctx, streams.TaskSubject(t.ID))
	if err != nil || found && spec.Seq > at {
		return nil, err
	}
	return w, nil
}

// maxWishes is how often an investigation can be canceled and resumed: each
// wish is read before the next can be found.
const maxWishes = 100

// wished is the last wish that is kept under an id, with its sequence. After maxWishes
// that is one which all that ever comes is older than.
func (e *Engine) wished(ctx context.Context, id marchwarden.TraceID) (w *wish, seq uint64, err error) {
	for range maxWishes {
		entry, found, err := e.conn.Last(ctx, streams.CancelSubject(id, seq))
		if err != nil {
			return nil, 0, fmt.Errorf("read whether task %s is canceled: %w", id, err)
		}
		if !found {
			return w, seq, nil
		}
		w, seq = new(wish), entry.Seq
		_ = json.Unmarshal(entry.Data, w)   // a client that may write here may cancel, whatever it writes
		w.Reason = dispatch.Words(w.Reason) // and need not have come by Cancel
	}
	return w, math.MaxUint64, nil
}

// Look says how a task is.
func (e *Engine) Look(ctx context.Context, id marchwarden.TraceID) (dispatch.State, error) {
	t, end, err := e.known(ctx, id)
	if err != nil {
		return dispatch.State{}, err
	}
	if end != nil {
		return dispatch.State{Task: t, Status: end.Status, Worker: end.Worker, Attempts: end.Attempt, End: end}, nil
	}
	last, err := e.tail(ctx, t)
	if err != nil {
		return dispatch.State{}, err
	}
	state := dispatch.State{Task: t, Status: dispatch.Waiting}
	if last.task != id {
		return state, nil
	}
	state.Worker, state.Attempts, state.End = last.worker, last.attempt, last.end
	switch last.kind {
	case kindRelease:
	case kindEnd:
		state.Status = last.end.Status
	default:
		state.Status = dispatch.Working
	}
	return state, nil
}

// settle ends a task that no worker has: if the last entry of its record has the sequence
// after (0 for none), its record is sealed and the end written and kept; one that has ended
// keeps its end. ErrReleased says that something was written meanwhile, or that another task of the
// record has not ended.
// The pointer stays, and is dropped by who finds it.
func (e *Engine) settle(ctx context.Context, t dispatch.Task, end dispatch.End, after uint64) error {
	r, err := e.read(ctx, t)
	if err != nil {
		return err
	}
	if r.end != nil {
		return e.copyEnd(ctx, t, *r.end)
	}
	// The end of this task would fence a worker on another task of the record.
	if r.last != after || r.other.Valid() {
		return fmt.Errorf("end task %s: %w", t.ID, dispatch.ErrReleased)
	}
	end.Attempt, end.At = r.attempt, e.cfg.Now().UTC()
	return e.finish(ctx, t, r, end, rand.Text())
}
