package corpus_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
)

// minimum holds the topics a document may name and how many documents each needs.
var minimum = map[string]int{
	"gardening-utah": 10,
	"history-of-ai":  5,
	"transformers":   3,
	"crispr":         3,
	"france-eu":      5,
	"marchwarden":    4,
}

type document struct {
	name, title, topic, body string
	date                     time.Time
}

// parse reads the header strictly: exactly title, date and topic, in that order.
func parse(name, text string) (document, error) {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return document{}, fmt.Errorf("%s: no header", name)
	}
	header, body, ok := strings.Cut(rest, "\n---\n")
	if !ok {
		return document{}, fmt.Errorf("%s: header not closed", name)
	}
	var keys, values []string
	for line := range strings.SplitSeq(header, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		keys, values = append(keys, key), append(values, value)
	}
	if diff := cmp.Diff([]string{"title", "date", "topic"}, keys); diff != "" {
		return document{}, fmt.Errorf("%s: header keys (-want +got):\n%s", name, diff)
	}
	date, err := time.Parse(time.DateOnly, values[1])
	if err != nil {
		return document{}, fmt.Errorf("%s: date: %w", name, err)
	}
	return document{name: name, title: values[0], topic: values[2], body: body, date: date}, nil
}

func load(t *testing.T) []document {
	t.Helper()
	names, err := fs.Glob(corpus.FS(), "*.md")
	if err != nil {
		t.Fatal(err)
	}
	var docs []document
	for _, name := range names {
		raw, err := fs.ReadFile(corpus.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(raw) {
			t.Errorf("%s: not valid UTF-8", name)
		}
		doc, err := parse(name, string(raw))
		if err != nil {
			t.Error(err)
			continue
		}
		docs = append(docs, doc)
	}
	if len(docs) == 0 {
		t.Fatal("there are no documents")
	}
	return docs
}

// sentences cuts a body at full stops followed by white space; the documents are
// written without abbreviations that would break this rule.
func sentences(body string) []string {
	var out []string
	for line := range strings.SplitSeq(body, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for s := range strings.SplitAfterSeq(line, ". ") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

func TestDocumentsAreWellFormed(t *testing.T) {
	docs := load(t)
	if len(docs) < 24 {
		t.Errorf("%d documents, want at least 24", len(docs))
	}
	latest := time.Date(2026, time.November, 15, 0, 0, 0, 0, time.UTC)
	fileName := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*\.md$`)
	titles := map[string]string{}
	for _, d := range docs {
		if !fileName.MatchString(d.name) {
			t.Errorf("%s: file name is not kebab-case", d.name)
		}
		if d.date.After(latest) {
			t.Errorf("%s: date %s is after %s", d.name, d.date.Format(time.DateOnly), latest.Format(time.DateOnly))
		}
		if _, ok := minimum[d.topic]; !ok {
			t.Errorf("%s: topic %q is not allowed", d.name, d.topic)
		}
		if strings.TrimSpace(d.title) == "" || strings.ContainsRune(d.title, ':') {
			t.Errorf("%s: title %q is blank or needs quoting in YAML", d.name, d.title)
		}
		if other, ok := titles[d.title]; ok {
			t.Errorf("%s: same title as %s", d.name, other)
		}
		titles[d.title] = d.name
		if n := len(strings.Fields(d.body)); n < 300 || n > 900 {
			t.Errorf("%s: %d words in the body, want 300 to 900", d.name, n)
		}
		if i := strings.IndexFunc(d.body, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); i >= 0 {
			t.Errorf("%s: control character at byte %d of the body", d.name, i)
		}
	}
}

func TestTopicsReachTheirMinimum(t *testing.T) {
	got := map[string]int{}
	for _, d := range load(t) {
		got[d.topic]++
	}
	for topic, want := range minimum {
		if got[topic] < want {
			t.Errorf("topic %s: %d documents, want at least %d", topic, got[topic], want)
		}
	}
}

// A sentence that stands twice in the library would make two documents look like
// independent sources of one fact.
func TestNoSentenceStandsTwice(t *testing.T) {
	seen := map[string]string{}
	for _, d := range load(t) {
		for _, s := range sentences(d.body) {
			if other, ok := seen[s]; ok {
				t.Errorf("%s repeats a sentence of %s: %q", d.name, other, s)
			}
			seen[s] = d.name
		}
	}
}

func TestSentencesCanBeQuotedAlone(t *testing.T) {
	leaning := regexp.MustCompile(`^(It|This|They|These|Those|He|She|Its|Their|However|Also|But|And|Such)\b`)
	for _, d := range load(t) {
		for _, s := range sentences(d.body) {
			if leaning.MatchString(s) {
				t.Errorf("%s: sentence leans on the one before it: %q", d.name, s)
			}
			if n := utf8.RuneCountInString(s); n > 400 {
				t.Errorf("%s: sentence of %d characters, want at most 400: %q", d.name, n, s)
			}
		}
	}
}

func TestExactlyTwoDocumentsDisagreeOnTomatoes(t *testing.T) {
	season := regexp.MustCompile(`frost-free season above 6,000 feet in Utah is about (\d+) days`)
	var affirming, denying, days []string
	for _, d := range load(t) {
		for _, s := range sentences(d.body) {
			if m := season.FindStringSubmatch(s); m != nil {
				days = append(days, d.name+" "+m[1])
			}
			if !strings.Contains(s, "6,000 feet") || !strings.Contains(strings.ToLower(s), "tomato") {
				continue
			}
			switch {
			case strings.Contains(s, "do not ripen reliably"):
				denying = append(denying, d.name)
			case strings.Contains(s, "ripen reliably"):
				affirming = append(affirming, d.name)
			default:
				t.Errorf("%s: third opinion on tomatoes: %q", d.name, s)
			}
		}
	}
	slices.Sort(days)
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"affirming", affirming, []string{"utah-warm-season-crops.md"}},
		{"denying", denying, []string{"utah-high-elevation-crops.md"}},
		{"season", days, []string{"utah-high-elevation-crops.md 75", "utah-warm-season-crops.md 100"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}

func TestCapitalOfFranceIsStated(t *testing.T) {
	for _, d := range load(t) {
		if strings.Contains(d.title, "Paris") && slices.Contains(sentences(d.body), "Paris is the capital of France.") {
			return
		}
	}
	t.Error(`no document with Paris in its title has the sentence "Paris is the capital of France."`)
}

// A new user's first question must find direct sentences in many documents.
func TestIdealCropsAreNamedInManyDocuments(t *testing.T) {
	direct := regexp.MustCompile(`(?i)\bcrops?\b.*\bUtah\b.*\b(include|are|is|depend)\b|\bUtah gardens include\b`)
	var found []string
	for _, d := range load(t) {
		if d.topic == "gardening-utah" && slices.ContainsFunc(sentences(d.body), direct.MatchString) {
			found = append(found, d.name)
		}
	}
	if len(found) < 5 {
		t.Errorf("direct sentences on crops for Utah in %v, want at least 5 documents", found)
	}
}
