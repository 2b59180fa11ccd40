package submit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
)

// bench is an engine, and what was asked of its only worker.
type bench struct {
	dispatch.Engine
	whole marchwarden.TraceID

	mu    sync.Mutex // guards tasks
	tasks []dispatch.Task
}

// openEngine starts a hub in this process and opens an engine on it.
func openEngine(t *testing.T) dispatch.Engine {
	t.Helper()
	h, err := hub.Start(hub.Config{Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	cfg := cluster.Config{InProcess: h, Seed: h.Seed, Now: time.Now, Name: "worker"}
	if err := cluster.Prepare(t.Context(), cfg, cluster.Facts{Lease: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	e, err := cluster.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newBench has the members web and arxiv do what answer says.
func newBench(t *testing.T, answer dispatch.Handler) *bench {
	t.Helper()
	e := openEngine(t)
	b := &bench{Engine: e, whole: dispatchtest.ID()}
	ctx, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for _, queue := range []string{"web", "arxiv"} {
		if answer != nil {
			workers.Go(func() {
				_ = e.Work(ctx, dispatch.Job{Queue: queue, Slots: 4}, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
					b.mu.Lock()
					b.tasks = append(b.tasks, t)
					b.mu.Unlock()
					return answer(ctx, t, l, sink)
				})
			})
		}
	}
	t.Cleanup(func() { stop(); workers.Wait(); _ = e.Close() })
	return b
}

// dispatcher is that of a task of the investigation.
func (b *bench) dispatcher(asker marchwarden.TraceID) *submit.Dispatcher {
	return &submit.Dispatcher{Engine: b, Blobs: b.Blobs(), Investigation: b.whole, Asker: asker, Owner: "me", Priority: dispatch.Urgent, Now: time.Now,
		Network: func() []dispatch.Member { return []dispatch.Member{{Name: "web"}, {Name: "arxiv"}} }}
}

func (b *bench) asked() []dispatch.Task {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]dispatch.Task{}, b.tasks...)
}

// answered is a handler that says who was asked what.
func answered(_ context.Context, t dispatch.Task, _ dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
	sink(marchwarden.Event{Stage: marchwarden.StageSearch, Message: "looking", TraceID: dispatchtest.ID()})
	return dispatchtest.Answer(t.Record, t.Queue+": "+t.Request.Question), nil
}

var question = marchwarden.Request{Question: "What is it?"}

func TestAQuestionIsATask(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(ctx context.Context, t dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		time.Sleep(100 * time.Millisecond) // who asks listens by then
		return answered(ctx, t, l, sink)
	})
	id := dispatchtest.ID()
	ctx, done := context.WithTimeout(marchwarden.WithTraceID(t.Context(), id), time.Minute)
	defer done()
	var events []marchwarden.Event
	res, err := b.dispatcher(marchwarden.TraceID{}).Dispatch(ctx, "web", question, func(e marchwarden.Event) { events = append(events, e) })
	if err != nil || res.Answer != "web: What is it?" {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(events) != 1 || events[0].Message != "looking" || events[0].TraceID != id {
		t.Errorf("heard %+v", events)
	}
	got := b.asked()
	want := []dispatch.Task{{ID: id, Record: id, Investigation: b.whole, Queue: "web", Priority: dispatch.Urgent, Owner: "me", Request: question}}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(id), cmpopts.IgnoreFields(dispatch.Task{}, "Within")); diff != "" {
		t.Error(diff)
	}
	if w := got[0].Within; w < 50*time.Second || w > time.Minute {
		t.Errorf("it has %s of a minute", w)
	}
}

// A caller that asks the same again gets the same task, and what another asks is another's.
func TestDerivedIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t, answered)
	for _, ask := range []struct {
		asker, member, question string
	}{{"", "web", "a"}, {"", "web", "a"}, {"", "arxiv", "a"}, {"", "web", "b"}, {"00000000-0000-4000-8000-000000000001", "web", "a"}, {"", "web", "a"}} {
		var asker marchwarden.TraceID
		if ask.asker != "" {
			asker, _ = marchwarden.ParseTraceID(ask.asker)
		}
		if _, err := b.dispatcher(asker).Dispatch(t.Context(), ask.member, marchwarden.Request{Question: ask.question}, nil); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[marchwarden.TraceID]bool{}
	for _, task := range b.asked() {
		ids[task.ID] = true
	}
	if len(ids) != 4 || len(b.asked()) != 4 {
		t.Errorf("%d ids of %d tasks", len(ids), len(b.asked()))
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	b := newBench(t, answered)
	d := b.dispatcher(marchwarden.TraceID{})
	id := dispatchtest.ID()
	resume := marchwarden.Request{Question: question.Question, Resume: id.String()}
	if _, err := d.Dispatch(t.Context(), "web", resume, nil); !errors.Is(err, marchwarden.CodeNotFound) || !errors.Is(err, dispatch.ErrNotAsked) {
		t.Errorf("a run that nobody knows: %v", err)
	}
	if _, err := d.Dispatch(marchwarden.WithTraceID(t.Context(), id), "web", question, nil); err != nil {
		t.Fatal(err)
	}
	if res, err := d.Dispatch(t.Context(), "web", resume, nil); err != nil || res.TraceID != id || len(b.asked()) != 1 {
		t.Errorf("%+v, %v: asked %d times", res, err, len(b.asked()))
	}
	if _, err := d.Dispatch(t.Context(), "arxiv", resume, nil); !errors.Is(err, marchwarden.CodeInvalid) {
		t.Errorf("another member's run: %v", err)
	}
	tokens := 2000
	resume.Constraints = &marchwarden.Constraints{TokenBudget: &tokens}
	for range 2 {
		var events []marchwarden.Event
		res, err := d.Dispatch(t.Context(), "web", resume, func(e marchwarden.Event) { events = append(events, e) })
		if err != nil || res.TraceID != id {
			t.Errorf("%+v, %v", res, err)
		}
		for _, e := range events {
			if e.TraceID.Valid() {
				t.Errorf("a run that goes on is called %s", e.TraceID)
			}
		}
	}
	got := b.asked()
	if len(got) != 2 || got[1].ID == id || got[1].Record != id || got[1].Request.Resume != id.String() || got[1].Request.Constraints == nil {
		t.Errorf("%+v", got)
	}
}

// untilTold is a handler that goes on until it is canceled.
func untilTold(ctx context.Context, t dispatch.Task, _ dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
	for ctx.Err() == nil { // until a listener hears
		sink(marchwarden.Event{Message: "begun"})
		time.Sleep(5 * time.Millisecond)
	}
	return dispatchtest.Answer(t.Record, "in part"), nil
}

// begins is a sink that is heard of, and the context that ends then.
func begins(t *testing.T, cause error) (context.Context, marchwarden.Sink) {
	ctx, stop := context.WithCancelCause(t.Context())
	return ctx, func(marchwarden.Event) { stop(cause) }
}

func TestWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, untilTold)
	id := dispatchtest.ID()
	ctx, sink := begins(t, nil)
	d := b.dispatcher(marchwarden.TraceID{})
	res, err := d.Dispatch(marchwarden.WithTraceID(ctx, id), "web", question, sink)
	if err != nil || res.Answer != "in part" {
		t.Errorf("%+v, %v", res, err)
	}
	if s, err := b.Look(t.Context(), id); err != nil || s.Status != dispatch.Canceled {
		t.Errorf("%+v, %v", s, err)
	}
	// A caller who has time may resume it.
	ctx, sink = begins(t, nil)
	if res, err := d.Dispatch(ctx, "web", marchwarden.Request{Question: question.Question, Resume: id.String()}, sink); err != nil || res.Answer != "in part" || len(b.asked()) != 2 || b.asked()[1].Record != id {
		t.Errorf("%+v, %v: %+v", res, err, b.asked())
	}
}

func TestAnAskerThatWasReleasedCancelsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, untilTold)
	id := dispatchtest.ID()
	ctx, sink := begins(t, dispatch.ErrReleased)
	began := time.Now()
	_, err := b.dispatcher(marchwarden.TraceID{}).Dispatch(marchwarden.WithTraceID(ctx, id), "web", question, sink)
	if !errors.Is(err, dispatch.ErrReleased) || time.Since(began) > 8*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if s, err := b.Look(t.Context(), id); err != nil || s.Status != dispatch.Working {
		t.Errorf("%+v, %v", s, err)
	}
	// The next worker on the caller's task finds it.
	ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer stop()
	if res, err := b.dispatcher(marchwarden.TraceID{}).Dispatch(ctx, "web", marchwarden.Request{Question: question.Question, Resume: id.String()}, nil); err != nil || res.Answer != "in part" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ context.Context, t dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		switch t.Request.Question {
		case "denied":
			return nil, &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "no entry", Hint: "knock"}
		case "canceled":
			return nil, context.Canceled
		case "unreached":
			return nil, dispatch.NotAsked(marchwarden.Errorf(marchwarden.CodeUnavailable, "nobody is in"))
		}
		panic("boom")
	})
	d := b.dispatcher(marchwarden.TraceID{})
	for _, tt := range []struct {
		member, question string
		code             marchwarden.Code
		hint             string
		unasked          bool
	}{
		{"web", "denied", marchwarden.CodeDenied, "knock", false},
		{"web", "canceled", marchwarden.CodeUnavailable, "", false},
		{"web", "boom", marchwarden.CodeInternal, "", false},
		{"web", "unreached", marchwarden.CodeUnavailable, "", true},
		{"nobody", "denied", marchwarden.CodeInvalid, "", true},
		{"web", strings.Repeat("long ", 200), marchwarden.CodeInvalid, "put what you already know into context", true},
	} {
		res, err := d.Dispatch(t.Context(), tt.member, marchwarden.Request{Question: tt.question}, nil)
		if res != nil || marchwarden.CodeOf(err) != tt.code || marchwarden.HintOf(err) != tt.hint || errors.Is(err, dispatch.ErrNotAsked) != tt.unasked || !tt.unasked && !strings.Contains(err.Error(), tt.member) {
			t.Errorf("%s %.20q: %+v, %v", tt.member, tt.question, res, err)
		}
	}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ref, err := b.Blobs().Put(t.Context(), []byte("a page"))
	if err != nil {
		t.Fatal(err)
	}
	d := b.dispatcher(marchwarden.TraceID{})
	if got, err := d.Evidence(t.Context(), "web", ref.String()); err != nil || string(got) != "a page" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := d.Evidence(t.Context(), "web", blob.Of([]byte("another")).String()); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Error(err)
	}
}
