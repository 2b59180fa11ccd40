package database

import (
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// What each list holds is said in its file.
var (
	asking       = lexicon.StemSet("table asking")
	harmless     = lexicon.WordSet("table harmless")
	operators    = lexicon.WordSet("table operators")
	auxiliary    = lexicon.WordSet("table auxiliary")
	asksTruth    = lexicon.WordSet("yes or no")
	rowWords     = lexicon.StemSet("table rows")
	tellsNothing = lexicon.StemSet("table plain names")
	called       = lexicon.StemSet("table names")
	ordinals     = lexicon.StemSet("table ordinals")
	ageLike      = lexicon.StemSet("table ages")
	reasonLike   = lexicon.StemSet("table reasons")
	placeLike    = lexicon.StemSet("table places")
	personLike   = lexicon.StemSet("table persons")

	most     = strings.Fields(lexicon.WordList("table most"))
	least    = strings.Fields(lexicon.WordList("table least"))
	more     = strings.Fields(lexicon.WordList("table more"))
	less     = strings.Fields(lexicon.WordList("table less"))
	having   = strings.Fields(lexicon.WordList("table having"))
	distinct = strings.Fields(lexicon.WordList("table distinct"))

	later   = lexicon.WordSet("table after")
	earlier = lexicon.WordSet("table before")
	nearby  = lexicon.WordSet("table between")
)

// synonyms are pairs of stems that may name the same column.
var synonyms = func() map[[2]string]bool {
	out := map[[2]string]bool{}
	for group := range strings.SplitSeq(lexicon.WordList("table synonyms"), ";") {
		words := strings.Fields(group)
		for _, a := range words {
			for _, b := range words {
				out[[2]string{lexicon.Stem(a), lexicon.Stem(b)}] = true
			}
		}
	}
	return out
}()

// comparing are the phrases before, or after, a number that compare with it.
var comparing = func() (out []comparison) {
	for _, name := range []string{"before >=", "before <=", "before >", "before <", "after >=", "after <="} {
		side, op, _ := strings.Cut(name, " ")
		for words := range strings.SplitSeq(lexicon.WordList("table "+name), ";") {
			out = append(out, comparison{strings.TrimSpace(words), op, side == "after"})
		}
	}
	return out
}()

// comparison is a phrase that compares with a number.
type comparison struct {
	words, op string
	after     bool // it follows the number
}
