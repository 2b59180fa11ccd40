package derive

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

var (
	files  = dispatch.Member{Name: "files", Scope: "documents on this machine: the library that ships with the program and the folders of the user"}
	web    = dispatch.Member{Name: "web", Scope: "the open web: pages found by search engines, addresses in the question, and what those pages link to"}
	arxiv  = dispatch.Member{Name: "arxiv", Scope: "scientific papers: arXiv preprints with their full text, and published work by DOI, with citation counts and retraction notices"}
	trials = dispatch.Member{Name: "database", Scope: "the database trials@localhost: tables patients (id, full_name, age, web_page), doses (patient, drug, milligrams)"}
	plants = dispatch.Member{Name: "plants", Scope: "native plants of Utah"}
)

func brief(question string, members ...dispatch.Member) *pi.Brief {
	req := marchwarden.Request{Question: question}
	return &pi.Brief{Request: req, Limits: req.Limits(), Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Members: members, Most: 12}
}

func plan(t *testing.T, b *pi.Brief) []pi.Sending {
	t.Helper()
	out, err := New().Plan(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range out {
		if s.Reason == "" || s.Question == "" {
			t.Errorf("%+v has no reason or no question", s)
		}
	}
	return out
}

func TestWhoIsAsked(t *testing.T) {
	all := []dispatch.Member{files, web, arxiv, trials, plants}
	for _, c := range []struct {
		question string
		members  []dispatch.Member
		want     string
	}{
		{"What is the capital of France?", all, "files web"},
		{"Which paper introduced the transformer?", all, "files web arxiv"},
		{"What does 1706.03762 propose?", all, "files web arxiv"},
		{"What is said in 10.1038/s41586-020-2649-2?", all, "files web arxiv"},
		{"What does recent research say about sleep?", all, "files web arxiv"},
		{"How many patients took the drug?", all, "files web database"},
		{"Which table holds the names?", all, "files web"},
		{"Which plants grow in Utah?", all, "files web plants"},
		{"What is the capital of France?", []dispatch.Member{arxiv, plants}, "arxiv plants"},
		{"What is the capital of France?", nil, ""},
	} {
		var got []string
		for _, s := range plan(t, brief(c.question, c.members...)) {
			if s.Question == c.question {
				got = append(got, s.Researcher)
			}
		}
		if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.question, d)
		}
	}
}

func TestWhatIsAsked(t *testing.T) {
	for _, c := range []struct {
		question string
		want     []string // in order; "" stands for the whole question
	}{
		{"What is the capital of France?", []string{""}},
		{"Who is the director of Jaws?", []string{""}},
		{"Compare BERT and GPT", []string{"", "What is known about BERT?", "What is known about GPT?"}},
		{"Compare BERT and GPT on training data.", []string{"", "BERT: training data?", "GPT: training data?"}},
		{"What is the difference between mitosis and meiosis?", []string{"", "What is known about mitosis?", "What is known about meiosis?"}},
		{"PostgreSQL vs. MySQL", []string{"", "What is known about PostgreSQL?", "What is known about MySQL?"}},
		{"Who is the oldest, Sid Haig or Vic Darchinyan?", []string{"", "Sid Haig: who is the oldest?", "Vic Darchinyan: who is the oldest?"}},
		{"Are King Vidor and Géza von Cziffra both American directors?", []string{"", "King Vidor: American directors?", "Géza von Cziffra: American directors?"}},
		{"Are Frozen and Escape from the Dark both animated features?", []string{""}},
		{"Is tea or coffee better?", []string{""}},
		{"Who founded Rome and when did Carthage fall?", []string{"", "Who founded Rome?", "When did Carthage fall?"}},
		{"What does the AI Act forbid, and when does it apply?", []string{"", "What does the AI Act forbid?", "AI Act: when does it apply?"}},
		{"Where are the marathon majors hosted, and when was each first held?", []string{"", "Where are the marathon majors hosted?"}},
		{"Comprehensive history of AI from the 1950s to 2026", []string{""}},
		{"Who directed the film that won the Palme d'Or in 1994?", []string{"Which film won the Palme d'Or in 1994?", ""}},
		{"What was the population of the city where Kerry Saxby-Junna was born?", []string{"Kerry Saxby-Junna was born in which city?", ""}},
		{"Who leads the party that Sergio Hernández belongs to?", []string{"Sergio Hernández belongs to which party?", ""}},
		{"Who was the first president of Damerjog's country?", []string{"What is Damerjog's country?", ""}},
		{"Who is the spouse of the director of Jump for Glory?", []string{"Who is the director of Jump for Glory?", ""}},
		{"Where was the director of the film Harbour Lights born?", []string{"Who is the director of the film Harbour Lights?", ""}},
		{"Drew Fuller starred in a series that was broadcast on what station?", []string{""}},
	} {
		var got []string
		for _, s := range plan(t, brief(c.question, files)) {
			if s.Question == c.question {
				s.Question = ""
			}
			got = append(got, s.Question)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.question, d)
		}
	}
}

// The whole question is never left out for its parts.
func TestPlanWithinLimits(t *testing.T) {
	const chain = "Who directed the film that won the Palme d'Or in 1994?"
	for _, c := range []struct {
		name     string
		question string
		change   func(*pi.Brief)
		want     []string
	}{
		{"room for one", chain, func(b *pi.Brief) { b.Most = 1 }, []string{"files: " + chain}},
		{"room for two", chain, func(b *pi.Brief) { b.Most = 2 }, []string{"files: " + chain, "web: " + chain}},
		{"no room", chain, func(b *pi.Brief) { b.Most = 0 }, nil},
		{"little to spend", "Compare BERT and GPT", func(b *pi.Brief) { b.Limits.TokenBudget = 3000 }, []string{"files: Compare BERT and GPT", "web: Compare BERT and GPT"}},
	} {
		b := brief(c.question, files, web)
		c.change(b)
		var got []string
		for _, s := range plan(t, b) {
			got = append(got, s.Researcher+": "+s.Question)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// Whatever is asked, proposals are few, short, for members, each once,
// and the same each time.
func TestProposalsKeepTheirLimits(t *testing.T) {
	words := []string{"Compare", "Who", "is", "the", "director", "of", "film", "that", "won", "Jaws", "Mara Quill", "and", "or", "vs", "in which", "paper", "born", "?", ",", "Utah's", "capital", "1994", "where", "the city"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 120).Draw(t, "words"), " ")
		text = strings.TrimSpace(text[:min(len(text), 500)])
		b := brief(text, files, arxiv)
		b.Most = rapid.IntRange(0, 5).Draw(t, "most")
		planned, err := New().Plan(context.Background(), b)
		again, _ := New().Plan(context.Background(), b)
		if err != nil || !slices.Equal(planned, again) {
			t.Fatal(err, planned, again)
		}
		if len(planned) > b.Most {
			t.Fatalf("%d proposals where %d may be", len(planned), b.Most)
		}
		for _, s := range planned {
			if n := utf8.RuneCountInString(s.Question); n < 1 || n > marchwarden.MaxQuestionChars {
				t.Fatalf("a question of %d characters", n)
			}
		}
	})
}
