package extractive

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
)

// answerType is how far a sentence holds the kind of thing that is asked for,
// beyond what the question itself brings.
func answerType(q *question.Question, s *sentence) float64 {
	return answersAs(q.Kind, q, q.Parts[0], s)
}

// answersAs is answerType for one part of a question.
func answersAs(k question.Kind, q *question.Question, p question.Part, s *sentence) float64 {
	switch k {
	case question.Who:
		return newPerson(q, s)
	case question.Where:
		return newName(q, s)
	case question.When:
		return newDate(q, s)
	case question.Count, question.Amount:
		return newNumber(q, s)
	case question.Money:
		return newPrice(q, s)
	case question.Why:
		return max(hasAny(s, causal), 0.5*hasAny(s, weakCausal))
	case question.How:
		return 0.5 + 0.5*hasAny(s, instrumental)
	case question.Define:
		return defines(p, s)
	case question.List:
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
	numberWords  = question.StemSet("two three four five six seven eight nine ten eleven twelve dozen hundred thousand million billion half third quarter once twice double triple zero twenty thirty forty fifty sixty seventy eighty ninety single one")
)

func hasAny(s *sentence, words []string) float64 {
	low := " " + strings.ToLower(s.text)
	if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) }) {
		return 1
	}
	return 0
}

// newPerson is less for a single name, which is more often a place or a title than
// somebody, than for one of several words.
func newPerson(q *question.Question, s *sentence) float64 {
	for i := 1; i < len(s.toks); i++ {
		a, b := s.toks[i-1], s.toks[i]
		if a.Capital && b.Capital && !a.Stop && !b.Stop && !a.Number && !q.Has(a.Stem) && !q.Has(b.Stem) && b.Start == a.End+1 {
			return 1
		}
	}
	return singleName * newName(q, s)
}

// singleName is what a name of one word counts where somebody is asked for.
const singleName = 0.7

func newName(q *question.Question, s *sentence) float64 {
	for i, t := range s.toks {
		if t.Capital && !t.Stop && !q.Has(t.Stem) && (i > 0 || len(s.toks) > 1 && s.toks[1].Capital) {
			return 1
		}
	}
	return 0
}

func newDate(q *question.Question, s *sentence) float64 {
	found := 0.0
	for _, t := range s.toks {
		if q.Has(t.Stem) {
			continue
		}
		if y := yearOf(t); y > 0 && !numbering(s.text, t) {
			return 1
		}
		if question.Months(t.Stem) && (!t.Stop || t.Capital) { // "may" is a verb
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

func newNumber(q *question.Question, s *sentence) float64 {
	found := 0.0
	for i, t := range s.toks {
		if q.Has(t.Stem) {
			continue
		}
		switch {
		case t.Number && yearOf(t) == 0, numberWords[t.Stem]:
			if q.Kind != question.Count || q.Focus == "" {
				return 1
			}
			found = max(found, 0.5, counts(s.toks[i+1:], q.Focus))
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
	currencies = question.StemSet("dollar dollars euro euros pound pounds yen franc francs cent cents usd eur gbp rupee rupees yuan mark marks")
	gratis     = question.StemSet("free nothing gratis")
)

// newPrice looks for a sum of money; another number is hardly an answer.
func newPrice(q *question.Question, s *sentence) float64 {
	if strings.ContainsAny(s.text, "$€£¥") {
		return 1
	}
	for _, t := range s.toks {
		if (currencies[t.Stem] || gratis[t.Stem]) && !q.Has(t.Stem) {
			return 1
		}
	}
	return 0.3 * newNumber(q, s)
}

// defines looks for "X is" at the beginning and for "called X", X being the
// words that are asked about.
func defines(p question.Part, s *sentence) float64 {
	if len(p.Stems) == 0 {
		return 0
	}
	for i, t := range s.toks {
		if t.Stem != p.Stems[len(p.Stems)-1] {
			continue
		}
		switch strings.ToLower(question.WordAt(s.toks, i+1)) {
		case "is", "are", "means", "refers", "mean", "refer":
			return 0.3 + 0.4*early(i) + 0.3*nominal(s.toks, i+2)
		case "was", "were":
			return 0.1 + 0.4*early(i) + 0.3*nominal(s.toks, i+2)
		}
		if i < len(p.Stems)+1 && isVerb(s.toks, i+1) { // "The cache stores …" says what it does
			return 0.5
		}
		switch strings.ToLower(question.WordAt(s.toks, i-1)) {
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
	switch strings.ToLower(question.WordAt(toks, i)) {
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

// overview is the sentence that speaks to the most periods of a question that
// spans several, at least half of them and three, or -1. A reader wants it first.
func (r *reading) overview(order []int) int {
	best, most := -1, max(3, (len(r.q.Parts)+1)/2)
	for _, i := range order {
		n := 0
		for p, part := range r.q.Parts {
			if part.From > 0 && r.partShare(p, i) >= partFloor {
				n++
			}
		}
		if n > most || n == most && best < 0 {
			best, most = i, n
		}
	}
	return best
}

// bestFor is the sentence that answers part p best and is not picked yet, or -1.
func (r *reading) bestFor(p int, order []int, picks []pick) int {
	best, top := -1, 0.0
	for _, i := range order {
		share := r.partShare(p, i)
		if share < partFloor || slices.ContainsFunc(picks, func(k pick) bool { return k.at == i }) {
			continue
		}
		v := share + 0.3*r.sents[i].score + 0.5*answersAs(r.q.Parts[p].Kind, r.q, r.q.Parts[p], &r.sents[i])
		if r.q.Kind != question.Compare && r.answersOther(p, i) {
			v -= otherPart
		}
		if r.q.Kind == question.Compare && r.verbatim(i, r.q.Parts[p].Label) {
			v += 0.3
		}
		if best < 0 || v > top {
			best, top = i, v
		}
	}
	return best
}

// answersOther reports that a sentence has a word that another part alone asks for.
func (r *reading) answersOther(p, i int) bool {
	for t, tm := range r.q.Terms {
		if r.sents[i].own[t] > 0 && !question.Light(tm.Stem) && !slices.Contains(r.q.Parts[p].Stems, tm.Stem) {
			return true
		}
	}
	return false
}

// verbatim reports whether the sentence has the first written word of a label:
// "encoder-only" is two words to a stemmer, one to the reader.
func (r *reading) verbatim(i int, label string) bool {
	words := strings.Fields(strings.ToLower(label))
	return len(words) > 0 && strings.Contains(strings.ToLower(r.sents[i].text), words[0])
}

// partShare is how much of part p the sentence at i speaks to.
func (r *reading) partShare(p, i int) float64 {
	pt, s := r.q.Parts[p], &r.sents[i]
	if !r.about(pt.Subject, s) {
		return 0
	}
	sum, all := 0.0, 0.0
	for t, tm := range r.q.Terms {
		if slices.Contains(pt.Stems, tm.Stem) {
			w := r.idf[t]
			if len(r.q.Parts) > 1 && r.q.OnlyIn(p, tm.Stem) {
				w *= 2.5 // what sets this part apart
			}
			all += w
			sum += w * s.credit[t]
		}
	}
	share := 1.0
	if all > 0 {
		share = sum / all
	}
	if pt.From == 0 {
		return share
	}
	within, years := 0.0, 0.0
	for _, t := range s.toks {
		if y := yearOf(t); y > 0 {
			years++
			if y >= pt.From && y <= pt.To {
				within++
			}
		}
	}
	if within == 0 {
		return 0
	}
	return 0.5 + 0.3*share + 0.2*within/years // a sentence about one period says more of it
}

// about reports that a sentence or what stands around it names a subject.
func (r *reading) about(subject []string, s *sentence) bool {
	sum, all := 0.0, 0.0
	for t, tm := range r.q.Terms {
		if slices.Contains(subject, tm.Stem) {
			all += r.idf[t]
			sum += r.idf[t] * s.credit[t]
		}
	}
	return sum >= creditTitle*all
}

// unanswered are the parts that no pick speaks to.
func (r *reading) unanswered(picks []pick) []int {
	var out []int
	for p := range r.q.Parts {
		if !slices.ContainsFunc(picks, func(k pick) bool { return r.partShare(p, k.at) >= partFloor }) {
			out = append(out, p)
		}
	}
	return out
}
