package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// submitAll submits many tasks at once.
func submitAll(t *testing.T, e *cluster.Engine, n int, make func(i int) dispatch.Task) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(64)
	for i := range n {
		group.Go(func() error { return e.Submit(ctx, make(i)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// gate is a handler whose tasks go on when they are let.
type gate struct {
	begun chan dispatch.Task
	let   chan struct{}
}

func newGate() *gate {
	return &gate{begun: make(chan dispatch.Task, 2000), let: make(chan struct{})}
}

func (g *gate) handle(ctx context.Context, t dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
	g.begun <- t
	select {
	case <-g.let:
		return dispatchtest.Answer(t.ID, "Paris."), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (g *gate) next(t *testing.T) dispatch.Task {
	t.Helper()
	select {
	case task := <-g.begun:
		return task
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is begun")
		return dispatch.Task{}
	}
}

// work has an engine work until the test is over.
func work(t *testing.T, e *cluster.Engine, slots int, handle dispatch.Handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	over := make(chan error, 1)
	go func() { over <- e.Work(ctx, dispatch.Job{Queue: "web", Slots: slots}, handle) }()
	stop = func() {
		cancel()
		select {
		case err := <-over:
			if err != nil && !errors.Is(err, marchwarden.CodeUnavailable) {
				t.Errorf("work: %v", err)
			}
			over <- nil
		case <-time.After(30 * time.Second):
			t.Error("work does not end")
		}
	}
	t.Cleanup(stop)
	return stop
}

func TestUrgentWorkIsNext(t *testing.T) {
	t.Parallel()
	queued, urgent, slots := 100, 20, 4
	if full() {
		queued = 500
	}
	w := newWorld(t, 15*time.Second)
	asks, works := w.open(t, "asks"), w.open(t, "works")
	submitAll(t, asks, queued, func(i int) dispatch.Task {
		task := dispatchtest.Task("web")
		task.Owner = fmt.Sprint(i)
		return task
	})
	g := newGate()
	work(t, works, slots, g.handle)
	for range slots {
		g.next(t)
	}
	submitAll(t, asks, urgent, func(int) dispatch.Task {
		task := dispatchtest.Task("web")
		task.Priority = dispatch.Urgent
		return task
	})
	for i := range urgent {
		g.let <- struct{}{}
		if task := g.next(t); task.Priority != dispatch.Urgent {
			t.Fatalf("start %d after the urgent tasks came was of priority %d", i+1, task.Priority)
		}
	}
	g.let <- struct{}{}
	if task := g.next(t); task.Priority != dispatch.Normal {
		t.Errorf("then came a task of priority %d", task.Priority)
	}
}

// One owner's thousand do not keep another's one waiting.
func TestOwnersTakeTurns(t *testing.T) {
	t.Parallel()
	many := 100
	if full() {
		many = 1000
	}
	w := newWorld(t, 15*time.Second)
	asks, works := w.open(t, "asks"), w.open(t, "works")
	submitAll(t, asks, many, func(int) dispatch.Task {
		task := dispatchtest.Task("web")
		task.Owner = "crowd"
		return task
	})
	lone := dispatchtest.Task("web")
	lone.Owner = "lone" // of another lane
	if err := asks.Submit(t.Context(), lone); err != nil {
		t.Fatal(err)
	}
	g := newGate()
	work(t, works, 1, g.handle)
	for range streams.Lanes {
		if g.next(t).ID == lone.ID {
			return
		}
		g.let <- struct{}{}
	}
	t.Errorf("the one task is not among the first %d", streams.Lanes)
}

// What is announced to one who has no more room is taken by another who has.
func TestWorkPassesToWhoeverIsFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	asks, g := w.open(t, "asks"), newGate()
	for _, name := range []string{"one", "two", "three"} {
		work(t, w.open(t, name), 1, g.handle)
	}
	for range 5 {
		submitAll(t, asks, 3, func(int) dispatch.Task { return dispatchtest.Task("web") })
		for range 3 {
			g.next(t) // all three at once, since none is let go before
		}
		for range 3 {
			g.let <- struct{}{}
		}
	}
}

// A worker's death is made up for within its lease and a second or so.
func TestRedeliveryIsPrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Second)
	asks, g := w.open(t, "asks"), newGate()
	victim := w.open(t, "victim")
	work(t, victim, 1, g.handle)
	if err := asks.Submit(t.Context(), dispatchtest.Task("web")); err != nil {
		t.Fatal(err)
	}
	g.next(t)
	work(t, w.open(t, "heir"), 1, g.handle)
	_ = victim.Close()
	killed := time.Now()
	g.next(t)
	if took := time.Since(killed); took > w.lease+10*time.Second {
		t.Errorf("it was taken up after %s", took)
	}
	close(g.let)
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	line := append(bytes.Repeat([]byte("0123456789abcdef"), 40<<10), '\n') // 640 KiB
	var read []byte
	work(t, e, 1, func(ctx context.Context, task dispatch.Task, lines dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		err := errors.Join(lines.Append(ctx, line), lines.Append(ctx, []byte("short\n")))
		read, _ = lines.Read(ctx)
		return dispatchtest.Answer(task.ID, strings.Repeat("long ", 100<<10)), err
	})
	task := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	want := string(line) + "short\n"
	var seen string
	for event, err := range e.Watch(within(t, 20*time.Second), dispatch.Watching{Task: task.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		seen += string(event.Line)
		if event.Kind == dispatch.Ended {
			trace, err := e.Blobs().Get(t.Context(), event.End.Trace)
			if err != nil || string(trace) != want || event.End.Status != dispatch.Done {
				t.Errorf("%d bytes are sealed of %d, %v; %+v", len(trace), len(want), err, event.End)
			}
		}
	}
	if seen != want || string(read) != want {
		t.Errorf("%d bytes were seen and %d read of %d", len(seen), len(read), len(want))
	}
	task.ID = dispatchtest.ID()
	task.Request.Question = strings.Repeat("x", 600<<10)
	if err := e.Submit(t.Context(), task); !errors.Is(err, marchwarden.CodeInvalid) {
		t.Errorf("a task of 600 KiB: %v", err)
	}
}

// What comes to the subject of a record and is no entry changes nothing.
func TestStrayMessageInARecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	task := dispatchtest.Task("web")
	stray := func() {
		if _, err := e.JetStream().Publish(t.Context(), cluster.LogSubject(task), []byte("{}")); err != nil {
			t.Error(err)
		}
	}
	stray()
	k := &till{paid: map[marchwarden.TraceID]int{}}
	steps := k.steps(4, 0)
	work(t, e, 1, func(ctx context.Context, t dispatch.Task, lines dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		stray()
		stray()
		return steps(ctx, t, lines, sink)
	})
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if attempts := check(t, e, task, 4, k); attempts != 1 {
		t.Errorf("it took %d attempts", attempts)
	}
}

// When a record is not kept any more, its end is.
func TestEndOutlivesTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	work(t, e, 1, empty)
	task := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	watch := func() (ends int) {
		for event, err := range e.Watch(within(t, 20*time.Second), dispatch.Watching{Task: task.ID}) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind == dispatch.Ended {
				ends++
			}
		}
		return ends
	}
	if n := watch(); n != 1 {
		t.Errorf("%d ends", n)
	}
	for end := (*dispatch.End)(nil); end == nil; { // it is in the record first
		var err error
		if end, err = e.Ended(t.Context(), task.ID); err != nil {
			t.Fatal(err)
		}
	}
	log, err := e.JetStream().Stream(t.Context(), streams.StreamLog)
	if err == nil {
		err = log.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := watch(); n != 1 {
		t.Errorf("%d ends without the record", n)
	}
	if state, err := e.Look(t.Context(), task.ID); err != nil || state.Status != dispatch.Done {
		t.Errorf("%+v, %v", state, err)
	}
}

// The load changes nothing about how many streams and consumers there are.
func TestAssetsAreConstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	work(t, e, 8, empty)
	count := func() string {
		z, err := w.server.Jsz(nil)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(z.Streams, " streams, ", z.Consumers, " consumers")
	}
	run := func(n int) {
		submitAll(t, e, n, func(i int) dispatch.Task {
			task := dispatchtest.Task("web")
			task.Owner, task.Priority = fmt.Sprint(i), dispatch.Priority(i%3)
			return task
		})
		last := dispatchtest.Task("web")
		last.Priority = dispatch.Low
		if err := e.Submit(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		for _, err := range e.Watch(within(t, 20*time.Second), dispatch.Watching{Task: last.ID}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	run(1)
	before := count()
	run(60)
	if after := count(); after != before {
		t.Errorf("before: %s; after: %s", before, after)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	_, err = cluster.Open(t.Context(), cluster.Config{URL: "nats://" + listener.Addr().String(), Name: "one", Now: time.Now})
	if !errors.Is(err, marchwarden.CodeUnavailable) || !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("no server: %v", err)
	}
}

func TestUnpreparedCluster(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), false)
	began := time.Now()
	_, err := cluster.Open(t.Context(), cluster.Config{InProcess: s, Name: "one", Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "not prepared") || marchwarden.HintOf(err) == "" {
		t.Errorf("an unprepared cluster: %v", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s to say so", took)
	}
}

// A handler that cannot write has not ended anything.
func TestTroubleWithTheRecordIsNoEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 500*time.Millisecond)
	e := w.open(t, "one")
	tries := 0
	work(t, e, 1, func(_ context.Context, task dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		if tries++; tries < 2 {
			return nil, fmt.Errorf("write a line: %w", dispatch.ErrReleased)
		}
		return dispatchtest.Answer(task.ID, "Paris."), nil
	})
	task := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	for event, err := range e.Watch(within(t, 20*time.Second), dispatch.Watching{Task: task.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == dispatch.Ended && (event.End.Status != dispatch.Done || event.End.Attempt < 2) { // more where a lease lapses on a busy machine
			t.Errorf("it ended as %+v", event.End)
		}
	}
}
