package dispatchtest

import (
	"context"
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

func watchStored(b *bench) {
	one, two := b.engine("one"), b.engine("two")
	t := Task("web")
	b.submit(one, t)
	stop := b.work(one, dispatch.Job{Queue: "web", Slots: 1}, answering("a\n", "b\n", "c\n"))
	b.end(one, t)
	stop()
	for _, e := range []dispatch.Engine{one, two} {
		all := b.kept(b.events(e, dispatch.Watching{Task: t.ID}))
		if got := kinds(all); got != `taken 1; "a\n"; "b\n"; "c\n"; done` {
			b.Errorf("it is watched as %s", got)
		}
		if all[0].Worker != "one" {
			b.Errorf("it was taken by %q", all[0].Worker)
		}
		for i, ev := range all[:len(all)-1] {
			if diff := cmp.Diff(all[i+1:], b.kept(b.events(e, dispatch.Watching{Task: t.ID, After: ev.Seq})), alike); diff != "" {
				b.Errorf("after %d of %s: %s", i+1, kinds(all), diff)
			}
		}
	}
}

func watchLive(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	t := Task("web")
	b.submit(e, t)
	watched := make(chan []dispatch.Event, 2)
	for _, from := range []dispatch.Engine{e, other} {
		go func() { watched <- b.events(from, dispatch.Watching{Task: t.ID}) }()
	}
	time.Sleep(50 * time.Millisecond)
	seen := make(chan bool)
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if err := l.Append(ctx, []byte("a\n")); err != nil {
			return nil, err
		}
		<-seen
		sink(marchwarden.Event{Stage: marchwarden.StageFetch, Message: "half way", TraceID: t.ID, Done: 1, Total: 2})
		return answering("b\n")(ctx, t, l, nil)
	})
	// A line is seen while its task goes on.
	for ev, err := range other.Watch(b.context(), dispatch.Watching{Task: t.ID}) {
		if err != nil {
			b.Fatal(err)
		}
		if ev.Kind == dispatch.Written {
			break
		}
	}
	close(seen)
	heard := 0
	for range 2 {
		all := receive(b, "a watcher saw the end", watched)
		if got := kinds(b.kept(all)); got != `taken 1; "a\n"; "b\n"; done` {
			b.Errorf("it is watched as %s", got)
		}
		for _, ev := range all {
			if p := ev.Progress; ev.Kind == dispatch.Progress && p.Message == "half way" && p.TraceID == t.ID && p.Total == 2 && ev.Task == t.ID {
				heard++
			}
		}
	}
	if heard == 0 {
		b.Error("nobody heard of progress")
	}
}

func watchPart(b *bench) {
	e := b.engine("one")
	whole, part := Task("pi"), Task("web")
	part.Investigation = whole.ID
	b.submit(e, whole)
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, answering("part\n"))
	b.work(e, dispatch.Job{Queue: "pi", Slots: 1}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if err := e.Submit(ctx, part); err != nil {
			return nil, err
		}
		b.end(e, part)
		return answering("whole\n")(ctx, t, l, sink)
	})
	b.end(e, whole) // and so its part has ended
	for id, want := range map[marchwarden.TraceID]string{whole.ID: `taken 1; "whole\n"; done`, part.ID: `taken 1; "part\n"; done`} {
		if got := kinds(b.kept(b.events(e, dispatch.Watching{Task: id}))); got != want {
			b.Errorf("it is watched as %s, not as %s", got, want)
		}
	}
	// A part can be watched though its investigation is no task.
	lone := Task("web")
	lone.Investigation = ID()
	b.submit(e, lone)
	b.end(e, lone)
}

func watchStops(b *bench) {
	e := b.engine("one")
	t := Task("web")
	b.submit(e, t)
	ctx, cancel := context.WithCancel(b.context())
	over := make(chan error, 1)
	go func() {
		var last error
		for _, err := range e.Watch(ctx, dispatch.Watching{Task: t.ID}) {
			last = err
		}
		over <- last
	}()
	time.Sleep(50 * time.Millisecond)
	cancel()
	if err := receive(b, "watching ended with its context", over); err != nil && !errors.Is(err, context.Canceled) {
		b.Errorf("it ended with %v", err)
	}
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, answering("a\n"))
	b.end(e, t)
	n := 0
	for range e.Watch(b.context(), dispatch.Watching{Task: t.ID}) {
		n++
		break
	}
	if n != 1 {
		b.Errorf("%d events", n)
	}
}
