//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// byHand writes runs into a home as the program would have, with what it would never have found.
type byHand struct {
	t      *testing.T
	kept   string // the folder
	traces *trace.Dir
	blobs  *dir.Store
	now    time.Time // of the next step
	runs   int
}

// handNoon is when the first run by hand begins, unless it says otherwise.
var handNoon = time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)

func writeByHand(t *testing.T, home string) *byHand {
	t.Helper()
	h := &byHand{t: t, kept: filepath.Join(home, ".marchwarden"), now: handNoon}
	if err := os.MkdirAll(h.kept, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.blobs, err = dir.Open(filepath.Join(h.kept, "blobs")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.blobs.Close() })
	if h.traces, err = trace.OpenDir(filepath.Join(h.kept, "traces"), func() time.Time { return h.now }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.traces.Close() })
	return h
}

// handID is a trace id that is the same every time.
func handID(n int) marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-0000-7000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return id
}

// handSource is a document that is cited once.
type handSource struct {
	kind, title, locator, published, origin string
	author                                  string
	authority                               marchwarden.Authority
	before, excerpt, after                  string // its text
	pdf                                     []byte // that has it on its first page, if it is from one
}

// handRun is a run to write.
type handRun struct {
	question, context string
	researcher, model string
	began             time.Time // zero is an hour after the last
	took              time.Duration
	sources           []handSource
	result            *marchwarden.Result // what it holds besides citations, trace id and wall time
	rihlas            []handRihla
	going             bool // it has no end, and is still being written
}

// handRihla is a journey of an investigation, by seconds from its beginning.
type handRihla struct {
	researcher, question, reason          string
	sent, search, read, write, check, end int // 0: it did not come to that
	gaps                                  []marchwarden.Gap
	discoveries                           []marchwarden.DiscoveryEvent
	failed                                string
}

// append writes a step.
func (h *byHand) append(w *trace.Writer, s trace.Step) {
	h.t.Helper()
	if err := w.Append(s); err != nil {
		h.t.Fatal(err)
	}
}

// put writes a run and gives its id, and what writes it if it goes on.
func (h *byHand) put(run handRun) (marchwarden.TraceID, *trace.Writer) {
	h.t.Helper()
	h.runs++
	id := handID(h.runs * 100)
	began := run.began
	if began.IsZero() {
		began = handNoon.Add(time.Duration(h.runs) * time.Hour)
	}
	h.now = began
	w, err := h.traces.Create(id)
	if err != nil {
		h.t.Fatal(err)
	}
	start := &trace.Start{Format: trace.Format, TraceID: id, Researcher: run.researcher, Mind: "extractive/1", Version: "test", StartedAt: began, Model: run.model,
		Request: marchwarden.Request{Question: run.question, Context: run.context}, Limits: marchwarden.Limits{TokenBudget: 50000, MaxSources: 20, MaxIterations: 5}}
	if start.Researcher == "" {
		start.Researcher = "files"
	}
	if len(run.rihlas) > 0 {
		start.Researcher, start.Investigation = settings.PI, &trace.Investigation{Members: []dispatch.Member{}, Planner: "rules", Parallel: 4, MaxRihlas: 8, MaxDepth: 2}
	}
	h.append(w, start)
	rec := replay.Record(w, h.blobs, func() time.Duration { return h.now.Sub(began) }, nil)
	h.journeys(w, rec, began, run.rihlas)
	res := &marchwarden.Result{}
	if run.result != nil {
		res = run.result
	}
	res.TraceID = id
	for i, src := range run.sources {
		h.now = began.Add(time.Duration(i+1) * 10 * time.Millisecond)
		res.Citations = append(res.Citations, h.read(rec, src))
	}
	if used := res.CostMetadata.TokensUsed; run.model != "" && used > 0 {
		h.append(w, &trace.ModelComplete{Head: trace.Head{Decision: "wrote the answer"}, Model: run.model, Prompt: "write", TokensIn: used * 4 / 5, TokensOut: used / 5})
	}
	if run.going {
		return id, w
	}
	h.now = began.Add(max(run.took, time.Second))
	res.CostMetadata.WallTimeSec = h.now.Sub(began).Seconds()
	h.end(w, res)
	return id, nil
}

// end closes a trace with its result.
func (h *byHand) end(w *trace.Writer, res *marchwarden.Result) {
	h.t.Helper()
	data, err := marchwarden.EncodeResult(res)
	if err != nil {
		h.t.Fatal(err)
	}
	ref, err := h.blobs.Put(context.Background(), data)
	if err != nil {
		h.t.Fatal(err)
	}
	h.append(w, &trace.Complete{Result: ref, Citations: len(res.Citations), Confidence: res.Confidence, TokensUsed: res.CostMetadata.TokensUsed})
	if err := w.Close(); err != nil {
		h.t.Fatal(err)
	}
}

// read records that a document was fetched, and cites it.
func (h *byHand) read(rec *replay.Recorder, src handSource) marchwarden.Citation {
	h.t.Helper()
	text := src.before + src.excerpt + src.after
	ref, err := h.blobs.Put(context.Background(), []byte(text))
	if err != nil {
		h.t.Fatal(err)
	}
	if src.kind == "" {
		src.kind = "web"
	}
	page := fetch.Page{Locator: src.locator, Source: src.kind, Title: src.title, Author: src.author, Published: src.published, Origin: src.origin, Raw: ref, Text: ref,
		RawBytes: len(text), TextBytes: len(text), MediaType: "text/plain", Extractor: "text/1", FetchedAt: h.now.Truncate(time.Second)}
	if src.pdf != nil {
		page.MediaType, page.Extractor, page.Pages, page.RawBytes = "application/pdf", "pdf/2", []int{0}, len(src.pdf)
		if page.Raw, err = h.blobs.Put(context.Background(), src.pdf); err != nil {
			h.t.Fatal(err)
		}
	}
	if _, err := replay.Fetcher(rec, onePage(page)).Fetch(context.Background(), src.locator); err != nil {
		h.t.Fatal(err)
	}
	at := h.now.Truncate(time.Second)
	return marchwarden.Citation{Source: src.kind, Locator: src.locator, Title: src.title, RawExcerpt: src.excerpt, Confidence: 0.8, ContentHash: ref.String(),
		Span: &marchwarden.Span{Start: len(src.before), End: len(src.before) + len(src.excerpt)}, FetchedAt: &at, Published: src.published, Origin: src.origin, Authority: src.authority}
}

// onePage fetches one page, whatever it is asked for.
type onePage fetch.Page

func (p onePage) Fetch(context.Context, string) (fetch.Page, error) { return fetch.Page(p), nil }

// journeys writes the plan of an investigation, its journeys, and the traces of these.
func (h *byHand) journeys(w *trace.Writer, rec *replay.Recorder, began time.Time, all []handRihla) {
	h.t.Helper()
	if len(all) == 0 {
		return
	}
	var plan []trace.Sending
	for _, r := range all {
		if r.sent > 5 {
			continue // it was thought of later
		}
		plan = append(plan, trace.Sending{Researcher: r.researcher, Question: r.question, Reason: r.reason})
	}
	h.now = began.Add(time.Second)
	h.append(w, &trace.Plan{Rihlas: plan})
	type event struct {
		at   int
		tell func()
	}
	var events []event
	for i, r := range all {
		if r.sent == 0 {
			continue
		}
		id := handID(h.runs*100 + i + 1)
		h.journey(id, began, r)
		events = append(events, event{r.sent, func() {
			h.append(w, &trace.Rihla{Head: trace.Head{Decision: "sent: " + r.researcher}, Number: i + 1, Researcher: r.researcher, Question: r.question, Reason: r.reason, TraceID: id})
		}})
		if r.end > 0 {
			events = append(events, event{r.end, func() { h.report(w, rec, i+1, id, r) }})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at - b.at })
	for _, e := range events {
		h.now = began.Add(time.Duration(e.at) * time.Second)
		e.tell()
	}
}

// report writes what came of a journey.
func (h *byHand) report(w *trace.Writer, rec *replay.Recorder, number int, id marchwarden.TraceID, r handRihla) {
	h.t.Helper()
	_, err := rec.Do(context.Background(), replay.Effect{Kind: trace.ActionRihlaComplete, Input: number,
		Done: func([]byte, error) trace.Recorded {
			return &trace.RihlaComplete{Number: number, Researcher: r.researcher, TraceID: id, Citations: 3, Gaps: len(r.gaps), TokensUsed: 4200}
		}}, func(context.Context) ([]byte, error) {
		if r.failed != "" {
			return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "%s", r.failed)
		}
		return json.Marshal(&marchwarden.Result{TraceID: id, Answer: "Reported.", Gaps: r.gaps, DiscoveryEvents: r.discoveries})
	})
	if err != nil && r.failed == "" {
		h.t.Fatal(err)
	}
	h.append(w, &trace.Arrival{Head: trace.Head{Decision: "looked at the report of " + r.researcher}, Number: number})
}

// journey writes the trace of a journey as far as it came.
func (h *byHand) journey(id marchwarden.TraceID, began time.Time, r handRihla) {
	h.t.Helper()
	at := func(s int) { h.now = began.Add(time.Duration(s) * time.Second) }
	at(r.sent)
	w, err := h.traces.Create(id)
	if err != nil {
		h.t.Fatal(err)
	}
	h.append(w, &trace.Start{Format: trace.Format, TraceID: id, Researcher: r.researcher, Mind: "extractive/1", Version: "test", StartedAt: h.now, PartOf: true,
		Request: marchwarden.Request{Question: r.question}, Limits: marchwarden.Limits{TokenBudget: 12000}})
	h.append(w, &trace.Iteration{Head: trace.Head{Decision: "round 1"}, Iteration: 1})
	rec := replay.Record(w, h.blobs, func() time.Duration { return 0 }, nil)
	if r.search > 0 {
		at(r.search)
		h.append(w, &trace.Search{Head: trace.Head{Decision: "searched for " + r.question}, Engine: "local", Query: r.question})
	}
	if r.read > 0 {
		at(r.read)
		h.append(w, &trace.SearchComplete{Engine: "local", Query: r.question, Hits: 4})
		for n := range 3 {
			h.read(rec, handSource{locator: fmt.Sprintf("https://example.org/%s/%d", r.researcher, n), title: "A page", excerpt: fmt.Sprintf("Text %d of %s.", n, r.researcher)})
		}
		h.append(w, &trace.Fetch{Head: trace.Head{Decision: "read https://example.org/" + r.researcher}, URL: "https://example.org/" + r.researcher})
	}
	if r.write > 0 {
		at(r.write)
		h.append(w, &trace.SynthesisStart{Head: trace.Head{Decision: "wrote from 3 sources"}, Sources: 3, Passages: 9})
	}
	if r.check > 0 {
		at(r.check)
		h.append(w, &trace.SynthesisComplete{Head: trace.Head{Decision: "5 claims"}, Claims: 5})
		h.append(w, &trace.Verify{Head: trace.Head{Decision: "5 of 5 claims stand"}, Citations: 3, Claims: 5})
	}
	if r.end > 0 && r.failed == "" {
		at(r.end)
		h.end(w, &marchwarden.Result{TraceID: id, Answer: "Reported.", Gaps: r.gaps, DiscoveryEvents: r.discoveries, CostMetadata: marchwarden.CostMetadata{TokensUsed: 4200}})
		return
	}
	h.t.Cleanup(func() { _ = w.Close() }) // it is being written until then
}

// manyCited is a run whose answer has so many sentences, each with a citation of its own.
func manyCited(n int) handRun {
	run := handRun{question: fmt.Sprintf("What do %d sources say?", n), researcher: "web", took: 90 * time.Second, result: &marchwarden.Result{Confidence: 0.8}}
	var answer strings.Builder
	for i := range n {
		said := fmt.Sprintf("Observation %d was made at station %d of the northern line in the winter of %d.", i+1, i%17+1, 1900+i%120)
		run.sources = append(run.sources, handSource{title: fmt.Sprintf("Report of station %d", i+1), locator: fmt.Sprintf("https://example.org/stations/%d", i+1), origin: "example.org",
			published: "2024-03-01", authority: marchwarden.MediumAuthority, before: strings.Repeat("It snowed all day, and nobody went out to read the instruments. ", 40),
			excerpt: said, after: strings.Repeat(" The next day was clear.", 40)})
		fmt.Fprintf(&answer, "%s [%d] ", said, i+1)
		if i%8 == 7 {
			answer.WriteString("\n\n")
		}
		run.result.Claims = append(run.result.Claims, marchwarden.Claim{Text: said, Citations: []int{i + 1}, Support: marchwarden.Supported})
	}
	run.result.Answer = answer.String()
	return run
}
