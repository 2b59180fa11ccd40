package extractive

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// shelf is a library with a plain engine: enough of the loop to run the
// reasoner from question to draft.
type shelf struct{ full *evidence.Set }

func library(t testing.TB) shelf {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "corpus", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	docs := map[string]string{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs[filepath.Base(f)] = string(raw)
	}
	return shelfOf(docs)
}

// shelfOf takes documents by name, each with or without a header.
func shelfOf(docs map[string]string) shelf {
	names := make([]string, 0, len(docs))
	for n := range docs {
		names = append(names, n)
	}
	slices.Sort(names)
	s := shelf{&evidence.Set{}}
	for _, n := range names {
		body, title := docs[n], ""
		if head, rest, ok := strings.Cut(strings.TrimPrefix(body, "---\n"), "\n---\n"); ok {
			body = rest
			title, _, _ = strings.Cut(strings.TrimPrefix(head, "title: "), "\n")
		}
		s.full.Add(fetch.Page{Locator: n, Title: title, Source: "file", Text: blob.Of([]byte(body))}, body)
	}
	return s
}

func (s shelf) search(query string) []search.Hit {
	var hits []search.Hit
	for _, p := range s.full.Rank(lexicon.Terms(query), 0) {
		src, _, _ := s.full.Passage(p.ID)
		if !slices.ContainsFunc(hits, func(h search.Hit) bool { return h.Locator == src.Page.Locator }) {
			hits = append(hits, search.Hit{Locator: src.Page.Locator, Title: src.Page.Title, Snippet: p.Text, Score: p.Score})
		}
	}
	return hits[:min(10, len(hits))]
}

// run is the loop in small.
func (s shelf) run(t *testing.T, req marchwarden.Request) (*reason.State, reason.Draft, []reason.Plan) {
	t.Helper()
	l := req.Limits()
	st := stateOf(req.Question, &evidence.Set{}, l)
	st.Request = req
	r := New()
	ctx := context.Background()
	st.Meter.Hold(l.TokenBudget / 2)
	var plans []reason.Plan
	for {
		n, err := st.Meter.Iterate()
		if err != nil {
			break
		}
		st.Iteration = n
		plan, err := r.Plan(ctx, st)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, plan)
		if len(plan.Searches) == 0 {
			break
		}
		var all []search.Hit
		for _, q := range plan.Searches {
			hits := s.search(q.Query)
			st.Searches = append(st.Searches, reason.Searched{Query: q.Query, Reason: q.Reason, Iteration: n, Hits: hits})
			all = append(all, hits...)
		}
		reads := r.Choose(st, all)
		reads = reads[:st.Meter.TakeSources(len(reads))]
		for _, rd := range reads {
			for _, src := range s.full.Sources() {
				if src.Page.Locator == rd.Locator {
					st.Evidence.Add(src.Page, src.Text)
				}
			}
		}
	}
	st.Meter.Hold(0)
	d, err := r.Write(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	if u := st.Meter.Usage(); u.Tokens > l.TokenBudget {
		t.Errorf("%d tokens used of %d", u.Tokens, l.TokenBudget)
	}
	return st, d, plans
}

// show logs a run for people.
func show(t *testing.T, st *reason.State, d reason.Draft, plans []reason.Plan) {
	t.Helper()
	t.Logf("QUESTION %s", st.Request.Question)
	for i, p := range plans {
		t.Logf("  iteration %d: %s complete=%v", i+1, p.Decision, p.Complete)
		for _, s := range p.Searches {
			t.Logf("    search %q: %s", s.Query, s.Reason)
		}
	}
	for _, s := range st.Evidence.Sources() {
		t.Logf("    read %s", s.Page.Locator)
	}
	t.Logf("  match %.3f, usage %+v, refusal %q", d.Match, st.Meter.Usage(), d.Refusal)
	for _, c := range d.Claims {
		src, _, _ := st.Evidence.Passage(c.Passages[0])
		t.Logf("  %v %s [%v %s %s]", c.Paragraph, c.Text, c.Passages, src.Page.Locator, c.Support)
	}
	for _, g := range d.Gaps {
		t.Logf("  gap %+v", g)
	}
	for _, o := range d.OpenQuestions {
		t.Logf("  open %+v", o)
	}
	for _, e := range d.Discoveries {
		t.Logf("  discovery %+v", e)
	}
}

func TestGardenInUtah(t *testing.T) {
	st, d, plans := library(t).run(t, marchwarden.Request{Question: "What are ideal crops for a garden in Utah?"})
	show(t, st, d, plans)
	sources := map[int]bool{}
	for _, c := range d.Claims {
		src, _, _ := st.Evidence.Passage(c.Passages[0])
		sources[src.N] = true
	}
	if n := len(excerpts(d, st.Evidence)); n < 4 || len(sources) < 3 {
		t.Errorf("%d citations from %d documents, want 4 from 3", n, len(sources))
	}
	if len(d.Contradictions) != 2 {
		t.Errorf("%d contradictions, want 2", len(d.Contradictions))
	}
}

func TestLibraryQuestions(t *testing.T) {
	lib := library(t)
	for i, c := range []struct{ question, says string }{ // says "" is a refusal
		{"What is the capital of France?", "Paris is the capital of France."},
		{"Which companies develop CRISPR therapies?", "Intellia Therapeutics"},
		{"Who coined the term artificial intelligence and when?", "John McCarthy"},
		{"How do I add a folder to the library?", "marchwarden library add"},
		{"What did the EU AI Act forbid and when does it apply?", "AI Act prohibits social scoring"},
		{"Compare encoder-only and decoder-only transformers", "encoder-only, encoder-decoder and decoder-only"},
		{"Why did the first AI winter begin?", "Lighthill report"},
		{"What is an AI winter?", "An AI winter is a period"},
		{"Do tomatoes ripen above 6,000 feet in Utah?", "Tomatoes do not ripen reliably"},
		{"What is the capital of Mongolia?", ""},
		{"How tall is Mount Kilimanjaro?", ""},
		{"Who won the 2014 football World Cup?", ""},
	} {
		if !datatest.Tried(i, 12) {
			continue
		}
		st, d, plans := lib.run(t, marchwarden.Request{Question: c.question})
		answer := strings.Join(texts(d), " ")
		if c.says == "" && answer != "" || !strings.Contains(answer, c.says) {
			t.Errorf("want %q", c.says)
			show(t, st, d, plans)
		}
		if u := st.Meter.Usage(); len(u.Exhausted) > 0 {
			t.Errorf("%q exhausts an ordinary budget: %v", c.question, u.Exhausted)
		}
	}
}

// What a stranger asks first. Says stands in the first one or two sentences of
// the answer, never in none of them; "" for says is a refusal.
func TestStrangersQuestions(t *testing.T) {
	lib := library(t)
	for i, c := range []struct {
		question    string
		first       int
		says, never string
	}{
		{"Does Marchwarden need an API key?", 1, "needs no API key", ""},
		{"Is Marchwarden free?", 1, "Marchwarden is free", ""},
		{"Does Marchwarden work offline?", 1, "works offline", ""},
		{"What does Marchwarden do?", 1, "a command-line program that answers questions", "doctor"},
		{"How do I verify an answer?", 2, "marchwarden verify", ""},
		{"How do I cite an answer?", 1, "give its trace id", ""},
		{"What is the population of Brazil?", 0, "", ""},
		{"What is the capital of Brazil?", 0, "", ""},
		{"Who is the president of Brazil?", 0, "", ""},
		{"Who is the president of Germany?", 0, "", ""},
		{"What is the capital of Spain?", 0, "", ""},
		{"What is the population of London?", 0, "", ""},
		{"What is the boiling point of water?", 0, "", ""},
		{"Who is the CEO of Google?", 0, "", ""},
		{"What is GDPR?", 1, "known as the GDPR, is Regulation", ""},
		{"Where does Marchwarden store its files?", 1, "Marchwarden keeps its files under the folder", ""},
		{"Comprehensive history of AI from the 1950s to 2026", 2, "divided into five periods", ""},
		{"What is CRISPR?", 1, "CRISPR is a gene-editing technology", ""},
		{"What is BERT?", 2, "BERT is the best-known encoder-only transformer", ""},
		{"What is the KV cache?", 1, "The KV cache stores", ""},
		{"Who wrote the transformer paper?", 1, "Ashish Vaswani", "Samuel"},
		{"What is iron chlorosis and how do I treat it?", 1, "the most common nutrient disorder", "Intellia"},
		{"What is iron chlorosis and how do I treat it?", 2, "is treated by", ""},
		{"What is Casgevy and who developed it?", 2, "developed by Vertex", ""},
		{"When should I plant tomatoes in Salt Lake City?", 1, "mid-May", "jalapeños"},
		{"When should I plant garlic in Utah?", 2, "October", ""},
		{"How does self-attention work?", 1, "Self-attention lets every token", "Turing"},
		{"How much does Casgevy cost?", 1, "2.2 million dollars", ""},
		{"What is the price of Lyfgenia?", 1, "3.1 million dollars", ""},
		{"When does the EU AI Act take effect?", 1, "entered into force on 1 August 2024", ""},
		{"When did the AI Act come into force?", 1, "entered into force on 1 August 2024", ""},
		{"When was the GDPR adopted?", 1, "27 April 2016", ""},
		{"What is the difference between BERT and GPT?", 1, "BERT is an encoder", ""},
		{"How tall is the Eiffel Tower?", 1, "330 metres", ""},
	} {
		if !datatest.Tried(i, 17) {
			continue
		}
		st, d, plans := lib.run(t, marchwarden.Request{Question: c.question})
		all := texts(d)
		early := strings.Join(all[:min(c.first, len(all))], " ")
		switch {
		case c.says == "" && len(all) > 0, !strings.Contains(early, c.says), c.never != "" && strings.Contains(strings.Join(all, " "), c.never):
			t.Errorf("want %q and not %q", c.says, c.never)
			show(t, st, d, plans)
		case c.says != "" && d.Match < 0.2:
			t.Errorf("%q is answered at a match of %.2f", c.question, d.Match)
		}
	}
}

// A place that the answer's document does not know leaves little of Match, and
// the answer does not count as supported.
func TestAnotherPlaceIsDoubted(t *testing.T) {
	lib := library(t)
	_, right, _ := lib.run(t, marchwarden.Request{Question: "When was the Eiffel Tower in Paris built?"})
	st, wrong, plans := lib.run(t, marchwarden.Request{Question: "When was the Eiffel Tower in London built?"})
	if right.Match < 0.5 {
		t.Errorf("Paris: match %.2f", right.Match)
	}
	for _, c := range wrong.Claims {
		if wrong.Match > 0.2 || c.Support == marchwarden.Supported {
			t.Errorf("London: match %.2f, %s", wrong.Match, c.Support)
			show(t, st, wrong, plans)
		}
	}
}

// A number behind the question counts questions; it does not ask.
func TestLabelsDoNotMatter(t *testing.T) {
	const question = "What are ideal crops for a garden in Utah"
	lib := library(t)
	_, want, _ := lib.run(t, marchwarden.Request{Question: question + "?"})
	for i, label := range []string{"? number 1", "? number 4", "? (no. 12)", "? #7", "? 3"} {
		if !datatest.Tried(i, 5) {
			continue
		}
		_, got, _ := lib.run(t, marchwarden.Request{Question: question + label})
		if diff := cmp.Diff(texts(want), texts(got)); diff != "" || got.Match != want.Match {
			t.Errorf("%q moves match from %.3f to %.3f (-want +got):\n%s", label, want.Match, got.Match, diff)
		}
	}
	for i, label := range []string{" number 1", " number 4"} {
		if !datatest.Tried(i, 2) {
			continue
		}
		if _, got, _ := lib.run(t, marchwarden.Request{Question: question + label}); math.Abs(got.Match-want.Match) > 0.4 { // the reader is less sure of such a question
			t.Errorf("%q moves match from %.3f to %.3f", label, want.Match, got.Match)
		}
	}
}

// Match tells a full answer from one that lacks a word, and that from one that
// lacks what is asked about.
func TestMatchIsSpread(t *testing.T) {
	docs := set(map[string]string{"dam.md": "The Pineview Dam stands in Ogden Canyon. The Pineview Dam was completed in 1937. Trout live in the reservoir."})
	last := 1.0
	for _, c := range []struct {
		question    string
		least, most float64
	}{
		{"When was the Pineview Dam completed?", 0.7, 1},
		{"When was the Pineview Dam inaugurated and completed by engineers?", 0.3, 0.9},
		{"When was the Echo Reservoir completed?", 0, 0.3},
	} {
		d := writeOf(t, stateOf(c.question, docs, balanced))
		if d.Match < c.least || d.Match > c.most || d.Match >= last {
			t.Errorf("%q: match %.3f, want %.2f to %.2f", c.question, d.Match, c.least, c.most)
		}
		last = d.Match
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	st, d, plans := library(t).run(t, marchwarden.Request{Question: "What is the airspeed of an unladen blorptang?"})
	show(t, st, d, plans)
	if len(d.Claims) > 0 || d.Refusal == "" || d.Match > 0.2 {
		t.Errorf("not refused: %+v", d)
	}
	if len(d.Gaps) != 1 || d.Gaps[0].Category != marchwarden.SourceNotFound || !strings.Contains(d.Gaps[0].Detail, "blorptang") {
		t.Errorf("gaps %+v", d.Gaps)
	}
}

func TestBroadQuestionOnASmallBudget(t *testing.T) {
	three, tokens := 3, 5000
	st, d, plans := library(t).run(t, marchwarden.Request{
		Question:    "Comprehensive history of AI from the 1950s to 2026",
		Constraints: &marchwarden.Constraints{MaxIterations: &three, TokenBudget: &tokens},
	})
	show(t, st, d, plans)
	if len(st.Meter.Usage().Exhausted) == 0 {
		t.Error("the budget is said to have sufficed")
	}
	if !slices.ContainsFunc(d.Gaps, func(g marchwarden.Gap) bool { return g.Category == marchwarden.BudgetExhausted }) {
		t.Errorf("no budget_exhausted gap: %+v", d.Gaps)
	}
	if !slices.ContainsFunc(d.Discoveries, func(e marchwarden.DiscoveryEvent) bool { return e.SuggestedResearcher == "arxiv" }) {
		t.Errorf("no lead to arxiv: %+v", d.Discoveries)
	}
}
