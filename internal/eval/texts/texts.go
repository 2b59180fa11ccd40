// Package texts measures how well text is taken from pages, cut into excerpts and given
// citations: the suites excerpts, extraction and density. It owns their data's shape and
// their metrics; what is measured is in packages extract, evidence and the mind.
package texts

import (
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// Suites are the suites of this package.
func Suites() []eval.Suite { return []eval.Suite{excerptsSuite(), extractionSuite(), densitySuite()} }

// words are the words of a text in small letters, without punctuation.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// wordF1 compares two texts as bags of words.
func wordF1(want, got string) float64 {
	w, g := words(want), words(got)
	if len(w)+len(g) == 0 {
		return 1
	}
	bag := make(map[string]int, len(w))
	for _, s := range w {
		bag[s]++
	}
	common := 0
	for _, s := range g {
		if bag[s] > 0 {
			bag[s]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(w)+len(g))
}

// part is a share, and 0 of nothing.
func part(n, of float64) float64 {
	if of == 0 {
		return 0
	}
	return n / of
}

// sum adds up a value of rows.
func sum(rows []eval.Row, name string) (total float64, n int) {
	for _, r := range rows {
		if v, ok := r.Values[name]; ok {
			total += v
			n++
		}
	}
	return total, n
}
