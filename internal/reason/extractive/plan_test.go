package extractive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

var balanced = marchwarden.Preset(marchwarden.Balanced)

func planOf(t *testing.T, st *reason.State) reason.Plan {
	t.Helper()
	p, err := New().Plan(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func queriesOf(p reason.Plan) []string {
	var out []string
	for _, s := range p.Searches {
		out = append(out, s.Query)
	}
	return out
}

func TestOpeningQueries(t *testing.T) {
	for _, c := range []struct {
		question, context string
		want              []string
	}{
		{"What are ideal crops for a garden in Utah?", "", []string{"ideal crops garden Utah", "Utah"}},
		{"Compare BERT and GPT", "", []string{"BERT GPT", "BERT", "GPT"}},
		{"Who said \"the bitter lesson\" first?", "", []string{"bitter lesson first", "the bitter lesson"}},
		{"What does http://127.0.0.1:18080/latest/meta-data?x=1 say about Utah crops?", "", []string{"Utah crops", "Utah"}},
		{"Compare https://a.example/one and \"https://b.example/two\" on frost hardiness.", "", []string{"frost hardiness"}},
		{"Which crops are hardy?", "See https://Park.example/City.", []string{"crops hardy"}},
		{"Which crops are hardy?", "We live near Park City.", []string{"crops hardy", "crops hardy Park City"}},
	} {
		st := stateOf(c.question, &evidence.Set{}, balanced)
		st.Request.Context = c.context
		if d := cmp.Diff(c.want, queriesOf(planOf(t, st))); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.question, d)
		}
	}
}

func TestPlanFollowsAName(t *testing.T) {
	st := stateOf("Where was the director of the film Harbour Lights born?", set(map[string]string{
		"film.md": "The film Harbour Lights was directed by Mara Quill in 1999. It won a prize at a festival."}), balanced)
	st.Searches = []reason.Searched{{Query: "director film Harbour Lights born", Iteration: 1}}
	st.Iteration = 2
	p := planOf(t, st)
	at := slices.IndexFunc(p.Searches, func(s reason.Search) bool { return strings.HasPrefix(s.Query, "Mara Quill") })
	if at < 0 {
		t.Fatalf("the director is not followed: %v", queriesOf(p))
	}
	if want := `"Mara Quill" was met in film.md`; !strings.HasPrefix(p.Searches[at].Reason, want) {
		t.Errorf("reason %q does not say %q", p.Searches[at].Reason, want)
	}
	if !slices.Contains(queriesOf(p), "born") {
		t.Errorf("the word that nothing read has is not searched: %v", queriesOf(p))
	}
}

func TestPlanStopsWhenSettled(t *testing.T) {
	st := stateOf("What is the capital of France?", set(map[string]string{"paris.md": "Paris is the capital of France. The Seine flows through it."}), balanced)
	st.Searches = []reason.Searched{{Query: "capital France", Iteration: 1}}
	st.Iteration = 2
	if p := planOf(t, st); len(p.Searches) > 0 || !p.Complete {
		t.Errorf("plan %+v, want a complete end", p)
	}
}

func TestPlanGivesUpWhenOutOfIdeas(t *testing.T) {
	st := stateOf("What is the capital of Mongolia?", set(map[string]string{"paris.md": "Paris is the capital of France."}), balanced)
	st.Searches = []reason.Searched{{Query: "capital Mongolia", Iteration: 1}, {Query: "Mongolia", Iteration: 1}}
	st.Iteration = 2
	if p := planOf(t, st); len(p.Searches) > 0 || p.Complete || !strings.Contains(p.Decision, "Mongolia") {
		t.Errorf("plan %+v, want an incomplete end that names Mongolia", p)
	}
}

func TestNoQueryTwice(t *testing.T) {
	lib := library(t)
	for i, question := range []string{"What are ideal crops for a garden in Utah?", "Comprehensive history of AI from the 1950s to 2026", "Who won the 2014 football World Cup?"} {
		if !datatest.Tried(i, 3) {
			continue
		}
		st, _, plans := lib.run(t, marchwarden.Request{Question: question, Depth: marchwarden.Deep})
		if len(st.Searches) < 2 || len(plans) < 2 {
			t.Errorf("%q: %d searches by %d plans", question, len(st.Searches), len(plans))
		}
		seen := map[string]bool{}
		for _, s := range st.Searches {
			if seen[lexicon.SameWords(s.Query)] {
				t.Errorf("%q: searched twice for %q", question, s.Query)
			}
			seen[lexicon.SameWords(s.Query)] = true
		}
		for _, p := range plans {
			if len(p.Searches) > maxQueries {
				t.Errorf("%q: %d queries in one iteration", question, len(p.Searches))
			}
		}
	}
}

func TestPlanWithoutWords(t *testing.T) {
	for _, question := range []string{"???", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd?"} {
		st := stateOf(question, &evidence.Set{}, balanced)
		if p := planOf(t, st); len(p.Searches) > 0 || p.Complete {
			t.Errorf("%s: plan %+v", question, p)
		}
		if d := writeOf(t, st); len(d.Gaps) != 1 || d.Gaps[0].Topic != question || strings.Contains(d.Gaps[0].Detail, "absent") {
			t.Errorf("%s: gaps %+v", question, d.Gaps)
		}
	}
}

// Where no hit shows a word of the question, the engine's order counts for pages
// of the web, at the beginning or as long as nothing was read. Files that an index
// found are read last: their meaning was near.
func TestChooseBlindly(t *testing.T) {
	web := []search.Hit{
		{Locator: "https://c.example/", Title: "Home"}, {Locator: "https://b.example/", Title: "Startseite", Snippet: "Willkommen."},
		{Locator: "https://failed.example/"}, {Locator: "https://a.example/"}, {Locator: "https://d.example/", Title: "Index"},
	}
	files := []search.Hit{{Locator: "bread.md", Title: "Bread", Snippet: "Flour, water and salt."}, {Locator: "embedded:salt.md", Title: "Salt"}}
	shown := append(slices.Clone(web), search.Hit{Locator: "https://e.example/", Snippet: "Yellow leaves by chlorosis."})
	first := []string{"https://c.example/", "https://b.example/", "https://a.example/"}
	for _, c := range []struct {
		name      string
		hits      []search.Hit
		iteration int
		read      map[string]string
		want      []string
	}{
		{"the first three", web, 1, nil, first},
		{"nothing was read yet", web, 2, nil, first},
		{"a follow-up", web, 2, map[string]string{"x.md": "Iron is a metal."}, nil},
		{"files", files, 1, nil, []string{"bread.md", "embedded:salt.md"}},
		{"one shows a word", shown, 1, nil, []string{"https://e.example/"}},
	} {
		st := stateOf("What causes iron chlorosis in peaches?", set(c.read), balanced)
		st.Iteration = c.iteration
		st.Failed = map[string]error{"https://failed.example/": errors.New("gone")}
		st.Searches = []reason.Searched{{Query: "iron chlorosis peaches", Iteration: c.iteration, Hits: c.hits}}
		reads := New().Choose(st, c.hits)
		var got []string
		for _, r := range reads {
			got = append(got, r.Locator)
			if strings.TrimSpace(r.Reason) == "shows" || r.Reason == "" {
				t.Errorf("%s: %s is chosen without a reason", c.name, r.Locator)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestChoose(t *testing.T) {
	hits := []search.Hit{
		{Locator: "soil.md", Title: "Alkaline soils", Snippet: "Iron chlorosis is common in alkaline soils."},
		{Locator: "bread.md", Title: "Bread", Snippet: "Flour, water and salt."},
		{Locator: "iron.md", Title: "Iron chlorosis of peaches", Snippet: "Leaves turn yellow."},
		{Locator: "read.md", Title: "Iron chlorosis", Snippet: "Iron chlorosis."},
		{Locator: "failed.md", Title: "Iron chlorosis", Snippet: "Iron chlorosis."},
	}
	st := stateOf("What causes iron chlorosis in peaches?", &evidence.Set{}, balanced)
	st.Evidence = set(map[string]string{"read.md": "Iron chlorosis is a yellowing of leaves."})
	st.Failed = map[string]error{"failed.md": errors.New("gone")}
	st.Searches = []reason.Searched{{Query: "iron chlorosis peaches", Iteration: 1, Hits: hits}}
	reads := New().Choose(st, hits)
	var got []string
	for _, r := range reads {
		got = append(got, r.Locator)
		if r.Reason == "" {
			t.Errorf("%s is chosen without a reason", r.Locator)
		}
	}
	if d := cmp.Diff([]string{"iron.md", "soil.md", "bread.md"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
