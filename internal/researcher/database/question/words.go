package question

import (
	_ "embed"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

//go:embed words.txt
var wordsFile string

// What each list holds is said in the file.
var (
	wordLists = lexicon.ReadLists(wordsFile)

	asking       = wordLists.Stems("asking")
	harmless     = wordLists.Words("harmless")
	operators    = wordLists.Words("operators")
	auxiliary    = wordLists.Words("auxiliary")
	asksTruth    = wordLists.Words("asksTruth")
	rowWords     = wordLists.Stems("rowWords")
	tellsNothing = wordLists.Stems("tellsNothing")
	called       = wordLists.Stems("called")
	ordinals     = wordLists.Stems("ordinals")
	ageLike      = wordLists.Stems("ageLike")
	reasonLike   = wordLists.Stems("reasonLike")
	placeLike    = wordLists.Stems("placeLike")
	personLike   = wordLists.Stems("personLike")
)

// comparing are the phrases before, or after, a number that compare with it.
var comparing = func() (out []comparison) {
	for _, name := range []string{"before >=", "before <=", "before >", "before <", "after >=", "after <="} {
		side, op, _ := strings.Cut(name, " ")
		for words := range strings.SplitSeq(wordLists.Of(name), ";") {
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
