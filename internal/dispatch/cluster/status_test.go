package cluster_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// eventually waits for something that must become true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never %s", what)
		}
	}
}

// announce says that a worker is there until stop is called.
func announce(t *testing.T, e *cluster.Engine, say func() cluster.Presence) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		e.Announce(ctx, say)
	}()
	stop = func() {
		cancel()
		<-over
	}
	t.Cleanup(func() { cancel() })
	return stop
}

func names(t *testing.T, e *cluster.Engine) []string {
	t.Helper()
	workers, err := e.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, w := range workers {
		list = append(list, w.Name)
	}
	return list
}

func TestPresence(t *testing.T) {
	t.Parallel()
	const lease = 600 * time.Millisecond
	w := newWorld(t, lease)
	old, young, looks := w.open(t, "old"), w.open(t, "young"), w.open(t, "looks")
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	web, arxiv := dispatch.Member{Name: "web", Scope: "old words"}, dispatch.Member{Name: "arxiv", Scope: "papers"}
	var draining atomic.Bool
	stopOld := announce(t, old, func() cluster.Presence {
		return cluster.Presence{Name: "old", Members: []dispatch.Member{web, arxiv}, Since: since, Draining: draining.Load(),
			Queues: map[string]cluster.Load{"web": {Slots: 2, Busy: 1}}}
	})
	announce(t, young, func() cluster.Presence {
		return cluster.Presence{Name: "young", Members: []dispatch.Member{{Name: "web", Scope: "new words"}}, Since: since.Add(time.Hour)}
	})
	eventually(t, "both there", func() bool { return cmp.Equal(names(t, looks), []string{"old", "young"}) })
	// On a busy machine an entry may lapse; what announces itself comes back.
	eventually(t, "the words of the youngest", func() bool {
		members, err := looks.Members(t.Context())
		return err == nil && cmp.Equal([]dispatch.Member{arxiv, {Name: "web", Scope: "new words"}}, members)
	})
	time.Sleep(2 * lease) // longer than an entry lives by itself
	eventually(t, "both still there", func() bool { return cmp.Equal(names(t, looks), []string{"old", "young"}) })
	draining.Store(true)
	eventually(t, "draining", func() bool {
		workers, err := looks.Workers(t.Context())
		return err == nil && len(workers) == 2 && workers[0].Draining
	})
	stopOld()
	eventually(t, "one left", func() bool { return cmp.Equal(names(t, looks), []string{"young"}) })
	_ = young.Close() // dies without a word
	died := time.Now()
	eventually(t, "forgotten", func() bool { return len(names(t, looks)) == 0 })
	if took := time.Since(died); took > 10*lease {
		t.Errorf("forgotten after %v", took)
	}
	eventually(t, "without members", func() bool {
		members, err := looks.Members(t.Context())
		return err == nil && len(members) == 0
	})
}

func TestStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lease)
	e := w.open(t, "looks")
	held, waiting, nobodys := dispatchtest.Task("web"), dispatchtest.Task("web"), dispatchtest.Task("arxiv")
	waiting.Priority = dispatch.Low
	for _, task := range []dispatch.Task{held, waiting, nobodys} {
		if err := e.Submit(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	taken, over := make(chan struct{}, 2), make(chan error, 1)
	go func() {
		over <- w.open(t, "works").Work(ctx, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, task dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
			taken <- struct{}{}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
	}()
	announce(t, e, func() cluster.Presence {
		return cluster.Presence{Name: "works", Queues: map[string]cluster.Load{"web": {Slots: 1, Busy: 1}}}
	})
	<-taken
	eventually(t, "announced", func() bool { return len(names(t, e)) == 1 })
	status, err := e.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []cluster.Queue{{Name: "web", Waiting: 1, InFlight: 1, Workers: 1, Slots: 1, Busy: 1}}
	if diff := cmp.Diff(want, status.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	if status.Unserved != 1 || status.Steward != nil {
		t.Errorf("unserved %d, steward %v", status.Unserved, status.Steward)
	}
	if len(status.Hubs) != 1 || status.Hubs[0].Name != "hub" || status.Hubs[0].Offline {
		t.Errorf("hubs %+v", status.Hubs)
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// A worker that starts while no hub can be reached is seen when one can.
func TestAnnouncedWhenAHubIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lease)
	e, looks := w.open(t, "one"), w.open(t, "looks")
	l := w.line(e)
	l.pause()
	l.cut()
	eventually(t, "cut off", func() bool { return e.Ready() != nil })
	stop := announce(t, e, func() cluster.Presence { return cluster.Presence{Name: "one"} })
	time.Sleep(100 * time.Millisecond)
	l.resume()
	eventually(t, "seen", func() bool { return len(names(t, looks)) == 1 })
	stop()
}

// One worker that writes nonsense hides no other.
func TestUnreadablePresence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lease)
	e := w.open(t, "one")
	kv, err := e.JetStream().KeyValue(t.Context(), streams.BucketWorker)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), "worker.odd", "{"); err != nil {
		t.Fatal(err)
	}
	stop := announce(t, e, func() cluster.Presence { return cluster.Presence{Name: "one"} })
	defer stop()
	eventually(t, "seen", func() bool { return len(names(t, e)) == 1 })
}
