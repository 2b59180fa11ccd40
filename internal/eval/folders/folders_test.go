package folders

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
)

// TestQuestions holds the set to its form. Messages name ids alone: the questions of one
// part are not to be seen.
func TestQuestions(t *testing.T) {
	all, err := questions()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, q := range all {
		switch {
		case q.ID == "" || seen[q.ID] || q.Question == "" || q.Note == "":
			t.Errorf("%s: its id is taken, or it has no words", q.ID)
		case q.Folder != office && q.Folder != freshwiki, q.Part != partOpen && q.Part != partHeld:
			t.Errorf("%s: folder %q, part %q", q.ID, q.Folder, q.Part)
		case !slices.Contains([]string{"span", "list", "latest", kindYes, kindNo, kindNone}, q.Kind):
			t.Errorf("%s: kind %q", q.ID, q.Kind)
		case q.answerable() != (len(q.Keys) > 0):
			t.Errorf("%s: kind %s with %d keys", q.ID, q.Kind, len(q.Keys))
		case q.answerable() && q.Kind != kindYes && q.Kind != kindNo && len(q.Short) == 0:
			t.Errorf("%s: there is no short answer", q.ID)
		}
		seen[q.ID] = true
	}
	if len(all) < 150 {
		t.Errorf("%d questions", len(all))
	}
}

// TestPartsAreAlike holds the part that is held out to the mix of the other.
func TestPartsAreAlike(t *testing.T) {
	all, err := questions()
	if err != nil {
		t.Fatal(err)
	}
	mix := map[string]map[string]int{partOpen: {}, partHeld: {}}
	for _, q := range all {
		mix[q.Part][q.Folder+" "+q.Kind]++
	}
	for kind := range mix[partOpen] { // an odd number cannot be halved
		if a, b := mix[partOpen][kind], mix[partHeld][kind]; a-b > 1 || b-a > 1 {
			t.Errorf("%s: %d questions are open, %d held out", kind, a, b)
		}
	}
	if len(mix[partOpen]) != len(mix[partHeld]) {
		t.Errorf("kinds: %v", mix)
	}
}

var tag = regexp.MustCompile(`<[^>]+>`)

// TestOfficeAnswers finds every key of the office in one of its documents, and a short
// answer, too.
func TestOfficeAnswers(t *testing.T) {
	all, err := questions()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := officeDocs()
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 18 {
		t.Errorf("%d documents", len(docs))
	}
	for name, text := range docs {
		if strings.HasSuffix(name, ".html") {
			docs[name] = html.UnescapeString(tag.ReplaceAllString(text, " "))
		}
	}
	in := func(key string) bool {
		for _, text := range docs {
			if holds(text, []string{key}) {
				return true
			}
		}
		return false
	}
	s := &session{docs: map[string]eval.Docs{office: docs}}
	for _, q := range all {
		if q.Folder != office || !q.answerable() {
			continue
		}
		for i, key := range q.Keys {
			if !in(key) {
				t.Errorf("%s: key %d stands in no document", q.ID, i+1)
			}
		}
		if len(q.Short) > 0 && !slices.ContainsFunc(q.Short, in) {
			t.Errorf("%s: no short answer stands in a document", q.ID)
		}
		if len(s.named(q)) == 0 {
			t.Errorf("%s: its note names no document", q.ID)
		}
	}
}

// disk is folders that are only noted down. Every question gets the same answer.
type disk struct {
	mu      sync.Mutex
	written map[string]eval.Docs
	asked   []string
}

func (d *disk) Write(_ context.Context, name string, docs eval.Docs) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, twice := d.written[name]; twice {
		return "", fmt.Errorf("%s is written twice", name)
	}
	d.written[name] = docs
	return "/tmp/x/" + name, nil
}

func (d *disk) Ask(_ context.Context, dir, question string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, question)
	return json.Marshal(map[string]any{
		"answer": "The spare key hangs on hook 7. [1]", "confidence": 0.4,
		"citations": []any{map[string]any{"locator": dir + "/notes.md#L3"}},
	})
}

// lines are the details of a run.
type lines struct {
	mu sync.Mutex
	by map[string]string
}

func (l *lines) add(id string, d any) {
	b, _ := json.Marshal(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[id] = string(b)
}

func run(t *testing.T, data evaltest.Data, part string, held bool) (*eval.Report, *disk, map[string]string) {
	t.Helper()
	d, l := &disk{written: map[string]eval.Docs{}}, &lines{by: map[string]string{}}
	env := evaltest.Env(t, data.Folder(), nil)
	env.Folders, env.Part, env.Details = d, part, eval.Details{Add: l.add, Held: held}
	return evaltest.Run(t, Suites()[0], env, 0), d, l.by
}

const oneArticle = `{"title":"Tartus:_a/city","summary":"Tartus is a city.","content":[{"section_title":"Sports","section_content":[{"sentence":"It has a club"},{"sentence":"It plays."}],"subsections":[{"section_title":"Club","section_content":[],"subsections":[]}]}]}`

func TestRun(t *testing.T) {
	whole, d, details := run(t, evaltest.Data{"multidoc/freshwiki.jsonl.gz": evaltest.Lines(t, oneArticle)}, "", false)
	if want := "# Tartus: a/city\n\nTartus is a city.\n\n## Sports\n\nIt has a club. It plays. \n\n### Club\n\n"; d.written[freshwiki]["Tartus__a_city.md"] != want {
		t.Errorf("the article is %q", d.written[freshwiki])
	}
	if len(d.written[office]) != 18 || len(d.asked) != whole.Cases || len(whole.Notes) > 0 {
		t.Errorf("%d papers, %d of %d questions, notes %q", len(d.written[office]), len(d.asked), whole.Cases, whole.Notes)
	}
	for _, g := range []string{"", "open: ", "held: ", "office: ", "freshwiki: "} {
		if v := evaltest.Value(t, whole, g+words); v != 7 {
			t.Errorf("%s%s is %v", g, words, v)
		}
	}
	if v := evaltest.Value(t, whole, good2); v <= 0 || v > 0.1 {
		t.Errorf("%s is %v", good2, v)
	}
	told, silent := 0, 0
	for id, line := range details {
		switch {
		case strings.Contains(line, `"part":"held"`):
			silent++
			if strings.Contains(line, "hook 7") || strings.Contains(line, "question") {
				t.Errorf("%s is told", id)
			}
		case strings.Contains(line, "hook 7") && strings.Contains(line, `"cited":["notes.md#L3"]`):
			told++
		}
	}
	if told == 0 || silent == 0 || told+silent != whole.Cases {
		t.Errorf("%d told, %d silent, of %d", told, silent, whole.Cases)
	}
}

// A run of one part says what it left out, and tells what is held out if that is wanted.
func TestPart(t *testing.T) {
	part, d, details := run(t, nil, partHeld, true)
	if _, written := d.written[freshwiki]; written || len(part.Notes) != 1 || !strings.Contains(part.Notes[0], "multidoc/freshwiki.jsonl.gz is not in") {
		t.Errorf("notes %q", part.Notes)
	}
	if part.Cases != 60 || len(details) != 60 {
		t.Errorf("%d cases, %d details", part.Cases, len(details))
	}
	for _, line := range details {
		if !strings.Contains(line, `"answer":"The spare key`) {
			t.Errorf("an answer is not told")
		}
	}
	if _, ok := part.Metric(good2); ok {
		t.Error("a metric of all questions, of one part")
	}
	evaltest.Value(t, part, "held: "+good2)
	if n, err := eval.Count(t.Context(), Suites()[0], eval.Env{}); err != nil || n != 120 {
		t.Errorf("%d cases without data, %v", n, err)
	}
}
