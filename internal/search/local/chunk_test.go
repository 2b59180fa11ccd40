package local

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"pgregory.net/rapid"
)

// noSpace is a text without its white space.
func noSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

func TestChunksHoldTheWholeText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.StringMatching(`[a-zé.?]{1,12}`)
		sep := rapid.SampledFrom([]string{" ", " ", " ", ". ", "\n", "\n\n", "\n\n\n"})
		var b strings.Builder
		for range rapid.IntRange(0, 1200).Draw(rt, "words") {
			b.WriteString(word.Draw(rt, "word") + sep.Draw(rt, "sep"))
		}
		text := b.String()
		pieces := chunk(text)
		if noSpace(strings.Join(pieces, "")) != noSpace(text) {
			rt.Fatalf("chunks are not the text")
		}
		for _, p := range pieces {
			if n := utf8.RuneCountInString(p); n == 0 || n > chunkRunes*3/2+200 {
				rt.Fatalf("chunk of %d characters", n)
			}
		}
	})
}

func TestChunkBorders(t *testing.T) {
	long := func(c string) string { return strings.Repeat(c, 600) + "." }
	equal(t, "paragraphs stay whole", chunk(long("a")+"\n\n"+long("b")), []string{long("a"), long("b")})
	equal(t, "a heading goes with its text", chunk(long("a")+"\n\nHeading\n\n"+long("b")), []string{long("a"), "Heading\n\n" + long("b")})
	full := strings.Repeat("word ", 250) + "end."
	equal(t, "so does a title", chunk("What was found out about words.\n\n"+full), []string{"What was found out about words.\n\n" + full})
	equal(t, "no stub is left", chunk(full+"\n\nBy A. Writer\n\nKeywords: words"), []string{full + "\n\nBy A. Writer\n\nKeywords: words"})
	equal(t, "small ones are joined", chunk("a.\n\nb.\n\n\n\nc."), []string{"a.\n\nb.\n\nc."})
	equal(t, "nothing", chunk(" \n\n\n"), []string(nil))
	unbroken := chunk(strings.Repeat("é", 5000))
	equal(t, "no place to cut", len(unbroken), 5)
}

// A table or a log is one paragraph, however long. Cutting it must not look at
// the rest again for every piece: 8 MiB would then take a quarter of a minute,
// inside a write transaction that others wait for.
func TestChunkTimeIsLinear(t *testing.T) {
	text := strings.Repeat("some,values,of,a,table\n", 8<<20/23)
	began := time.Now()
	pieces := chunk(text)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("cutting %d bytes into %d pieces took %v", len(text), len(pieces), took)
	}
	equal(t, "the whole text", noSpace(strings.Join(pieces, "")), noSpace(text))
}

func TestTerms(t *testing.T) {
	for query, want := range map[string][]string{
		"What are ideal crops for a garden in Utah?": {"ideal", "crops", "garden", "utah"},
		"Tomatoes above 6,000 feet":                  {"tomatoes", "6", "000", "6 000", "feet"},
		"don't GPT-4":                                {"gpt", "4", "gpt 4"},
		"to be or not to be":                         {"to", "be", "or", "not"},
		"?!":                                         nil,
	} {
		got, _ := terms(query)
		equal(t, query, got, want)
	}
}

func TestSnippet(t *testing.T) {
	body := strings.Repeat("filler words go here ", 60) + "the tomatoes of Utah ripen late " + strings.Repeat("more of the rest ", 60)
	got := snippet(body, []string{"tomato", "utah", "zebra"})
	if !strings.Contains(got, "tomatoes of Utah") || utf8.RuneCountInString(got) > snippetRunes {
		t.Errorf("snippet %q, want the words in at most %d characters", got, snippetRunes)
	}
	equal(t, "one long word", utf8.RuneCountInString(snippet(strings.Repeat("ü", 900), nil)), snippetRunes)
	equal(t, "empty", snippet("", []string{"x"}), "")
}

func TestNoQueryIsASyntaxError(t *testing.T) {
	ix, f := open(t, ""), tree(t, "a.md", "word")
	update(t, ix, f, newCounter(t))
	e := ix.Engine(nil, f)
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.OneOf(rapid.String(), rapid.StringMatching(`(["*^(){}:+\-]|AND|OR|NOT|NEAR|word| ){0,30}`)).Draw(rt, "query")
		if _, err := e.Search(t.Context(), search.Query{Text: q}); err != nil {
			rt.Fatal(err)
		}
	})
}
