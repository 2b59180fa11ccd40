package dispatchtest

import (
	"context"
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
	{"what nobody could work on is refused, what is left open filled in", unfit},
	{"many hand in at once, and each task ends once", manySubmitters},
	{"what happened can be watched afterwards", watchStored},
	{"what happens can be watched", watchLive},
	{"a part of an investigation is watched alone", watchPart},
	{"watching ends when told to", watchStops},
	{"a task that nobody knows is CodeNotFound", unknown},
	{"a look says how a task is", look},
	{"a canceled task that waits is not begun", cancelWaiting},
	{"a canceled task that is under way ends with what there is", cancelWorking},
	{"a canceled investigation ends with all its parts", cancelInvestigation},
	{"an investigation that is gone on with can be canceled, again and again", cancelGoneOn},
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
	for _, w := range []dispatch.Watching{{Task: id}, {Task: id, After: 7}, {}} {
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

// spoilt are tasks that no worker could do.
var spoilt = map[string]func(*dispatch.Task){
	"no id":                  func(t *dispatch.Task) { t.ID = marchwarden.TraceID{} },
	"no queue":               func(t *dispatch.Task) { t.Queue = "" },
	"a subject for a queue":  func(t *dispatch.Task) { t.Queue = "a.*" },
	"a path for a queue":     func(t *dispatch.Task) { t.Queue = "../web" },
	"a queue in capitals":    func(t *dispatch.Task) { t.Queue = "Web" },
	"too long a queue":       func(t *dispatch.Task) { t.Queue = strings.Repeat("w", 41) },
	"no such band":           func(t *dispatch.Task) { t.Priority = 3 },
	"time that runs back":    func(t *dispatch.Task) { t.Within = -1 },
	"no question":            func(t *dispatch.Task) { t.Request.Question = " " },
	"it goes on with itself": func(t *dispatch.Task) { t.Request.Resume = t.ID.String() },
	"it asks for another":    func(t *dispatch.Task) { t.Request.Resume = ID().String() },
}

func unfit(b *bench) {
	e := b.engine("one")
	for name, spoil := range spoilt {
		t := Task("web")
		spoil(&t)
		b.want("submit with "+name, e.Submit(b.context(), t), marchwarden.CodeInvalid)
	}
	for _, job := range []dispatch.Job{{Queue: "web"}, {Queue: "a b", Slots: 1}, {Queue: "Web", Slots: 1}} {
		b.want(fmt.Sprintf("work %+v", job), e.Work(b.context(), job, answering()), marchwarden.CodeInvalid)
	}
	t := Task("web")
	own := t
	own.Record, own.Investigation = marchwarden.TraceID{}, marchwarden.TraceID{}
	b.submit(e, own)
	if diff := cmp.Diff(t, b.look(e, t.ID).Task, alike); diff != "" {
		b.Errorf("what was left open: %s", diff)
	}
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
	if l.Limited() {
		b.Error("it says that somebody has limited it")
	}
	for range 100 {
		settle, err := l.Take(ctx, 1_000_000)
		if err != nil {
			b.Fatal(err)
		}
		settle(0)
	}
	cancel()
	_, err := l.Take(ctx, 1)
	b.want("take without time", err, context.Canceled)
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
