package question

import (
	"regexp"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// Kind is what sort of answer a question asks for: one of those below, or else its
// question word.
type Kind string

// The kinds that are answered in their own way.
const (
	What    Kind = "what" // also a question without a question word
	When    Kind = "when"
	YesNo   Kind = "yes or no"
	List    Kind = "list"
	Compare Kind = "comparison"
	Define  Kind = "definition"
)

// kindOf reads the question words. Words before them ("In what year") do not
// matter; a question without any is read by its first word.
func kindOf(toks []lexicon.Token) Kind {
	for i, t := range toks {
		switch w := strings.ToLower(t.Text); w {
		case "who", "whom", "whose", "when", "where", "why", "how":
			return Kind(w)
		case "what", "which":
			if i > 4 && i < len(toks)-1 && w == "which" { // a relative clause rather than the question
				continue
			}
			return whatKind(toks[i:])
		case "compare", "contrast", "difference", "versus":
			return Compare
		case "list", "name", "enumerate":
			if i == 0 {
				return List
			}
		}
	}
	switch strings.ToLower(WordAt(toks, 0)) {
	case "is", "are", "was", "were", "do", "does", "did", "can", "could", "should", "will", "would", "has", "have", "had", "may", "must":
		return YesNo
	case "define", "definition", "meaning":
		return Define
	}
	return What
}

// whatKind reads a question from its "what" or "which" on.
func whatKind(toks []lexicon.Token) Kind {
	rest := toks[min(2, len(toks)):]
	of := slices.ContainsFunc(rest[:min(4, len(rest))], func(t lexicon.Token) bool { return strings.EqualFold(t.Text, "of") })
	verb := strings.ToLower(WordAt(toks, 1))
	switch {
	case (verb == "is" || verb == "are") && !of && contentCount(rest) <= 2:
		return Define
	case verb == "are" || verb == "were":
		return List
	}
	return Kind(strings.ToLower(toks[0].Text))
}

// attributed is a question that asks for the X of Y: "What is the population of Brazil"
// is answered by no sentence that is about Brazil and something else than a population.
var attributed = regexp.MustCompile(`(?i)^(?:what|who) (?:is|are|was|were) (?:the |an? )?([^,;?]+?) of \S`)

// attribute is the stem of X, or nothing where it is a name or only asks.
func attribute(clause string) string {
	m := attributed.FindStringSubmatch(clause)
	if m == nil {
		return ""
	}
	toks := lexicon.Tokens(m[1])
	if len(toks) == 0 || contentCount(toks) < len(toks) {
		return ""
	}
	t := toks[len(toks)-1]
	if t.Number || Light(t.Stem) || t.Capital && strings.ToUpper(t.Text) != t.Text {
		return ""
	}
	return t.Stem
}

func contentCount(toks []lexicon.Token) int {
	n := 0
	for _, t := range toks {
		if !t.Stop {
			n++
		}
	}
	return n
}

// WordAt is the text of the token at i, or "" where there is none.
func WordAt(toks []lexicon.Token, i int) string {
	if i < 0 || i >= len(toks) {
		return ""
	}
	return toks[i].Text
}
