package judge

import (
	_ "embed"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

//go:embed words.txt
var wordList string

// english is what the judge knows of words, by their stems: see words.txt.
var english = func() (e struct {
	base     map[string]string  // the stem of the form that dictionaries have
	alike    map[string][]int   // the lines of words that may stand for each other
	opposite map[[2]string]bool // both ways round
	light    map[string]bool
}) {
	e.base, e.alike, e.opposite, e.light = map[string]string{}, map[string][]int{}, map[[2]string]bool{}, map[string]bool{}
	n := 0
	for line := range strings.Lines(wordList) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		one, other, _ := strings.Cut(rest, "|")
		words := strings.Fields(one)
		n++
		for _, w := range words {
			switch s := lexicon.Stem(w); kind {
			case "forms":
				e.base[s] = lexicon.Stem(words[0])
			case "alike":
				e.alike[base(e.base, s)] = append(e.alike[base(e.base, s)], n)
			case "light":
				e.light[base(e.base, s)] = true
			case "opposite":
				for o := range strings.FieldsSeq(other) {
					a, b := base(e.base, s), base(e.base, lexicon.Stem(o))
					e.opposite[[2]string{a, b}], e.opposite[[2]string{b, a}] = true, true
				}
			}
		}
	}
	return e
}()

func base(bases map[string]string, stem string) string {
	if b, ok := bases[stem]; ok {
		return b
	}
	return stem
}

// alike reports that one word may stand for another.
func alike(a, b string) bool {
	a, b = base(english.base, a), base(english.base, b)
	return a == b || slices.ContainsFunc(english.alike[a], func(n int) bool { return slices.Contains(english.alike[b], n) })
}

// opposite reports that one word turns the sense of another.
func opposite(a, b string) bool {
	return english.opposite[[2]string{base(english.base, a), base(english.base, b)}]
}
