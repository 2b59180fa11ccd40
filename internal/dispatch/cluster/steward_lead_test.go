package cluster_test

import (
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

func TestOneLeadsAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	w := hubWorldOf(t, lease)
	doomed := w.open("doomed")
	first, stop := w.keep(doomed, "first", 0)
	w.until("led", func() bool { return first.Stats().Leading })
	second, _ := w.keep(w.e, "second", 0)
	task := w.task()
	w.specify(task)
	w.until("queued", func() bool {
		if second.Stats().Leading {
			t.Fatal("two lead")
		}
		return w.queued(task)
	})
	if got := second.Stats(); got.Rounds+got.Requeued != 0 {
		t.Errorf("the other acts, too: %+v", got)
	}
	_ = doomed.Close() // dies without a word
	died := time.Now()
	w.until("taken over", func() bool { return second.Stats().Leading })
	if took := time.Since(died); took > 4*lease { // two, and what a busy machine adds
		t.Errorf("taken over after %v, with a lease of %v", took, lease)
	}
	w.until("deposed", func() bool { return !first.Stats().Leading })
	task = w.task()
	w.specify(task)
	w.until("queued", func() bool { return w.queued(task) })
	status, err := w.e.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Steward == nil || status.Steward.Name != "second" {
		t.Errorf("the status has %+v", status.Steward)
	}
	stop()
}

func TestALeaderThatStopsNeedNotBeWaitedFor(t *testing.T) {
	w := newHubWorld(t)
	first, stop := w.keep(w.e, "first", 0)
	w.until("led", func() bool { return first.Stats().Leading })
	stop()
	kv, err := w.e.JetStream().KeyValue(t.Context(), streams.BucketWorker)
	if err != nil {
		t.Fatal(err)
	}
	if entry, err := kv.Get(t.Context(), cluster.StewardKey); err == nil {
		t.Errorf("it left %s behind", entry.Value())
	}
	if first.Stats().Leading {
		t.Error("it says that it leads")
	}
}

// What has ended costs nothing: a new leader begins where the one before was, and what
// does not fit in mind waits for its turn.
func TestRemembersLittle(t *testing.T) {
	t.Parallel()
	w := hubWorldOf(t, 2*time.Second) // a steward that loses its lease counts anew
	const many = 40
	tasks := make([]dispatch.Task, many)
	for i := range tasks {
		tasks[i] = w.task()
		w.specify(tasks[i]) // all of them lost
	}
	w.work(answer)
	s, stop := w.keep(w.e, "one", many/4)
	most := 0
	for _, task := range tasks {
		w.until("ended", func() bool { most = max(most, s.Stats().Open); return w.ended(task) != nil })
	}
	if most > many/4 || most == 0 {
		t.Errorf("%d in mind at once", most)
	}
	if got := s.Stats(); got.Requeued != many {
		t.Errorf("stats: %+v", got)
	}
	kv, err := w.e.JetStream().KeyValue(t.Context(), streams.BucketFacts)
	if err != nil {
		t.Fatal(err)
	}
	w.until("noted", func() bool {
		entry, err := kv.Get(t.Context(), cluster.StewardKey)
		return err == nil && string(entry.Value()) == `{"task":41}`
	})
	stop()
	last := w.task()
	w.specify(last)
	s, _ = w.keep(w.e, "two", 0)
	w.until("ended", func() bool { return w.ended(last) != nil })
	if got := s.Stats(); got.Requeued != 1 || got.Ended > many+1 {
		t.Errorf("stats: %+v", got)
	}
}
