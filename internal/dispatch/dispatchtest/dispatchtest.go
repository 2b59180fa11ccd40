// Package dispatchtest says what a dispatch.Engine is, as a suite of tests that any
// implementation can run. How its store can be damaged, and how fast it is, are tested
// beside each.
package dispatchtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// Rig is an empty store on which engines can be opened. It cleans up through the t that
// it was made with.
type Rig struct {
	// Open opens one more engine on the store, as another process would. The rig
	// closes it in the end, if that has not happened.
	Open func(t *testing.T, name string) dispatch.Engine
	// Kill ends an engine as the end of its process would, without grace: nothing is
	// handed back. Its handlers go on, since they are the test's, and reach nothing.
	Kill func(e dispatch.Engine)
	// Stall keeps an engine from renewing what it holds, until wake is called, as a
	// process does that is stopped for longer than its leases last. nil is an engine
	// whose leases a living process cannot lose.
	Stall func(e dispatch.Engine) (wake func())
	// Lease is how long what a killed engine held is kept from others.
	Lease time.Duration
}

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// full says that the long tests are wanted.
func full() bool { return os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "full" }

type promise struct {
	name string
	test func(*bench)
}

// Run checks the promises of dispatch.Engine. open makes a new rig each time, whose leases
// last as long as it is told: a short while where a test waits for their end, and where none
// may end, longer than a busy machine stalls.
func Run(t *testing.T, open func(t *testing.T, lease time.Duration) Rig) {
	run := func(promises []promise, lease time.Duration) {
		for _, p := range promises {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.test(&bench{T: t, Rig: open(t, lease)})
			})
		}
	}
	run(ofClients, 15*time.Second)
	run(ofWork, 15*time.Second)
	run(ofLeases, 2*time.Second)
}

// bench is one test on a rig.
type bench struct {
	*testing.T
	Rig
}

// engine opens an engine.
func (b *bench) engine(name string) dispatch.Engine {
	b.Helper()
	return b.Open(b.T, name)
}

var made atomic.Uint64

// ID is an id that no other call gives.
func ID() marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-7a3b-7c11-%04x-%012x", 0x8000|os.Getpid()&0x3fff, made.Add(1)))
	if err != nil {
		panic(err)
	}
	return id
}

// Task is a new task for a queue.
func Task(queue string) dispatch.Task {
	id := ID()
	return dispatch.Task{ID: id, Record: id, Investigation: id, Queue: queue, Priority: dispatch.Normal, Owner: "somebody",
		Request: marchwarden.Request{Question: "What is the capital of France?", Depth: marchwarden.Shallow}}
}

// Answer is a result that says something.
func Answer(id marchwarden.TraceID, text string) *marchwarden.Result {
	res := &marchwarden.Result{Answer: text, TraceID: id, CostMetadata: marchwarden.CostMetadata{ModelID: "none"}}
	res.ConfidenceFactors.SourceAuthority = marchwarden.LowAuthority
	res.Normalize()
	return res
}

// context is the test's, and ends before the test is given up.
func (b *bench) context() context.Context {
	ctx, done := context.WithTimeout(b.Context(), patience)
	b.Cleanup(done)
	return ctx
}

func (b *bench) submit(e dispatch.Client, tasks ...dispatch.Task) {
	b.Helper()
	for _, t := range tasks {
		if err := e.Submit(b.context(), t); err != nil {
			b.Fatalf("submit %s: %v", t.ID, err)
		}
	}
}

// work begins work, and returns how to end it, which waits until Work has returned.
func (b *bench) work(e dispatch.Engine, job dispatch.Job, h dispatch.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	over := make(chan error, 1)
	go func() { over <- e.Work(ctx, job, h) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-over:
				if err != nil {
					b.Errorf("Work: %v", err)
				}
			case <-time.After(job.Drain + patience):
				b.Errorf("Work did not return")
			}
		})
	}
	b.Cleanup(stop)
	return stop
}

// answering is a handler that appends lines and answers.
func answering(lines ...string) dispatch.Handler {
	return func(ctx context.Context, t dispatch.Task, l dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		for _, line := range lines {
			if err := l.Append(ctx, []byte(line)); err != nil {
				return nil, err
			}
		}
		return Answer(t.Record, "Paris."), nil
	}
}

// events are those of a task until it ends, which must be within patience.
func (b *bench) events(e dispatch.Client, w dispatch.Watching) []dispatch.Event {
	b.Helper()
	var out []dispatch.Event
	for ev, err := range e.Watch(b.context(), w) {
		if err != nil {
			b.Fatalf("watch %s: %v after %s", w.Task, err, kinds(out))
		}
		out = append(out, ev)
	}
	if len(out) == 0 || out[len(out)-1].Kind != dispatch.Ended {
		b.Fatalf("the watching of %s ended without an end: %s", w.Task, kinds(out))
	}
	return out
}

// end waits for the end of a task, which there must be one of.
func (b *bench) end(e dispatch.Client, t dispatch.Task) *dispatch.End {
	b.Helper()
	var end *dispatch.End
	for _, ev := range b.events(e, dispatch.Watching{Task: t.ID}) {
		if ev.Kind != dispatch.Ended {
			continue
		}
		if end != nil || ev.End == nil || ev.Task != t.ID {
			b.Fatalf("%s ended as %+v, and then as %+v of %s", t.ID, end, ev.End, ev.Task)
		}
		end = ev.End
	}
	return end
}

// kinds are events in short: who took it, what was written, how it ended.
func kinds(events []dispatch.Event) string {
	s := ""
	for _, e := range events {
		switch e.Kind {
		case dispatch.Taken:
			s += fmt.Sprintf("taken %d; ", e.Attempt)
		case dispatch.Written:
			s += fmt.Sprintf("%.20q; ", e.Line)
		case dispatch.Progress:
			s += e.Progress.Message + "; "
		case dispatch.Ended:
			s += string(e.End.Status)
		default:
			s += fmt.Sprintf("%+v; ", e)
		}
	}
	return s
}

// kept are the events of a list that are kept, whose numbers must go up.
func (b *bench) kept(events []dispatch.Event) []dispatch.Event {
	b.Helper()
	var out []dispatch.Event
	last := uint64(0)
	for _, e := range events {
		if e.Kind == dispatch.Progress {
			if e.Seq != 0 {
				b.Errorf("progress has the number %d", e.Seq)
			}
			continue
		}
		if e.Seq <= last {
			b.Errorf("number %d comes after %d in %s", e.Seq, last, kinds(events))
		}
		last = e.Seq
		out = append(out, e)
	}
	return out
}

// result is the answer that a task ended with.
func (b *bench) result(e dispatch.Engine, end *dispatch.End) string {
	b.Helper()
	data, err := e.Blobs().Get(b.context(), end.Result)
	if err != nil {
		b.Fatalf("result of %+v: %v", end, err)
	}
	res, err := marchwarden.DecodeResult(data)
	if err != nil {
		b.Fatal(err)
	}
	return res.Answer
}

// record is the sealed record of a task.
func (b *bench) record(e dispatch.Engine, end *dispatch.End) string {
	b.Helper()
	data, err := e.Blobs().Get(b.context(), end.Trace)
	if err != nil {
		b.Fatalf("record of %+v: %v", end, err)
	}
	return string(data)
}

// look is the state of a task.
func (b *bench) look(e dispatch.Client, id marchwarden.TraceID) dispatch.State {
	b.Helper()
	s, err := e.Look(b.context(), id)
	if err != nil {
		b.Fatalf("look at %s: %v", id, err)
	}
	return s
}

// receive waits for something from a channel.
func receive[T any](b *bench, what string, from <-chan T) T {
	b.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		b.Fatalf("it did not happen that %s", what)
		panic("unreachable")
	}
}

// want holds an error to a code.
func (b *bench) want(what string, err error, code error) {
	b.Helper()
	if !errors.Is(err, code) {
		b.Errorf("%s: %v, want %v", what, err, code)
	}
}
