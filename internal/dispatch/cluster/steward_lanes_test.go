package cluster_test

import (
	"context"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// announce says that a worker with a free slot is there.
func (w *hubWorld) announce() {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.e.Announce(ctx, func() cluster.Presence {
			return cluster.Presence{Name: "worker", Queues: map[string]cluster.Load{"web": {Slots: 4}}}
		}); err != nil {
			w.Errorf("announce: %v", err)
		}
	}()
	w.Cleanup(func() { cancel(); <-done })
}

func TestMakesStuckConsumersAnew(t *testing.T) {
	w := newHubWorld(t)
	w.work(answer)
	first := w.task()
	w.submit(first)
	w.endsAs(first, dispatch.Done)
	w.pause(dispatch.Normal)
	task := w.task()
	w.submit(task)
	s, _ := w.keep(w.e, "one", 0)
	time.Sleep(4 * shortLease)
	if w.ended(task) != nil || s.Stats().Remade != 0 {
		t.Fatal("nobody is there to wait, and the consumer was made anew")
	}
	w.announce()
	w.endsAs(task, dispatch.Done)
	w.until("counted", func() bool { return s.Stats().Remade > 0 })
	stream, err := w.e.JetStream().Stream(t.Context(), streams.StreamWork)
	if err != nil {
		t.Fatal(err)
	}
	for lane := range streams.Lanes { // those with nothing to deliver are as they were
		c, err := stream.Consumer(t.Context(), streams.ConsumerName("web", int(dispatch.Normal), lane))
		if err != nil {
			t.Fatal(err)
		}
		if info := c.CachedInfo(); info.Paused != (info.Delivered.Consumer == 0) {
			t.Errorf("%s: paused %v, %d delivered", info.Name, info.Paused, info.Delivered.Consumer)
		}
	}
}

// pause has the lanes of a band deliver nothing.
func (w *hubWorld) pause(p dispatch.Priority) {
	w.Helper()
	stream, err := w.e.JetStream().Stream(w.Context(), streams.StreamWork)
	if err != nil {
		w.Fatal(err)
	}
	for lane := range streams.Lanes {
		if _, err := stream.PauseConsumer(w.Context(), streams.ConsumerName("web", int(p), lane), time.Now().Add(time.Hour)); err != nil {
			w.Fatal(err)
		}
	}
}

// Those who do what is urgent have a free slot between two tasks, for a moment. That is no
// sign that the lanes of what is less urgent are stuck, however long those wait.
func TestLessUrgentIsNotStuck(t *testing.T) {
	w := newHubWorld(t)
	s, _ := w.keep(w.e, "one", 0)
	w.announce()
	low := w.task()
	low.Priority = dispatch.Low
	for range 200 {
		urgent := w.task()
		urgent.Priority = dispatch.Urgent
		w.submit(urgent)
	}
	w.submit(low)
	began := time.Now()
	w.work(func(ctx context.Context, _ dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		return &marchwarden.Result{}, sleep(ctx, 80*time.Millisecond)
	})
	w.until("ended", func() bool {
		if got := s.Stats(); got.Open > 20 && (got.Remade != 0 || len(got.Stuck) != 0) { // urgent ones wait, too
			t.Fatalf("after %v: stats %+v", time.Since(began), got)
		}
		return w.ended(low) != nil
	})
	if took := time.Since(began); took < 5*shortLease {
		t.Errorf("it waited for %v only", took)
	}
}

// A lane that delivers nothing is told of and made anew though a task is in flight there
// whose worker lives: that a lease is renewed is not that something is delivered.
func TestStuckBesideATaskInFlight(t *testing.T) {
	w := newHubWorld(t)
	s, _ := w.keep(w.e, "one", 0)
	begun, let := make(chan marchwarden.TraceID, 16), make(chan struct{})
	w.work(func(ctx context.Context, task dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		begun <- task.ID
		select {
		case <-let:
			return &marchwarden.Result{}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	held, waits := w.task(), w.task()
	w.submit(held)
	<-begun
	w.pause(dispatch.Normal)
	w.submit(waits)
	w.announce()
	w.until("told", func() bool {
		status, err := w.e.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(status.Stuck) == 0 {
			return false
		}
		if got := status.Stuck[0]; len(status.Stuck) != 1 || got.Queue != "web" || got.Lane[:2] != "p1" || got.Waiting != 1 || got.For < 2*shortLease || status.Steward.Stuck != nil {
			t.Errorf("stuck: %+v, steward %+v", status.Stuck, status.Steward)
		}
		return true
	})
	w.until("made anew", func() bool { return s.Stats().Remade > 0 })
	close(let)
	w.endsAs(held, dispatch.Done)
	w.endsAs(waits, dispatch.Done)
	w.until("stuck no more", func() bool { return len(s.Stats().Stuck) == 0 })
}
