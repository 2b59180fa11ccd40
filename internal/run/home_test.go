package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// noon is when the first run of a world begins; each further one begins an hour later.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// countingStore is a store that counts what is read.
type countingStore struct {
	blob.Store
	gets atomic.Int64
}

func (c *countingStore) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, ref)
}

// world is a place with runs in it, written by hand.
type world struct {
	tb     testing.TB
	path   string
	traces *trace.Dir
	blobs  *countingStore
	now    time.Time
	runs   int
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{tb: tb, path: tb.TempDir(), blobs: &countingStore{Store: blob.NewMem()}, now: noon}
	traces, err := trace.OpenDir(w.path, func() time.Time { return w.now })
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = traces.Close() })
	w.traces = traces
	return w
}

func (w *world) open() *run.History {
	return run.OpenHistory(run.Store{Traces: w.traces, Blobs: w.blobs})
}

func idOf(n int) marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return id
}

// past is a run to write. Without anything it is complete, by "files", without a model.
type past struct {
	question, answer string
	researcher       string
	model            string
	in, out          int // tokens of its model
	tokens           int // of the result, if others than those
	usd              *float64
	confidence       marchwarden.Unit
	citations, gaps  int
	cut              bool // it has no end
	stopped          bool // its caller stopped it
	plan             bool
	rihla            bool
	rihlas           []marchwarden.Rihla
	members          bool // it is an investigation
}

func (r past) start(n int) *trace.Start {
	s := &trace.Start{Format: trace.Format, TraceID: idOf(n), Researcher: "files", Mind: "extractive/1", Version: "test", StartedAt: noon.Add(time.Duration(n) * time.Hour),
		Request: marchwarden.Request{Question: r.question}, Limits: marchwarden.Limits{TokenBudget: 20000}, Model: r.model, PartOf: r.rihla}
	if r.researcher != "" {
		s.Researcher = r.researcher
	}
	if r.plan || r.members || len(r.rihlas) > 0 {
		s.Investigation = &trace.Investigation{PlanOnly: r.plan}
	}
	return s
}

func (r past) result(n int) *marchwarden.Result {
	res := &marchwarden.Result{Answer: r.answer, TraceID: idOf(n), Confidence: r.confidence, Rihlas: r.rihlas,
		CostMetadata: marchwarden.CostMetadata{TokensUsed: max(r.tokens, r.in+r.out), WallTimeSec: 1.5, ModelID: r.model, CostUSD: r.usd}}
	if r.model == "" {
		res.CostMetadata.ModelID = "extractive/1"
	}
	for i := range r.citations {
		res.Citations = append(res.Citations, marchwarden.Citation{Locator: fmt.Sprintf("lib://doc%d.md", i), RawExcerpt: "text"})
	}
	for range r.gaps {
		res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: "t", Category: marchwarden.SourceNotFound})
	}
	return res
}

// add writes a run and gives its id. Numbers count from one in the order of writing.
func (w *world) add(r past) marchwarden.TraceID {
	w.tb.Helper()
	w.runs++
	n := w.runs
	w.now = noon.Add(time.Duration(n) * time.Hour)
	out, err := w.traces.Create(idOf(n))
	if err != nil {
		w.tb.Fatal(err)
	}
	defer out.Close()
	w.put(out, r.start(n))
	if r.in+r.out > 0 {
		w.put(out, &trace.ModelComplete{Model: r.model, Prompt: "plan", TokensIn: r.in, TokensOut: r.out})
	}
	if r.cut {
		for i, s := range r.rihlas {
			w.put(out, &trace.Rihla{Number: i + 1, Researcher: s.Researcher, TraceID: s.TraceID})
		}
		return idOf(n)
	}
	w.end(out, n, r)
	return idOf(n)
}

func (w *world) end(out *trace.Writer, n int, r past) {
	w.tb.Helper()
	encoded, err := marchwarden.EncodeResult(r.result(n))
	if err != nil {
		w.tb.Fatal(err)
	}
	ref, err := w.blobs.Put(context.Background(), encoded)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.put(out, &trace.Complete{Result: ref, TokensUsed: max(r.tokens, r.in+r.out), Citations: r.citations, Confidence: r.confidence, Interrupted: r.stopped})
}

func (w *world) put(out *trace.Writer, s trace.Step) {
	w.tb.Helper()
	if err := out.Append(s); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) file(id marchwarden.TraceID) string {
	return filepath.Join(w.path, id.String()+".jsonl")
}

func (w *world) overwrite(id marchwarden.TraceID, content string) {
	w.tb.Helper()
	err := os.WriteFile(w.file(id), []byte(content), 0o600)
	if err == nil {
		late := noon.Add(time.Duration(1000+len(content)) * time.Hour)
		err = os.Chtimes(w.file(id), late, late)
	}
	if err != nil {
		w.tb.Fatal(err)
	}
}

// find gives the numbers of the runs that a query means, and the total.
func find(tb testing.TB, h *run.History, q run.Query) ([]int, int) {
	tb.Helper()
	entries, total, err := h.Find(context.Background(), q, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return numbers(entries), total
}

func numbers(entries []run.Entry) []int {
	var out []int
	for _, e := range entries {
		n := 0
		if _, err := fmt.Sscanf(e.ID.String(), "00000000-0000-7000-8000-%d", &n); err != nil {
			n = -1
		}
		out = append(out, n)
	}
	return out
}

// one is the entry of a run among all that are listed.
func one(tb testing.TB, h *run.History, id marchwarden.TraceID) run.Entry {
	tb.Helper()
	entries, _, err := h.Find(context.Background(), run.Query{}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	at := slices.IndexFunc(entries, func(e run.Entry) bool { return e.ID == id })
	if at < 0 {
		tb.Fatalf("run %s is not listed", id)
	}
	return entries[at]
}
