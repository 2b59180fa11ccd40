package evidence

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

const garden = `Warm-season crops

Tomatoes need 60 to 80 days. Peppers need warmer soil than tomatoes. Dr. Smith grows both in the U.S. Southwest.

Watering

Water deeply in the morning. Steady watering prevents most blossom-end rot.

Crops for high places:

- kale
- peas
- spinach
`

// page returns a page for a text, with a locator and title.
func page(locator, title, text string) fetch.Page {
	return fetch.Page{Locator: locator, Title: title, Text: blob.Of([]byte(text))}
}

func TestSplit(t *testing.T) {
	type row struct {
		Text, Heading string
		IsHeading     bool
		Paragraph     int
		Sentences     int
	}
	want := []row{
		{"Warm-season crops", "", true, 1, 1},
		{"Tomatoes need 60 to 80 days. Peppers need warmer soil than tomatoes. Dr. Smith grows both in the U.S. Southwest.", "Warm-season crops", false, 2, 3},
		{"Watering", "Warm-season crops", true, 3, 1},
		{"Water deeply in the morning. Steady watering prevents most blossom-end rot.", "Watering", false, 4, 2},
		{"Crops for high places:", "Watering", true, 5, 1},
		{"- kale\n- peas\n- spinach", "Crops for high places:", false, 6, 3},
	}
	var got []row
	for _, p := range Split(garden) {
		got = append(got, row{p.Text, p.Heading, p.IsHeading, p.Paragraph, len(p.Sentences)})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("passages (-want +got):\n%s", d)
	}
}

func TestSplitKeepsSentencesWhole(t *testing.T) {
	sentence := strings.Repeat("word ", 30) + "end. "
	passages := Split(strings.Repeat(strings.ToUpper(sentence[:1])+sentence[1:], 20))
	if len(passages) < 2 {
		t.Errorf("%d passages", len(passages))
	}
	for _, p := range passages {
		if n := utf8.RuneCountInString(p.Text); n > MaxPassageChars || n < MaxPassageChars/2 {
			t.Errorf("passage of %d characters", n)
		}
		if !strings.HasPrefix(p.Text, "Word") || !strings.HasSuffix(p.Text, "end.") {
			t.Errorf("passage %q is not whole sentences", p.Text)
		}
	}
}

func TestSplitCutsLongSentenceAtWords(t *testing.T) {
	text := strings.TrimSpace(strings.Repeat("lengthy ", 300))
	passages := Split(text)
	if len(passages) < 5 {
		t.Fatalf("%d passages", len(passages))
	}
	for _, p := range passages {
		if strings.Trim(p.Text, "lengthy ") != "" || !strings.HasPrefix(p.Text, "lengthy") || !strings.HasSuffix(p.Text, "lengthy") {
			t.Errorf("passage %q is cut within a word", p.Text)
		}
	}
}

// checkPassages fails unless passages keep what Split promises.
func checkPassages(t interface{ Fatalf(string, ...any) }, text string, passages []Passage) {
	at := 0
	for i, p := range passages {
		if p.Index != i+1 || !p.Span.In(len(text)) || p.Span.Start < at {
			t.Fatalf("passage %d has index %d and span %v after %d", i, p.Index, p.Span, at)
		}
		if p.Text != text[p.Span.Start:p.Span.End] {
			t.Fatalf("text of passage %d is not the text at its span", i)
		}
		if utf8.ValidString(text) && !utf8.ValidString(p.Text) {
			t.Fatalf("passage %d cuts a character", i)
		}
		if n := utf8.RuneCountInString(p.Text); n > MaxPassageChars {
			t.Fatalf("passage %d has %d characters", i, n)
		}
		for _, s := range p.Sentences {
			if s.Start < at || !s.In(p.Span.End) || strings.TrimSpace(strings.ReplaceAll(text[at:s.Start], ">", "")) != "" { // but for signs of quoted mail
				t.Fatalf("sentence %v of passage %d leaves out or repeats text after %d", s, i, at)
			}
			at = s.End
		}
		if p.Span.Start != p.Sentences[0].Start || p.Span.End != at {
			t.Fatalf("span of passage %d is not that of its sentences", i)
		}
	}
	if strings.TrimSpace(strings.ReplaceAll(text[at:], ">", "")) != "" {
		t.Fatalf("text from %d on is in no passage", at)
	}
}

// document draws random documents with what makes cutting and matching hard.
func document() *rapid.Generator[string] {
	word := rapid.SampledFrom([]string{
		"The", "garden", "Dr.", "U.S.", "3.5", "1990.", "tomatoes", "ripen.", "“quoted”", "don’t", "it—or", "so…", "café", "cafe\u0301", "co\u00adop",
		"zero\u200bwidth", "naïve", "日本語。", "x\u0301\u0323", "가", "\u1100\u1161", "- item", "# Head", "[12]", "not", strings.Repeat("long", 50), "\u0301", "Å", "−5",
	})
	gap := rapid.SampledFrom([]string{" ", " ", " ", "  ", "\n", "\n\n", "\u00a0", "\t", "", "\u2028", "\r\n"})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(0, 200).Draw(t, "words") {
			b.WriteString(word.Draw(t, "word"))
			b.WriteString(gap.Draw(t, "gap"))
		}
		return b.String()
	})
}

func TestSplitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := document().Draw(t, "text")
		checkPassages(t, text, Split(text))
	})
}

// FuzzSplit holds the passage splitter to its promises on any bytes.
func FuzzSplit(f *testing.F) {
	f.Add(garden)
	f.Add(strings.Repeat("a", 2000))
	f.Add("One. Two.\n\n1. Three\n2. Four\n\xff\xfe e\u0301" + strings.Repeat("\u0301", 600))
	f.Fuzz(func(t *testing.T, text string) {
		checkPassages(t, text, Split(text))
	})
}

func TestSet(t *testing.T) {
	var s Set
	first, added := s.Add(page("a", "Gardens", garden), garden)
	if !added || first.N != 1 {
		t.Fatalf("first source is %+v, %v", first, added)
	}
	for name, p := range map[string]fetch.Page{"locator": page("a", "", "other"), "text": page("b", "", garden)} {
		if src, added := s.Add(p, "other"); added || src != first {
			t.Errorf("a document with the same %s was added", name)
		}
	}
	if _, added := s.Add(fetch.Page{Locator: "picture", NonText: true}, ""); !added {
		t.Error("a document without text was not added")
	}
	if _, added := s.Add(fetch.Page{Locator: "picture 2", NonText: true}, ""); !added {
		t.Error("a second document without text was not added")
	}
	third, _ := s.Add(page("c", "", "Peas like cold."), "Peas like cold.")
	if got := len(s.Sources()); got != 4 || third.N != 4 {
		t.Errorf("%d sources, the last is number %d", got, third.N)
	}
	src, p, ok := s.Passage("S4.1")
	if !ok || src != third || p.Text != "Peas like cold." || p.ID != "S4.1" || p.Source != 4 {
		t.Errorf("S4.1 is %+v, %v", p, ok)
	}
	for _, id := range []ID{"", "S", "S1", "S1.", "S0.1", "S1.0", "S5.1", "S4.2", "S04.1", "s4.1", "S4.1 ", "S4.+1", "S-1.1", "4.1", "S4.1.1", "S99999999999999999999.1"} {
		if _, _, ok := s.Passage(id); ok {
			t.Errorf("id %q was found", id)
		}
	}
	if got, want := len(s.Passages()), len(first.Passages)+1; got != want {
		t.Errorf("%d passages, want %d", got, want)
	}
}

func TestRank(t *testing.T) {
	var s Set
	s.Add(page("a", "Gardens", garden), garden)
	s.Add(page("b", "Tomatoes", "Frost kills plants at night. Cover them early.\n\nNothing else matters here."), "Frost kills plants at night. Cover them early.\n\nNothing else matters here.")
	ranked := s.Rank(lexicon.Terms("How warm a soil do peppers and tomatoes need?"), 0)
	if len(ranked) == 0 || ranked[0].ID != "S1.2" {
		t.Fatalf("ranked %+v", ranked)
	}
	for i, r := range ranked {
		if r.Score <= 0 || i > 0 && r.Score > ranked[i-1].Score {
			t.Errorf("score %d is %v", i, r.Score)
		}
	}
	if got := s.Rank(lexicon.Terms("tomato"), 1); len(got) != 1 || got[0].ID != "S1.2" {
		t.Errorf("a word in the title beats one in the text: %+v", got)
	}
	if got := s.Rank(lexicon.Terms("tomato"), 0); len(got) != 3 {
		t.Errorf("title words do not count: %+v", got)
	}
	for _, none := range [][]string{nil, {}, {"zebra"}, {""}} {
		if got := s.Rank(none, 0); len(got) != 0 {
			t.Errorf("query %q gives %+v", none, got)
		}
	}
	if got := (&Set{}).Rank([]string{"tomato"}, 5); len(got) != 0 {
		t.Errorf("an empty set gives %+v", got)
	}
}

func TestRankPrefersOneSentence(t *testing.T) {
	apart := "Kale likes shade and cold air. Melons want sandy soil."
	same := "Kale likes sandy soil and air. Melons want shade and cold."
	var s Set
	s.Add(page("a", "", apart), apart)
	s.Add(page("b", "", same), same)
	if got := s.Rank(lexicon.Terms("kale soil sandy"), 0); got[0].ID != "S2.1" {
		t.Errorf("ranked %v first", got[0].ID)
	}
}

func TestAround(t *testing.T) {
	passages := Split(garden)
	text := func(s marchwarden.Span) string { return garden[s.Start:s.End] }
	middle := passages[1].Sentences[1]
	for _, c := range []struct {
		max  int
		want string
	}{
		{10, "Peppers need warmer soil than tomatoes."},
		{70, "Tomatoes need 60 to 80 days. Peppers need warmer soil than tomatoes."},
		{500, passages[1].Text},
	} {
		if got := text(Around(garden, passages, middle, c.max)); got != c.want {
			t.Errorf("around %d: %q, want %q", c.max, got, c.want)
		}
	}
	odd := marchwarden.Span{Start: 3, End: 9}
	if got := Around(garden, passages, odd, 500); got != odd {
		t.Errorf("a span that is no sentence became %v", got)
	}
}

func TestExcerpt(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("word ", 200))
	for name, c := range map[string]struct {
		text      string
		chars     int
		cut, ends bool
	}{
		"short":          {"A short text.", 13, false, false},
		"exactly 500":    {strings.Repeat("é", 500), 500, false, false},
		"501":            {strings.Repeat("é", 501), 500, true, false},
		"words":          {words, 500, true, true},
		"no spaces":      {strings.Repeat("語", 700), 500, true, false},
		"combining":      {strings.Repeat("e\u0301", 400), 500, true, false},
		"all marks":      {strings.Repeat("\u0301", 700), 500, true, false},
		"space then run": {"a " + strings.Repeat("b", 700), 500, true, false},
	} {
		span := marchwarden.Span{Start: 0, End: len(c.text)}
		excerpt, used := Excerpt(c.text, span)
		n := utf8.RuneCountInString(excerpt)
		if n > 500 || n < c.chars-10 || !c.cut && n != c.chars {
			t.Errorf("%s: %d characters", name, n)
		}
		want := c.text[used.Start:used.End]
		if c.cut {
			want += marchwarden.ExcerptCut
		}
		if excerpt != want {
			t.Errorf("%s: excerpt is %q", name, excerpt)
		}
		if c.ends && !strings.HasSuffix(excerpt, "word [...]") {
			t.Errorf("%s: ends in %q", name, excerpt[len(excerpt)-15:])
		}
	}
	for _, bad := range []marchwarden.Span{{Start: 0, End: 0}, {Start: -1, End: 2}, {Start: 2, End: 1}, {Start: 0, End: 9}} {
		if excerpt, used := Excerpt("text", bad); excerpt != "" || used != (marchwarden.Span{}) {
			t.Errorf("span %v gives %q", bad, excerpt)
		}
	}
}

// TestEveryExcerptIsStored is the promise that the whole product rests on: what
// is quoted of any document are its bytes at the span that is named.
func TestEveryExcerptIsStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := document().Draw(t, "text")
		var s Set
		src, _ := s.Add(page("a", "", text), text)
		var spans []marchwarden.Span
		for _, p := range src.Passages {
			spans = append(spans, p.Span)
			for _, sentence := range p.Sentences {
				spans = append(spans, sentence, Around(text, src.Passages, sentence, rapid.IntRange(0, 2000).Draw(t, "max")))
			}
		}
		if len(text) > 0 {
			spans = append(spans, marchwarden.Span{Start: 0, End: len(text)})
		}
		for _, span := range spans {
			excerpt, used := Excerpt(text, span)
			if utf8.RuneCountInString(excerpt) > marchwarden.MaxExcerptChars || !utf8.ValidString(excerpt) {
				t.Fatalf("excerpt %q", excerpt)
			}
			if used.Start != span.Start || used.End > span.End {
				t.Fatalf("span %v was cut to %v", span, used)
			}
			want := text[used.Start:used.End]
			if used != span {
				want += marchwarden.ExcerptCut
			}
			if excerpt != want {
				t.Fatalf("excerpt %q is not %q", excerpt, want)
			}
		}
	})
}

// A heading with a sign says its level; one without goes below it, and items under both
// are sentences of their own.
func TestHeadingLevels(t *testing.T) {
	text := "# Changes\n\n## 3.2.1\n\n- Fix the lock\n- Drop two flags\n\nFor users\n\nNothing to do here.\n\nFor packagers\n\nRead the note.\n\n### Known faults\n\n- None yet\n\n## 3.2.0\n\nThe first one.\n"
	var got []string
	for _, p := range Split(text) {
		if !p.IsHeading {
			for _, s := range p.Sentences {
				got = append(got, p.Path+" | "+text[s.Start:s.End])
			}
		}
	}
	want := []string{
		"Changes › 3.2.1 | - Fix the lock", "Changes › 3.2.1 | - Drop two flags",
		"Changes › 3.2.1 › For users | Nothing to do here.", "Changes › 3.2.1 › For packagers | Read the note.",
		"Changes › 3.2.1 › Known faults | - None yet", "Changes › 3.2.0 | The first one.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	src := Source{Text: text, Passages: Split(text)}
	if w := slices.Collect(src.Windows())[0]; w.Text != "Fix the lock\nDrop two flags" {
		t.Errorf("a reader sees %q", w.Text)
	}
}

// A line drawn under a heading says its level, too, and a heading may then have no letter.
func TestUnderlinedHeadings(t *testing.T) {
	text := "Changes\n=======\n\n1.8.0 2024-10-31\n----------------\n\n### Added\n\n- a switch for logs\n\n1.7.0 2023-10-22\n----------------\nNeeds Go 1.17.\n\nname | price\n---- | -----\ntea | 2\n"
	var got []string
	for _, p := range Split(text) {
		if !p.IsHeading {
			got = append(got, p.Path+" | "+p.Text)
		}
	}
	want := []string{"Changes › 1.8.0 2024-10-31 › Added | - a switch for logs", "Changes › 1.7.0 2023-10-22 | Needs Go 1.17.", "Changes › 1.7.0 2023-10-22 | tea | 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// What follows "Q:" stands under it, whether or not it ends like a question.
func TestQuestionsAndAnswers(t *testing.T) {
	ps := Split("Q: The shell says \"event not found\". Nothing helps.\n\nA: Say set +H and add the line to your profile.\n")
	if len(ps) != 2 || !ps[0].IsHeading || ps[1].IsHeading || !strings.Contains(ps[1].Path, "event not found") {
		t.Errorf("got %+v", ps)
	}
}

func TestLead(t *testing.T) {
	const text = "# Flags\n\nFlags are bound to commands. Mark one as required like so:\n\ncmd.MarkFlagRequired(\"region\")\ncmd.Run()\n\nvar done = true;\n\nThen it is.\n\nSet it at once.\n\n$ tool --flag\n\n### More\n\n" +
		"There are two ways of doing it and both of them work:\n\n- one\n- two\n\nMore of them.\n\nThe end:\n\n### Other\n\nlast()\n"
	set := Set{}
	src, _ := set.Add(fetch.Page{Locator: "flags.md"}, text)
	for sentence, want := range map[string]string{
		"Flags are bound to commands.":  "",
		"Mark one as required like so:": "\n\ncmd.MarkFlagRequired(\"region\")\ncmd.Run()\n\nvar done = true;",
		"Then it is.":                   "",
		"Set it at once.":               "\n\n$ tool --flag",
		"There are two ways of doing it and both of them work:": "\n\n- one\n- two",
		"The end:": "", // a heading is below
	} {
		at := strings.Index(text, sentence)
		span := marchwarden.Span{Start: at, End: at + len(sentence)}
		p := slices.IndexFunc(src.Passages, func(p Passage) bool { return p.Span.Start <= span.Start && p.Span.End >= span.End })
		got := src.Lead(&src.Passages[p], span, true, 500)
		if text[span.End:got.End] != want || got.Start != span.Start {
			t.Errorf("%s leads to %q, want %q", sentence, text[span.End:got.End], want)
		}
		if short := src.Lead(&src.Passages[p], span, true, len(sentence)+5); short != span {
			t.Errorf("%s leads to %q in no room", sentence, text[span.End:short.End])
		}
		if got := src.Lead(&src.Passages[p], span, false, 500); (strings.HasSuffix(sentence, ".") || strings.HasPrefix(want, "\n\ncmd")) && got != span {
			t.Errorf("%s leads to code, which is not wanted: %q", sentence, text[span.End:got.End])
		}
	}
}
