package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// till counts what was paid for, by task and step.
type till struct {
	mu   sync.Mutex // guards paid
	paid map[marchwarden.TraceID]int
}

// steps is a handler of so many steps, each of which is paid for and then written down.
// What is written is not paid for again.
func (k *till) steps(n int, takes time.Duration) dispatch.Handler {
	return func(ctx context.Context, t dispatch.Task, lines dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		had, err := lines.Read(ctx)
		if err != nil {
			return nil, err
		}
		for i := bytes.Count(had, []byte("\n")); i < n; i++ {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			k.mu.Lock()
			k.paid[t.ID]++
			k.mu.Unlock()
			time.Sleep(takes)
			sink(marchwarden.Event{Stage: marchwarden.StageSearch, Done: i + 1, Total: n})
			if err := lines.Append(ctx, fmt.Appendf(nil, "step %d\n", i)); err != nil {
				return nil, err
			}
		}
		return dispatchtest.Answer(t.ID, "Paris."), nil
	}
}

func record(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "step %d\n", i)
	}
	return b.String()
}

// fleet is workers that come and go.
type fleet struct {
	*world
	handle  dispatch.Handler
	random  *rand.Rand
	group   sync.WaitGroup
	members []*cluster.Engine
	made    int
}

func (f *fleet) hire() {
	f.made++
	e := f.open(f.t, fmt.Sprint("worker-", f.made))
	f.members = append(f.members, e)
	ctx := f.t.Context()
	f.group.Go(func() {
		// One that is killed cannot do its work; that is no failure here.
		_ = e.Work(ctx, dispatch.Job{Queue: "web", Slots: 3, Drain: time.Second}, f.handle)
	})
}

// strike does something bad to one of them, or to all.
func (f *fleet) strike() {
	i := f.random.IntN(len(f.members))
	e := f.members[i]
	switch f.random.IntN(5) {
	case 0: // killed, and another comes
		f.members = append(f.members[:i], f.members[i+1:]...)
		_ = e.Close()
		f.hire()
	case 1: // its connection breaks
		f.line(e).cut()
	case 2: // it stands still for longer than its lease, and goes on
		l := f.line(e)
		l.pause()
		f.group.Go(func() {
			time.Sleep(f.lease + f.lease/2)
			l.resume()
		})
	case 3: // it breaks off when it is told that something was kept
		l := f.line(e)
		l.mu.Lock()
		l.lose = func(words []byte) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			lost := bytes.Contains(words, []byte(`"stream":"MW_`))
			if lost {
				l.lose = nil
			}
			return lost
		}
		l.mu.Unlock()
	case 4: // the hub is started anew
		f.restart()
	}
}

func (w *world) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir := w.server.JetStreamConfig().StoreDir
	w.server.Shutdown()
	w.server.WaitForShutdown()
	w.server = serve(w.t, strings.TrimSuffix(dir, "/jetstream"), false)
}

// Whatever happens to workers and the hub: every task ends once, with its record exact,
// and no step is paid for again but the one that was under way when a worker lost the task.
func TestNothingIsLostOrPaidTwice(t *testing.T) {
	tasks, steps, strikes := 30, 5, 8
	if full() {
		tasks, steps, strikes = 150, 12, 60
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := newWorld(t, 700*time.Millisecond)
	k := &till{paid: map[marchwarden.TraceID]int{}}
	f := &fleet{world: w, handle: k.steps(steps, 30*time.Millisecond), random: rand.New(rand.NewPCG(seed, 0))}
	asks := w.open(t, "asks")
	for range 3 {
		f.hire()
	}
	var all []dispatch.Task
	submitted := make(chan struct{})
	for range tasks {
		all = append(all, dispatchtest.Task("web"))
	}
	go func() {
		defer close(submitted)
		for _, task := range all {
			for range 2 { // twice is once
				if err := asks.Submit(t.Context(), task); err != nil {
					t.Errorf("submit: %v", err)
				}
			}
		}
	}()
	for range strikes {
		time.Sleep(time.Duration(20+f.random.IntN(180)) * time.Millisecond)
		f.strike()
	}
	<-submitted
	attempts := 0
	for _, task := range all {
		attempts += check(t, asks, task, steps, k)
	}
	t.Logf("%d tasks of %d steps, %d strikes: %d attempts", tasks, steps, strikes, attempts)
	for _, e := range f.members {
		_ = e.Close()
	}
	f.group.Wait()
}

// check holds a task to its promises when it has ended, and returns its attempts.
func check(t *testing.T, e *cluster.Engine, task dispatch.Task, steps int, k *till) int {
	t.Helper()
	var ends, lines, taken int
	var last uint64
	var end *dispatch.End
	for event, err := range e.Watch(within(t, time.Minute), dispatch.Watching{Task: task.ID}) {
		if err != nil {
			t.Fatalf("watch: %v", err)
		}
		if event.Seq != 0 && event.Seq <= last {
			t.Errorf("event %d after event %d", event.Seq, last)
		}
		last = max(last, event.Seq)
		switch event.Kind {
		case dispatch.Taken:
			taken++
		case dispatch.Written:
			if want := fmt.Sprintf("step %d\n", lines); string(event.Line) != want {
				t.Errorf("%q was written, not %q", event.Line, want)
			}
			lines++
		case dispatch.Ended:
			ends++
			end = event.End
		}
	}
	if end == nil {
		t.Fatalf("task %s did not end", task.ID)
	}
	trace, err := e.Blobs().Get(t.Context(), end.Trace)
	if ends != 1 || end.Status != dispatch.Done || lines != steps || err != nil || string(trace) != record(steps) {
		t.Errorf("%d ends, %+v, %d lines, record %q, %v", ends, end, lines, trace, err)
	}
	k.mu.Lock()
	paid := k.paid[task.ID]
	k.mu.Unlock()
	if paid < steps || paid-steps > taken-1 || end.Attempt != taken {
		t.Errorf("%d steps were paid for %d times in %d attempts (the end says %d)", steps, paid, taken, end.Attempt)
	}
	return taken
}

// An acknowledgement that gets lost with its connection is no reason to write twice, or
// to give up.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Second)
	for _, stream := range []string{"MW_TASK", "MW_WORK", "MW_LOG", "MW_DONE"} {
		t.Run(stream, func(t *testing.T) {
			e := w.open(t, "one")
			l := w.line(e)
			lost, before := 0, []byte(nil)
			l.mu.Lock()
			l.lose = func(words []byte) bool {
				heard := append(before, words...) // an acknowledgement may come in two pieces
				before = slices.Clone(heard[max(0, len(heard)-40):])
				if lost > 2 || !bytes.Contains(heard, []byte(`"stream":"`+stream)) {
					return false
				}
				before = nil
				lost++
				return true
			}
			l.mu.Unlock()
			k := &till{paid: map[marchwarden.TraceID]int{}}
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() {
				over <- e.Work(ctx, dispatch.Job{Queue: "web", Slots: 1, Drain: time.Second}, k.steps(3, 0))
			}()
			task := dispatchtest.Task("web")
			if err := e.Submit(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			if attempts := check(t, e, task, 3, k); attempts != 1 {
				t.Errorf("it took %d attempts", attempts)
			}
			stop()
			if err := <-over; err != nil {
				t.Error(err)
			}
			if lost == 0 {
				t.Error("nothing was lost")
			}
		})
	}
}

// A task that no worker survives is given up.
func TestPoisonIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 250*time.Millisecond)
	asks := w.open(t, "asks")
	task := dispatchtest.Task("web")
	if err := asks.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	ends := make(chan *dispatch.End, 1)
	go func() {
		for event, err := range asks.Watch(t.Context(), dispatch.Watching{Task: task.ID}) {
			if err == nil && event.Kind == dispatch.Ended {
				ends <- event.End
				return
			}
		}
	}()
	var begun atomic.Int32 // a victim that is slow to renew its lease may begin it twice
	for i := 0; ; i++ {
		victim, took := w.open(t, fmt.Sprint("victim-", i)), make(chan struct{}, 2*dispatch.MaxAttempts)
		go func() {
			_ = victim.Work(t.Context(), dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, _ dispatch.Task, lines dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
				if begun.Add(1) > dispatch.MaxAttempts {
					t.Error("it was begun once more")
				}
				took <- struct{}{}
				<-ctx.Done()
				return nil, errors.New("dead")
			})
		}()
		select {
		case <-took:
			_ = victim.Close()
		case end := <-ends:
			if end.Status != dispatch.Failed || end.Code != marchwarden.CodeUnavailable || end.Attempt != dispatch.MaxAttempts {
				t.Errorf("it ended as %+v", end)
			}
			return
		case <-time.After(time.Minute):
			t.Fatal("it was neither begun again nor given up")
		}
	}
}
