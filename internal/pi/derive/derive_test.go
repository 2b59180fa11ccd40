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
		{"asked before", chain, func(b *pi.Brief) {
			b.Asked = []pi.Sending{{Researcher: "files", Question: chain}, {Researcher: "web", Question: chain}, {Researcher: "files", Question: "Which film won the Palme d'Or in 1994?"}}
		}, []string{"web: Which film won the Palme d'Or in 1994?"}},
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

var quill = marchwarden.Citation{Source: "file", Locator: "film.md", Title: "Harbour Lights", RawExcerpt: "The film Harbour Lights was directed by Mara Quill in 1999. It won a prize in Trieste."}

func cited(list ...marchwarden.Citation) []marchwarden.Citation { return list }

func says(excerpt string) marchwarden.Citation {
	return marchwarden.Citation{Source: "file", Locator: "x.md", Title: "x.md", RawExcerpt: excerpt}
}

func TestFollow(t *testing.T) {
	const (
		whole = "Where was the director of the film Harbour Lights born?"
		dam   = "Where was the engineer of the Kessler dam born?"
		mill  = "Where was the foreman of Ravenscar Mill born?"
	)
	for _, c := range []struct {
		name  string
		whole string
		sent  string
		cited []marchwarden.Citation
		asked []string
		want  []string
	}{
		{"the next hop", whole, whole, cited(quill), nil, []string{"Where was Mara Quill born?"}},
		{"after the inner question", whole, "Who is the director of the film Harbour Lights?", cited(quill), nil, []string{"Where was Mara Quill born?"}},
		{"asked before", whole, whole, cited(quill), []string{"Mara Quill born"}, nil},
		{"covered", whole, whole, cited(quill, says("Mara Quill, the director, was born in Trieste.")), nil, nil},
		{"nothing cited", whole, whole, nil, nil, nil},
		{"no name", whole, whole, cited(says("The director of the film was not named.")), nil, nil},
		{"far from the question", whole, whole, cited(says("Rain fell on Paris.")), nil, nil},
		{"held against what was asked", "Compare Harbour Lights and Night Ferry", "What is known about Harbour Lights?", cited(quill), nil, nil},
		{"no description to put a name for", whole, "Where was Mara Quill born?", cited(says("Mara Quill is a daughter of Ines Quill.")), nil, nil},
		{"a name of the whole question", mill, "Where was Amos Pike born?", cited(says("Amos Pike worked at Ravenscar Mill.")), nil, nil},
		{"any noun", mill, mill, cited(says("Amos Pike was the foreman of Ravenscar Mill.")), nil, []string{"Where was Amos Pike born?"}},
		{"the title is a file's name", mill, mill, cited(marchwarden.Citation{Locator: "files/a.md", Title: "a.md", RawExcerpt: "The foreman of Ravenscar Mill is not known."}), nil, nil},
		{"the title is another name", mill, mill, cited(marchwarden.Citation{Locator: "a", Title: "Annals of Whitby", RawExcerpt: "The foreman of Ravenscar Mill is not known."}), nil, nil},
		{"a file's name in a sentence", mill, mill, cited(says("The foreman of Ravenscar Mill is in NOTES.md of Whitby/Records.")), nil, nil},
		{"a longer name of the question's", mill, mill, cited(says("The foreman of Old Ravenscar Mill is not known.")), nil, nil},
		{"the title names the place", mill, mill, cited(marchwarden.Citation{Locator: "m.md", Title: "Ravenscar Mill", RawExcerpt: "The foreman was Amos Pike. The owner was Job Tarn."}), nil, []string{"Where was Amos Pike born?"}},
		{"the nearest first", "Who is the spouse of the director of Jump for Glory?", "Who is the director of Jump for Glory?",
			cited(says("Jump for Glory is a film with Valerie Hobson and Alan Hale that was directed by Raoul Walsh.")), nil, []string{"Who is the spouse of Raoul Walsh?", "Who is the spouse of Alan Hale?"}},
		{"a place", "What was the population of the city where Kerry Saxby-Junna was born?", "Kerry Saxby-Junna was born in which city?",
			cited(says("Kerry Saxby-Junna was born in Ballina.")), nil, []string{"What was the population of Ballina?"}},
		{"owned", "Who was the first president of Damerjog's country?", "What is Damerjog's country?",
			cited(says("Damerjog is a small town in Djibouti.")), nil, []string{"Who was the first president of Djibouti?"}},
		{"a clause", "Who directed the film that won the Golden Palm?", "Which film won the Golden Palm?",
			cited(says("The Golden Palm was won by Night Ferry.")), nil, []string{"Who directed Night Ferry?"}},
		{"a clause with the verb of the question", "Where was the man who built Ravenscar Mill born?", "Where was the man who built Ravenscar Mill born?",
			cited(says("Ravenscar Mill was built by Amos Pike.")), nil, []string{"Where was Amos Pike born?"}},
		{"a name that goes on", dam, dam, cited(says("The engineer of the Kessler dam is Ines Halloran.")), nil, []string{"Where was Ines Halloran born?"}},
		{"a name that may go on", dam, dam, cited(says("The engineer of the Kessler project is Ines Halloran.")), nil, nil},
		{"a noun for a verb", "What is the height of the tower of the Kessler dam?", "What is the tower of the Kessler dam?", cited(says("The tower of the Kessler project is Halloran Tower.")), nil, nil},
		{"a clause before the verb", "In which town was the engineer who built the Kessler dam born?", "In which town was the engineer who built the Kessler dam born?",
			cited(says("The Kessler dam was built by Ines Halloran.")), nil, []string{"In which town was Ines Halloran born?"}},
		{"what is missing is in the description", "Who directed the film that won the Golden Palm in 1994?", "Who directed the film that won the Golden Palm in 1994?",
			cited(says("The Golden Palm was won by Night Ferry.")), nil, nil},
	} {
		if d := cmp.Diff(c.want, follow(t, c.whole, c.sent, c.cited, c.asked)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// follow is what is proposed after a report of files on the question sent.
func follow(t *testing.T, whole, sent string, cited []marchwarden.Citation, asked []string) []string {
	t.Helper()
	b := brief(whole, files, web)
	for _, q := range asked {
		b.Asked = append(b.Asked, pi.Sending{Researcher: "files", Question: q})
	}
	hops, err := New().Follow(context.Background(), b, pi.Report{Sent: pi.Sending{Researcher: "files", Question: sent}, Citations: cited})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range hops {
		out = append(out, s.Question)
		if s.Researcher != "files" || s.Reason == "" {
			t.Errorf("%+v goes to another or has no reason", s)
		}
	}
	return out
}

// Whatever is asked and found, proposals are few, short, for members, each once,
// and the same each time.
func TestProposalsKeepTheirLimits(t *testing.T) {
	words := []string{"Compare", "Who", "is", "the", "director", "of", "film", "that", "won", "Jaws", "Mara Quill", "and", "or", "vs", "in which", "paper", "born", "?", ",", "Utah's", "capital", "1994", "where", "the city"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 120).Draw(t, "words"), " ")
		text = strings.TrimSpace(text[:min(len(text), 500)])
		b := brief(text, files, arxiv)
		b.Most = rapid.IntRange(0, 5).Draw(t, "most")
		excerpt := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 60).Draw(t, "excerpt"), " ")
		r := pi.Report{Sent: pi.Sending{Researcher: "files", Question: text}, Citations: []marchwarden.Citation{{Locator: "a.md", Title: "a.md", RawExcerpt: excerpt}}}
		planned, err := New().Plan(context.Background(), b)
		again, _ := New().Plan(context.Background(), b)
		hops, followErr := New().Follow(context.Background(), b, r)
		if err != nil || followErr != nil || !slices.Equal(planned, again) {
			t.Fatal(err, followErr, planned, again)
		}
		if len(planned) > b.Most || len(hops) > min(b.Most, mostHops) {
			t.Fatalf("%d and %d proposals where %d may be", len(planned), len(hops), b.Most)
		}
		for _, s := range append(planned, hops...) {
			if n := utf8.RuneCountInString(s.Question); n < 1 || n > marchwarden.MaxQuestionChars {
				t.Fatalf("a question of %d characters", n)
			}
			if strings.Contains(s.Question, "a.md") {
				t.Fatalf("a file's name is asked about: %q", s.Question)
			}
		}
	})
}
