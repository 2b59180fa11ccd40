package extractive

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive/answerable"
)

// Two questions are asked of a pair of sentences. May the source of one be cited
// for the other? Only if it says that sentence: see saysSame. And need it be said,
// where the other is? Not if it adds nothing of weight: see repeats. A share of
// common words answers neither: "Harn beat Lowick" and "Lowick beat Harn" have all
// of theirs in common.

// saysSame reports that two sentences are one sentence: the same written words and
// signs in the same order, "the" and the marks around a word aside. A sentence
// that contains the other and more does not count, since the rest may take back
// what it contains. A sentence with a word such as "it" is the same only if the
// one before it is.
func (r *reading) saysSame(a, b int) bool {
	for {
		sa, sb := &r.sents[a], &r.sents[b]
		if a == b {
			return true
		}
		if !slices.Equal(written(sa.text), written(sb.text)) {
			return false
		}
		if !points(sa.toks) {
			return true
		}
		if a, b = sa.prev, sb.prev; a < 0 || b < 0 {
			return false
		}
	}
}

// written are the words of a sentence as they stand, with their signs: "-5", "$5"
// and "C++" keep theirs. The first letter is in lower case, where a sentence has a
// capital whatever its first word is.
func written(text string) []string {
	var out []string
	for _, w := range strings.Fields(flat(text)) {
		w = strings.TrimRight(strings.TrimLeft(w, `"“”([`), `.,;:!"“”)]`)
		if w != "" && w != "the" && (w != "The" || len(out) > 0) {
			out = append(out, strings.ReplaceAll(w, "’", "'"))
		}
	}
	if len(out) > 0 {
		r, n := utf8.DecodeRuneInString(out[0])
		if second, _ := utf8.DecodeRuneInString(out[0][n:]); !unicode.IsUpper(second) {
			out[0] = string(unicode.ToLower(r)) + out[0][n:]
		}
	}
	return out
}

// pointing are words that stand for something outside their sentence.
var pointing = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`it its itself he him his she her hers they them their theirs this these those such here there
		we us our ours i me my mine you your today yesterday tomorrow now both former latter above below same`) {
		m[w] = true
	}
	return m
}()

func points(toks []lexicon.Token) bool {
	return slices.ContainsFunc(toks, func(t lexicon.Token) bool { return pointing[strings.ToLower(t.Text)] && (t.Stop || !t.Capital) }) || leans(toks)
}

// repeats reports that saying both sentences would say one thing twice: most of
// their words are the same, all words of one stand in the other in their order,
// and what the longer one adds is no name, number, denial or word that turns the
// sense. Whatever has a word in the place of another is said beside it: which words
// are opposites, no list tells. Of two sentences in the same words that point at
// something else, the second is said where the one before it can be said too.
func (r *reading) repeats(a, b int) bool {
	sa, sb := &r.sents[a], &r.sents[b]
	if slices.Equal(written(sa.text), written(sb.text)) {
		return !leans(sa.toks) || sa.prev < 0 || sb.prev < 0 || r.saysSame(a, b)
	}
	if r.paraphrases(sa, sb) {
		return true
	}
	switch {
	case r.similar(a, b) < alikeFloor, lexicon.Negated(sa.text) != lexicon.Negated(sb.text), signs(sa.text) != signs(sb.text), points(sa.toks), points(sb.toks):
		return false
	}
	long, short := telling(sa.toks), telling(sb.toks)
	if len(long) < len(short) {
		long, short = short, long
	}
	for _, t := range long {
		if len(short) > 0 && same(t, short[0]) {
			short = short[1:]
		} else if weighs(t) {
			return false
		}
	}
	return len(short) == 0
}

// paraphraseFloor is the cosine from which two sentences may say one thing.
const paraphraseFloor = 0.93

// paraphrases reports two sentences of nearly one meaning with the same names and
// numbers in the same order, neither denied where the other is not, and no word of one
// the opposite or another of the kind of a word of the other. Vectors alone do not tell
// "Harn beat Lowick" from "Lowick beat Harn".
func (r *reading) paraphrases(a, b *sentence) bool {
	if a.vector.Dot(b.vector) < paraphraseFloor || lexicon.Negated(a.text) != lexicon.Negated(b.text) || signs(a.text) != signs(b.text) || points(a.toks) || points(b.toks) {
		return false
	}
	if !slices.EqualFunc(fixed(a.toks), fixed(b.toks), same) {
		return false
	}
	for _, t := range a.toks {
		for _, o := range b.toks {
			if answerable.Opposite(t.Stem, o.Stem) || answerable.Siblings(t.Stem, o.Stem) {
				return false
			}
		}
	}
	return true
}

// fixed are the names and numbers of a sentence, for which there is no other word.
func fixed(toks []lexicon.Token) []lexicon.Token {
	var out []lexicon.Token
	for i, t := range toks {
		if t.Number || numberWords[t.Stem] || t.Capital && i > 0 && !t.Stop {
			out = append(out, t)
		}
	}
	return out
}

// weighs reports a word that makes a sentence another one when it is added.
func weighs(t lexicon.Token) bool {
	word := strings.ToLower(t.Text)
	return t.Number || t.Capital || t.Stop && !joining[word] || numberWords[t.Stem] || answerable.OfAKind(t.Stem) || turning[t.Stem] || strings.HasSuffix(word, "ly")
}

// turning are words that change what the words beside them say, adverbs on -ly aside.
var turning = question.StemSet(`almost alleged anti claim claimed denied deny disputed doubt doubtful ex fail failed fake false fictional former half hoped
	if less likely maybe mock non once planned proposed pseudo quasi rejected reported rumour semi supposed untrue wrong`)

// signs are what a text has beside words that changes their sense: the sign of a
// currency, of a share, of less than nothing.
func signs(text string) string {
	var out []rune
	before := ' '
	for _, r := range text {
		switch {
		case unicode.IsSymbol(r), strings.ContainsRune("%‰/#&", r):
			out = append(out, r)
		case unicode.IsDigit(r) && strings.ContainsRune("-–", before):
			out = append(out, '-')
		}
		before = r
	}
	return string(out)
}

// joining are words that only tie others to a sentence.
var joining = map[string]bool{"of": true, "in": true, "on": true, "at": true, "for": true, "with": true, "to": true, "and": true, "as": true, "that": true, "which": true, "also": true}

// telling are the words of a sentence without its articles. "A" inside a sentence
// is a name, as in "Treatment A".
func telling(toks []lexicon.Token) []lexicon.Token {
	var out []lexicon.Token
	for i, t := range toks {
		switch w := strings.ToLower(t.Text); {
		case w == "the" || w == "an", w == "a" && (i == 0 || !t.Capital), w == "also":
			continue
		}
		out = append(out, t)
	}
	return out
}

// same compares two words as written, their case aside: a stem may be that of two
// words, as of universe and university.
func same(a, b lexicon.Token) bool {
	return strings.EqualFold(a.Text, b.Text) && a.Stop == b.Stop || a.Number && a.Stem == b.Stem
}

// similar is the share of content words two sentences have in common, of the
// longer one.
func (r *reading) similar(a, b int) float64 {
	in := map[int]bool{}
	for k, t := range r.sents[a].toks {
		if !t.Stop {
			in[r.sents[a].ids[k]] = true
		}
	}
	common, other := 0, map[int]bool{}
	for k, t := range r.sents[b].toks {
		id := r.sents[b].ids[k]
		if t.Stop || other[id] {
			continue
		}
		other[id] = true
		if in[id] {
			common++
		}
	}
	return float64(common) / float64(max(1, len(in), len(other)))
}

// opposed reports an antonym, and another word of one kind, in the sentence in
// place of a term that its window lacks.
func (r *reading) opposed(i int, window []float64) (antonym, sibling float64) {
	s := &r.sents[i]
	for t, tm := range r.q.Terms {
		if window[t] > 0 {
			continue
		}
		for _, id := range s.ids {
			stem := r.stems[id]
			if answerable.Opposite(tm.Stem, stem) {
				antonym = 1
			}
			if answerable.Siblings(tm.Stem, stem) && !r.q.Has(stem) {
				sibling = 1
			}
		}
	}
	return antonym, sibling
}

// companion says how likely a sentence of the best one's paragraph belongs into the
// answer: a regression on the sentences that people chose for the answers of CLAPnq,
// with vectors and without.
type companion struct{ bias, first, share, near, length, next, rank float64 }

var (
	companionWords   = companion{bias: -0.96, first: 0.92, share: 1.03, length: 0.66, next: -0.34, rank: -0.76}
	companionVectors = companion{bias: -1.56, first: 0.89, share: 0.95, near: 1.04, length: 0.73, next: -0.32, rank: -0.98}
)

// company adds what else of the best sentence's paragraph belongs into the answer, the
// likeliest first, as many as promise the best balance of what is said in vain and what
// is left out.
func (r *reading) company(picks []pick, best, n int) []pick {
	order := []int{best}
	for i := range r.sents {
		if i != best && r.beside(i, best) && r.sents[i].feat[featThin] < 1 && !r.q.Known[question.Plain(r.sents[i].text)] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order[1:], func(a, b int) int { return cmp.Compare(r.sents[b].score, r.sents[a].score) })
	odds := map[int]float64{}
	for k, i := range order {
		odds[i] = r.belongs(i, best, float64(k)/float64(max(1, len(order)-1)))
	}
	order = r.led(order, odds)
	for _, i := range order[1:balance(order, odds)] {
		if len(picks) >= n {
			break
		}
		picks = r.take(picks, i, -1)
	}
	return picks
}

// led puts the likeliest sentences behind the first, each that leans on another behind
// that one: the two are said together, and are as likely as they are on average.
func (r *reading) led(order []int, odds map[int]float64) []int {
	both := func(i int) float64 {
		if base, ok := odds[r.leansOn(i)]; ok {
			return (odds[i] + min(base, odds[i])) / 2
		}
		return odds[i]
	}
	slices.SortStableFunc(order[1:], func(a, b int) int { return cmp.Compare(both(b), both(a)) })
	var out []int
	for _, i := range order {
		base := r.leansOn(i)
		if _, ok := odds[base]; ok && len(out) > 0 && !slices.Contains(out, base) {
			out = append(out, base)
		}
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// leansOn is the sentence that says who the "it" at the beginning of another one is, or
// -1: the one before it or, where that begins with the same word, the one before both.
func (r *reading) leansOn(i int) int {
	s := &r.sents[i]
	if !leans(s.toks) {
		return -1
	}
	word, at := standsFor[strings.ToLower(s.toks[0].Text)], s.prev
	for word != "" && at >= 0 && len(r.sents[at].toks) > 0 && standsFor[strings.ToLower(r.sents[at].toks[0].Text)] == word {
		at = r.sents[at].prev
	}
	return at
}

// standsFor are the words that a text repeats for one person or thing.
var standsFor = map[string]string{"he": "he", "his": "he", "she": "she", "her": "she", "it": "it", "its": "it", "they": "they", "their": "they"}

// rivals is how many sentences outside the best one's paragraph are to be heard too.
func (r *reading) rivals(order []int, floor float64) (n int) {
	for _, i := range order {
		if r.sents[i].score >= floor*r.sents[order[0]].score && !r.beside(i, order[0]) && !r.strays(i, order[0]) {
			n++
		}
	}
	return n
}

// topicOf is what the title over a sentence holds of the question or, if that is
// nothing, what the heading does.
func (r *reading) topicOf(s *sentence) []float64 {
	held := r.wordsOf(s.source.Page.Title)
	if slices.Max(held) > 0 {
		return held
	}
	return r.wordsOf(s.passage.Heading)
}

// unnamed reports that a word of its document's title is not in a sentence.
func (r *reading) unnamed(s *sentence) bool {
	return slices.ContainsFunc(lexicon.Tokens(s.source.Page.Title), func(t lexicon.Token) bool {
		id, ok := r.vocab[t.Stem]
		return !t.Stop && (!ok || !slices.Contains(s.ids, id))
	})
}

// merge keeps the better of two.
func merge(into, own []float64) {
	for t := range into {
		into[t] = max(into[t], own[t])
	}
}

// beside reports two sentences of one paragraph.
func (r *reading) beside(a, b int) bool {
	return r.sents[a].source == r.sents[b].source && r.sents[a].passage.Paragraph == r.sents[b].passage.Paragraph
}

// belongs is how likely a sentence belongs into an answer with the best one; rank is its
// place by the score in their paragraph, 0 the best and 1 the last.
func (r *reading) belongs(i, best int, rank float64) float64 {
	w := companionWords
	if r.vectors {
		w = companionVectors
	}
	s := &r.sents[i]
	o := w.bias + w.share*s.score/max(r.sents[best].score, 1e-9) + w.near*s.titled + w.length*min(1, float64(len(s.toks))/40) + w.rank*rank
	if s.prev < 0 {
		o += w.first
	}
	if s.next == best || s.prev == best {
		o += w.next
	}
	return 1 / (1 + math.Exp(-o))
}

// balance is how many of the first sentences promise the highest F1; the first of all is
// always said.
func balance(order []int, odds map[int]float64) int {
	all := 0.0
	for _, i := range order {
		all += odds[i]
	}
	count, found, top := 1, 0.0, 0.0
	for k, i := range order {
		if found += odds[i]; found/(1+float64(k)+all) > top {
			count, top = k+1, found/(1+float64(k)+all)
		}
	}
	return count
}
