package drift

import (
	"slices"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

const (
	// alike is the least share of words that two passages have in common if one is a
	// wording of the other.
	alike = 0.5
	// maxPlaces is at how many places of a page a passage is tried.
	maxPlaces = 8
)

// Quote is what a citation says to stand in its source.
func Quote(c marchwarden.Citation) string {
	return strings.TrimSpace(strings.TrimSuffix(c.RawExcerpt, marchwarden.ExcerptCut))
}

// stands reports whether an excerpt stands in a text, as evidence.Locate finds it
// and so that no word and no number goes on beyond its ends: "10" does not stand in
// "100" nor in "10.5". With inside, an end within a word will do.
func stands(text, excerpt string, inside bool) bool {
	from := 0
	for range maxPlaces {
		span, ok := evidence.Locate(text[from:], excerpt)
		if !ok {
			return false
		}
		span.Start, span.End = span.Start+from, span.End+from
		if inside || whole(text, span) {
			return true
		}
		from = span.End
	}
	return false
}

// whole reports whether no word and no number goes on beyond the ends of a span. A point
// or comma between digits belongs to their number.
func whole(s string, span marchwarden.Span) bool {
	among := func(i int, set string) bool { return i >= 0 && i < len(s) && strings.IndexByte(set, s[i]) >= 0 }
	number := func(i int) bool { return among(i-1, digits) && among(i, ".,") && among(i+1, digits) }
	return evidence.WholeWords(s, span) && !number(span.Start-1) && !number(span.End)
}

const digits = "0123456789"

// nearest are the sentences of a text that are most like an excerpt, byte for byte; none
// if too little of it is there. They are found by the words in common, wherever they
// stand and in whatever order.
func nearest(text, excerpt string) (string, bool) {
	own, most := StemsOf(excerpt), len(lexicon.Sentences(excerpt))
	least := min(2, max(1, len(own.Words())))
	sentences := lexicon.Sentences(text)
	best, span := 0.0, lexicon.Span{}
	for i, first := range sentences {
		words := StemsOf(text[first.Start:first.End])
		if own.Like(words, least) == 0 {
			continue
		}
		for j := i; j < min(i+most, len(sentences)); j++ {
			words = append(words, StemsOf(text[sentences[j].Start:sentences[j].End])...)
			slices.Sort(words)
			words = slices.Compact(words)
			if like := own.Like(words, least); like > best {
				best, span = like, lexicon.Span{Start: first.Start, End: sentences[j].End}
			}
		}
	}
	return strings.TrimSpace(text[span.Start:span.End]), best >= alike
}

// Stems are the words that say what a text is about, and its numbers, in order and each once.
type Stems []string

// StemsOf are those of a text.
func StemsOf(text string) Stems {
	var stems Stems
	for _, t := range lexicon.Tokens(text) {
		if !t.Stop {
			stems = append(stems, t.Stem)
		}
	}
	slices.Sort(stems)
	return slices.Compact(stems)
}

// Words are those without the numbers, which are what a text says about what it is about.
func (a Stems) Words() Stems {
	return slices.DeleteFunc(slices.Clone(a), func(stem string) bool { return strings.IndexFunc(stem, unicode.IsDigit) == 0 })
}

// Like is the share of stems that two texts have in common, 0 for fewer than least.
func (a Stems) Like(b Stems, least int) float64 {
	shared := 0
	for _, stem := range a {
		if _, ok := slices.BinarySearch(b, stem); ok {
			shared++
		}
	}
	if shared < least {
		return 0
	}
	return 2 * float64(shared) / float64(len(a)+len(b))
}
