package loop_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// The doors of a run, each of which panics for one thing it is asked.
type (
	panickyFetcher struct{ fetch.Fetcher }
	panickyEngine  struct{ search.Engine }
	panickyModel   struct{}
)

func (f panickyFetcher) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	if locator == "doc2.md" {
		var none []int
		_ = none[len(locator)]
	}
	return f.Fetcher.Fetch(ctx, locator)
}

func (e panickyEngine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if q.Text == "pods" {
		panic("what a page said: sk-secret")
	}
	return e.Engine.Search(ctx, q)
}

func (panickyModel) ID() string { return "test/model" }

func (panickyModel) Generate(_ context.Context, c llm.Call) (llm.Reply, error) {
	var faults []error
	return llm.Reply{}, faults[len(c.Input)]
}

// runWith is a run with doors of its own.
func (l *lab) runWith(t *testing.T, cfg loop.Config, model string) (*marchwarden.Result, error) {
	t.Helper()
	start := l.start()
	start.Model = model
	w, err := l.traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cfg.Reasoner, cfg.Blobs = l.mind, l.blobs
	return loop.New(cfg).Run(t.Context(), replay.Record(w, l.blobs, l.clock, nil), start, l.clock)
}

// A panic in one effect is that effect's failure: recorded, a gap that names the
// place and not the value, and no loss to its siblings or to the process.
func TestAPanicInAnEffectIsAGap(t *testing.T) {
	l := newLab(t, 3)
	l.mind.plans = [][]string{{"peas", "pods"}}
	l.mind.write = func(st *reason.State) (reason.Draft, error) {
		_, err := st.Model.Generate(t.Context(), llm.Call{Prompt: "write", MaxTokens: 10})
		if marchwarden.CodeOf(err) != marchwarden.CodeInternal {
			t.Errorf("the model's panic came as %v", err)
		}
		l.mind.write = nil
		d, _ := l.mind.Write(t.Context(), st)
		return d, err
	}
	write := l.mind.write
	res, err := l.runWith(t, loop.Config{Engine: panickyEngine{l.engine}, Fetcher: panickyFetcher{l.fetcher}, Model: panickyModel{}}, "test/model")
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Citations) != 2 {
		t.Errorf("%d citations, want those of the two documents that were read", len(res.Citations))
	}
	text := ""
	for _, g := range res.Gaps {
		text += g.Topic + ": " + g.Detail + "\n"
		if g.Category != marchwarden.AccessDenied {
			t.Errorf("%+v", g)
		}
	}
	for _, want := range []string{
		"doc2.md: a bug in this program: a fetch panicked at panic_test.go:", "index out of range",
		"a search panicked at panic_test.go:", ": a string", "a model call panicked at panic_test.go:", "index out of range",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no gap says %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "sk-secret") || strings.Contains(text, "goroutine") {
		t.Errorf("a gap tells too much:\n%s", text)
	}
	l.mind.write = write
	l.rerun(t, res)
}

// A panic between effects, in a goroutine of the loop, ends its run with an error
// and not the process.
func TestAPanicInAGoroutineEndsOnlyItsRun(t *testing.T) {
	l := newLab(t, 1)
	w, err := l.traces.Create(l.start().TraceID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	sink := func(ev marchwarden.Event) {
		if ev.Stage == marchwarden.StageFetch || ev.Stage == marchwarden.StageSearch && l.req.Depth == marchwarden.Deep {
			panic("the watcher is broken")
		}
	}
	for _, depth := range []marchwarden.Depth{marchwarden.Balanced, marchwarden.Deep} {
		l.req.Depth = depth
		_, err := loop.New(loop.Config{Engine: l.engine, Fetcher: l.fetcher, Reasoner: l.mind, Blobs: l.blobs}).
			Run(t.Context(), replay.Record(w, l.blobs, l.clock, sink), l.start(), l.clock)
		if marchwarden.CodeOf(err) != marchwarden.CodeInternal || !strings.Contains(err.Error(), "gathering panicked at panic_test.go") {
			t.Errorf("%s: %v", depth, err)
		}
	}
}

// slowModel answers when its caller has no patience left.
type slowModel struct{}

func (slowModel) ID() string { return "test/model" }

func (slowModel) Generate(ctx context.Context, _ llm.Call) (llm.Reply, error) {
	<-ctx.Done()
	return llm.Reply{}, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "stopped")
}

// A model that hangs while it plans leaves time to gather without it.
func TestPlanningLeavesTimeToGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.wall = 10 * time.Second
		for doc := range l.fetcher.Texts {
			l.fetcher.Delay[doc] = 4 * time.Second
		}
		mind := &asking{script: l.mind}
		start := l.start()
		start.Model = "test/model"
		w, err := l.traces.Create(start.TraceID)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		res, err := loop.New(loop.Config{Engine: l.engine, Fetcher: l.fetcher, Reasoner: mind, Model: slowModel{}, Blobs: l.blobs}).
			Run(t.Context(), replay.Record(w, l.blobs, l.clock, nil), start, l.clock)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Citations) != 2 {
			t.Errorf("%d citations: %+v", len(res.Citations), res.Gaps)
		}
	})
}

// asking is the script that asks the model first, whatever it says.
type asking struct{ *script }

func (a *asking) Plan(ctx context.Context, st *reason.State) (reason.Plan, error) {
	_, _ = st.Model.Generate(ctx, llm.Call{Prompt: "step", MaxTokens: 10, Attempt: st.Iteration}) // it hangs until it is stopped
	return a.script.Plan(ctx, st)
}
