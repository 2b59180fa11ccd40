package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

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
	many, inMind := 6, 3
	if full() {
		many, inMind = 40, 10
	}
	tasks := make([]dispatch.Task, many)
	for i := range tasks {
		tasks[i] = w.task()
		w.specify(tasks[i]) // all of them lost
	}
	w.work(answer)
	s, stop := w.keep(w.e, "one", inMind)
	most := 0
	for _, task := range tasks {
		w.until("ended", func() bool { most = max(most, s.Stats().Open); return w.ended(task) != nil })
	}
	if most > inMind || most == 0 {
		t.Errorf("%d in mind at once", most)
	}
	if got := s.Stats(); got.Requeued != uint64(many) {
		t.Errorf("stats: %+v", got)
	}
	kv, err := w.e.JetStream().KeyValue(t.Context(), streams.BucketFacts)
	if err != nil {
		t.Fatal(err)
	}
	w.until("noted", func() bool {
		entry, err := kv.Get(t.Context(), cluster.StewardKey)
		return err == nil && strings.HasPrefix(string(entry.Value()), fmt.Sprintf(`{"task":%d,`, many+1))
	})
	stop()
	last := w.task()
	w.specify(last)
	s, _ = w.keep(w.e, "two", 0)
	w.until("ended", func() bool { return w.ended(last) != nil })
	if got := s.Stats(); got.Requeued != 1 || got.Ended > uint64(many+1) {
		t.Errorf("stats: %+v", got)
	}
}
