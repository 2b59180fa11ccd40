package submit

// This part makes tasks of questions.
//
//	request                                task
//	a question, under a chosen id          that id; the run is its own
//	a question, no id chosen               an id derived from caller, member and request: a caller that asks again gets the same task
//	resume, nothing added                  the task of that id as it is; one that was canceled goes on, as below
//	resume, with more                      a derived id, on the run of the earlier task, when that has ended

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

const (
	// defaultGrace is Dispatcher.Grace unless the caller says otherwise.
	defaultGrace = 3 * time.Second
	// How often in a row, and after which pause, an engine that cannot be watched is tried again.
	watchPause = 500 * time.Millisecond
	watchTries = 60
)

// Dispatcher asks members by tasks of one investigation. It is safe for concurrent use.
type Dispatcher struct {
	Engine dispatch.Client
	Blobs  blob.Store // the engine's
	// Investigation is the caller's run.
	Investigation marchwarden.TraceID
	// Asker is the task that asks, if it is another than Investigation because it resumes that:
	// what it asks for is not what an earlier one asked for.
	Asker    marchwarden.TraceID
	Owner    string
	Priority dispatch.Priority
	Wishes   dispatch.Wishes // of new tasks
	// Hear is told of every event of a task that is waited for; nil for none.
	Hear func(dispatch.Task, dispatch.Event)
	// Network are all that may be asked now.
	Network func() []dispatch.Member
	// Grace is how long a task may take to hand over what there is when its caller has no more
	// time; 0 is three seconds.
	Grace time.Duration
	// Now is the clock by which deadlines become a task's time.
	Now func() time.Time
}

var _ dispatch.Dispatcher = (*Dispatcher)(nil)

// Members are all that may be asked.
func (d *Dispatcher) Members() []dispatch.Member { return d.Network() }

// Evidence is what is stored under a hash, whichever run cites it.
func (d *Dispatcher) Evidence(ctx context.Context, _, hash string) ([]byte, error) {
	return blob.Evidence(ctx, d.Blobs, hash)
}

// Dispatch has a member's task worked on, and waits for its end. When ctx ends, the task
// is canceled and has Grace to end with what there is; when it ends because another worker
// has the caller's own task now, the task continues, for that worker to find.
func (d *Dispatcher) Dispatch(ctx context.Context, member string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if err := d.may(ctx, member, req); err != nil {
		return nil, dispatch.NotAsked(err)
	}
	if req.Resume != "" {
		return d.goOn(ctx, member, req, sink)
	}
	id, chosen := marchwarden.ChosenTraceID(ctx)
	if !chosen {
		var err error
		if id, err = d.derive(member, req); err != nil {
			return nil, dispatch.NotAsked(err)
		}
	}
	return d.submit(ctx, d.task(ctx, id, id, member, req), sink)
}

// may refuses what no task can be made of.
func (d *Dispatcher) may(ctx context.Context, member string, req marchwarden.Request) error {
	if err := ctx.Err(); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "ask %s", member)
	}
	known := d.Network()
	if !slices.ContainsFunc(known, func(m dispatch.Member) bool { return m.Name == member }) {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "researcher", Message: fmt.Sprintf("no researcher in the network is called %.80q", member)}
	}
	if err := req.Validate(); err != nil {
		return err
	}
	return NotFollowing(req)
}

// NotFollowing refuses a question that continues a conversation: the workers of a cluster
// do not have the runs that it follows.
func NotFollowing(req marchwarden.Request) error {
	if req.Follow == "" {
		return nil
	}
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "follow", Message: "a cluster continues no conversation: its workers do not have the earlier runs",
		Hint: "ask the whole question, or without the cluster"}
}

// task is the task of a request.
func (d *Dispatcher) task(ctx context.Context, id, record marchwarden.TraceID, member string, req marchwarden.Request) dispatch.Task {
	t := dispatch.Task{ID: id, Record: record, Investigation: d.Investigation, Queue: member,
		Priority: d.Priority, Owner: d.Owner, Wishes: d.Wishes, Request: req}
	if end, ok := ctx.Deadline(); ok {
		t.Within = max(time.Millisecond, end.Sub(d.Now()))
	}
	return t
}

// submit submits a task and waits for it.
func (d *Dispatcher) submit(ctx context.Context, t dispatch.Task, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if err := d.Engine.Submit(ctx, t); err != nil {
		if released(ctx) {
			return nil, errReleased(t)
		}
		return nil, fmt.Errorf("submit the task for %s: %w", t.Queue, err)
	}
	end, err := d.await(ctx, t, sink)
	if err != nil {
		return nil, err
	}
	return d.result(ctx, t, end)
}

// goOn resumes the run of an earlier task, or gets what that gives.
func (d *Dispatcher) goOn(ctx context.Context, member string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	record, err := marchwarden.ParseTraceID(req.Resume)
	if err != nil {
		return nil, dispatch.NotAsked(err)
	}
	s, err := d.Engine.Look(ctx, record)
	if err != nil {
		return nil, dispatch.NotAsked(err)
	}
	if s.Task.Queue != member {
		return nil, dispatch.NotAsked(&marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "resume",
			Message: fmt.Sprintf("run %s is none of the researcher %s", record, member), Hint: "ask the researcher that made it"})
	}
	if s.End == nil { // its client may have died before it was queued
		if err := d.Engine.Submit(ctx, s.Task); err != nil {
			return nil, fmt.Errorf("submit the task for %s again: %w", member, err)
		}
	}
	end, err := d.await(ctx, s.Task, sink)
	if err != nil {
		return nil, err
	}
	// What was canceled while its caller had no time may go on now that one has.
	if req.Constraints == nil && (end.Status != dispatch.Canceled || ctx.Err() != nil) {
		return d.result(ctx, s.Task, end)
	}
	id, err := d.derive(member, req)
	if err != nil {
		return nil, dispatch.NotAsked(err)
	}
	return d.submit(ctx, d.task(ctx, id, s.Task.Record, member, req), sink)
}

// await waits for the end of a task. When ctx ends first, the task is told, once.
func (d *Dispatcher) await(ctx context.Context, t dispatch.Task, sink marchwarden.Sink) (*dispatch.End, error) {
	w := dispatch.Watching{Task: t.ID}
	hear := func(e dispatch.Event) {
		if d.Hear != nil {
			d.Hear(t, e)
		}
		if e.Kind == dispatch.Progress && sink != nil {
			e.Progress.TraceID = named(t, e.Progress)
			sink(e.Progress)
		}
	}
	end, err := Follow(ctx, d.Engine, &w, hear)
	switch {
	case end != nil:
		return end, nil
	case ctx.Err() == nil:
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "wait for %s", t.Queue)
	case released(ctx):
		return nil, errReleased(t)
	}
	late, done := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(d.Grace, defaultGrace))
	defer done()
	if err := d.Engine.Cancel(late, t.ID, "the caller has no more time"); err != nil {
		return nil, marchwarden.Wrap(errors.Join(ctx.Err(), err), marchwarden.CodeCanceled, "ask %s", t.Queue)
	}
	if end, _ = Follow(late, d.Engine, &w, hear); end == nil {
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "%s did not come back in time", t.Queue)
	}
	return end, nil
}

// named is the run that an event tells of, by the name under which it is found again:
// whatever a member calls it, that is its task. A run that goes on has a name already,
// which is another task's.
func named(t dispatch.Task, e marchwarden.Event) marchwarden.TraceID {
	if t.ID != t.Record || !e.TraceID.Valid() {
		return marchwarden.TraceID{}
	}
	return t.ID
}

// Follow follows one task until it ends, ctx does, or the engine cannot be reached for
// long. What happens is told to hear, which may be nil. w goes along, so that it can be resumed.
func Follow(ctx context.Context, engine dispatch.Client, w *dispatch.Watching, hear func(dispatch.Event)) (*dispatch.End, error) {
	for tries := 1; ; tries++ {
		var failed error
		for e, err := range engine.Watch(ctx, *w) {
			if failed = err; err != nil {
				break
			}
			w.After, tries = max(w.After, e.Seq), 0
			ended := e.Kind == dispatch.Ended && e.End != nil
			if hear != nil && (ended || ctx.Err() == nil) { // the end is heard whenever it is given
				hear(e)
			}
			if ended {
				return e.End, nil
			}
		}
		if ctx.Err() != nil {
			return nil, marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for %s", w.Task)
		}
		if failed == nil {
			failed = marchwarden.Errorf(marchwarden.CodeUnavailable, "the engine does not say how task %s ended", w.Task)
		}
		if tries >= watchTries || errors.Is(failed, marchwarden.CodeNotFound) {
			return nil, failed
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

// result is what a task ended with.
func (d *Dispatcher) result(ctx context.Context, t dispatch.Task, end *dispatch.End) (*marchwarden.Result, error) {
	late, done := context.WithTimeout(context.WithoutCancel(ctx), 10*defaultGrace)
	defer done()
	res, err := ResultOf(late, d.Blobs, t.Queue, end)
	if err == nil || end.Result.Valid() {
		return res, err
	}
	code := marchwarden.CodeOf(err)
	if code == marchwarden.CodeCanceled && ctx.Err() == nil { // not by us: it would be taken for the caller's
		code = marchwarden.CodeUnavailable
	}
	e := &marchwarden.Error{Code: code, Message: end.Message, Hint: end.Hint}
	if !strings.Contains(e.Message, t.Queue) {
		e.Message = strings.TrimSuffix(fmt.Sprintf("researcher %s: %s", t.Queue, e.Message), ": ")
	}
	if end.NotAsked || end.Status == dispatch.Canceled && end.Attempt == 0 { // no worker had begun
		return nil, dispatch.NotAsked(e)
	}
	return nil, e
}

// released says that ctx has ended because another process waits for the task now: its worker, or,
// as the server ends, the next server.
func released(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, dispatch.ErrReleased) || errors.Is(cause, runs.ErrShutdown)
}

func errReleased(t dispatch.Task) error {
	return marchwarden.Wrap(dispatch.ErrReleased, marchwarden.CodeCanceled, "wait for %s", t.Queue)
}

// derive is the id of a task whose caller chose none.
func (d *Dispatcher) derive(member string, req marchwarden.Request) (marchwarden.TraceID, error) {
	canonical, err := json.Marshal(req) // the fields of a struct have an order
	if err != nil {
		return marchwarden.TraceID{}, marchwarden.Wrap(err, marchwarden.CodeInvalid, "write the request")
	}
	return DeriveID("marchwarden task/1", d.Investigation.String(), cmp.Or(d.Asker, d.Investigation).String(), member, string(canonical))
}

// DeriveID is an id that the same parts always give, and other parts never: a UUID of
// version 8. The first part says what kind of thing is named.
func DeriveID(parts ...string) (marchwarden.TraceID, error) {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return marchwarden.ParseTraceID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}
