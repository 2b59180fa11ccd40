package cluster_test

import (
	"context"
	"errors"
	"fmt"
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

// ended watches a task until it has ended.
func ended(t *testing.T, e *cluster.Engine, task dispatch.Task) (end *dispatch.End) {
	t.Helper()
	for event, err := range e.Watch(within(t, 20*time.Second), dispatch.Watching{Task: task.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		end = event.End
	}
	if end == nil {
		t.Fatalf("task %s did not end", task.ID)
	}
	return end
}

// A worker that stops lets another go on at once, and a task that is handed back again and
// again is not taken for one that kills.
func TestHandedBackIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	asks, g := w.open(t, "asks"), newGate()
	task := dispatchtest.Task("web")
	if err := asks.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	stop := work(t, w.open(t, "worker-0"), 1, g.handle)
	began := time.Now()
	for i := range dispatch.MaxAttempts + 2 {
		g.next(t)
		if state, err := asks.Look(t.Context(), task.ID); err != nil || state.Status != dispatch.Working || state.Attempts != i+1 {
			t.Fatalf("attempt %d: %+v, %v", i+1, state, err)
		}
		next := work(t, w.open(t, fmt.Sprint("worker-", i+1)), 1, g.handle)
		stop()
		stop = next
	}
	g.next(t)
	close(g.let)
	if end := ended(t, asks, task); end.Status != dispatch.Done {
		t.Errorf("it ended as %+v", end)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s to change hands", took)
	}
}

// A consumer that is gone is made again.
func TestLostConsumers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	work(t, e, 1, empty)
	task := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	ended(t, e, task)
	for band := range streams.Bands {
		for lane := range streams.Lanes {
			if err := e.JetStream().DeleteConsumer(t.Context(), streams.StreamWork, streams.ConsumerName("web", band, lane)); err != nil {
				t.Fatal(err)
			}
		}
	}
	task = dispatchtest.Task("web")
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	ended(t, e, task)
}

// A canceled investigation can be resumed later.
func TestGoingOnWithWhatWasCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	first := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{}, 1)
	work(t, e, 1, func(ctx context.Context, task dispatch.Task, lines dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		if err := lines.Append(ctx, []byte(task.Queue+"\n")); err != nil {
			return nil, err
		}
		if task.ID == first.ID {
			begun <- struct{}{}
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), dispatch.ErrReleased) || !errors.Is(context.Cause(ctx), context.Canceled) {
				t.Errorf("it was canceled by %v", context.Cause(ctx))
			}
		}
		return dispatchtest.Answer(task.ID, "Paris."), nil
	})
	<-begun
	if err := e.Cancel(t.Context(), first.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if end := ended(t, e, first); end.Status != dispatch.Canceled || !end.Result.Valid() {
		t.Fatalf("it ended as %+v", end)
	}
	for _, investigation := range []marchwarden.TraceID{first.ID, {}} { // in the same place, and in another
		later := dispatchtest.Task("web")
		later.Record, later.Investigation, later.Request.Resume = first.ID, investigation, first.ID.String()
		if !investigation.Valid() {
			later.Investigation = later.ID
		}
		if err := e.Submit(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		end := ended(t, e, later)
		if end.Status != dispatch.Done {
			t.Fatalf("it ended as %+v", end)
		}
		if trace, err := e.Blobs().Get(t.Context(), end.Trace); err != nil || string(trace) != "web\nweb\n" {
			t.Errorf("its record is %q, %v", trace, err)
		}
	}
}

// A task of which nothing but the specification was written is made whole by handing it
// in again.
func TestHalfSubmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	task := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	stream, err := e.JetStream().Stream(t.Context(), streams.StreamWork)
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	again := task
	again.Priority, again.Queue = dispatch.Low, "arxiv" // what it is, it stays
	for range 3 {
		if err := e.Submit(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := stream.Info(t.Context()); err != nil || info.State.Msgs != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	work(t, e, 1, empty)
	if end := ended(t, e, task); end.Status != dispatch.Done || end.Attempt != 1 {
		t.Errorf("it ended as %+v", end)
	}
	if state, err := e.Look(t.Context(), task.ID); err != nil || state.Task.Queue != "web" {
		t.Errorf("%+v, %v", state, err)
	}
}

// Preparing again changes what is to be changed, and nothing else.
func TestPrepareAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	stop := work(t, e, 1, empty)
	task := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	ended(t, e, task)
	stop()
	if err := cluster.Prepare(t.Context(), w.config("hub", w.server), cluster.Facts{Lease: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if got := w.open(t, "two").Facts().Lease; got != 20*time.Second {
		t.Errorf("the lease is %s", got)
	}
	consumer, err := e.JetStream().Consumer(t.Context(), streams.StreamWork, streams.ConsumerName("web", 1, 0))
	if err != nil || consumer.CachedInfo().Config.AckWait != 20*time.Second {
		t.Errorf("%+v, %v", consumer.CachedInfo().Config, err)
	}
	if state, err := e.Look(t.Context(), task.ID); err != nil || state.Status != dispatch.Done {
		t.Errorf("%+v, %v", state, err)
	}
}

// Two tasks of one record do not write to it at the same time.
func TestOneTaskOfARecordAtATime(t *testing.T) {
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
	select {
	case task := <-g.begun:
		t.Fatalf("task %s was begun beside the first", task.ID)
	case <-time.After(300 * time.Millisecond):
	}
	g.let <- struct{}{}
	if task := g.next(t); task.ID != later.ID {
		t.Errorf("task %s was begun", task.ID)
	}
	g.let <- struct{}{}
	if end := ended(t, e, later); end.Status != dispatch.Done {
		t.Errorf("it ended as %+v", end)
	}
}

// slow is evidence that takes its time.
type slow struct {
	blob.Store
	takes time.Duration
	asked chan string // hears that it is asked
}

func (s slow) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	s.asked <- ref.String()
	time.Sleep(s.takes)
	return s.Store.Get(ctx, ref)
}

// A task that takes longer to claim than its lease lasts is not taken away meanwhile.
func TestSlowClaimKeepsItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	evidence, asked := blob.NewMem(), make(chan string, 8)
	first := w.openOn(t, "first", evidence, time.Now)
	task := handBack(t, first)
	work(t, w.openOn(t, "second", slow{evidence, 7 * time.Second, asked}, time.Now), 1, empty)
	<-asked // it is at its claim
	work(t, w.openOn(t, "third", evidence, time.Now), 1, empty)
	if end := ended(t, first, task); end.Status != dispatch.Done || end.Attempt != 2 || end.Worker != "second" {
		t.Errorf("it ended as %+v", end)
	}
}

// What is claimed when the time to drain is over is handed back, and not begun.
func TestClaimedTooLateIsNotBegun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	evidence, asked := blob.NewMem(), make(chan string, 8)
	first := w.openOn(t, "first", evidence, time.Now)
	task := handBack(t, first)
	var begun atomic.Int32
	stop := work(t, w.openOn(t, "leaves", slow{evidence, time.Second, asked}, time.Now), 1, func(ctx context.Context, task dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		begun.Add(1)
		return nil, context.Cause(ctx)
	})
	<-asked // it is at its claim
	stop()
	if n := begun.Load(); n != 0 {
		t.Errorf("it was begun %d times by one who leaves", n)
	}
	work(t, w.openOn(t, "stays", evidence, time.Now), 1, empty)
	if end := ended(t, first, task); end.Status != dispatch.Done || end.Attempt != 3 || end.Worker != "stays" {
		t.Errorf("it ended as %+v", end)
	}
}
