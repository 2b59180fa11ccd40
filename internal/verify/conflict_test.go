package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
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
	all := find("", set)
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
	if got := find("What are ideal crops for a garden in Utah?", set); len(got) != 2 {
		t.Errorf("%d contradictions for the garden, want 2", len(got))
	}
	if got := find("What is the capital of France?", set); len(got) != 0 {
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
		{"unlike", "Exports of timber rose sharply after the reform.", "The price of bread fell in the following winter.", "", ""},
		{"short", "The price agreed is 42,000 euros.", "The price agreed is 38,000 euros.", "42,000 euros", "38,000 euros"},
		{"short, another thing", "The price agreed is 42,000 euros.", "The deposit agreed is 38,000 euros.", "", ""},
		{"short, more said", "The price agreed is 42,000 euros.", "The price agreed is 38,000 euros a year.", "", ""},
		{"short, another unit", "The price agreed is 42,000 euros.", "The price agreed is 38,000 dollars.", "", ""},
		{"short, years of many events", "The council met in 1900.", "The council met in 1924.", "", ""},
		{"short, of something else", "As of the census its population was 2,581.", "As of the census its population was 325.", "", ""},
		{"one word", "It has 12 rooms.", "It has 15 rooms.", "", ""},
		{"a question", "Does garlic keep deer away from vegetable gardens?", "Garlic does not keep deer away from vegetable gardens.", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &evidence.Set{}
			set.Add(fetch.Page{Locator: "a.md", Text: blob.Of([]byte(c.a))}, c.a)
			set.Add(fetch.Page{Locator: "b.md", Text: blob.Of([]byte(c.b))}, c.b)
			got := find("", set)
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

// lead is the beginning of a page about a town, with enough names to know it by.
const lead = "Ardmoor is a market town in Kirkshire, on the river Tarn, 12 miles north of Penfold. The Tarn Valley Railway reached it in 1861. "

// finds is a reader that answers with the first of its words that a passage has, and
// calls every two texts contradictory, so surely.
type finds struct {
	words []string
	sure  float64
}

func (finds) ID() string { return "finds" }

func (f finds) Read(_ context.Context, _ string, passages []reader.Passage) ([]reader.Reading, error) {
	out := make([]reader.Reading, len(passages))
	for i, p := range passages {
		out[i].SpanScore = reader.NoSpan
		for _, w := range f.words {
			if at := strings.Index(p.Text, w); at >= 0 {
				out[i].SpanScore, out[i].Span = 3, marchwarden.Span{Start: at, End: at + len(w)}
				break
			}
		}
	}
	return out, nil
}

func (f finds) Relate(_ context.Context, pairs []reader.Pair) ([]reader.Relation, error) {
	out := make([]reader.Relation, len(pairs))
	for i := range out {
		out[i].Contradicted = f.sure
	}
	return out, nil
}

// TestAnswers: two documents answer the question, each with another value, and what is
// around the values is of one thing.
func TestAnswers(t *testing.T) {
	const (
		founded = "When was Ardmoor founded?"
		people  = "What is the population of Ardmoor?"
		hall    = "Who designed the town hall of Ardmoor?"
		capital = "What is the capital of Freedonia?"
		other   = "Ardmoor is a village in Westland, New Zealand, near Lake Hope and the Otira Gorge. "
	)
	for _, c := range []struct {
		name, question, a, b string
		va, vb               string
		sure                 float64
		want                 bool
	}{
		{"a name for another", hall, lead + "The town hall on the square was designed by Edith Marsh.", lead + "Ardmoor owes its hall to Owen Pryce.", "Edith Marsh", "Owen Pryce", 0.8, true},
		{"not contradicted", hall, lead + "The town hall on the square was designed by Edith Marsh.", lead + "Ardmoor owes its hall to Owen Pryce.", "Edith Marsh", "Owen Pryce", 0.1, false},
		{"one name in full", hall, lead + "The town hall on the square was designed by Edith Marsh.", lead + "The town hall on the square was designed by E. Marsh.", "Edith Marsh", "E. Marsh", 0.8, false},
		{"founded and established", founded, lead + "Ardmoor was founded in 1204 by monks.", lead + "The present town was established in 1350 beside a ford.", "1204", "1350", 0.8, true},
		{"of another year", people, lead + "The population was 4,210 at the 2011 census.", lead + "The population was 5,377 at the 2021 census.", "4,210", "5,377", 0.99, false},
		{"of one year", people, lead + "The population was 4,210 at the 2011 census.", lead + "At the 2011 census its population was 5,377.", "4,210", "5,377", 0.8, true},
		{"another town of the name", people, lead + "The population was 4,210 at the 2011 census.", other + "At the 2011 census its population was 377.", "4,210", "377", 0.99, false},
		{"both values in one", founded, lead + "The town was founded by monks in 1204.", lead + "The town was founded by monks in 1350, and not in 1204.", "1204", "1350", 0.99, false},
		{"sentences alone", capital, "The capital of Freedonia is Alphaville.", "The capital of Freedonia is Betaburg.", "Alphaville", "Betaburg", 0.95, true},
		{"sentences alone, not sure", capital, "The capital of Freedonia is Alphaville.", "The capital of Freedonia is Betaburg.", "Alphaville", "Betaburg", 0.6, false},
		{"another country", capital, "The capital of Freedonia is Alphaville.", "The capital of Sylvania is Betaburg.", "Alphaville", "Betaburg", 0.99, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &evidence.Set{}
			addPage(set, "a.md", "", c.a)
			addPage(set, "b.md", "", c.b)
			got := Contradictions(t.Context(), finds{[]string{c.va, c.vb}, c.sure}, c.question, set, ids(set))
			if !c.want {
				if len(got) > 0 {
					t.Fatalf("false alarm: %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].A.Value != c.va || got[0].B.Value != c.vb || got[0].Subject == "" || got[0].Attribute == "" {
				t.Fatalf("found %+v", got)
			}
			if !strings.HasSuffix(c.a, got[0].A.RawExcerpt) || !strings.HasSuffix(c.b, got[0].B.RawExcerpt) {
				t.Errorf("excerpts are not the sentences: %+v", got[0])
			}
		})
	}
}

// TestRows: two rows of a table differ in a value, not in what numbers or dates them.
func TestRows(t *testing.T) {
	for b, want := range map[string]int{
		"id: 7; name: Copper kettle large; maker: Harn and Sons; price: 60.":   1,
		"id: 8; name: Copper kettle large; maker: Harn and Sons; price: 49.9.": 0,
		"id: 7; name: Copper kettle small; maker: Other and Sons; price: 12.":  0,
		"id: 7; name: Copper kettle large; maker: Harn and Sons; price: 49.9.": 0,
	} {
		set := &evidence.Set{}
		addPage(set, "a.csv", "", "id: 7; name: Copper kettle large; maker: Harn and Sons; price: 49.9.")
		addPage(set, "b.csv", "", b)
		if got := find("", set); len(got) != want {
			t.Errorf("%s: %+v", b, got)
		}
	}
}

// TestContradictionsOfAnything holds the promises on texts made to be hard.
func TestContradictionsOfAnything(t *testing.T) {
	word := rapid.SampledFrom(strings.Fields(`Ardmoor Kirkshire Marsh Pryce the was is by in of founded designed born population not ( ) [ ] " 1204 1350 4,210 May 7 3 , ; . . . ? é 東 ` + "\xff"))
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 0, 60).Draw(t, "words"), " ") })
	rapid.Check(t, func(t *rapid.T) {
		set := &evidence.Set{}
		texts := map[string]string{}
		for i, s := range rapid.SliceOfN(text, 2, 4).Draw(t, "texts") {
			locator := strconv.Itoa(i)
			texts[locator] = s
			addPage(set, locator, "", s)
		}
		question := text.Draw(t, "question")
		read := finds{[]string{"1204", "1350", "Marsh", "Pryce"}, 0.95}
		got := Contradictions(context.Background(), read, question, set, ids(set))
		for _, c := range got {
			for _, side := range []marchwarden.Side{c.A, c.B} {
				if !strings.Contains(texts[side.Locator], side.RawExcerpt) || side.RawExcerpt == "" {
					t.Fatalf("side %+v", side)
				}
			}
		}
		if d := cmp.Diff(got, Contradictions(context.Background(), read, question, set, ids(set))); d != "" {
			t.Fatalf("the second time:\n%s", d)
		}
	})
}

// A document contradicts itself by an amount. By a denial it speaks of two cases.
func TestContradictionsOfOneSource(t *testing.T) {
	for text, want := range map[string]int{
		"The bridge across the river Aare is 120 metres long. The bridge across the river Aare is 180 metres long.": 1,
		"Garlic keeps deer away from vegetable gardens. Garlic does not keep deer away from vegetable gardens.":     0,
	} {
		set := &evidence.Set{}
		addPage(set, "a.md", "", text)
		if got := find("", set); len(got) != want {
			t.Errorf("%q contradicts itself %d times, want %d", text, len(got), want)
		}
	}
}

// The title of a document does not make all that it says bear on the question.
func TestContradictionsUnderATitle(t *testing.T) {
	for question, want := range map[string]int{"What licence does Lamplight have?": 0, "How long does Lamplight take to render?": 1} {
		set := &evidence.Set{}
		addPage(set, "a.md", "Lamplight", "# Lamplight\n\nThe licence is MIT.\n\n## Speed\n\nThe average time to render a page is 44 seconds.\n\nThe average time to render a page is 61 seconds.")
		if got := find(question, set); len(got) != want {
			t.Errorf("%s: %d contradictions, want %d: %+v", question, len(got), want, got)
		}
	}
}

// BenchmarkContradictions compares as many sentences as are compared at most.
func BenchmarkContradictions(b *testing.B) {
	set := &evidence.Set{}
	for i := range statementCap {
		addPage(set, strconv.Itoa(i), "", lead+fmt.Sprintf("The town hall of Ardmoor was founded by the monks of Penfold in %d, as the annals of Kirkshire have it, and has stood there ever since.", 1000+i%1000))
	}
	for b.Loop() {
		find("When was Ardmoor founded?", set)
	}
}

func addPage(set *evidence.Set, locator, title, text string) {
	set.Add(fetch.Page{Locator: locator, Title: title, Text: blob.Of([]byte(text))}, text)
}

// find is Find without a reader.
func find(question string, set *evidence.Set) []marchwarden.Contradiction {
	return Contradictions(context.Background(), nil, question, set, ids(set))
}
