package drift

import (
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

const (
	// alike is the least share of words, weighed, that two passages have in common
	// if one is a wording of the other.
	alike = 0.5
	// stopWeight is what a word counts that says nothing, beside 1 for one that does.
	stopWeight = 0.25
	// maxPlaces is at how many places of a page a passage is tried.
	maxPlaces = 8
	// maxExtra is how many words are added at an end to complete a sentence, and
	// sentenceBytes how far it is looked for.
	maxExtra, sentenceBytes = 15, 800
)

// Quote is what a citation says to stand in its source.
func Quote(c marchwarden.Citation) string {
	return strings.TrimSpace(strings.TrimSuffix(c.RawExcerpt, marchwarden.ExcerptCut))
}

// stands reports whether an excerpt stands in a text, as evidence.Locate finds it
// and so that no word and no number goes on beyond its ends: "10" does not stand in
// "100" nor in "10.5". With inside, an end within a word will do.
func stands(text, excerpt string, inside bool) bool {
	for from, tries := 0, 0; tries < maxPlaces; tries++ {
		span, ok := evidence.Locate(text[from:], excerpt)
		if !ok {
			return false
		}
		span.Start, span.End = span.Start+from, span.End+from
		word, number := goesOn(text, span)
		if inside || !word && !number {
			return true
		}
		if word && span.Start > from {
			return false // Locate found no whole words anywhere
		}
		from = span.End
	}
	return false
}

// goesOn reports whether a word, or a number, goes on beyond an end of the span. A point
// or comma between digits belongs to their number.
func goesOn(s string, span marchwarden.Span) (word, number bool) {
	before, first := lastTwo(s[:span.Start]), firstTwo(s[span.Start:span.End])
	last, after := lastTwo(s[span.Start:span.End]), firstTwo(s[span.End:])
	word = wordRune(before[1]) && wordRune(first[0]) || wordRune(last[1]) && wordRune(after[0])
	number = unicode.IsDigit(before[0]) && isMark(before[1]) && unicode.IsDigit(first[0]) ||
		unicode.IsDigit(last[1]) && isMark(after[0]) && unicode.IsDigit(after[1])
	return word, number
}

func isMark(r rune) bool { return r == '.' || r == ',' }

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// lastTwo and firstTwo are the characters at the ends of a text, 0 for none.
func lastTwo(s string) (two [2]rune) {
	for i := 1; i >= 0 && s != ""; i-- {
		r, n := utf8.DecodeLastRuneInString(s)
		two[i], s = r, s[:len(s)-n]
	}
	return two
}

func firstTwo(s string) (two [2]rune) {
	for i := 0; i < 2 && s != ""; i++ {
		r, n := utf8.DecodeRuneInString(s)
		two[i], s = r, s[n:]
	}
	return two
}

// nearest is the stretch of text that is most like an excerpt, byte for byte; none
// if too little of it is there. It is found by the words in common, wherever they
// stand and in whatever order.
func nearest(text, excerpt string) (string, bool) {
	v := newVocabulary(excerpt)
	if len(v.excerpt) == 0 {
		return "", false
	}
	words := v.read(text)
	at, ok := v.bestWindow(words)
	if !ok {
		return "", false
	}
	n := len(v.excerpt)
	best := v.tighten(words, part{at, min(at+n, len(words))})
	if v.likeness(words[best.from:best.to]) < alike {
		return "", false
	}
	first, last := words[v.before(text, words, best)], words[v.after(text, words, best)]
	return complete(text, marchwarden.Span{Start: first.start, End: last.end}, excerpt), true
}

// complete widens a span to the sentences that it lies in, at the ends where the
// excerpt ends like a sentence itself and little is missing.
func complete(text string, span marchwarden.Span, excerpt string) string {
	from, to := max(0, span.Start-sentenceBytes), min(len(text), span.End+sentenceBytes)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	first, _ := utf8.DecodeRuneInString(excerpt)
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(excerpt, `"'”’)]»`))
	begins, ends := !unicode.IsLower(first), strings.ContainsRune(".!?…。", last)
	out := span
	for _, p := range lexicon.Paragraphs(text[from:to]) {
		for _, s := range p.Sentences {
			start, end := s.Start+from, s.End+from
			if begins && start < span.Start && span.Start < end && few(text[start:span.Start]) {
				out.Start = start
			}
			if ends && start < span.End && span.End < end && few(text[span.End:end]) {
				out.End = end
			}
		}
	}
	return text[out.Start:out.End]
}

func few(s string) bool { return len(strings.Fields(s)) <= maxExtra }
