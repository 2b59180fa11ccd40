package cluster_test

import (
	"context"
	"slices"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// empty is a handler that has nothing to do.
func empty(_ context.Context, t dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
	return dispatchtest.Answer(t.ID, "Paris."), nil
}

// What the engine costs a task: from its submission to the end that is heard of by who
// waits, everything on disk.
func TestOverheadOfATask(t *testing.T) {
	w := &world{t: t, lease: cluster.DefaultLease, server: serve(t, t.TempDir(), true), lines: map[dispatch.Engine]*line{}}
	if err := cluster.Prepare(t.Context(), w.config("hub", w.server), cluster.Facts{}); err != nil {
		t.Fatal(err)
	}
	asks, works := w.open(t, "asks"), w.open(t, "works")
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- works.Work(ctx, dispatch.Job{Queue: "web", Slots: 4}, empty) }()
	n := 40
	if full() {
		n = 1000
	}
	var took []time.Duration
	for range n {
		task := dispatchtest.Task("web")
		began := time.Now()
		if err := asks.Submit(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		ended := false
		for event, err := range asks.Watch(t.Context(), dispatch.Watching{Task: task.ID}) {
			if err != nil {
				t.Fatal(err)
			}
			ended = event.Kind == dispatch.Ended && event.End.Status == dispatch.Done
		}
		if !ended {
			t.Fatal("it did not end")
		}
		took = append(took, time.Since(began))
	}
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
	took = took[n/10:] // the first ones make the queue
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	t.Logf("submit to result with fsync: p50 %s, p99 %s of %d tasks", p50, p99, len(took))
	if full() && p50 > 10*time.Millisecond {
		t.Errorf("half of the tasks took more than %s; 10 ms is the bar on an idle machine", p50)
	}
}
