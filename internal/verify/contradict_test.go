package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// librarySet is the embedded library as evidence.
func librarySet(t *testing.T) *evidence.Set {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "corpus", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	set := &evidence.Set{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(strings.TrimPrefix(string(raw), "---\n"), "\n---\n")
		title, _, _ := strings.Cut(strings.TrimPrefix(string(raw), "---\ntitle: "), "\n")
		set.Add(fetch.Page{Locator: filepath.Base(f), Title: title, Text: blob.Of([]byte(body))}, body)
	}
	return set
}

func ids(set *evidence.Set) []evidence.ID {
	var out []evidence.ID
	for _, p := range set.Passages() {
		out = append(out, p.ID)
	}
	return out
}

func TestContradictionsOfTheLibrary(t *testing.T) {
	set := librarySet(t)
	all := Contradictions("", set, ids(set))
	for _, c := range all {
		t.Logf("%s | %s | %s\n  A %s: %s\n  B %s: %s", c.Subject, c.Attribute, c.Detail, c.A.Locator, c.A.RawExcerpt, c.B.Locator, c.B.RawExcerpt)
	}
	ripen, frost, others := 0, 0, 0
	for _, c := range all {
		switch both := c.A.RawExcerpt + c.B.RawExcerpt; {
		case strings.Count(both, "Tomatoes") == 2 && strings.Count(both, "6,000 feet") == 2:
			ripen++
		case strings.Count(both, "frost-free season above 6,000 feet") == 2:
			frost++
		default:
			others++
		}
	}
	if ripen != 1 || frost != 1 {
		t.Errorf("found the disagreement on tomatoes %d times and on frost-free days %d times, want 1 and 1", ripen, frost)
	}
	if others > 2 {
		t.Errorf("%d other alarms, want at most 2", others)
	}
}

func TestContradictionsBearOnTheQuestion(t *testing.T) {
	set := librarySet(t)
	if got := Contradictions("What are ideal crops for a garden in Utah?", set, ids(set)); len(got) != 2 {
		t.Errorf("%d contradictions for the garden, want 2", len(got))
	}
	if got := Contradictions("What is the capital of France?", set, ids(set)); len(got) != 0 {
		t.Errorf("%d contradictions for Paris, want none: %v", len(got), got)
	}
}

func TestContradictions(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		va, vb     string // the values reported; both "" when none is
	}{
		{"quantity", "The bridge across the river Aare is 120 metres long.", "The bridge across the river Aare is 180 metres long.", "120 metres", "180 metres"},
		{"rounding", "The bridge across the river Aare is 120 metres long.", "The bridge across the river Aare is about 121 metres long.", "", ""},
		{"another name", "Rain in Ogden amounts to 16 inches in an average year.", "Rain in Moab amounts to 9 inches in an average year.", "", ""},
		{"another subject", "Ogden receives about 16 inches of rain and snow in an average winter season.", "Moab receives about 9 inches of rain and snow in an average winter season.", "", ""},
		{"year of one event", "The old observatory on the northern hill was founded in 1887.", "The old observatory on the northern hill was founded in 1893.", "1887", "1893"},
		{"years of many events", "The summer games were held in Paris in 1900.", "The summer games were held in Paris in 1924.", "", ""},
		{"another unit", "The bridge across the river Aare is 120 metres long.", "The bridge across the river Aare is 90 years long.", "", ""},
		{"two quantities differ", "The dam holds 12 million tons behind 40 metres of wall.", "The dam holds 15 million tons behind 45 metres of wall.", "", ""},
		{"denied", "Garlic keeps deer away from vegetable gardens.", "Garlic does not keep deer away from vegetable gardens.", "keeps", "not keep"},
		{"denied elsewhere", "Garlic keeps deer away from vegetable gardens.", "Garlic keeps deer away from vegetable gardens but not slugs.", "", ""},
		{"both denied", "Garlic does not keep deer away from vegetable gardens.", "Garlic never keeps deer away from vegetable gardens.", "", ""},
		{"opposite", "Exports of timber rose sharply after the reform.", "Exports of timber fell sharply after the reform.", "rose", "fell"},
		{"unlike", "Exports of timber rose sharply after the reform.", "The price of bread fell in the following winter.", "", ""},
		{"a question", "Does garlic keep deer away from vegetable gardens?", "Garlic does not keep deer away from vegetable gardens.", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &evidence.Set{}
			set.Add(fetch.Page{Locator: "a.md", Text: blob.Of([]byte(c.a))}, c.a)
			set.Add(fetch.Page{Locator: "b.md", Text: blob.Of([]byte(c.b))}, c.b)
			got := Contradictions("", set, ids(set))
			if c.va == "" {
				if len(got) > 0 {
					t.Fatalf("false alarm: %+v", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d contradictions, want 1", len(got))
			}
			if got[0].A.Value != c.va || got[0].B.Value != c.vb {
				t.Errorf("values %q and %q, want %q and %q", got[0].A.Value, got[0].B.Value, c.va, c.vb)
			}
			if got[0].A.RawExcerpt != c.a || got[0].B.RawExcerpt != c.b {
				t.Errorf("excerpts are not the sentences: %+v", got[0])
			}
		})
	}
}

func TestContradictionsOfOneSource(t *testing.T) {
	text := "The bridge across the river Aare is 120 metres long. The bridge across the river Aare is 180 metres long."
	set := &evidence.Set{}
	set.Add(fetch.Page{Locator: "a.md", Text: blob.Of([]byte(text))}, text)
	if got := Contradictions("", set, ids(set)); got != nil {
		t.Errorf("one document contradicts itself: %v", []marchwarden.Contradiction(got))
	}
}
