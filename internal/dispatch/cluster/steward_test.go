package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

const shortLease = 600 * time.Millisecond

// hubWorld is a hub and an engine on it.
type hubWorld struct {
	*testing.T
	hub *hub.Hub
	e   *cluster.Engine
	n   int
}

func newHubWorld(t *testing.T) *hubWorld {
	t.Helper()
	t.Parallel()
	return hubWorldOf(t, shortLease)
}

func hubWorldOf(t *testing.T, lease time.Duration) *hubWorld {
	t.Helper()
	h, err := hub.Start(hub.Config{Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	w := &hubWorld{T: t, hub: h}
	if err := cluster.Prepare(t.Context(), w.config("prepare"), cluster.Facts{Lease: lease}); err != nil {
		t.Fatal(err)
	}
	w.e = w.open("test")
	return w
}

func (w *hubWorld) config(name string) cluster.Config {
	return cluster.Config{InProcess: w.hub, Name: name, Now: time.Now}
}

func (w *hubWorld) open(name string) *cluster.Engine {
	w.Helper()
	e, err := cluster.Open(w.Context(), w.config(name))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = e.Close() })
	return e
}

// task is a new one.
func (w *hubWorld) task() dispatch.Task {
	w.Helper()
	w.n++
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n))
	if err != nil {
		w.Fatal(err)
	}
	return dispatch.Task{ID: id, Record: id, Investigation: id, Queue: "web", Priority: dispatch.Normal, Request: marchwarden.Request{Question: "why?"}}
}

// keep begins a steward; stop ends it.
func (w *hubWorld) keep(e *cluster.Engine, name string, remember int) (s *cluster.Steward, stop func()) {
	w.Helper()
	s = cluster.NewSteward(e, name)
	if remember > 0 {
		s.Remember(remember)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	w.Cleanup(stop)
	return s, stop
}

// work has tasks worked on until the test ends.
func (w *hubWorld) work(h dispatch.Handler) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	e := w.open("worker")
	go func() {
		defer close(done)
		if err := e.Work(ctx, dispatch.Job{Queue: "web", Slots: 4}, h); err != nil {
			w.Errorf("work: %v", err)
		}
	}()
	w.Cleanup(func() { cancel(); <-done })
}

func answer(context.Context, dispatch.Task, dispatch.Lines, marchwarden.Sink) (*marchwarden.Result, error) {
	return &marchwarden.Result{}, nil
}

func (w *hubWorld) submit(t dispatch.Task) {
	w.Helper()
	if err := w.e.Submit(w.Context(), t); err != nil {
		w.Fatal(err)
	}
}

// specify writes the specification of a task and dies.
func (w *hubWorld) specify(t dispatch.Task) {
	w.Helper()
	data, err := json.Marshal(t)
	if err != nil {
		w.Fatal(err)
	}
	if _, _, err := w.e.Conn().Publish(w.Context(), streams.Message{Subject: streams.TaskSubject(t.ID), Data: data}); err != nil {
		w.Fatal(err)
	}
}

func (w *hubWorld) queued(t dispatch.Task) bool {
	w.Helper()
	_, found, err := w.e.Conn().Last(w.Context(), cluster.WorkSubject(t))
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// lose takes a task from its queue unnoticed.
func (w *hubWorld) lose(t dispatch.Task) {
	w.Helper()
	stream, err := w.e.JetStream().Stream(w.Context(), streams.StreamWork)
	if err == nil {
		err = stream.Purge(w.Context(), jetstream.WithPurgeSubject(cluster.WorkSubject(t)))
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *hubWorld) ended(t dispatch.Task) *dispatch.End {
	w.Helper()
	end, err := w.e.Ended(w.Context(), t.ID)
	if err != nil {
		w.Fatal(err)
	}
	return end
}

// until waits for something that must become true.
func (w *hubWorld) until(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("never %s", what)
		}
	}
}

func (w *hubWorld) endsAs(t dispatch.Task, status dispatch.Status) *dispatch.End {
	w.Helper()
	w.until(fmt.Sprintf("%s of %s", status, t.ID), func() bool { return w.ended(t) != nil })
	end := w.ended(t)
	if end.Status != status {
		w.Fatalf("%s ended as %s (%s), not as %s", t.ID, end.Status, end.Message, status)
	}
	return end
}

func TestQueuesWhatNobodyQueued(t *testing.T) {
	w := newHubWorld(t)
	s, _ := w.keep(w.e, "one", 0)
	task := w.task()
	w.specify(task)
	began := time.Now()
	w.until("queued", func() bool { return w.queued(task) })
	if took := time.Since(began); took < 2*shortLease {
		t.Errorf("queued after %v, when its submitter may still live", took)
	}
	w.work(answer)
	w.endsAs(task, dispatch.Done)
	if got := s.Stats(); got.Requeued != 1 || got.Name != "one" {
		t.Errorf("stats: %+v", got)
	}
	// On a busy machine it may lose its lease, lead again and read the end once more.
	w.until("forgotten", func() bool { got := s.Stats(); return got.Leading && got.Open == 0 && got.Ended >= 1 })
}

func TestQueuesWhatWasLost(t *testing.T) {
	w := newHubWorld(t)
	s, _ := w.keep(w.e, "one", 0)
	task := w.task()
	w.submit(task)
	time.Sleep(shortLease)
	w.lose(task)
	w.until("queued", func() bool { return w.queued(task) })
	w.work(answer)
	w.endsAs(task, dispatch.Done)
	if got := s.Stats(); got.Requeued != 1 {
		t.Errorf("stats: %+v", got)
	}
}

// A worker that lives keeps its task: one that says nothing for long, and one whose
// pointer is lost but whose record grows.
func TestLeavesTheLivingAlone(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second // that a busy machine can renew in
	w := hubWorldOf(t, lease)
	s, _ := w.keep(w.e, "one", 0)
	silent, talking := w.task(), w.task()
	w.work(func(ctx context.Context, task dispatch.Task, lines dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		if task.ID == talking.ID {
			w.lose(task)
		}
		for range 6 { // half leases: the steward acts after two
			if err := sleep(ctx, lease/2); err != nil {
				return nil, err
			}
			if task.ID == talking.ID {
				if err := lines.Append(ctx, []byte("{}\n")); err != nil {
					return nil, err
				}
			}
		}
		return &marchwarden.Result{}, nil
	})
	w.submit(silent)
	w.submit(talking)
	for _, task := range []dispatch.Task{silent, talking} {
		if end := w.endsAs(task, dispatch.Done); end.Attempt != 1 {
			t.Errorf("%s took %d attempts", task.ID, end.Attempt)
		}
	}
	if got := s.Stats(); got.Requeued+got.Settled != 0 { // it may copy an end before the worker does
		t.Errorf("stats: %+v", got)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestCopiesTheEndOfWhoDied(t *testing.T) {
	w := newHubWorld(t)
	task := w.task()
	w.submit(task)
	data, err := json.Marshal(dispatch.End{Status: dispatch.Done, Worker: "dead", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	header := nats.Header{}
	for key, value := range map[string]string{"Mw-Kind": "end", "Mw-Task": task.ID.String(), "Mw-Worker": "dead", "Mw-Attempt": "1", "Mw-Deaths": "0"} {
		header.Set(key, value)
	}
	if _, _, err := w.e.Conn().Publish(t.Context(), streams.Message{Subject: cluster.LogSubject(task), Header: header, Data: data}); err != nil {
		t.Fatal(err)
	}
	s, _ := w.keep(w.e, "one", 0)
	if end := w.endsAs(task, dispatch.Done); end.Worker != "dead" {
		t.Errorf("the end is %+v", end)
	}
	w.until("dropped", func() bool { return !w.queued(task) })
	w.until("counted", func() bool { return s.Stats().Copied == 1 })
}

func TestEndsWhatIsCanceledWhileItWaits(t *testing.T) {
	w := newHubWorld(t)
	s, _ := w.keep(w.e, "one", 0)
	plain, parent, child := w.task(), w.task(), w.task()
	child.Investigation = parent.ID
	for _, task := range []dispatch.Task{plain, parent, child} {
		w.submit(task)
	}
	for _, task := range []dispatch.Task{plain, parent} {
		if err := w.e.Cancel(t.Context(), task.ID, "not needed"); err != nil {
			t.Fatal(err)
		}
	}
	for _, task := range []dispatch.Task{plain, parent, child} {
		end := w.endsAs(task, dispatch.Canceled)
		if end.Code != marchwarden.CodeCanceled {
			t.Errorf("the end is %+v", end)
		}
		w.until("dropped", func() bool { return !w.queued(task) })
	}
	w.until("counted", func() bool { return s.Stats().Settled == 3 })
	next := w.task() // resumes what was canceled
	next.Record, next.Investigation, next.Request.Resume = parent.ID, parent.ID, parent.ID.String()
	w.submit(next)
	if err := w.e.Cancel(t.Context(), parent.ID, "not needed either"); err != nil {
		t.Fatal(err)
	}
	w.endsAs(next, dispatch.Canceled)
	w.until("counted", func() bool { return s.Stats().Settled == 4 })
}

// Its worker is gone, and no other comes.
func TestEndsWhatIsCanceledAndDeserted(t *testing.T) {
	w := newHubWorld(t)
	doomed := w.open("doomed")
	taken, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- doomed.Work(t.Context(), dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, _ dispatch.Task, lines dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
			if err := lines.Append(ctx, []byte("{}\n")); err != nil {
				t.Error(err)
			}
			close(taken)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
	}()
	task := w.task()
	w.submit(task)
	<-taken
	_ = doomed.Close()
	<-over // whatever it says
	s, _ := w.keep(w.e, "one", 0)
	if err := w.e.Cancel(t.Context(), task.ID, ""); err != nil {
		t.Fatal(err)
	}
	if end := w.endsAs(task, dispatch.Canceled); !end.Trace.Valid() || end.Attempt != 1 {
		t.Errorf("the end is %+v", end)
	}
	w.until("counted", func() bool { return s.Stats().Settled == 1 && !w.queued(task) })
}

// What any client may write, and none can read, costs no round: a malformed task, and a wish to
// cancel that is malformed or too long to be passed on.
func TestUnreadableTasksAndWishes(t *testing.T) {
	w := newHubWorld(t)
	bad := w.task()
	bad.Queue = "a b"
	w.specify(bad)
	var canceled []dispatch.Task
	for _, wish := range []string{"{", `{"reason":"` + strings.Repeat("<", 1_000_000) + `"}`} {
		task := w.task()
		w.submit(task)
		if _, _, err := w.e.Conn().Publish(t.Context(), streams.Message{Subject: streams.CancelSubject(task.ID, 0), Data: []byte(wish)}); err != nil {
			t.Fatal(err)
		}
		canceled = append(canceled, task)
	}
	s, _ := w.keep(w.e, "one", 0)
	for _, task := range canceled {
		w.endsAs(task, dispatch.Canceled)
	}
	w.until("forgotten", func() bool { got := s.Stats(); return got.Rounds > 12 && got.Open == 0 })
	if got := s.Stats(); got.Failures != 0 || got.Requeued != 0 {
		t.Errorf("stats: %+v", got)
	}
}
