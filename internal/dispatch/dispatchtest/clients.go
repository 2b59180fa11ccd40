package dispatchtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

var ofClients = []promise{
	{"a task is kept as it was handed in", submitKeeps},
	{"the same id is the same task", submitTwice},
	{"many hand in at once, and each task ends once", manySubmitters},
	{"what happened can be watched afterwards", watchStored},
	{"what happens can be watched", watchLive},
	{"watching an investigation shows its parts", watchInvestigation},
	{"watching ends when told to", watchStops},
	{"a task that nobody knows is CodeNotFound", unknown},
	{"a look says how a task is", look},
	{"a canceled task that waits is not begun", cancelWaiting},
	{"a canceled task that is under way ends with what there is", cancelWorking},
	{"a canceled investigation ends with all its parts", cancelInvestigation},
	{"canceling changes nothing about what has ended", cancelEnded},
	{"blobs are the same for all", sharedBlobs},
	{"what nobody has limited never waits", unlimited},
	{"tasks outlive an engine that is closed", closes},
}

func submitKeeps(b *bench) {
	one, two := b.engine("one"), b.engine("two")
	n := 3
	t := Task("web")
	t.Priority, t.Owner, t.Within, t.Investigation = dispatch.Low, "Ω/owner one*>.", 3*time.Second, ID()
	t.Request.Context, t.Request.Constraints = "so far: \u2028 <b>", &marchwarden.Constraints{MaxSources: &n}
	t.Wishes = dispatch.Wishes{Only: []string{"web"}, Parallel: 2, MaxRihlas: 3, AllowEgress: []string{"files"}, PlanOnly: true}
	b.submit(one, t)
	for _, e := range []dispatch.Engine{one, two} {
		s := b.look(e, t.ID)
		if diff := cmp.Diff(dispatch.State{Task: t, Status: dispatch.Waiting}, s, alike); diff != "" {
			b.Error(diff)
		}
	}
}

// alike compares what engines tell.
var alike = cmp.Options{cmpopts.EquateComparable(marchwarden.TraceID{}, blob.Ref{}), cmpopts.EquateEmpty()}

func submitTwice(b *bench) {
	engines := []dispatch.Engine{b.engine("one"), b.engine("two")}
	t := Task("web")
	b.submit(engines[0], t)
	var all sync.WaitGroup
	for i := range 8 {
		other := t
		other.Request.Question = "Another question?"
		other.Priority = dispatch.Priority(i % 3)
		all.Go(func() {
			if err := engines[i%2].Submit(b.context(), other); err != nil {
				b.Errorf("handed in again: %v", err)
			}
		})
	}
	all.Wait()
	var begun atomic.Int64
	count := func(ctx context.Context, got dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		begun.Add(1)
		if got.Request.Question != t.Request.Question {
			b.Errorf("the task became %+v", got.Request)
		}
		return answering("a line\n")(ctx, got, l, sink)
	}
	for _, e := range engines {
		b.work(e, dispatch.Job{Queue: "web", Slots: 4}, count)
	}
	first := b.end(engines[0], t)
	b.submit(engines[1], t)
	next := Task("web")
	b.submit(engines[1], next)
	b.end(engines[1], next)
	if diff := cmp.Diff(first, b.end(engines[1], t), alike); diff != "" || begun.Load() != 2 {
		b.Errorf("begun %d times for 2 tasks, and its end changed: %s", begun.Load(), diff)
	}
}

func manySubmitters(b *bench) {
	engines := []dispatch.Engine{b.engine("one"), b.engine("two")}
	var mu sync.Mutex
	begun := map[marchwarden.TraceID]int{}
	for _, e := range engines {
		b.work(e, dispatch.Job{Queue: "web", Slots: 4}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
			mu.Lock()
			begun[t.ID]++
			mu.Unlock()
			return answering("a line\n")(ctx, t, l, sink)
		})
	}
	each := 6
	if full() {
		each = 60
	}
	tasks := make([][]dispatch.Task, 8)
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			for range each {
				t := Task("web")
				t.Owner = fmt.Sprint("owner ", i)
				if err := engines[i%2].Submit(b.context(), t); err != nil {
					b.Errorf("submit: %v", err)
					return
				}
				tasks[i] = append(tasks[i], t)
			}
		})
	}
	all.Wait()
	for i := range tasks {
		all.Go(func() {
			for _, t := range tasks[i] {
				if end := b.end(engines[(i+1)%2], t); end.Status != dispatch.Done {
					b.Errorf("%s ended as %+v", t.ID, end)
				}
			}
		})
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	for id, n := range begun {
		if n != 1 {
			b.Errorf("%s was begun %d times", id, n)
		}
	}
	if len(begun) != 8*each {
		b.Errorf("%d of %d tasks were begun", len(begun), 8*each)
	}
}

func unknown(b *bench) {
	e := b.engine("one")
	id := ID()
	_, err := e.Look(b.context(), id)
	b.want("look", err, marchwarden.CodeNotFound)
	for _, w := range []dispatch.Watching{{Investigation: id}, {Investigation: id, Task: id}, {Investigation: ID(), Task: id}} {
		err = nil
		for _, err = range e.Watch(b.context(), w) {
			if err != nil {
				break
			}
		}
		b.want("watch", err, marchwarden.CodeNotFound)
	}
}

func look(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	t := Task("web")
	b.submit(e, t)
	begun, finish := make(chan bool), make(chan bool)
	b.work(e, dispatch.Job{Queue: "web", Slots: 1}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		close(begun)
		<-finish
		return answering("a\n")(ctx, t, l, sink)
	})
	receive(b, "it was begun", begun)
	for _, from := range []dispatch.Engine{e, other} {
		if s := b.look(from, t.ID); s.Status != dispatch.Working || s.Worker != "one" || s.Attempts != 1 || s.End != nil {
			b.Errorf("while it is worked on: %+v", s)
		}
	}
	close(finish)
	end := b.end(e, t)
	for _, from := range []dispatch.Engine{e, other} {
		s := b.look(from, t.ID)
		if s.Status != dispatch.Done || s.Worker != "one" || s.Attempts != 1 || cmp.Diff(end, s.End, alike) != "" {
			b.Errorf("when it is done: %+v, %+v", s, s.End)
		}
	}
	if end.Status != dispatch.Done || end.Worker != "one" || end.Attempt != 1 || end.At.IsZero() || end.Code != "" {
		b.Errorf("it ended as %+v", end)
	}
}

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

func sharedBlobs(b *bench) {
	one, two := b.engine("one"), b.engine("two")
	ref, err := one.Blobs().Put(b.context(), []byte("a page"))
	if err != nil {
		b.Fatal(err)
	}
	if got, err := two.Blobs().Get(b.context(), ref); err != nil || string(got) != "a page" {
		b.Errorf("%q, %v", got, err)
	}
}

func unlimited(b *bench) {
	e := b.engine("one")
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
	defer cancel()
	l := e.Limit("nobody:has.limited")
	for range 100 {
		if err := l.Wait(ctx, 1_000_000); err != nil {
			b.Fatal(err)
		}
		l.Refund(1_000_000)
	}
	cancel()
	b.want("wait without time", l.Wait(ctx, 1), context.Canceled)
}

func closes(b *bench) {
	e, other := b.engine("one"), b.engine("two")
	t := Task("web")
	b.submit(e, t)
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	if err := e.Submit(b.context(), Task("web")); err == nil {
		b.Error("a closed engine takes tasks")
	}
	if err := e.Work(b.context(), dispatch.Job{Queue: "web", Slots: 1}, answering()); err == nil {
		b.Error("a closed engine works")
	}
	b.work(other, dispatch.Job{Queue: "web", Slots: 1}, answering("a\n"))
	b.end(other, t)
}
