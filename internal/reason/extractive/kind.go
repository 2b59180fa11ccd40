package extractive

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// kind is what sort of answer a question asks for.
type kind string

const (
	kindWho     kind = "who"
	kindWhen    kind = "when"
	kindWhere   kind = "where"
	kindCount   kind = "how many" // a number
	kindAmount  kind = "how much" // a number with a unit
	kindWhich   kind = "which"
	kindWhat    kind = "what"
	kindWhy     kind = "why"
	kindHow     kind = "how"
	kindYesNo   kind = "yes or no"
	kindList    kind = "list"
	kindCompare kind = "comparison"
	kindDefine  kind = "definition"
)

// kindOf reads the question words. Words before them ("In what year") do not
// matter; a question without any is read by its first word.
func kindOf(toks []lexicon.Token) (kind, string) {
	for i, t := range toks {
		w := strings.ToLower(t.Text)
		next := wordAt(toks, i+1)
		switch w {
		case "who", "whom", "whose":
			return kindWho, ""
		case "when":
			return kindWhen, ""
		case "where":
			return kindWhere, ""
		case "why":
			return kindWhy, ""
		case "how":
			return howKind(toks, i)
		case "what", "which":
			if i > 4 && i < len(toks)-1 && w == "which" { // a relative clause rather than the question
				continue
			}
			return whatKind(toks, i, next)
		case "compare", "contrast", "difference", "versus":
			return kindCompare, ""
		case "list", "name", "enumerate":
			if i == 0 {
				return kindList, headNoun(toks, 1)
			}
		}
	}
	switch strings.ToLower(wordAt(toks, 0)) {
	case "is", "are", "was", "were", "do", "does", "did", "can", "could", "should", "will", "would", "has", "have", "had", "may", "must":
		return kindYesNo, ""
	case "define", "definition", "meaning":
		return kindDefine, ""
	}
	return kindList, ""
}

func howKind(toks []lexicon.Token, i int) (kind, string) {
	switch w := strings.ToLower(wordAt(toks, i+1)); {
	case w == "many":
		return kindCount, headNoun(toks, i+2)
	case degreeWord[w]:
		return kindAmount, ""
	}
	return kindHow, ""
}

// focusKinds is what the noun after "what" or "which" asks for. A noun stands in
// one line only.
var focusKinds = func() map[string]kind {
	m := map[string]kind{}
	for _, line := range []struct {
		kind  kind
		words string
	}{
		{kindWhen, "year date day month decade century era"},
		{kindAmount, "percentage percent proportion amount temperature length height distance price cost size speed rate age weight depth width share fraction ratio population value score"},
		{kindCount, "number"},
		{kindWhere, "country city state place region town location continent nation county province river street building island area"},
		{kindWho, "person man woman king queen president author scientist inventor actor singer leader emperor philosopher artist company organization team"},
		{kindWhy, "reason cause"},
	} {
		for _, w := range strings.Fields(line.words) {
			m[lexicon.Stem(w)] = line.kind
		}
	}
	return m
}()

func whatKind(toks []lexicon.Token, i int, next string) (kind, string) {
	switch strings.ToLower(next) {
	case "is", "are", "was", "were", "does", "do", "did":
		if !followedByOf(toks, i+2) && (strings.EqualFold(next, "is") || strings.EqualFold(next, "are")) && contentCount(toks[i+2:]) <= 2 {
			return kindDefine, ""
		}
		if f := headNoun(toks, i+2); f != "" {
			if k, ok := focusKinds[f]; ok && i+2 < len(toks) && followedByOf(toks, i+2) {
				return k, f
			}
		}
		if strings.EqualFold(next, "are") || strings.EqualFold(next, "were") {
			return kindList, ""
		}
		return kindWhat, ""
	}
	f := headNoun(toks, i+1)
	if k, ok := focusKinds[f]; ok {
		return k, f
	}
	if strings.EqualFold(wordAt(toks, i), "which") {
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
	w, before := strings.ToLower(toks[i].Text), strings.ToLower(wordAt(toks, i-1))
	if toks[i].Capital && i > 0 || toks[i].Number {
		return false
	}
	return before == "to" || before == "who" || strings.HasSuffix(w, "ed") || strings.HasSuffix(w, "ing") && before != "the"
}

func wordAt(toks []lexicon.Token, i int) string {
	if i < 0 || i >= len(toks) {
		return ""
	}
	return toks[i].Text
}

// answerType is how far a sentence holds the kind of thing that is asked for,
// beyond what the question itself brings.
func answerType(q *question, s *sentence) float64 {
	switch q.kind {
	case kindWho, kindWhere:
		return newName(q, s)
	case kindWhen:
		return newDate(q, s)
	case kindCount, kindAmount:
		return newNumber(q, s)
	case kindWhy:
		return max(hasAny(s, causal), 0.5*hasAny(s, weakCausal))
	case kindHow:
		return 0.5 + 0.5*hasAny(s, instrumental)
	case kindDefine:
		return defines(q, s)
	case kindList:
		if strings.Count(s.text, ", ") >= 2 && strings.Contains(s.text, " and ") {
			return 1
		}
	}
	return 0.5
}

// Signs of a reason or a means in a sentence. The weak ones stand in many
// sentences that give none.
var (
	causal       = []string{"because", "due to", "since ", "as a result", "in order to", "so that", "caus", "reason", "led to", "therefore", "thus", "result", "owing"}
	weakCausal   = []string{" to ", " for "}
	instrumental = []string{" by ", " through ", " using ", " via ", " with ", " when "}
	months       = stemSet("january february march april may june july august september october november december century spring summer autumn winter decade")
	numberWords  = stemSet("two three four five six seven eight nine ten eleven twelve dozen hundred thousand million billion half third quarter once twice double triple zero twenty thirty forty fifty sixty seventy eighty ninety single one")
)

func hasAny(s *sentence, words []string) float64 {
	low := " " + strings.ToLower(s.text)
	if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) }) {
		return 1
	}
	return 0
}

func inQuestion(q *question, stem string) bool {
	return slices.ContainsFunc(q.terms, func(t term) bool { return t.stem == stem })
}

func newName(q *question, s *sentence) float64 {
	for i, t := range s.toks {
		if t.Capital && !t.Stop && !inQuestion(q, t.Stem) && (i > 0 || len(s.toks) > 1 && s.toks[1].Capital) {
			return 1
		}
	}
	return 0
}

func newDate(q *question, s *sentence) float64 {
	found := 0.0
	for _, t := range s.toks {
		if inQuestion(q, t.Stem) {
			continue
		}
		if y := yearOf(t); y > 0 {
			return 1
		}
		if months[t.Stem] {
			found = max(found, 0.8)
		} else if t.Number {
			found = max(found, 0.5)
		}
	}
	return found
}

// yearOf is the year that a token names, also as "1990s", or 0.
func yearOf(t lexicon.Token) int {
	d := strings.TrimSuffix(t.Text, "s")
	if len(d) != 4 {
		return 0
	}
	y := 0
	for _, c := range []byte(d) {
		if c < '0' || c > '9' {
			return 0
		}
		y = y*10 + int(c-'0')
	}
	if y < 1000 || y > 2100 {
		return 0
	}
	return y
}

func newNumber(q *question, s *sentence) float64 {
	found := 0.0
	for _, t := range s.toks {
		if inQuestion(q, t.Stem) {
			continue
		}
		switch {
		case t.Number && yearOf(t) == 0, numberWords[t.Stem]:
			return 1
		case t.Number:
			found = 0.5
		}
	}
	return found
}

// defines looks for "X is" and "called X", X being the last word of the question.
func defines(q *question, s *sentence) float64 {
	if len(q.terms) == 0 {
		return 0
	}
	for i, t := range s.toks {
		if t.Stem != q.terms[len(q.terms)-1].stem {
			continue
		}
		switch strings.ToLower(wordAt(s.toks, i+1)) {
		case "is", "are", "was", "were", "means", "refers", "mean", "refer":
			if i <= 4 {
				return 1
			}
			return 0.6
		}
		switch strings.ToLower(wordAt(s.toks, i-1)) {
		case "called", "as", "named", "termed":
			return 0.7
		}
	}
	return 0
}

// leaning are first words that point back at an earlier sentence.
var leaning = map[string]bool{"it": true, "they": true, "this": true, "these": true, "he": true, "she": true, "that": true, "those": true, "its": true,
	"their": true, "his": true, "her": true, "such": true, "however": true, "but": true, "also": true, "thus": true, "therefore": true, "instead": true}

func leans(toks []lexicon.Token) bool {
	return len(toks) > 0 && leaning[strings.ToLower(toks[0].Text)]
}

// thin is 1 for what says nothing by itself: a heading, a question, a word or
// two. A line without the end of a sentence, such as an item of a list, and the
// rest of a sentence that was cut, say less than a whole one.
func thin(s *sentence) float64 {
	content := 0
	for _, t := range s.toks {
		if !t.Stop {
			content++
		}
	}
	first, _ := utf8.DecodeRuneInString(s.text)
	switch {
	case content < 2 || content < 3 && !endsSentence(s.text) || strings.HasSuffix(s.text, "?") || strings.HasPrefix(s.text, "#"):
		return 1
	case !endsSentence(s.text) || unicode.IsLower(first):
		return 0.3
	}
	return 0
}

func endsSentence(s string) bool {
	s = strings.TrimRight(s, "\"'”’)]*_ ")
	return s != "" && strings.ContainsRune(".!?…:。", lastRune(s))
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}
