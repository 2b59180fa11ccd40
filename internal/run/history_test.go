package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	public "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/investigate"
)

const (
	priced   = "openai/gpt-4.1" // 2 and 8 dollars for a million tokens
	unpriced = "openai/nobody-knows"
)

// filtered is a world with a run of each kind.
func filtered(t *testing.T) *world {
	w := newWorld(t)
	w.add(past{question: "free", confidence: 0.2, citations: 1})                                                              // 1
	w.add(past{question: "cheap", model: priced, in: 1000, out: 100, confidence: 0.5, researcher: "web"})                     // 2: $0.0028
	w.add(past{question: "dear", model: priced, in: 100000, out: 10000, confidence: 0.9, researcher: "web"})                  // 3: $0.28
	w.add(past{question: "unknown cost", model: unpriced, in: 1000, out: 10, confidence: 0.9, gaps: 2})                       // 4
	w.add(past{question: "cut off", cut: true, model: priced, in: 1000, out: 100})                                            // 5: $0.0028
	w.add(past{question: "stopped", stopped: true, confidence: 0.1})                                                          // 6
	w.add(past{question: "a plan", plan: true, researcher: "pi"})                                                             // 7
	w.overwrite(w.add(past{question: "damaged"}), "{\"step\":7}\n{\"step\":8}\n")                                             // 8
	w.add(past{question: "part of 10", rihla: true, researcher: "arxiv", model: priced, in: 1000000, out: 0})                 // 9: $2
	w.add(past{usd: new(2.5), question: "sent a rihla", researcher: "pi", model: priced, in: 1000, out: 100, tokens: 1001100, // 10: $2.0028
		confidence: 0.7, rihlas: []marchwarden.Rihla{{Researcher: "arxiv", TraceID: idOf(9), TokensUsed: 1000000}}})
	w.add(past{question: "sent a stranger", researcher: "pi", model: priced, in: 1000, out: 100, // 11: unknown
		confidence: 0.7, rihlas: []marchwarden.Rihla{{Researcher: "theirs", TraceID: idOf(999), TokensUsed: 5}}})
	return w
}

func TestFilters(t *testing.T) {
	t.Parallel()
	w := filtered(t)
	h := w.open()
	for name, c := range map[string]struct {
		q    run.Query
		want []int
	}{
		"all, without rihlas":         {run.Query{}, []int{8, 11, 10, 7, 6, 5, 4, 3, 2, 1}}, // a damaged one by when it was written
		"status":                      {run.Query{Status: []run.State{run.Complete}}, []int{11, 10, 4, 3, 2, 1}},
		"two statuses":                {run.Query{Status: []run.State{run.Interrupted, run.Damaged}}, []int{8, 6, 5}},
		"planned":                     {run.Query{Status: []run.State{run.Planned}}, []int{7}},
		"running":                     {run.Query{Status: []run.State{run.Running}}, nil},
		"researcher":                  {run.Query{Researcher: []string{"web"}}, []int{3, 2}},
		"researcher of a rihla":       {run.Query{Researcher: []string{"arxiv"}}, []int{10}},
		"either researcher":           {run.Query{Researcher: []string{"theirs", "web"}}, []int{11, 3, 2}},
		"no such researcher":          {run.Query{Researcher: []string{"we"}}, nil},
		"all at once":                 {run.Query{Words: "dear", Status: []run.State{run.Complete}, Researcher: []string{"web"}}, []int{3}},
		"a question of a mere rihla":  {run.Query{Words: "part"}, nil},
		"a damaged one has no words":  {run.Query{Words: "damaged"}, nil},
		"an interrupted one has them": {run.Query{Words: "cut"}, []int{5}},
	} {
		got, total := find(t, h, c.q)
		if !cmp.Equal(got, c.want) || total != len(c.want) {
			t.Errorf("%s: %v of %d, want %v", name, got, total, c.want)
		}
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	w := filtered(t)
	h := w.open()
	e := one(t, h, idOf(10))
	if e.Question != "sent a rihla" || e.Researcher != "pi" || !cmp.Equal(e.Researchers, []string{"arxiv"}) ||
		e.CostUSD == nil || *e.CostUSD != 2.5 || !e.Began.Equal(noon.Add(10*time.Hour)) {
		t.Errorf("an investigation: %+v", e)
	}
	if e := one(t, h, idOf(4)); e.CostUSD != nil || !cmp.Equal(e.Researchers, []string{"files"}) {
		t.Errorf("unknown cost: %+v", e)
	}
	if e := one(t, h, idOf(5)); e.Confidence != nil || !e.Resumable || e.Partial {
		t.Errorf("cut off: %+v", e)
	}
	if e := one(t, h, idOf(6)); !e.Partial || !e.Resumable || e.Status != run.Interrupted || *e.Confidence != 0.1 {
		t.Errorf("stopped: %+v", e)
	}
	if e := one(t, h, idOf(7)); e.Confidence != nil {
		t.Errorf("a plan: %+v", e)
	}
	if e := one(t, h, idOf(8)); e.Problem == "" || e.CostUSD != nil || !e.Began.IsZero() {
		t.Errorf("damaged: %+v", e)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 7 {
		w.add(past{question: "What is peat?"})
	}
	h := w.open()
	for _, c := range []struct {
		limit, offset int
		want          []int
	}{{0, 0, []int{7, 6, 5, 4, 3, 2, 1}}, {2, 0, []int{7, 6}}, {2, 5, []int{2, 1}}, {5, 5, []int{2, 1}}, {2, 7, nil}, {2, 700, nil}, {0, 6, []int{1}}} {
		for _, words := range []string{"", "peat"} {
			got, total := find(t, h, run.Query{Words: words, Limit: c.limit, Offset: c.offset})
			if !cmp.Equal(got, c.want) || total != 7 {
				t.Errorf("%d from %d: %v of %d", c.limit, c.offset, got, total)
			}
		}
	}
	var e *marchwarden.Error
	if _, _, err := h.Find(context.Background(), run.Query{Words: string(make([]byte, 5000))}, nil); !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != "words" {
		t.Errorf("too many words: %v", err)
	}
}

// What somebody may not see is not counted either, whatever is asked.
func TestVisible(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 6 {
		w.add(past{question: "What is peat?", answer: "Peat is soil."})
	}
	h := w.open()
	odd := func(id marchwarden.TraceID) bool { return id == idOf(1) || id == idOf(3) || id == idOf(5) }
	for name, q := range map[string]run.Query{"all": {}, "words": {Words: "peat"}, "phrase": {Words: `"is soil"`}, "status": {Status: []run.State{run.Complete}}} {
		entries, total, err := h.Find(context.Background(), q, odd)
		if got := numbers(entries); err != nil || total != 3 || !cmp.Equal(got, []int{5, 3, 1}) {
			t.Errorf("%s: %v of %d, %v", name, got, total, err)
		}
		q.Limit = 1
		if entries, total, err = h.Find(context.Background(), q, odd); err != nil || total != 3 || len(entries) != 1 {
			t.Errorf("%s: one of %d, %v", name, total, err)
		}
	}
	entries, total, err := h.Find(context.Background(), run.Query{}, func(marchwarden.TraceID) bool { return false })
	if err != nil || total != 0 || len(entries) != 0 {
		t.Errorf("nothing is visible: %v, %d, %v", entries, total, err)
	}
}

// Runs as the program makes them: investigations with their rihlas.
func TestRealRuns(t *testing.T) {
	t.Parallel()
	home, library := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(library, "roof.md"), []byte("# The roof\n\nThe roof of the shed was tiled with 412 larch shingles in 2019. The carpenter Olof Berg charged 3,200 crowns.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inv, err := public.Open(public.Config{Home: home, Library: []string{library}, Version: "test", WordsAlone: true})
	if err != nil {
		t.Fatal(err)
	}
	defer inv.Close()
	results := map[marchwarden.TraceID]*marchwarden.Result{}
	for _, q := range []string{"How many shingles does the roof have?", "What did the carpenter charge?"} {
		res, err := inv.Research(context.Background(), marchwarden.Request{Question: q, Depth: marchwarden.Shallow}, nil)
		if err != nil {
			t.Fatal(err)
		}
		results[res.TraceID] = res
	}
	traces, err := trace.OpenDir(filepath.Join(home, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	blobs, err := dir.Open(filepath.Join(home, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	if ids, err := traces.List(); err != nil || len(ids) < 4 {
		t.Fatalf("there are no rihlas: %d traces, %v", len(ids), err)
	}
	h := run.OpenHistory(run.Store{Traces: traces, Blobs: blobs})
	entries, total, err := h.Find(context.Background(), run.Query{}, nil)
	if err != nil || total != 2 {
		t.Fatalf("%d runs, %v", total, err)
	}
	for _, e := range entries {
		res := results[e.ID]
		if e.Status != run.Complete || res == nil || e.Citations != len(res.Citations) || *e.Confidence != res.Confidence ||
			!cmp.Equal(e.Researchers, []string{"files"}) || e.CostUSD == nil || *e.CostUSD != 0 || e.Answer == "" {
			t.Errorf("%+v of %+v", e, res)
		}
		g := run.Look(traces, e.ID)
		if !cmp.Equal(g.Standing, e.Standing) || g.Question != e.Question || g.Rihla {
			t.Errorf("Look: %+v", g)
		}
	}
	for words, want := range map[string]int{"shingle": 1, `"larch shingles"`: 1, "carpenters charging": 1, "crowns submarine": 0, "olof": 1} {
		if _, total, err := h.Find(context.Background(), run.Query{Words: words}, nil); err != nil || total < want || want == 0 && total != 0 {
			t.Errorf("%s: %d, %v", words, total, err)
		}
	}
}

// The last run is none of a part of an investigation, also if the trace of that is damaged.
func TestLastOfDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Chtimes(w.file(w.add(past{question: "whole"})), noon, noon); err != nil {
		t.Fatal(err)
	}
	part := w.add(past{question: "part", rihla: true})
	text, err := w.traces.Text(part)
	if err != nil {
		t.Fatal(err)
	}
	w.overwrite(part, string(text)+strings.SplitAfter(string(text), "\n")[1]) // a line twice
	if id, err := run.FindID(w.traces, "last"); id != idOf(1) {
		t.Errorf("the last is %s, %v", id, err)
	}
}
