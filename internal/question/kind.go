package question

import (
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// Kind is what sort of answer a question asks for.
type Kind string

// The kinds.
const (
	Who       Kind = "who"
	When      Kind = "when"
	Where     Kind = "where"
	Count     Kind = "how many" // a number
	Amount    Kind = "how much" // a number with a unit
	Money     Kind = "what price"
	kindWhich Kind = "which"
	kindWhat  Kind = "what"
	Why       Kind = "why"
	How       Kind = "how"
	YesNo     Kind = "yes or no"
	List      Kind = "list"
	Compare   Kind = "comparison"
	Define    Kind = "definition"
)

// kindOf reads the question words. Words before them ("In what year") do not
// matter; a question without any is read by its first word.
func kindOf(toks []lexicon.Token) (Kind, string) {
	for i, t := range toks {
		w := strings.ToLower(t.Text)
		next := WordAt(toks, i+1)
		switch w {
		case "who", "whom", "whose":
			return Who, ""
		case "when":
			return When, ""
		case "where":
			return Where, ""
		case "why":
			return Why, ""
		case "how":
			return howKind(toks, i)
		case "what", "which":
			if i > 4 && i < len(toks)-1 && w == "which" { // a relative clause rather than the question
				continue
			}
			return whatKind(toks, i, next)
		case "compare", "contrast", "difference", "versus":
			return Compare, ""
		case "list", "name", "enumerate":
			if i == 0 {
				return List, headNoun(toks, 1)
			}
		}
	}
	switch strings.ToLower(WordAt(toks, 0)) {
	case "is", "are", "was", "were", "do", "does", "did", "can", "could", "should", "will", "would", "has", "have", "had", "may", "must":
		return YesNo, ""
	case "define", "definition", "meaning":
		return Define, ""
	}
	return kindWhat, ""
}

func howKind(toks []lexicon.Token, i int) (Kind, string) {
	switch w := strings.ToLower(WordAt(toks, i+1)); {
	case w == "many":
		return Count, headNoun(toks, i+2)
	case w == "much" && asksPrice(toks):
		return Money, ""
	case degreeWord[w]:
		return Amount, ""
	}
	return How, ""
}

// priceWords are words of questions about money.
var priceWords = StemSet("cost costs price pay paid spend spent charge money worth fee salary earn revenue fine")

func asksPrice(toks []lexicon.Token) bool {
	return slices.ContainsFunc(toks, func(t lexicon.Token) bool { return priceWords[t.Stem] })
}

// focusKinds is what the noun after "what" or "which" asks for. A noun stands in
// one line only.
var focusKinds = func() map[string]Kind {
	m := map[string]Kind{}
	for _, line := range []struct {
		kind  Kind
		words string
	}{
		{When, "year date day month decade century era"},
		{Amount, "percentage percent proportion amount temperature length height distance size speed rate age weight depth width share fraction ratio population value score"},
		{Money, "price cost salary fee"},
		{Count, "number"},
		{Where, "country city state place region town location continent nation county province river street building island area"},
		{Who, "person man woman king queen president author scientist inventor actor singer leader emperor philosopher artist company organization team"},
		{Why, "reason cause"},
	} {
		for _, w := range strings.Fields(line.words) {
			m[lexicon.Stem(w)] = line.kind
		}
	}
	return m
}()

// Nouns that ask what a word stands for.
var meaning, definition = lexicon.Stem("meaning"), lexicon.Stem("definition")

func whatKind(toks []lexicon.Token, i int, next string) (Kind, string) {
	if last := len(toks) - 1; strings.EqualFold(WordAt(toks, last), "do") && last > i+1 && contentCount(toks[i:]) <= 2 {
		return Define, "" // "What does it do" is answered by what it is
	}
	switch strings.ToLower(next) {
	case "is", "are", "was", "were", "does", "do", "did":
		if !followedByOf(toks, i+2) && (strings.EqualFold(next, "is") || strings.EqualFold(next, "are")) && contentCount(toks[i+2:]) <= 2 {
			return Define, ""
		}
		if f := headNoun(toks, i+2); f != "" {
			if followedByOf(toks, i+2) && (f == meaning || f == definition) {
				return Define, f
			}
			if k, ok := focusKinds[f]; ok && i+2 < len(toks) && followedByOf(toks, i+2) {
				return k, f
			}
		}
		if strings.EqualFold(next, "are") || strings.EqualFold(next, "were") {
			return List, ""
		}
		return kindWhat, ""
	}
	f := headNoun(toks, i+1)
	if k, ok := focusKinds[f]; ok {
		return k, f
	}
	if strings.EqualFold(WordAt(toks, i), "which") {
		return kindWhich, f
	}
	return kindWhat, f
}

// followedByOf reports whether the noun near from is "… of": "What is the
// population of Paris" asks for a number, "What is the state tree" does not.
func followedByOf(toks []lexicon.Token, from int) bool {
	for i := from; i < min(len(toks), from+4); i++ {
		if strings.EqualFold(toks[i].Text, "of") {
			return true
		}
	}
	return false
}

// attribute reads a question that asks for the X of Y, and gives the stems of
// both: "What is the population of Brazil" is answered by no sentence that is
// about Brazil and something else than a population, nor by the reverse.
func attribute(toks []lexicon.Token) (x string, y []string) {
	if len(toks) < 4 {
		return "", nil
	}
	switch strings.ToLower(toks[0].Text + " " + toks[1].Text) {
	case "what is", "what are", "what was", "what were", "who is", "who are", "who was", "who were":
	default:
		return "", nil
	}
	of := slices.IndexFunc(toks, func(t lexicon.Token) bool { return strings.EqualFold(t.Text, "of") })
	if of < 3 || slices.ContainsFunc(toks[3:of], func(t lexicon.Token) bool { return t.Stop }) {
		return "", nil
	}
	t := toks[of-1]
	if t.Stop || t.Number || Light(t.Stem) || t.Capital && strings.ToUpper(t.Text) != t.Text {
		return "", nil
	}
	for _, o := range toks[of+1:] {
		if !o.Stop {
			y = append(y, o.Stem)
		}
	}
	return t.Stem, y
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

// headNoun is the stem of the last content word before the next stop word, or
// of the one before it where that looks like a verb.
func headNoun(toks []lexicon.Token, from int) string {
	head := ""
	for i := min(from, len(toks)); i < len(toks); i++ {
		t := toks[i]
		if t.Stop && head == "" {
			continue
		}
		if t.Stop || head != "" && (looksVerb(toks, i) || strings.HasSuffix(t.Text, "s") && i+1 < len(toks) && !toks[i+1].Stop) {
			break
		}
		head = t.Stem
		if _, ok := focusKinds[head]; ok {
			break
		}
	}
	return head
}

// looksVerb guesses whether the word at i is a verb: an ending that verbs have,
// or its place after "to" or after a question word.
func looksVerb(toks []lexicon.Token, i int) bool {
	w, before := strings.ToLower(toks[i].Text), strings.ToLower(WordAt(toks, i-1))
	if toks[i].Capital && i > 0 || toks[i].Number {
		return false
	}
	return before == "to" || before == "who" || strings.HasSuffix(w, "ed") || strings.HasSuffix(w, "ing") && before != "the"
}

// WordAt is the text of the token at i, or "" where there is none.
func WordAt(toks []lexicon.Token, i int) string {
	if i < 0 || i >= len(toks) {
		return ""
	}
	return toks[i].Text
}
