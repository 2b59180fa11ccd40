package lexicon

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Each case is a text whose sentences are separated by ‖ in the first column of
// the test; the marks are removed to make the text.
var sentenceCases = []string{
	// plain
	"One. ‖Two! ‖Three? ‖Four",
	"It rained.  ‖We left.",
	"no punctuation at all here",
	// titles and abbreviations
	"Dr. Smith met Mrs. Jones and Prof. Lee. ‖They talked.",
	"Mr. and Mrs. Brown went home.",
	"See e.g. this one, i.e. the first. ‖Then stop.",
	"Fruits, e.g. Apples, are sold.",
	"It weighs approx. 5 kg. ‖It is heavy.",
	"See No. 5 and Nos. 6 and 7. ‖Go.",
	"He said no. ‖She left.",
	"Was it No. 5? ‖Yes.",
	"It is 3.5 m. long.",
	"The soil has a pH of 5.5. ‖Blueberries like it.",
	"The pole is 3.5 m. ‖The flag is 2 m. ‖Both are red.",
	"He is 5 ft. 6 in. tall.",
	"See Fig. 3 and Sec. 4.2 for details.",
	"It is a work of art. ‖It hangs in Rome.",
	"They live on Main St. near St. Louis.",
	"The shop is on Main St. ‖The owner is old.",
	"Roe v. Wade was decided in 1973. ‖It was overturned.",
	"Smith et al. (2010) agree. ‖Jones et al. ‖The rest disagree.",
	"Apples, pears, etc. are fruit.",
	"He joined Apple Inc. in 1997. ‖Microsoft Corp. bought it. ‖It was sold by Acme Co. ‖The price was low.",
	"On Jan. 5 and Sept. 11, 2001, it snowed.",
	"Martin Luther King Jr. was born in Atlanta. ‖His father was Martin Luther King Sr. ‖He was a pastor.",
	"Gen. Grant and Lt. Col. Custer met. ‖Sen. Smith did not.",
	// initials and acronyms
	"J. R. R. Tolkien wrote it. ‖J.R.R. Tolkien did.",
	"George W. Bush won. ‖John F. Kennedy too.",
	"The book by J. Smith is good.",
	"The U.S. Army came. ‖The U.K. did not.",
	"He lives in the U.S. ‖The army came.",
	"He moved to the U.S. in 1990. ‖He stayed.",
	"She has a Ph.D. from M.I.T. and is a Dr. of science.",
	"It was in 44 B.C. ‖The consul died.",
	"They met at 5 p.m. on Monday. ‖They left at 6 p.m. ‖Police came at 7 a.m. EST that day.",
	"Oranges have vitamin C. ‖Lemons do too.",
	"He fought in World War I. ‖Germany lost.",
	"It was Plan B. ‖It failed.",
	"So did I. ‖Then we left.",
	"K. He, X. Zhang and J. Sun wrote the paper.",
	"It is by K. He, X. Zhang and J. Sun. ‖They won.",
	"E. coli is a bacterium. ‖It lives in the gut.",
	"Washington, D.C. is the capital.",
	// numbers
	"It cost $3.50 in 1990. ‖It costs $7 now.",
	"The value is 3.14. ‖5 people know it.",
	"Version 2.0.1 was out. ‖Version 3 was not.",
	"The score was 5. ‖The rest lost.",
	// quotes and brackets
	"He said \"Stop.\" ‖She did not.",
	"He said “Stop.” ‖She did not.",
	"\"Why?\" he asked. ‖\"Because.\"",
	"“Is it true?” Smith asked. ‖Nobody knew.",
	"“Is it true?” ‖Nobody knew.",
	"(It was late.) ‖They slept.",
	"It ended (see the note). ‖Next came more.",
	"It ended. ‖(See the note.) ‖More came.",
	"It ended. ‖\"More came,\" he said.",
	"It was 'good.' ‖They went.",
	"The end.[12] ‖The next.[3][4] ‖The last.[citation needed]",
	"The end.[12]‖The next.",
	"The end. [12] ‖The next one.",
	"The end.² ‖The next.",
	"He said [...] that it works. ‖It does.",
	"That (!) is odd. ‖And that (?) too.",
	"It moves.:19-1 ‖It stops.",
	"He called it `` a failure . '' ‖Then he left . ‖It is owned by Sweet Frog , LLC . ‖Customers like it .",
	"The sonata D. 840 is unfinished. ‖Nobody knows why.",
	"The bottom line ( see below . ) ‖It is good .",
	// marks
	"What?! ‖No!!! ‖Well... ‖Maybe.",
	"Well... maybe. ‖And so… it goes. ‖Wait… ‖Then go.",
	"I wonder. . . if it works. ‖Yes.",
	"Yahoo! is a company. ‖He works at Yahoo! Inc. now.",
	"Who? ‖What? ‖Where?",
	"Visit example.com or www.foo.org/bar.html today. ‖Use Node.js there.",
	"The space was lost here.‖The next goes on.",
	"call fmt.Println here and strings.Builder there",
	"iPhone sales rose. ‖iPhone 15 sold well. ‖mRNA is a molecule.",
	// items
	"1. Wash the rice. ‖Then dry it.\n‖2. Cook it.\n‖3. Eat",
	"- apples\n‖- pears\n‖- plums",
	"• apples are red. ‖They are good.\n‖• pears",
	"a) first\n‖b) second\n‖(c) third",
	"* one\n  goes on here\n‖* two",
	// headings and lines
	"A Heading\n\n‖The text follows. ‖It is long.",
	"A Heading\n‖The text follows right under it. ‖It is long.",
	"# Crops. And more\n‖Text here.",
	"First line\n‖Second line\n‖Third line",
	"Name | Age\n‖Ann | 5\n‖Bob | 6",
	// wrapped
	"This paragraph was wrapped by hand at a width of about sixty\ncharacters, and its sentences run over the line ends. ‖The next\nsentence does so too, and here it ends.",
	"This paragraph was wrapped by hand at a width of about sixty\nCharacters called Bob, and its sentences run over the ends of\nthe lines. ‖Here it ends in the year that came after, which was\n1990. ‖Then it stopped.",
	"It is a line that goes on and on until it is cut\nin the middle of the sentence.",
	"Part A\n‖1. Wash it.\n‖2. Dry it.",
	"(a) You must give any other recipients of the Work or\n    Derivative Works a copy of this License; and",
	// other scripts
	"今日は雨です。‖明日は晴れ！‖本当？‖はい。",
	"他说：“你好。”‖然后走了。",
	"「行こう。」と彼は言った。‖終わり。",
	"यह एक वाक्य है। ‖यह दूसरा है।",
	"هل هذا صحيح؟ ‖نعم.",
	// white space
	"  One.\t‖Two.\r\n\r\n‖Three.\f‖Four.\u2029‖Five.",
	"",
	" \n\t ",
}

func TestSentences(t *testing.T) {
	for _, c := range sentenceCases {
		text := strings.ReplaceAll(c, "‖", "")
		var want, got []string
		for part := range strings.SplitSeq(c, "‖") {
			if part = strings.TrimSpace(part); part != "" {
				want = append(want, part)
			}
		}
		for _, s := range Sentences(text) {
			got = append(got, text[s.Start:s.End])
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

// checkSpans fails unless spans are in order, trimmed, on rune boundaries and
// cover every byte that is neither white space nor a sign of quoted mail.
func checkSpans(t interface{ Fatalf(string, ...any) }, s string, spans []Span) {
	at := 0
	for _, sp := range spans {
		if sp.Start < at || sp.End <= sp.Start || sp.End > len(s) {
			t.Fatalf("span %v after %d in %q", sp, at, s)
		}
		if strings.TrimSpace(strings.ReplaceAll(s[at:sp.Start], ">", "")) != "" {
			t.Fatalf("bytes %d to %d of %q are in no span", at, sp.Start, s)
		}
		if strings.TrimSpace(s[sp.Start:sp.End]) != s[sp.Start:sp.End] {
			t.Fatalf("span %v of %q is not trimmed", sp, s)
		}
		if utf8.ValidString(s) && !utf8.ValidString(s[sp.Start:sp.End]) {
			t.Fatalf("span %v of %q cuts a character", sp, s)
		}
		at = sp.End
	}
	if strings.TrimSpace(strings.ReplaceAll(s[at:], ">", "")) != "" {
		t.Fatalf("bytes from %d of %q are in no span", at, s)
	}
}

// document draws texts made of the pieces that make cutting hard.
func document() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"The", "garden", "Dr.", "U.S.", "3.5", "1990", "e.g.", "J.", "\n", "\n\n", "\r\n", "\t", " ", "  ", ". ", ".", "!", "?", "…", "...",
		"\"", "”", "“", ")", "(", "[12]", "[", "]", "- ", "1. ", "• ", "# ", "。", "日本", "é", "e\u0301", "\u00a0", "\u2028", "\f", "|", " | ", ",", ":",
		"\xff", "No", "St", "etc", "iPhone", "'s", "’", "²", "a)", "Yahoo!",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), rapid.SampledFrom([]string{"", " "}).Draw(t, "glue"))
	})
}

func TestSpansCoverText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := document().Draw(t, "text")
		checkSpans(t, s, Sentences(s))
		var spans []Span
		for _, p := range Paragraphs(s) {
			spans = append(spans, p.Span)
			checkSpans(t, s[p.Start:p.End], shift(p.Sentences, -p.Start))
		}
		checkSpans(t, s, spans)
	})
}

func shift(spans []Span, by int) []Span {
	out := make([]Span, len(spans))
	for i, s := range spans {
		out[i] = Span{s.Start + by, s.End + by}
	}
	return out
}

// FuzzSplit holds the cutting of text to its promises on any bytes.
func FuzzSplit(f *testing.F) {
	for _, c := range sentenceCases {
		f.Add(strings.ReplaceAll(c, "‖", ""))
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkSpans(t, s, Sentences(s))
		for _, p := range Paragraphs(s) {
			checkSpans(t, s[p.Start:p.End], shift(p.Sentences, -p.Start))
		}
	})
}

func TestParagraphKinds(t *testing.T) {
	text := "Gardening in Utah\n\nUtah is dry.\n\nCrops by season:\n\n- beans\n- corn\n\n2. Water\n\nWater early. It is hot.\nSoils\nSoils are alkaline here.\n\nHome\nAbout\nContact\n\nThe end"
	type row struct {
		Text  string
		Kind  Kind
		Block int
	}
	want := []row{
		{"Gardening in Utah", Heading, 0},
		{"Utah is dry.", Prose, 1},
		{"Crops by season:", Heading, 2},
		{"- beans", Item, 3}, {"- corn", Item, 3},
		{"2. Water", Heading, 4},
		{"Water early. It is hot.", Prose, 5}, {"Soils", Heading, 5}, {"Soils are alkaline here.", Prose, 5},
		{"Home", Line, 6}, {"About", Line, 6}, {"Contact", Line, 6},
		{"The end", Prose, 7},
	}
	var got []row
	for _, p := range Paragraphs(text) {
		got = append(got, row{text[p.Start:p.End], p.Kind, p.Block})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("paragraphs (-want +got):\n%s", d)
	}
}

func TestLongTextsAreLinear(t *testing.T) {
	for name, unit := range map[string]string{
		"letters": "a", "stops": ".", "quotes": "\"", "open": "[", "stop and bracket": ".[", "lines": "a\n", "items": "- a\n", "dots": ". ", "capitals": "A. ",
		"spaces": " ", "wide": "。", "questions": "?\" A ", "rows": "a | b\n", "numbers": "1\n", "closers": ")", "brackets": "]", "initials": "(((a.b ",
	} {
		s := strings.Repeat(unit, 1<<18/len(unit))
		if spans := Sentences(s); len(spans) == 0 && strings.TrimSpace(s) != "" {
			t.Errorf("%s: no sentences", name)
		}
	}
}

func BenchmarkSentences(b *testing.B) {
	var sb strings.Builder
	for sb.Len() < 1<<20 {
		for _, c := range sentenceCases {
			sb.WriteString(strings.ReplaceAll(c, "‖", ""))
			sb.WriteString("\n\n")
		}
	}
	b.SetBytes(int64(sb.Len()))
	for b.Loop() {
		Sentences(sb.String())
	}
}

// Signs of quoted mail are no part of a sentence; a sign that compares is.
func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"> The gate is open.": "The gate is open.", ">> The gate is open.": "The gate is open.", "> 5 % of it is lost.": "> 5 % of it is lost.", ">> 5 people came.": "5 people came.",
	} {
		var got []string
		for _, sp := range Sentences(text) {
			got = append(got, text[sp.Start:sp.End])
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q is cut into %q", text, got)
		}
	}
}
