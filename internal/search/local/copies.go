package local

import (
	"strings"
	"unicode"
)

// copiesOf tells of each text which one before it says the same: its place, or -1 for
// one that says something new. Two texts say the same if they have the same words and
// numbers in the same order; letter case, marks and white space do not matter. Texts
// without words are never copies.
//
// Texts that are only nearly the same are told apart on purpose: two that differ in one
// number, one name or one "not" may contradict each other, and both are wanted.
func copiesOf(texts []string) []int {
	of := make([]int, len(texts))
	first := map[string]int{} // those that are new, by their words
	for i, t := range texts {
		words := strings.FieldsFunc(strings.ToLower(t), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		of[i] = -1
		if len(words) == 0 {
			continue
		}
		key := strings.Join(words, " ")
		if j, known := first[key]; known {
			of[i] = j
		} else {
			first[key] = i
		}
	}
	return of
}
