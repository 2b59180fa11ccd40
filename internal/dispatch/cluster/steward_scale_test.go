package cluster_test

import (
	"encoding/json"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// publish puts many messages into streams at once.
func (w *hubWorld) publish(subjects []string, data [][]byte) {
	w.Helper()
	for i := range subjects {
		msg := nats.NewMsg(subjects[i])
		msg.Data = data[i]
		if _, err := w.e.JetStream().PublishMsgAsync(msg); err != nil {
			w.Fatal(err)
		}
		if i%1000 == 999 || i == len(subjects)-1 {
			<-w.e.JetStream().PublishAsyncComplete()
		}
	}
}

// Old tasks are read once, by the first leader; after that they cost nothing, and a new
// leader does not read them again.
func TestManyOldTasks(t *testing.T) {
	t.Parallel()
	old, open, lease := 2_000, 50, shortLease
	if os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "full" {
		old, open, lease = 100_000, 5_000, 3*time.Second
	}
	w := hubWorldOf(t, lease)
	var subjects []string
	var data [][]byte
	var waiting []dispatch.Task
	for i := range old + open {
		task := w.task()
		spec, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		subjects, data = append(subjects, streams.TaskSubject(task.ID)), append(data, spec)
		if i < old {
			subjects, data = append(subjects, streams.DoneSubject(task.ID)), append(data, []byte(`{}`))
			continue
		}
		subjects, data = append(subjects, cluster.WorkSubject(task)), append(data, nil)
		waiting = append(waiting, task)
	}
	w.publish(subjects, data)
	lost := waiting[len(waiting)/2]
	w.lose(lost)

	began := time.Now()
	s, stop := w.keep(w.e, "one", 0)
	w.until("all read", func() bool { st := s.Stats(); return st.Ended >= uint64(old) && st.Open == open })
	t.Logf("%d old tasks read in %v", old, time.Since(began).Round(time.Millisecond))
	w.until("queued", func() bool { return w.queued(lost) })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rounds, at := s.Stats().Rounds, time.Now()
	w.until("four rounds", func() bool { return s.Stats().Rounds >= rounds+4 })
	runtime.ReadMemStats(&after)
	t.Logf("a round takes %v with the pause before it, and, with all else in this process, allocates %d kB", (time.Since(at) / 4).Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)/4/1024)
	if got := s.Stats(); got.Requeued != 1 || got.Open != open || got.Failures != 0 || got.Ended > got.Terms*uint64(old) { // all are read once a term; a busy machine may have cut one off
		t.Errorf("stats: %+v", got)
	}
	kv, err := w.e.JetStream().KeyValue(t.Context(), streams.BucketFacts)
	if err != nil {
		t.Fatal(err)
	}
	w.until("noted", func() bool { _, err := kv.Get(t.Context(), cluster.StewardKey); return err == nil })
	stop()

	began = time.Now()
	next, _ := w.keep(w.e, "two", 0)
	w.until("all known again", func() bool { return next.Stats().Open == open })
	t.Logf("the next leader knows all in %v", time.Since(began).Round(time.Millisecond))
}
