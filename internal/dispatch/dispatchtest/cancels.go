package dispatchtest

import (
	"context"
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

func cancelWaiting(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	t, next := Task("web"), Task("web")
	b.submit(e, t)
	for range 2 {
		if err := other.Cancel(b.context(), t.ID, "nobody waits"); err != nil {
			b.Fatal(err)
		}
	}
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, got dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if got.ID == t.ID {
			b.Error("it was begun")
		}
		return answering()(ctx, got, l, sink)
	})
	b.submit(e, next)
	b.end(e, next)
	end := b.end(e, t)
	if end.Status != dispatch.Canceled || end.Code != marchwarden.CodeCanceled || end.Attempt != 0 || end.Result.Valid() || !strings.Contains(end.Message, "nobody waits") {
		b.Errorf("it ended as %+v", end)
	}
	b.submit(e, t)
	if s := b.look(e, t.ID); s.Status != dispatch.Canceled || s.Attempts != 0 {
		b.Errorf("handed in again it is %+v", s)
	}
}

func cancelWorking(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	t, fails := Task("web"), Task("web")
	begun := make(chan bool, 2)
	b.work(e, dispatch.Job{Queue: "web", Slots: 2}, func(ctx context.Context, got dispatch.Task, l dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		begun <- true
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), dispatch.ErrReleased) {
			b.Error("a canceled task was released")
		}
		if got.ID == fails.ID {
			return nil, ctx.Err()
		}
		// What there is can still be recorded.
		return answering("the rest\n")(context.WithoutCancel(ctx), got, l, nil)
	})
	b.submit(e, t, fails)
	receive(b, "one was begun", begun)
	receive(b, "two were begun", begun)
	for _, id := range []marchwarden.TraceID{t.ID, t.ID, fails.ID} {
		if err := other.Cancel(b.context(), id, "enough"); err != nil {
			b.Fatal(err)
		}
	}
	end := b.end(e, t)
	if end.Status != dispatch.Canceled || end.Attempt != 1 || b.result(other, end) != "Paris." || b.record(other, end) != "the rest\n" {
		b.Errorf("it ended as %+v", end)
	}
	if end := b.end(e, fails); end.Status != dispatch.Canceled || end.Code != marchwarden.CodeCanceled || end.Result.Valid() || end.Attempt != 1 {
		b.Errorf("without a result it ended as %+v", end)
	}
}

func cancelInvestigation(b *bench) {
	e := b.engine("one")
	whole, works, waits := Task("pi"), Task("web"), Task("arxiv")
	works.Investigation, waits.Investigation = whole.ID, whole.ID
	b.submit(e, whole, works, waits)
	begun := make(chan bool, 2)
	untilDone := func(ctx context.Context, t dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		begun <- true
		<-ctx.Done()
		return Answer(t.ID, "in part"), nil
	}
	b.work(e, dispatch.Job{Queue: "pi", Slots: 1}, untilDone)
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, untilDone)
	receive(b, "one was begun", begun)
	receive(b, "two were begun", begun)
	if err := e.Cancel(b.context(), whole.ID, "enough"); err != nil {
		b.Fatal(err)
	}
	for _, t := range []dispatch.Task{whole, works} {
		if end := b.end(e, t); end.Status != dispatch.Canceled || b.result(e, end) != "in part" {
			b.Errorf("%s ended as %+v", t.Queue, end)
		}
	}
	b.work(e, dispatch.Job{Queue: "arxiv", Slots: 1}, untilDone) // which may be who notices
	if end := b.end(e, waits); end.Status != dispatch.Canceled || end.Attempt != 0 {
		b.Errorf("%s ended as %+v", waits.Queue, end)
	}
}

func cancelGoneOn(b *bench) {
	e := b.engine("one")
	first := Task("pi")
	b.submit(e, first)
	begun := make(chan bool, 1)
	b.work(e, dispatch.Job{Queue: "pi", Slots: 1}, func(ctx context.Context, t dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		if t.ID != first.ID {
			begun <- true
			<-ctx.Done()
		}
		return Answer(t.ID, "so far"), nil
	})
	cancel := func() {
		b.Helper()
		if err := e.Cancel(b.context(), first.ID, "enough"); err != nil {
			b.Fatal(err)
		}
	}
	end := b.end(e, first)
	cancel() // of which nothing is open
	var parts []dispatch.Task
	for range 2 {
		later, part := Task("pi"), Task("web")
		later.Record, later.Investigation, later.Request.Resume = first.ID, first.ID, first.ID.String()
		part.Investigation = first.ID
		parts = append(parts, part)
		b.submit(e, later, part)
		receive(b, "it was gone on with", begun)
		cancel()
		if end := b.end(e, later); end.Status != dispatch.Canceled || b.result(e, end) != "so far" {
			b.Errorf("what went on ended as %+v", end)
		}
	}
	next := Task("web") // submitted after all that
	next.Investigation = first.ID
	b.submit(e, next)
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, answering())
	for _, part := range parts {
		if end := b.end(e, part); end.Status != dispatch.Canceled || end.Attempt != 0 {
			b.Errorf("what waited ended as %+v", end)
		}
	}
	if end := b.end(e, next); end.Status != dispatch.Done {
		b.Errorf("what came later ended as %+v", end)
	}
	if s := b.look(e, first.ID); cmp.Diff(end, s.End, alike) != "" || s.Status != dispatch.Done {
		b.Errorf("the first is %+v now", s)
	}
}

func cancelEnded(b *bench) {
	e := b.engine("one")
	t := Task("web")
	b.submit(e, t)
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, answering("a\n"))
	end := b.end(e, t)
	for range 2 {
		if err := e.Cancel(b.context(), t.ID, "too late"); err != nil {
			b.Fatal(err)
		}
	}
	next := Task("web") // after which the cancel would have been noticed
	b.submit(e, next)
	b.end(e, next)
	if s := b.look(e, t.ID); cmp.Diff(end, s.End, alike) != "" || s.Status != dispatch.Done {
		b.Errorf("it is %+v now", s)
	}
	b.end(e, t)
}
