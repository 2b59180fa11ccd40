package dispatchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

var ofWork = []promise{
	{"work never takes on more than its slots, and all of them", slots},
	{"a lower band goes first", bands},
	{"one owner's many do not keep another's one waiting", fairness},
	{"queues do not mix", queues},
	{"work that ends lets those under way finish", drainFinishes},
	{"an error is an end", errorsAreEnds},
	{"a panic is an end, and the worker goes on", panics},
	{"lines come back as they were written", lines},
	{"records do not mix", recordsApart},
	{"the end has the whole record and the result", sealed},
	{"a later task goes on with an earlier one's record", continues},
}

func slots(b *bench) {
	e := b.engine("one")
	const most, all = 3, 12
	var now, peak, ended atomic.Int64
	full, release := make(chan bool, all), make(chan struct{})
	b.work(e, dispatch.Job{Queue: "web", Slots: most}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			p := peak.Load()
			if n <= p || peak.CompareAndSwap(p, n) {
				break
			}
		}
		if n == most {
			full <- true
		}
		// Held until all slots are: how long submitting takes must not matter.
		select {
		case <-release:
		case <-ctx.Done():
		}
		ended.Add(1)
		return answering()(ctx, t, l, sink)
	})
	var tasks []dispatch.Task
	for range all {
		tasks = append(tasks, Task("web"))
	}
	b.submit(e, tasks...)
	receive(b, "all slots were used", full)
	time.Sleep(100 * time.Millisecond) // time for one too many
	close(release)
	for _, t := range tasks {
		b.end(e, t)
	}
	if peak.Load() != most || ended.Load() != all {
		b.Errorf("%d at once of %d, %d of %d handled", peak.Load(), most, ended.Load(), all)
	}
}

// orderOf is the order in which tasks that wait are begun by one slot.
func orderOf(b *bench, e dispatch.Engine, tasks []dispatch.Task, name func(dispatch.Task) string) []string {
	var mu sync.Mutex
	var order []string
	b.submit(e, tasks...)
	stop := b.work(e, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, name(t))
		return answering()(ctx, t, l, sink)
	})
	for _, t := range tasks {
		b.end(e, t)
	}
	stop()
	return order
}

func bands(b *bench) {
	e := b.engine("one")
	var tasks []dispatch.Task
	for i := range 9 {
		t := Task("web")
		t.Priority = dispatch.Low - dispatch.Priority(i/3)
		tasks = append(tasks, t)
	}
	got := strings.Join(orderOf(b, e, tasks, func(t dispatch.Task) string { return fmt.Sprint(int(t.Priority)) }), "")
	if got != "000111222" {
		b.Errorf("bands went %s", got)
	}
}

func fairness(b *bench) {
	e := b.engine("one")
	var tasks []dispatch.Task
	for range 30 {
		t := Task("web")
		t.Owner = "busy"
		tasks = append(tasks, t)
	}
	for i := range 6 {
		t := Task("web")
		t.Owner = fmt.Sprint("owner ", i)
		tasks = append(tasks, t)
	}
	order := orderOf(b, e, tasks, func(t dispatch.Task) string { return t.Owner })
	early := 0
	for _, owner := range order[:16] {
		if owner != "busy" {
			early++
		}
	}
	// Owners may share a lane, but not all of them.
	if early < 3 {
		b.Errorf("%d of 6 others were among the first 16: %s", early, strings.Join(order, ", "))
	}
}

func queues(b *bench) {
	e := b.engine("one")
	var tasks []dispatch.Task
	for _, q := range []string{"web", "pi", "a_b-c"} {
		tasks = append(tasks, Task(q))
		b.work(e, dispatch.Job{Queue: q, Slots: 1}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
			if t.Queue != q {
				b.Errorf("%s got a task for %s", q, t.Queue)
			}
			return answering()(ctx, t, l, sink)
		})
	}
	b.submit(e, tasks...)
	for _, t := range tasks {
		b.end(e, t)
	}
}

func drainFinishes(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	t, waits := Task("web"), Task("web")
	b.submit(e, t)
	begun, finish := make(chan bool, 2), make(chan bool)
	stop := b.work(e, dispatch.Job{Queue: "web", Slots: 2, Drain: patience}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		begun <- true
		<-finish
		if ctx.Err() != nil {
			b.Errorf("a task that may finish has the context %v, %v", ctx.Err(), context.Cause(ctx))
		}
		return answering("a\n")(ctx, t, l, sink)
	})
	receive(b, "it was begun", begun)
	stopped := make(chan bool)
	go func() { stop(); close(stopped) }()
	time.Sleep(100 * time.Millisecond)
	b.submit(other, waits)
	time.Sleep(150 * time.Millisecond)
	select {
	case <-stopped:
		b.Error("work ended before its task")
	case <-begun:
		b.Error("a task was taken although the work was ending")
	default:
	}
	close(finish)
	receive(b, "work ended", stopped)
	if end := b.end(other, t); end.Status != dispatch.Done || end.Worker != "one" || end.Attempt != 1 {
		b.Errorf("it ended as %+v", end)
	}
	if s := b.look(other, waits.ID); s.Status != dispatch.Waiting {
		b.Errorf("what came too late is %+v", s)
	}
}

func errorsAreEnds(b *bench) {
	e := b.engine("one")
	for name, tt := range map[string]struct {
		err  error
		code marchwarden.Code
		hint string
	}{
		"with a code":      {fmt.Errorf("search: %w", &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "no entry", Hint: "ask for one"}), marchwarden.CodeDenied, "ask for one"},
		"without":          {fs.ErrClosed, marchwarden.CodeInternal, ""},
		"released by name": {marchwarden.Wrap(fs.ErrClosed, marchwarden.CodeUnavailable, "not there"), marchwarden.CodeUnavailable, ""},
		"nobody reached":   {dispatch.NotAsked(fs.ErrClosed), marchwarden.CodeInternal, ""},
	} {
		t := Task("web")
		b.submit(e, t)
		stop := b.work(e, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, _ dispatch.Task, l dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
			return nil, errors.Join(l.Append(ctx, []byte("so far\n")), tt.err)
		})
		end := b.end(e, t)
		stop()
		if end.Status != dispatch.Failed || end.Code != tt.code || !strings.Contains(end.Message, tt.err.Error()) || end.Hint != tt.hint || end.Result.Valid() || end.Attempt != 1 || end.NotAsked != errors.Is(tt.err, dispatch.ErrNotAsked) {
			b.Errorf("%s: it ended as %+v", name, end)
		}
		if got := b.record(e, end); got != "so far\n" {
			b.Errorf("%s: its record is %q", name, got)
		}
	}
}

func panics(b *bench) {
	e := b.engine("one")
	t, none, next := Task("web"), Task("web"), Task("web")
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, got dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		switch got.ID {
		case t.ID:
			panic("boom")
		case none.ID:
			return nil, nil
		}
		return answering()(ctx, got, l, sink)
	})
	b.submit(e, t, none, next)
	for _, t := range []dispatch.Task{t, none} {
		if end := b.end(e, t); end.Status != dispatch.Failed || end.Code != marchwarden.CodeInternal || end.Attempt != 1 {
			b.Errorf("it ended as %+v", end)
		}
	}
	if end := b.end(e, next); end.Status != dispatch.Done {
		b.Errorf("the next ended as %+v", end)
	}
}

func lines(b *bench) {
	e := b.engine("one")
	t := Task("web")
	written := [][]byte{[]byte("\n"), []byte("{\"a\":\"\\u0000 <&> Ω\"}\n"), {0xff, 0xfe, 0, '\r', '\n'}, append(bytes.Repeat([]byte("long "), 100_000), '\n'), []byte("{}\n")}
	b.submit(e, t)
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		for i, line := range written {
			own := bytes.Clone(line)
			if err := l.Append(ctx, own); err != nil {
				return nil, err
			}
			clear(own) // what was passed in is the caller's again
			if got, err := l.Read(ctx); err != nil || !bytes.Equal(got, bytes.Join(written[:i+1], nil)) {
				return nil, fmt.Errorf("after %d lines: %d bytes, %w", i+1, len(got), err)
			}
		}
		return Answer(t.ID, "Paris."), nil
	})
	end := b.end(e, t)
	if end.Status != dispatch.Done {
		b.Fatalf("it ended as %+v", end)
	}
	if b.record(e, end) != string(bytes.Join(written, nil)) {
		b.Error("the sealed record is another")
	}
	n := 0
	for _, ev := range b.events(e, dispatch.Watching{Task: t.ID}) {
		if ev.Kind == dispatch.Written {
			if n < len(written) && !bytes.Equal(ev.Line, written[n]) {
				b.Errorf("line %d is watched as %.40q", n+1, ev.Line)
			}
			n++
		}
	}
	if n != len(written) {
		b.Errorf("%d lines are watched", n)
	}
}

func recordsApart(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	whole := ID()
	var tasks []dispatch.Task
	for range 4 {
		t := Task("web")
		t.Investigation = whole
		tasks = append(tasks, t)
	}
	for _, e := range []dispatch.Engine{e, other} {
		b.work(e, dispatch.Job{Queue: "web", Slots: 2}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
			for i := range 5 {
				if err := l.Append(ctx, fmt.Appendf(nil, "%s %d\n", t.ID, i)); err != nil {
					return nil, err
				}
			}
			return answering()(ctx, t, l, sink)
		})
	}
	b.submit(e, tasks...)
	for _, t := range tasks {
		want := ""
		for i := range 5 {
			want += fmt.Sprintf("%s %d\n", t.ID, i)
		}
		if diff := cmp.Diff(want, b.record(e, b.end(e, t))); diff != "" {
			b.Error(diff)
		}
	}
}

func sealed(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	t := Task("web")
	b.submit(e, t)
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, answering("a\n", "b\n"))
	end := b.end(other, t)
	encoded, err := marchwarden.EncodeResult(Answer(t.Record, "Paris."))
	if err != nil {
		b.Fatal(err)
	}
	if got, err := other.Blobs().Get(b.context(), end.Result); err != nil || !bytes.Equal(got, encoded) {
		b.Errorf("the result is %q, want %q: %v", got, encoded, err)
	}
	if got := b.record(other, end); got != "a\nb\n" {
		b.Errorf("the record is %q", got)
	}
}

func continues(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	t := Task("web")
	b.submit(e, t)
	stop := b.work(e, dispatch.Job{Queue: "web", Slots: 1}, answering("a\n"))
	b.end(e, t)
	stop()
	later := Task("web")
	later.Record, later.Investigation, later.Request.Resume = t.ID, t.Investigation, t.ID.String()
	b.submit(e, later)
	b.work(other, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, got dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if had, err := l.Read(ctx); err != nil || string(had) != "a\n" || got.ID != later.ID || l.Begun() {
			return nil, fmt.Errorf("it goes on with %q, %w", had, err)
		}
		res, err := answering("b\n")(ctx, got, l, sink)
		if !l.Begun() {
			err = errors.New("it does not know that it was begun")
		}
		return res, err
	})
	end := b.end(e, later)
	if end.Status != dispatch.Done || b.record(e, end) != "a\nb\n" {
		b.Errorf("it ended as %+v", end)
	}
	if end := b.end(e, t); end.Worker != "one" || b.record(e, end) != "a\n" {
		b.Errorf("the earlier one ended as %+v", end)
	}
	if got := kinds(b.kept(b.events(e, dispatch.Watching{Task: later.ID}))); got != `taken 1; "b\n"; done` {
		b.Errorf("it is watched as %s", got)
	}
}
