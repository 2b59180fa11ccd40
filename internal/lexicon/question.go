package lexicon

// This part reads a question by rule: what kind of answer it asks for, its words and how
// much hangs on each, the names in it, and the parts it falls into. It looks at nothing
// but the question and the context it is asked in, and finds no answers.

import (
	"regexp"
	"slices"
	"strings"
)

// Term is one content word of the question.
type Term struct {
	Stem   string
	Text   string
	Weight float64 // how much of the question hangs on it, before rarity
	Name   bool    // part of a proper name
	Number bool
}

// Part is one thing that is asked. A plain question has exactly one part.
type Part struct {
	Label string // for people
	Query string // for the engine
	Stems []string
	// Subject holds stems that a part without a subject of its own has from the
	// first part; what answers it must be about them.
	Subject []string
}

// Question is what the words of a request ask for.
type Question struct {
	Topic   string // as it was asked, for people
	Text    string // the same without addresses, whose words ask for nothing
	Kind    QuestionKind
	Asked   string // stem of X in "What is the X of Y"; "" if none
	Terms   []Term // each once, in order of appearance
	Parts   []Part
	Names   []string
	Phrases []string        // quoted
	Broad   bool            // asks for an overview rather than a fact
	Known   map[string]bool // sentences of the context, folded
	Given   []string        // names in the context that the question lacks
}

// ReadQuestion reads a question in the context it is asked in. It takes any text and
// never fails; a text without a word that could be searched for has no terms.
func ReadQuestion(text, context string) Question {
	q := Question{
		Topic: strings.TrimSpace(unlabelled(text)), Text: strings.TrimSpace(unlabelled(unaddressed(text))),
		Known: map[string]bool{},
	}
	toks := Tokens(q.Text)
	first := firstClause(q.Text)
	q.Kind, q.Asked = kindOf(Tokens(first)), attribute(first)
	if differ.MatchString(q.Text) {
		q.Kind = AskCompare
	}
	q.Names = questionNames(q.Text, toks)
	q.addTerms(toks)
	q.Parts = partsOf(q, q.Text)
	for _, m := range quoted.FindAllStringSubmatch(q.Text, -1) {
		q.Phrases = append(q.Phrases, m[1])
	}
	q.Broad = len(q.Parts) > 1 || q.Kind == AskCompare || slices.ContainsFunc(q.Terms, func(t Term) bool { return Vague(t.Stem) && !t.Name })
	q.Given = slices.DeleteFunc(Names(unaddressed(context)), func(n string) bool { return slices.Contains(q.Names, n) })
	for _, sp := range Sentences(context) {
		q.Known[Plain(context[sp.Start:sp.End])] = true
	}
	return q
}

// Has reports whether a stem is one of the question's terms.
func (q *Question) Has(stem string) bool {
	return slices.ContainsFunc(q.Terms, func(t Term) bool { return t.Stem == stem })
}

// located is a web address, or that of a file, with the quotes around it. The mark
// that ends a sentence is not part of it.
var located = regexp.MustCompile(`(?i)["“”]\s*` + bareAddress + `\s*["“”]|\b` + bareAddress)

const bareAddress = `(?:https?|ftps?|file)://[^\s<>"“”]*[^\s<>"“”.,;:!?)\]}'’]`

// unaddressed is a text without its addresses: they say where to look, and the
// loop reads them; a source that answers need not hold their words.
func unaddressed(text string) string { return located.ReplaceAllString(text, " ") }

// label is a number that counts questions rather than asks: "… in Utah? no. 4".
var label = regexp.MustCompile(`(?i)\?\s*[(\[#,;:-]*\s*(?:(?:number|no|nr|question|version|try|part)\b[.:]?\s*)?#?\d{1,6}[)\].]*\s*$`)

func unlabelled(text string) string { return label.ReplaceAllString(text, "?") }

func firstClause(text string) string {
	for _, c := range splitClauses(text) {
		if len(newPart(c).Stems) > 0 {
			return c
		}
	}
	return text
}

// questionNames are runs of capitalised words. In a question written wholly in
// capitals or in title case nothing stands out, so it has no names.
func questionNames(text string, toks []Token) []string {
	capitals, content := 0, 0
	for _, t := range toks {
		if t.Stop || t.Number {
			continue
		}
		content++
		if t.Capital {
			capitals++
		}
	}
	if content > 3 && capitals == content {
		return nil
	}
	var names []string
	for i := 0; i < len(toks); i++ {
		if !toks[i].Capital || toks[i].Stop || (i == 0 && Light(toks[i].Stem)) {
			continue
		}
		j := i
		for j+1 < len(toks) && toks[j+1].Capital && !toks[j+1].Stop && strings.TrimSpace(text[toks[j].End:toks[j+1].Start]) == "" {
			j++
		}
		if i == 0 && j == 0 && len(toks) > 1 { // a first word is a capital anyway
			continue
		}
		if n := text[toks[i].Start:toks[j].End]; !slices.Contains(names, n) {
			names = append(names, n)
		}
		i = j
	}
	return names
}

func (q *Question) addTerms(toks []Token) {
	inName := map[string]bool{}
	for _, n := range q.Names {
		for _, t := range Tokens(n) {
			inName[t.Stem] = true
		}
	}
	for i, t := range toks {
		asks := questionWord[strings.ToLower(t.Text)] || strings.EqualFold(WordAt(toks, i-1), "how") && degreeWord[strings.ToLower(t.Text)]
		if t.Stop || asks || q.Has(t.Stem) {
			continue
		}
		w := 1.0
		switch {
		case inName[t.Stem]:
			w = 1.3
		case t.Number && strings.EqualFold(WordAt(toks, i-1), "number"): // "number 4" may be a label
			w = 0.35
		case t.Number:
			w = 1.3
		case Light(t.Stem):
			w = 0.35
		case Vague(t.Stem):
			w = 0.6
		}
		q.Terms = append(q.Terms, Term{Stem: t.Stem, Text: t.Text, Weight: w, Name: inName[t.Stem], Number: t.Number && w > 1})
	}
}

// Plain is a sentence for comparison: its words in lower case, single-spaced.
func Plain(s string) string {
	toks := Tokens(s)
	words := make([]string, len(toks))
	for i, t := range toks {
		words[i] = strings.ToLower(t.Text)
	}
	return strings.Join(words, " ")
}

// Words is the question without the words that only ask, unless nothing
// else is in it.
func (q *Question) Words() string {
	var words, all []string
	for _, t := range q.Terms {
		all = append(all, t.Text)
		if !Light(t.Stem) || t.Name {
			words = append(words, t.Text)
		}
	}
	if len(words) < 2 {
		words = all
	}
	return strings.Join(words, " ")
}

// QuestionKind is what sort of answer a question asks for: one of those below, or else its
// question word.
type QuestionKind string

// The kinds that are answered in their own way.
const (
	AskWhat    QuestionKind = "what" // also a question without a question word
	AskWhen    QuestionKind = "when"
	AskYesNo   QuestionKind = "yes or no"
	AskList    QuestionKind = "list"
	AskCompare QuestionKind = "comparison"
	AskDefine  QuestionKind = "definition"
	AskHowTo   QuestionKind = "how to" // for a way to do something
)

// kindOf reads the question words. Words before them ("In what year") do not
// matter; a question without any is read by its first word.
func kindOf(toks []Token) QuestionKind {
	for i, t := range toks {
		switch w := strings.ToLower(t.Text); w {
		case "who", "whom", "whose", "when", "where", "why", "how":
			if w == "how" && howTo(WordAt(toks, i+1), WordAt(toks, i+2)) {
				return AskHowTo
			}
			return QuestionKind(w)
		case "what", "which":
			if i > 4 && i < len(toks)-1 && w == "which" { // a relative clause rather than the question
				continue
			}
			return whatKind(toks[i:])
		case "compare", "contrast", "difference", "versus":
			return AskCompare
		case "list", "name", "enumerate":
			if i == 0 {
				return AskList
			}
		}
	}
	switch first := strings.ToLower(WordAt(toks, 0)); {
	case yesOrNo[first]:
		return AskYesNo
	case first == "define", first == "definition", first == "meaning":
		return AskDefine
	}
	return AskWhat
}

// howTo reports by the two words after "how" that a way to do something is asked for: "how do I",
// "how can we", "how to".
func howTo(verb, who string) bool {
	switch strings.ToLower(verb) {
	case "to":
		return true
	case "do", "can", "could", "should", "would":
		return slices.Contains([]string{"i", "we", "you", "one"}, strings.ToLower(who))
	}
	return false
}

// whatKind reads a question from its "what" or "which" on.
func whatKind(toks []Token) QuestionKind {
	rest := toks[min(2, len(toks)):]
	of := slices.ContainsFunc(rest[:min(4, len(rest))], func(t Token) bool { return strings.EqualFold(t.Text, "of") })
	verb := strings.ToLower(WordAt(toks, 1))
	switch {
	case (verb == "is" || verb == "are") && !of && contentCount(rest) <= 2:
		return AskDefine
	case verb == "are" || verb == "were":
		return AskList
	}
	return QuestionKind(strings.ToLower(toks[0].Text))
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
	toks := Tokens(m[1])
	if len(toks) == 0 || contentCount(toks) < len(toks) {
		return ""
	}
	t := toks[len(toks)-1]
	if t.Number || Light(t.Stem) || t.Capital && strings.ToUpper(t.Text) != t.Text {
		return ""
	}
	return t.Stem
}

func contentCount(toks []Token) int {
	n := 0
	for _, t := range toks {
		if !t.Stop {
			n++
		}
	}
	return n
}

// WordAt is the text of the token at i, or "" where there is none.
func WordAt(toks []Token, i int) string {
	if i < 0 || i >= len(toks) {
		return ""
	}
	return toks[i].Text
}

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
