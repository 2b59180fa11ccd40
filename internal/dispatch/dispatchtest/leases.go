package dispatchtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

var ofLeases = []promise{
	{"work that ends hands back what does not finish", drainHandsBack},
	{"what a killed worker had passes on with its record", takeover},
	{"what a killed worker had does not wait behind what is less urgent", takeoverAmongMany},
	{"a task that waits for a killed worker can be canceled", cancelOrphan},
	{"a worker that lost its lease cannot write", zombie},
	{"a task that kills its workers is given up", maxAttempts},
	{"a task that is handed back again and again is not", handedAround},
}

// grip is a handler that has appended two lines, and what it is told to do then.
type grip struct {
	lines dispatch.Lines
	ctx   context.Context
	let   chan bool // closed to let it return
}

// holding is a handler that hands itself over when it has written two lines, and returns
// an answer when it is let go. It is deaf to the end of its context if so.
func holding(grips chan<- grip, deaf bool) dispatch.Handler {
	return func(ctx context.Context, t dispatch.Task, l dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		for _, line := range []string{"a\n", "b\n"} {
			if err := l.Append(ctx, []byte(line)); err != nil {
				return nil, err
			}
		}
		g := grip{lines: l, ctx: ctx, let: make(chan bool)}
		grips <- g
		if deaf {
			<-g.let
		} else {
			select {
			case <-g.let:
			case <-ctx.Done():
			}
		}
		return Answer(t.Record, "too late"), nil
	}
}

// goingOn is a handler that expects the lines of another and adds one.
func goingOn(ctx context.Context, t dispatch.Task, l dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
	had, err := l.Read(ctx)
	if err == nil && string(had) != "a\nb\n" {
		err = fmt.Errorf("it goes on with %q", had)
	}
	if err == nil {
		err = l.Append(ctx, []byte("c\n"))
	}
	if err != nil {
		return nil, err
	}
	return Answer(t.Record, "Paris."), nil
}

// passedOn holds a task to having been taken up by another with its record intact.
func (b *bench) passedOn(e dispatch.Engine, t dispatch.Task) {
	b.Helper()
	end := b.end(e, t)
	if end.Status != dispatch.Done || end.Worker != "two" || end.Attempt != 2 {
		b.Fatalf("it ended as %+v", end)
	}
	if got := b.record(e, end); got != "a\nb\nc\n" {
		b.Errorf("its record is %q", got)
	}
	if got := b.result(e, end); got != "Paris." {
		b.Errorf("its result is %q", got)
	}
	if got := kinds(b.kept(b.events(e, dispatch.Watching{Task: t.ID}))); got != `taken 1; "a\n"; "b\n"; taken 2; "c\n"; done` {
		b.Errorf("it is watched as %s", got)
	}
	if s := b.look(e, t.ID); s.Attempts != 2 || s.Worker != "two" {
		b.Errorf("it is %+v", s)
	}
}

func drainHandsBack(b *bench) {
	one, two := b.engine("one"), b.engine("two")
	t := Task("web")
	b.submit(one, t)
	grips := make(chan grip, 1)
	stop := b.work(one, dispatch.Job{Queue: "web", Slots: 1, Drain: 50 * time.Millisecond}, holding(grips, true))
	g := receive(b, "it was begun", grips)
	began := time.Now()
	stop()
	if took := time.Since(began); took > 5*time.Second {
		b.Errorf("work took %s to end", took)
	}
	if !errors.Is(context.Cause(g.ctx), dispatch.ErrReleased) {
		b.Errorf("its context ended by %v", context.Cause(g.ctx))
	}
	b.want("an append after it was handed back", g.lines.Append(context.WithoutCancel(g.ctx), []byte("zombie\n")), dispatch.ErrReleased)
	close(g.let) // what it returns is dropped
	if s := b.look(two, t.ID); s.End != nil {
		b.Errorf("handed back it is %+v", s)
	}
	b.work(two, dispatch.Job{Queue: "web", Slots: 1}, goingOn)
	b.passedOn(two, t)
}

// orphan is an urgent task that engine one has written two lines of, and will not end until the
// test has: the caller kills one, and two is another engine.
func (b *bench) orphan() (one, two dispatch.Engine, t dispatch.Task, g grip) {
	b.Helper()
	one, two = b.engine("one"), b.engine("two")
	t = Task("web")
	t.Priority = dispatch.Urgent
	b.submit(two, t)
	grips := make(chan grip, 1)
	go func() { _ = one.Work(b.Context(), dispatch.Job{Queue: "web", Slots: 1}, holding(grips, true)) }()
	g = receive(b, "it was begun", grips)
	b.Cleanup(func() { close(g.let) })
	return one, two, t, g
}

func takeover(b *bench) {
	one, two, t, g := b.orphan()
	b.Kill(one)
	killed := time.Now()
	b.work(two, dispatch.Job{Queue: "web", Slots: 1}, goingOn)
	b.passedOn(two, t)
	if took := time.Since(killed); took > 3*b.Lease+5*time.Second {
		b.Errorf("it was taken up and done after %s, a lease is %s", took, b.Lease)
	}
	short, done := context.WithTimeout(context.WithoutCancel(g.ctx), time.Second)
	defer done()
	if err := g.lines.Append(short, []byte("zombie\n")); err == nil {
		b.Error("a killed worker writes")
	}
	b.passedOn(two, t)
}

func takeoverAmongMany(b *bench) {
	one, two, t, _ := b.orphan()
	const many, before = 80, 5
	for range many {
		b.submit(two, Task("web"))
	}
	pause := (b.Lease + time.Second) / 20 // so that all of them take some leases
	begun := make(chan bool, many)
	var over atomic.Bool
	b.work(two, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, got dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if got.ID == t.ID {
			over.Store(true)
			return goingOn(ctx, got, l, sink)
		}
		if !over.Load() {
			begun <- true
			time.Sleep(pause)
		}
		return answering()(ctx, got, l, sink)
	})
	for range before {
		receive(b, "others were begun", begun)
	}
	b.Kill(one)
	b.passedOn(two, t)
	if len(begun) == many-before {
		b.Errorf("it was taken up after all %d others, which are less urgent", many)
	}
}

func cancelOrphan(b *bench) {
	one, two, t, _ := b.orphan()
	b.Kill(one)
	if err := two.Cancel(b.context(), t.ID, "enough"); err != nil {
		b.Fatal(err)
	}
	// The next worker may hand over what there is, or none does.
	b.work(two, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, t dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if end := b.end(two, t); end.Status != dispatch.Canceled || b.record(two, end) != "a\nb\n" || end.Attempt == 0 {
		b.Errorf("it ended as %+v", end)
	}
}

func zombie(b *bench) {
	if b.Stall == nil {
		b.Skip("a living process cannot lose its leases")
	}
	one, two := b.engine("one"), b.engine("two")
	t := Task("web")
	b.submit(two, t)
	grips := make(chan grip, 1)
	b.work(one, dispatch.Job{Queue: "web", Slots: 1}, holding(grips, true))
	g := receive(b, "it was begun", grips)
	wake := b.Stall(one)
	b.work(two, dispatch.Job{Queue: "web", Slots: 1}, goingOn)
	end := b.end(two, t)
	wake()
	b.want("a zombie's append", g.lines.Append(context.WithoutCancel(g.ctx), []byte("zombie\n")), dispatch.ErrReleased)
	select {
	case <-g.ctx.Done():
		if !errors.Is(context.Cause(g.ctx), dispatch.ErrReleased) {
			b.Errorf("its context ended by %v", context.Cause(g.ctx))
		}
	case <-time.After(b.Lease + patience):
		b.Error("its context did not end")
	}
	close(g.let)
	if end.Worker != "two" {
		b.Errorf("it ended as %+v", end)
	}
	b.passedOn(two, t)
}

func maxAttempts(b *bench) {
	if b.Lease > time.Second/2 && os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "" {
		b.Skip("it takes as many leases as attempts")
	}
	last := b.engine("last")
	t := Task("web")
	b.submit(last, t)
	for i := range dispatch.MaxAttempts {
		e := b.engine(fmt.Sprint("victim ", i+1))
		begun, let := make(chan bool), make(chan bool)
		defer close(let)
		go func() {
			_ = e.Work(b.Context(), dispatch.Job{Queue: "web", Slots: 1}, func(context.Context, dispatch.Task, dispatch.Lines, marchwarden.Sink) (*marchwarden.Result, error) {
				close(begun)
				<-let
				return nil, nil
			})
		}()
		receive(b, fmt.Sprintf("attempt %d was begun", i+1), begun)
		b.Kill(e)
	}
	b.work(last, dispatch.Job{Queue: "web", Slots: 1}, func(context.Context, dispatch.Task, dispatch.Lines, marchwarden.Sink) (*marchwarden.Result, error) {
		b.Errorf("it was begun more than %d times", dispatch.MaxAttempts)
		return nil, nil
	})
	if end := b.end(last, t); end.Status != dispatch.Failed || end.Code != marchwarden.CodeUnavailable || end.Message == "" {
		b.Errorf("it ended as %+v", end)
	}
	if s := b.look(last, t.ID); s.Attempts != dispatch.MaxAttempts {
		b.Errorf("it was begun %d times", s.Attempts)
	}
}

func handedAround(b *bench) {
	e := b.engine("one")
	t := Task("web")
	b.submit(e, t)
	for range dispatch.MaxAttempts + 1 {
		begun := make(chan bool, 1)
		stop := b.work(e, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, _ dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
			begun <- true
			<-ctx.Done()
			return nil, ctx.Err()
		})
		receive(b, "it was begun", begun)
		stop()
	}
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, answering("a\n"))
	if end := b.end(e, t); end.Status != dispatch.Done || end.Attempt != dispatch.MaxAttempts+2 {
		b.Errorf("it ended as %+v", end)
	}
}
