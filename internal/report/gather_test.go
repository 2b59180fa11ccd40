package report

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/biblio"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// kept is a record made by hand: the documents that a run read and its result.
type kept struct {
	t     *testing.T
	store run.Store
	run   *run.Run
}

func newKept(t *testing.T) *kept {
	id := traceID(t, "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	start := &trace.Start{TraceID: id, Researcher: "arxiv", Version: "v0.5.0", Request: marchwarden.Request{Question: "What of frost?"}, StartedAt: time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)}
	return &kept{t, run.Store{Blobs: blob.NewMem()}, &run.Run{ID: id, Start: start, Log: &trace.Log{Steps: []trace.Step{start}}}}
}

func (k *kept) put(content []byte) blob.Ref {
	k.t.Helper()
	ref, err := k.store.Blobs.Put(k.t.Context(), content)
	if err != nil {
		k.t.Fatal(err)
	}
	return ref
}

// read records a document as fetched, with damage if its outcome is to be missing.
func (k *kept) read(p fetch.Page, text, raw string, damaged bool) {
	k.t.Helper()
	p.Text, p.Raw, p.RawBytes = k.put([]byte(text)), k.put([]byte(raw)), len(raw)
	page, err := json.Marshal(map[string]any{"ok": p})
	if err != nil {
		k.t.Fatal(err)
	}
	output := blob.Of(page)
	if !damaged {
		output = k.put(page)
	}
	k.run.Log.Steps = append(k.run.Log.Steps, &trace.FetchComplete{Effect: trace.Effect{OutputID: output}, URL: p.Locator, ContentHash: p.Text, RawHash: p.Raw})
}

func (k *kept) end(res *marchwarden.Result) {
	k.t.Helper()
	res.TraceID = k.run.ID
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		k.t.Fatal(err)
	}
	k.run.Log.Steps = append(k.run.Log.Steps, &trace.Complete{Result: k.put(encoded)})
}

func cited(locator, text, excerpt string) marchwarden.Citation {
	start := strings.Index(text, excerpt)
	at := time.Date(2026, 11, 15, 8, 0, 1, 0, time.UTC)
	return marchwarden.Citation{Source: "web", Locator: locator, Title: "About " + locator, RawExcerpt: excerpt, ContentHash: blob.Of([]byte(text)).String(), Span: &marchwarden.Span{Start: start, End: start + len(excerpt)},
		FetchedAt: &at, Published: "2025-03-02", Origin: "example.org"}
}

const (
	pageText  = "Frost is cold. It comes in winter."
	paperText = "We study frost. Authors: many."
	notesText = "My own notes on frost."
)

func TestGather(t *testing.T) {
	k := newKept(t)
	paper := `{"arxiv":{"id":"2401.01234v2","authors":["Ann Bee","Jan van der Berg"],"more_authors":1},"indexes":{"doi":"10.1000/Frost.1","venue":"Journal of Frost","in_print":true,"asked":[]}}`
	k.read(fetch.Page{Locator: "https://mirror.example/", Source: "web", Author: "Who copied it"}, pageText, "<html>", false)
	k.read(fetch.Page{Locator: "https://example.org/frost", Source: "web", Author: "Carl Dee, Eve Eff", MediaType: "text/html"}, pageText, "<html>", false)
	k.read(fetch.Page{Locator: "arxiv:2401.01234v2", Source: "arxiv", Author: "Ann Bee and 2 more", MediaType: "application/json"}, paperText, paper, false)
	k.read(fetch.Page{Locator: "file:notes.md", Source: "file", MediaType: "text/markdown"}, notesText, notesText, false)
	res := &marchwarden.Result{Answer: "Frost is cold. [1]", Citations: []marchwarden.Citation{
		cited("https://example.org/frost", pageText, "Frost is cold."), cited("arxiv:2401.01234v2", paperText, "We study frost."), cited("file:notes.md#L1", notesText, "notes"),
		cited("https://example.org/frost", pageText, "It comes in winter."), cited("file:notes.md#page=2", notesText, "frost"), {Source: "database", Locator: "db:clinic.db/drugs?id=7", RawExcerpt: "x"},
		{Source: "file", Locator: "/home/ann/frost.md#L3", Title: "Frost", RawExcerpt: "x", Origin: "/home/ann/frost.md"},
	}}
	k.end(res)
	r, err := Gather(t.Context(), k.store, k.run)
	if err != nil {
		t.Fatal(err)
	}
	if r.Question != "What of frost?" || r.Researcher != "arxiv" || r.Version != "v0.5.0" || len(r.Problems) > 0 {
		t.Errorf("the report is %+v", r)
	}
	for i, want := range []struct{ text, author, problem string }{
		{pageText, "Carl Dee, Eve Eff", ""}, {paperText, "Ann Bee and 2 more", ""}, {notesText, "", ""}, {pageText, "Carl Dee, Eve Eff", ""}, {notesText, "", ""},
		{"", "", "the result does not say where the excerpt stands"}, {"", "", "the result does not say where the excerpt stands"},
	} {
		if s := r.Sources[i]; s.Text != want.text || s.Page.Author != want.author || s.Problem != want.problem {
			t.Errorf("source %d is %+v", i+1, s)
		}
	}
	wanted := []biblio.Entry{
		{Title: "About https://example.org/frost", Authors: []biblio.Name{{Literal: "Carl Dee"}, {Literal: "Eve Eff"}}, Published: "2025-03-02", Accessed: "2026-11-15", Publisher: "example.org", URL: "https://example.org/frost"},
		{Title: "About arxiv:2401.01234v2", Authors: []biblio.Name{{Family: "Bee", Given: "Ann"}, {Family: "van der Berg", Given: "Jan"}}, MoreAuthors: 1, Published: "2025-03-02", Accessed: "2026-11-15",
			Journal: "Journal of Frost", DOI: "10.1000/frost.1", ArXiv: "2401.01234v2", URL: "https://arxiv.org/abs/2401.01234v2"},
		{Title: "About file:notes.md#L1", Published: "2025-03-02", Accessed: "2026-11-15", Publisher: "example.org", Locator: "file:notes.md"},
		{Locator: "db:clinic.db/drugs?id=7"},
		{Title: "Frost", Locator: "/home/ann/frost.md"},
	}
	if diff := cmp.Diff(wanted, r.Entries()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// What was added to the limits of a run is part of them.
func TestGatherResumed(t *testing.T) {
	k := newKept(t)
	k.run.Start.Limits.TokenBudget = 1000
	k.run.Start.Extended = []trace.Extension{{Tokens: 4000}, {Tokens: 2000}}
	k.end(&marchwarden.Result{})
	r, err := Gather(t.Context(), k.store, k.run)
	if err != nil || r.Limits.TokenBudget != 7000 {
		t.Errorf("the budget is %d, %v", r.Limits.TokenBudget, err)
	}
}

func TestGatherWithoutResult(t *testing.T) {
	k := newKept(t)
	_, err := Gather(t.Context(), k.store, k.run)
	if !errors.Is(err, marchwarden.CodeUnsupported) || !strings.Contains(err.Error(), "has no result yet") || !strings.Contains(marchwarden.HintOf(err), "marchwarden resume") {
		t.Errorf("a run without a result is %v, hint %q", err, marchwarden.HintOf(err))
	}
}

// TestGatherDamaged says that what is damaged is named and never shown as sound.
func TestGatherDamaged(t *testing.T) {
	k := newKept(t)
	k.read(fetch.Page{Locator: "https://example.org/frost", Source: "web"}, pageText, "<html>", true)
	moved := cited("https://example.org/frost", pageText, "It comes in winter.")
	moved.Span.Start -= 3
	moved.Span.End -= 3
	beyond := cited("https://example.org/frost", pageText, "winter.")
	beyond.Span.End += 100
	k.end(&marchwarden.Result{Citations: []marchwarden.Citation{
		cited("https://example.org/frost", pageText, "Frost is cold."), moved, beyond, cited("https://gone.example/", "never stored", "never"),
		{Locator: "https://bad.example/", ContentHash: "sha256:zz", Span: &marchwarden.Span{Start: 0, End: 1}, RawExcerpt: "x"},
		{Locator: "https://picture.example/", RawExcerpt: marchwarden.ExcerptNonText},
	}})
	r, err := Gather(t.Context(), k.store, k.run)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "sha256:") {
		t.Errorf("the problems are %q", r.Problems)
	}
	for i, want := range []string{"", "the excerpt is not what stands at its place in the stored text", "the excerpt's place is outside the stored text", "the text is not stored", "the stored text is damaged", ""} {
		if got := r.Sources[i].Problem; got != want {
			t.Errorf("source %d: the problem is %q, want %q", i+1, got, want)
		}
	}
	_, doc := rendered(t, r)
	if n := len(elements(doc, "mark")); n != 1 {
		t.Errorf("%d excerpts are marked as standing, want 1", n)
	}
}

func TestGatherCanceled(t *testing.T) {
	k := newKept(t)
	k.end(&marchwarden.Result{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Gather(ctx, k.store, k.run); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("a cancelled gathering is %v", err)
	}
}

func TestWhole(t *testing.T) {
	for locator, want := range map[string]string{
		"a.md#L41": "a.md", "a.pdf#page=3": "a.pdf", "a.md": "a.md", "https://example.org/#Lovely": "https://example.org/#Lovely", "x#L": "x#L", "x#page=": "x#page=", "c#L1#L2": "c#L1",
	} {
		if got := whole(locator); got != want {
			t.Errorf("whole(%q) = %q, want %q", locator, got, want)
		}
	}
}
