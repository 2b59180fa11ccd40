package run

import (
	"hash/maphash"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

const maxWordsBytes = 2000

// index is the words of texts, as hashes of their stems in ascending order.
type index []uint64

func newIndex(seed maphash.Seed, texts ...string) index {
	var x index
	for _, s := range texts {
		for _, t := range lexicon.Tokens(s) {
			x = append(x, maphash.String(seed, t.Stem))
		}
	}
	slices.Sort(x)
	return slices.Clip(slices.Compact(x))
}

// has reports whether all words are in the index.
func (x index) has(seed maphash.Seed, stems []string) bool {
	return !slices.ContainsFunc(stems, func(stem string) bool {
		_, found := slices.BinarySearch(x, maphash.String(seed, stem))
		return !found
	})
}

// parseWords are the stems of the words that are looked for. Words that are too common to
// tell anything count only if there is nothing else.
func parseWords(s string) (stems []string) {
	var common []string
	for _, t := range lexicon.Tokens(s) {
		if t.Stop {
			common = append(common, t.Stem)
		} else {
			stems = append(stems, t.Stem)
		}
	}
	if len(stems) == 0 {
		return common
	}
	return stems
}
