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
	kindMoney   kind = "what price"
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
	case w == "much" && asksPrice(toks):
		return kindMoney, ""
	case degreeWord[w]:
		return kindAmount, ""
	}
	return kindHow, ""
}

// priceWords are words of questions about money.
var priceWords = stemSet("cost costs price pay paid spend spent charge money worth fee salary earn revenue fine")

func asksPrice(toks []lexicon.Token) bool {
	return slices.ContainsFunc(toks, func(t lexicon.Token) bool { return priceWords[t.Stem] })
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
		{kindAmount, "percentage percent proportion amount temperature length height distance size speed rate age weight depth width share fraction ratio population value score"},
		{kindMoney, "price cost salary fee"},
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

// Nouns that ask what a word stands for.
var meaning, definition = lexicon.Stem("meaning"), lexicon.Stem("definition")

func whatKind(toks []lexicon.Token, i int, next string) (kind, string) {
	if last := len(toks) - 1; strings.EqualFold(wordAt(toks, last), "do") && last > i+1 && contentCount(toks[i:]) <= 2 {
		return kindDefine, "" // "What does it do" is answered by what it is
	}
	switch strings.ToLower(next) {
	case "is", "are", "was", "were", "does", "do", "did":
		if !followedByOf(toks, i+2) && (strings.EqualFold(next, "is") || strings.EqualFold(next, "are")) && contentCount(toks[i+2:]) <= 2 {
			return kindDefine, ""
		}
		if f := headNoun(toks, i+2); f != "" {
			if followedByOf(toks, i+2) && (f == meaning || f == definition) {
				return kindDefine, f
			}
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
	if t.Stop || t.Number || lightWords[t.Stem] || t.Capital && strings.ToUpper(t.Text) != t.Text {
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
func answerType(q *question, s *sentence) float64 { return answersAs(q.kind, q, q.parts[0], s) }

// answersAs is answerType for one part of a question.
func answersAs(k kind, q *question, p part, s *sentence) float64 {
	switch k {
	case kindWho, kindWhere:
		return newName(q, s)
	case kindWhen:
		return newDate(q, s)
	case kindCount, kindAmount:
		return newNumber(q, s)
	case kindMoney:
		return newPrice(q, s)
	case kindWhy:
		return max(hasAny(s, causal), 0.5*hasAny(s, weakCausal))
	case kindHow:
		return 0.5 + 0.5*hasAny(s, instrumental)
	case kindDefine:
		return defines(p, s)
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
		if y := yearOf(t); y > 0 && !numbering(s.text, t) {
			return 1
		}
		if months[t.Stem] && (!t.Stop || t.Capital) { // "may" is a verb
			found = max(found, 0.8)
		} else if t.Number {
			found = max(found, 0.3)
		}
	}
	return found
}

// numbering reports that a figure is one half of a number such as 2024/1689.
func numbering(text string, t lexicon.Token) bool {
	return t.End < len(text) && text[t.End] == '/' || t.Start > 0 && text[t.Start-1] == '/'
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
	for i, t := range s.toks {
		if inQuestion(q, t.Stem) {
			continue
		}
		switch {
		case t.Number && yearOf(t) == 0, numberWords[t.Stem]:
			if q.kind != kindCount || q.focus == "" {
				return 1
			}
			found = max(found, 0.5, counts(s.toks[i+1:], q.focus))
		case t.Number:
			found = max(found, 0.5)
		}
	}
	return found
}

// counts is 1 if a noun is the next word after a number ("18 regions"), and less
// if it follows soon ("13 metropolitan regions": not all of them).
func counts(toks []lexicon.Token, noun string) float64 {
	switch i := slices.IndexFunc(toks[:min(3, len(toks))], func(t lexicon.Token) bool { return t.Stem == noun }); i {
	case -1:
		return 0
	case 0:
		return 1
	}
	return 0.7
}

// currencies are words for money; gratis are those that say there is none to pay.
var (
	currencies = stemSet("dollar dollars euro euros pound pounds yen franc francs cent cents usd eur gbp rupee rupees yuan mark marks")
	gratis     = stemSet("free nothing gratis")
)

// newPrice looks for a sum of money; another number is hardly an answer.
func newPrice(q *question, s *sentence) float64 {
	if strings.ContainsAny(s.text, "$€£¥") {
		return 1
	}
	for _, t := range s.toks {
		if (currencies[t.Stem] || gratis[t.Stem]) && !inQuestion(q, t.Stem) {
			return 1
		}
	}
	return 0.3 * newNumber(q, s)
}

// defines looks for "X is" at the beginning and for "called X", X being the
// words that are asked about.
func defines(p part, s *sentence) float64 {
	if len(p.stems) == 0 {
		return 0
	}
	for i, t := range s.toks {
		if t.Stem != p.stems[len(p.stems)-1] {
			continue
		}
		switch strings.ToLower(wordAt(s.toks, i+1)) {
		case "is", "are", "means", "refers", "mean", "refer":
			return 0.3 + 0.4*early(i) + 0.3*nominal(s.toks, i+2)
		case "was", "were":
			return 0.1 + 0.4*early(i) + 0.3*nominal(s.toks, i+2)
		}
		if i < len(p.stems)+1 && isVerb(s.toks, i+1) { // "The cache stores …" says what it does
			return 0.5
		}
		switch strings.ToLower(wordAt(s.toks, i-1)) {
		case "called", "as", "named", "termed":
			return 0.7
		}
	}
	return 0
}

// isVerb guesses that the word at i, after a noun, is a verb in the present.
func isVerb(toks []lexicon.Token, i int) bool {
	return i < len(toks) && !toks[i].Stop && !toks[i].Capital && !toks[i].Number && strings.HasSuffix(toks[i].Text, "s") && !strings.HasSuffix(toks[i].Text, "ss")
}

// early is 1 for a word near the beginning of a sentence, where its subject is.
func early(i int) float64 {
	if i <= 4 {
		return 1
	}
	return 0
}

// nominal is 1 for the words that follow "is" where it says what something is,
// rather than how it is or what is done to it.
func nominal(toks []lexicon.Token, i int) float64 {
	switch strings.ToLower(wordAt(toks, i)) {
	case "a", "an", "the", "one", "any", "to", "that":
		return 1
	}
	if i < len(toks) && toks[i].Capital {
		return 1
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
