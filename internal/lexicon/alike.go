package lexicon

import "slices"

// Alike is how well a word of a source stands for a term: 1 for the same stem,
// less for a known alias and for a word of the same family (conquer, conquest).
func Alike(t Term, stem string) float64 {
	switch {
	case t.Stem == stem:
		return 1
	case t.Number:
		return 0
	case aliases[[2]string{t.Stem, stem}], t.Name && misspelt(t.Stem, stem):
		return 0.75
	case sameFamily(t.Stem, stem):
		return 0.7
	}
	return 0
}

// sameFamily compares beginnings: most of the shorter word, and at least five
// letters of it, begin both.
func sameFamily(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 5 || len(b)-len(a) > 4 {
		return false
	}
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n >= 5 && len(a)-n <= 1 && len(b)-n <= 4
}

// misspelt reports that two long words differ by one letter: left out, put in,
// another (also one with an accent), or two in the wrong order.
func misspelt(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) < 6 || len(y)-len(x) > 1 || x[0] != y[0] {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return slices.Equal(x[i:], y[i+1:])
	}
	if i == len(x) || slices.Equal(x[i+1:], y[i+1:]) {
		return true
	}
	return i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
}

// Light reports the stem of a word that questions use to ask rather than to say
// what they are about.
func Light(stem string) bool { return lightWords[stem] }

// Vague reports the stem of a word that asks for an overview.
func Vague(stem string) bool { return vagueWords[stem] }

// PartOfYear reports the stem of a word for a part of the year or a stretch of years.
func PartOfYear(stem string) bool { return timeWords[stem] }
