package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// openQueue opens the queue web.
func openQueue(t *testing.T, w *world, e *cluster.Engine) *streams.Queue {
	t.Helper()
	q, err := e.Conn().OpenQueue(t.Context(), "web", w.lease)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

// submit submits a task of an owner whose tasks wait in a lane.
func submit(t *testing.T, e *cluster.Engine, lane string) {
	t.Helper()
	task := dispatchtest.Task("web")
	task.Priority = dispatch.Urgent
	for i := 0; ; i++ {
		task.Owner = fmt.Sprint("owner ", i)
		if strings.HasPrefix(cluster.WorkSubject(task), "mw.work.web.p0."+lane+".") {
			break
		}
	}
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, q *streams.Queue) *streams.Pointer {
	t.Helper()
	p, err := q.Next(within(t, 20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// none says what a queue gives that should give nothing.
func none(t *testing.T, q *streams.Queue, d time.Duration) {
	t.Helper()
	if p, err := q.Next(within(t, d)); p != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the queue gives %+v, %v", p, err)
	}
}

// What was announced while a taker was busy, and others took, does not keep it from what comes now.
func TestOldAnnouncements(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	busy, other := openQueue(t, w, e), openQueue(t, w, e)
	const many = 64 // so that nearly all lanes of two bands have some
	submitAll(t, e, many, func(i int) dispatch.Task {
		task := dispatchtest.Task("web")
		task.Owner, task.Priority = fmt.Sprint(i), dispatch.Priority(i%2)
		return task
	})
	for range many {
		if err := next(t, other).Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	task := dispatchtest.Task("web")
	task.Priority = dispatch.Low
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	next(t, busy)
	if took := time.Since(began); took > 5*time.Second { // a third of a lease
		t.Errorf("a free slot took a task after %s", took)
	}
}

// What comes for a request that was given up is given back, and not kept from all until the end of
// its lease.
func TestLateAnswerIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	one, other := w.open(t, "one"), w.open(t, "other")
	q := openQueue(t, w, one)
	submit(t, other, "0")
	if err := next(t, q).Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	none(t, q, 200*time.Millisecond) // all lanes are known, and lane 1 is the next
	submit(t, other, "1")
	submit(t, other, "1")
	time.Sleep(50 * time.Millisecond) // it is announced
	l := w.line(one)
	l.pause()
	time.AfterFunc(3300*time.Millisecond, l.resume) // longer than one request is waited for
	if first, second := next(t, q), next(t, q); first.Task == second.Task {
		t.Errorf("task %s is taken twice", first.Task)
	} else if first.Delivered+second.Delivered == 2 {
		t.Skip("on a machine this slow no answer was late")
	}
	none(t, q, 300*time.Millisecond)
}

// A worker that was away for longer than the lease of a task says nothing about it any more: the
// hub would take it for the word of the present one.
func TestLateWordIsNotSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lease)
	first, second := openQueue(t, w, w.open(t, "first")), openQueue(t, w, w.open(t, "second"))
	submit(t, w.open(t, "client"), "0")
	lost := next(t, first)
	held := next(t, second)
	if held.Task != lost.Task || held.Delivered != 2 {
		t.Fatalf("the second has %+v, the first had %+v", held, lost)
	}
	if err := lost.Renew(t.Context()); err == nil || !lost.Over() {
		t.Error("a lease that had ended was renewed")
	}
	if err := held.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lost.Return(0); err == nil {
		t.Error("a task was handed back that is somebody else's")
	}
	none(t, second, 500*time.Millisecond)
}

// froze is evidence that the process which asks for it is frozen at, for an hour of its
// own clock.
type froze struct {
	blob.Store
	ahead *atomic.Int64
}

func (f froze) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	f.ahead.Store(int64(time.Hour))
	return f.Store.Get(ctx, ref)
}

// A worker that stood still between taking a task and claiming it, for longer than its lease, does
// not claim it.
func TestLateClaimIsNotMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lease)
	evidence, ahead := blob.NewMem(), &atomic.Int64{}
	first := w.openOn(t, "first", evidence, time.Now)
	task := handBack(t, first)
	stop := work(t, w.openOn(t, "frozen", froze{evidence, ahead}, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }), 1, empty)
	eventually(t, "frozen", func() bool { return ahead.Load() > 0 })
	stop()
	work(t, w.openOn(t, "third", evidence, time.Now), 1, empty)
	if end := ended(t, first, task); end.Worker != "third" || end.Attempt != 2 {
		t.Errorf("it ended as %+v", end)
	}
}

// A task that waits for another of its record, and is canceled, does not end before that:
// its end would take the record from the worker on the other.
func TestCanceledBehindAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e, g := w.open(t, "one"), newGate()
	first, later := dispatchtest.Task("web"), dispatchtest.Task("web")
	later.Record, later.Investigation, later.Request.Resume = first.ID, first.ID, first.ID.String()
	work(t, e, 2, g.handle)
	if err := e.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	g.next(t)
	if err := e.Submit(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if err := e.Cancel(t.Context(), later.ID, "of no use"); err != nil {
		t.Fatal(err)
	}
	if err := e.SettleCanceled(t.Context(), later); !errors.Is(err, dispatch.ErrReleased) {
		t.Fatal(err)
	}
	if s, err := e.Look(t.Context(), later.ID); err != nil || s.End != nil {
		t.Errorf("the later task: %+v, %v", s, err)
	}
	g.let <- struct{}{}
	if end := ended(t, e, first); end.Status != dispatch.Done || end.Attempt != 1 {
		t.Errorf("the first ended as %+v", end)
	}
	if end := ended(t, e, later); end.Status != dispatch.Canceled || end.Attempt != 0 {
		t.Errorf("the later ended as %+v", end)
	}
}

// What a handler says, however long, is passed on as far as it fits.
func TestLongWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e, task := w.open(t, "one"), dispatchtest.Task("web")
	work(t, e, 1, func(context.Context, dispatch.Task, dispatch.Lines, marchwarden.Sink) (*marchwarden.Result, error) {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "%s", strings.Repeat("é", 1<<20))
	})
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	end := ended(t, e, task)
	if end.Status != dispatch.Failed || end.Code != marchwarden.CodeDenied || len(end.Message) > 5000 || !strings.HasPrefix(end.Message, "éé") || strings.Contains(end.Message, "\ufffd") {
		t.Errorf("it ended as %.200q, %s with %d bytes", end.Message, end.Code, len(end.Message))
	}
}
