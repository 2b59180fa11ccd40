package loop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/metered"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// whim is a service that never gives the same vector twice, and charges for it.
type whim struct {
	costs int  // tokens a text
	grows bool // it raises its prices
	fails func(call int) error

	mu    sync.Mutex // guards calls
	calls int
}

func (*whim) ID() string { return "service/whim" }

func (w *whim) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	w.mu.Lock()
	w.calls++
	call := w.calls
	w.mu.Unlock()
	price := w.costs
	if w.grows {
		price *= call
	}
	settle, err := embed.AccountOf(ctx).Reserve(price*len(texts) + 1)
	if err != nil {
		return nil, err
	}
	if w.fails != nil {
		if err := w.fails(call); err != nil {
			settle(0)
			return nil, err
		}
	}
	settle(price * len(texts))
	out := make([]embed.Vector, len(texts))
	for i := range texts {
		out[i] = embed.Vector{float32((call*7 + i*5) % 11), 1}
	}
	return out, nil
}

// constant is an embedder that gives the same everywhere.
type constant struct{}

func (*constant) ID() string { return "constant/1" }
func (*constant) Pure()      {}

func (*constant) Embed(_ context.Context, texts []string) ([]embed.Vector, error) {
	out := make([]embed.Vector, len(texts))
	for i, t := range texts {
		out[i] = embed.Vector{float32(len(t)), 1}
	}
	return out, nil
}

// ranker is an engine that has the vectors of its hits made and asks nobody what to do
// when that fails.
type ranker struct {
	search.Engine
	embed embed.Embedder
}

func (r ranker) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	hits, err := r.Engine.Search(ctx, q)
	var texts []string
	for _, h := range hits {
		texts = append(texts, h.Title)
	}
	vs, failed := r.embed.Embed(ctx, texts)
	if failed == nil {
		hits = slices.Clone(hits)
		sortBy(hits, vs)
	}
	return hits, err
}

func sortBy[T any](items []T, vs []embed.Vector) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(vs[b][0] - vs[a][0]) })
	before := slices.Clone(items)
	for i, at := range order {
		items[i] = before[at]
	}
}

// embedding is a script that orders what it writes by vectors, if it has any.
type embedding struct {
	script
	times int
}

func (m *embedding) Write(ctx context.Context, st *reason.State) (reason.Draft, error) {
	d, err := m.script.Write(ctx, st)
	if st.Vectors == nil || err != nil {
		return d, err
	}
	var texts []string
	for _, p := range st.Evidence.Passages() {
		texts = append(texts, p.Text)
	}
	for range max(1, m.times) {
		vs, err := st.Vectors.Embed(ctx, texts)
		if replay.Fatal(err) {
			return d, err
		}
		if err != nil {
			return d, nil
		}
		d.Claims = nil
		for _, p := range st.Evidence.Passages() {
			d.Claims = append(d.Claims, reason.Claim{Text: p.Text, Passages: []evidence.ID{p.ID}, Support: marchwarden.Supported})
		}
		sortBy(d.Claims, vs)
	}
	return d, nil
}

// withVectors runs with an embedder, and again from the record: with it if its vectors
// are not recorded.
func (l *lab) withVectors(t *testing.T, e embed.Embedder, mind *embedding) (*marchwarden.Result, *trace.Log) {
	t.Helper()
	start := l.start()
	metered.Describe(start, e)
	w, err := l.traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	engine := search.Engine(l.engine)
	if e != nil {
		engine = ranker{l.engine, metered.Heard(e)}
	}
	res, err := loop.New(loop.Config{Engine: engine, Fetcher: l.fetcher, Reasoner: mind, Vectors: e, Blobs: l.blobs}).
		Run(t.Context(), replay.Record(w, l.blobs, l.clock, nil), start, l.clock)
	if err != nil {
		t.Fatal(err)
	}
	log := l.log(t)
	read, err := log.Start()
	if err != nil {
		t.Fatal(err)
	}
	found, err := metered.Recall(read, func(string) (embed.Embedder, error) {
		if _, pure := e.(embed.Pure); pure {
			return e, nil
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := loop.New(loop.Config{Reasoner: mind, Vectors: found, Blobs: l.blobs}).Run(context.Background(), replay.Rerun(log, l.blobs), read, nil)
	if err != nil {
		t.Fatalf("rerun: %v", err)
	}
	want, _ := marchwarden.EncodeResult(res)
	got, _ := marchwarden.EncodeResult(again)
	if string(want) != string(got) {
		t.Errorf("the rerun differs\nran   %s\nrerun %s", want, got)
	}
	return res, log
}

func embedSteps(log *trace.Log) (begun int, done []*trace.EmbedComplete) {
	for _, s := range log.Steps {
		switch s := s.(type) {
		case *trace.Embed:
			begun++
		case *trace.EmbedComplete:
			done = append(done, s)
		}
	}
	return begun, done
}

// Vectors of a service are in the record, whatever it would say another time, and are
// paid for: once, however often a mind asks for the same.
func TestVectorsOfAServiceAreRecorded(t *testing.T) {
	t.Parallel()
	l := newLab(t, 5)
	w := &whim{costs: 10}
	res, log := l.withVectors(t, w, &embedding{script: script{plans: [][]string{{"peas"}}}, times: 3})
	if len(res.Citations) != 5 || len(res.Gaps) != 0 {
		t.Errorf("%d citations, gaps %v", len(res.Citations), res.Gaps)
	}
	if got := res.CostMetadata.TokensUsed; got != 100 { // five hits, and five passages once
		t.Errorf("%d tokens", got)
	}
	if w.calls != 2 {
		t.Errorf("the service was asked %d times", w.calls)
	}
	begun, done := embedSteps(log)
	if begun != 1 || len(done) != 2 || done[0].Query != "peas" || done[0].TokensIn != 50 || done[1].Texts != 5 || done[1].TokensIn != 50 || done[1].Model != w.ID() {
		t.Errorf("%d begun, %+v", begun, done)
	}
	start, _ := log.Start()
	if start.Vectors != w.ID() || !start.VectorsRecorded {
		t.Errorf("%q, %v", start.Vectors, start.VectorsRecorded)
	}
}

// A service that fails is a gap, in the search or in the writing, and is not asked
// again; the run goes on by words.
func TestAServiceForVectorsThatFails(t *testing.T) {
	t.Parallel()
	down := func(from int) func(int) error {
		return func(call int) error {
			if call < from {
				return nil
			}
			return marchwarden.Errorf(marchwarden.CodeRateLimited, "service: HTTP status 429")
		}
	}
	for name, tt := range map[string]struct {
		w     *whim
		calls int
		cat   marchwarden.GapCategory
		used  int
	}{
		"in the search":           {&whim{costs: 10, fails: down(1)}, 1, marchwarden.AccessDenied, 0},
		"in the writing":          {&whim{costs: 10, fails: down(2)}, 2, marchwarden.AccessDenied, 50},
		"too dear":                {&whim{costs: 5000}, 1, marchwarden.BudgetExhausted, 0},
		"too dear for the second": {&whim{costs: 1000, grows: true}, 2, marchwarden.BudgetExhausted, 5000},
		"a panic":                 {&whim{costs: 1, fails: func(call int) error { panic("oh") }}, 1, marchwarden.AccessDenied, 0},
		"a panic when it is writing": {&whim{costs: 1, fails: func(call int) error {
			if call > 1 {
				panic("oh")
			}
			return nil
		}}, 2, marchwarden.AccessDenied, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 5)
			res, log := l.withVectors(t, tt.w, &embedding{script: script{plans: [][]string{{"peas"}}}, times: 2})
			if name == "a panic" { // of the engine, then: the search has failed
				if gap(res, marchwarden.AccessDenied) == nil {
					t.Errorf("gaps %v", res.Gaps)
				}
				return
			}
			if len(res.Citations) != 5 || res.CostMetadata.BudgetExhausted {
				t.Errorf("%d citations, exhausted %v", len(res.Citations), res.CostMetadata.BudgetExhausted)
			}
			if g := gap(res, tt.cat); len(res.Gaps) != 1 || g == nil || !strings.Contains(g.Topic, "service/whim") || !strings.Contains(g.Detail, "by their words alone") {
				t.Errorf("gaps %+v", res.Gaps)
			}
			if tt.w.calls != tt.calls || res.CostMetadata.TokensUsed != tt.used {
				t.Errorf("asked %d times, %d tokens", tt.w.calls, res.CostMetadata.TokensUsed)
			}
			if _, done := embedSteps(log); len(done) == 0 {
				t.Error("nothing of it is recorded")
			}
		})
	}
}

// What gives the same everywhere is no step and costs nothing, and a record of it can
// be run again only with it; a run without vectors is what it always was.
func TestVectorsThatCanBeComputedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, 5)
	e := &constant{}
	mind := &embedding{script: script{plans: [][]string{{"peas"}}}}
	res, log := l.withVectors(t, e, mind)
	begun, done := embedSteps(log)
	if start, _ := log.Start(); begun+len(done) != 0 || res.CostMetadata.TokensUsed != 0 || start.Vectors != e.ID() || start.VectorsRecorded {
		t.Errorf("%d steps, %d tokens, %+v", begun+len(done), res.CostMetadata.TokensUsed, start)
	}
	for name, of := range map[string]func(string) (embed.Embedder, error){
		"nobody":       nil,
		"none":         func(string) (embed.Embedder, error) { return nil, nil },
		"another":      func(string) (embed.Embedder, error) { return &whim{}, nil },
		"not built in": func(string) (embed.Embedder, error) { return nil, errors.New("this program was built without it") },
	} {
		start, _ := log.Start()
		if e, err := metered.Recall(start, of); e != nil || !errors.Is(err, marchwarden.CodeUnsupported) || !strings.Contains(err.Error(), "constant/1") || marchwarden.HintOf(err) == "" {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
	l = newLab(t, 5)
	_, log = l.withVectors(t, nil, mind)
	start, _ := log.Start()
	if e, err := metered.Recall(start, func(string) (embed.Embedder, error) { return e, nil }); e != nil || err != nil || start.Vectors != "" {
		t.Errorf("a run without vectors gets %v, %v", e, err)
	}
}
