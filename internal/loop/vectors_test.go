package loop_test

import (
	"context"
	"slices"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// constant is an embedder that gives the same everywhere.
type constant struct{}

func (*constant) ID() string { return "constant/1" }

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

// withVectors runs with an embedder, and again from the record.
func (l *lab) withVectors(t *testing.T, e embed.Embedder, mind *embedding) (*marchwarden.Result, *trace.Log) {
	t.Helper()
	start := l.start()
	reader.Describe(start, e)
	w, err := l.traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	engine := search.Engine(l.engine)
	if e != nil {
		engine = ranker{l.engine, e}
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
	found, err := reader.VectorsOf(read, func(string) embed.Embedder { return e })
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

// Vectors are no step and cost nothing; a run without them is what it always was.
func TestVectors(t *testing.T) {
	t.Parallel()
	l := newLab(t, 5)
	e := &constant{}
	mind := &embedding{script: script{plans: [][]string{{"peas"}}}}
	res, log := l.withVectors(t, e, mind)
	if start, _ := log.Start(); res.CostMetadata.TokensUsed != 0 || start.Vectors != e.ID() {
		t.Errorf("%d tokens, %+v", res.CostMetadata.TokensUsed, start)
	}
	l = newLab(t, 5)
	_, log = l.withVectors(t, nil, mind)
	if start, _ := log.Start(); start.Vectors != "" {
		t.Errorf("a run without vectors has those of %s", start.Vectors)
	}
}
