package extractive

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive/answerable"
)

// What Match is computed from. All lie between 0 and 1; "window" is the best
// sentence with the ones beside it, its heading and its title.
const (
	matchFull        = iota // weight of the question that stands in the best sentence, its focus aside, squared
	matchHeld               // number of the question's words in the sentence, eight being many
	matchMass               // their rarity, added up rather than as a share
	matchPairs              // neighbouring question words that are neighbours in the sentence
	matchTopic              // a word of the question in the window is what the documents are about
	matchType               // the kind of thing that is asked for is there
	matchTypeLost           // a certain kind of thing is asked for and the window has none
	matchFocusLost          // the noun after "what" is lacking: an answer seldom repeats it
	matchAskingLost         // a word that only asks is lacking: the same
	matchNamesLost          // names of the question that the window lacks
	matchNameGone           // a name of the question stands nowhere
	matchNumbersLost        // numbers of the question that the window lacks
	matchNegation           // the question is negated and the sentence is not, or the other way round
	matchAsksNot            // the question asks for what is not so
	matchAntonym            // the sentence has the opposite of a word of the question
	matchSibling            // the sentence has another of a kind: weeks for days, second for first
	numMatch
)

// matchWeights and matchBias are a logistic regression of "this question has an
// answer here", fitted on half of the SQuAD2 articles with the sign of every weight
// given, so that no accident of the questions can turn a merit into a fault. The scorer
// of package answerable leads; this holds it back where hardly a word is there.
var matchWeights = [numMatch]float64{
	matchFull: 0.67, matchHeld: 0.73, matchMass: 0.80, matchPairs: 0.01, matchTopic: 0.27, matchType: 0.41, matchTypeLost: -0.33,
	matchFocusLost: 0.33, matchAskingLost: 0.75, matchNamesLost: -1.28, matchNameGone: -0.62, matchNumbersLost: -1.51,
	matchNegation: -0.59, matchAsksNot: -0.75, matchAntonym: -1.60, matchSibling: -1.00,
}

// Half of the fitted questions were written to look answerable and are not, which
// no reader's questions are. Match keeps the order of the sums and moves their middle:
// at matchCentre and oddsCentre, where one word that matters is lacking, Match is one
// half; oddsSlope is how fast it rises there, so that it passes 0.85 where nothing is.
const (
	matchBias    = -1.38
	matchCentre  = -0.3
	measureShare = 0.25 // of the sum of measure beside the scorer's odds,
	measureLow   = -0.5 // down to here; what is lower counts whole: hardly a word of the question is there
	oddsCentre   = -0.29
	oddsSlope    = 1.3
	oddsMost     = 1.5 // as far as questions unlike the fitted ones may be trusted to the scorer
)

// A short question cannot have many words in common with a sentence. Where one
// sentence has all of them and what is asked for, matchHeld and matchMass are at
// least fullMass divided by the number of words, and fullMost at most.
const (
	fullMass = 1.2
	fullMost = 0.8
	// typeFloor is the least of featType that counts as what is asked for.
	typeFloor = 0.4
)

// asksNot are words with which a question asks for what is not so.
var asksNot = question.StemSet("not never no without except fail failed fails lack lacks lacking avoid refuse refused prevent unable cannot nobody none neither nothing isn't wasn't aren't weren't doesn't didn't don't hasn't unlike unimportant unnecessary besides")

// measure computes the features of the sentence at best.
func (r *reading) measure(best int) [numMatch]float64 {
	var f [numMatch]float64
	s := &r.sents[best]
	window := r.window(best)
	own := r.shareBut(s.own, r.q.Focus)
	f[matchFull] = own * own
	f[matchPairs] = s.feat[featPairs]
	f[matchType] = s.feat[featType]
	if r.typeLost(s) {
		f[matchTypeLost] = 1
	}
	for t, h := range s.own {
		f[matchHeld] += h * min(1, r.q.Terms[t].Weight) / 8
		f[matchMass] += r.idf[t] * h / 10
		if window[t] >= 1 && !question.Light(r.q.Terms[t].Stem) {
			f[matchTopic] = max(f[matchTopic], r.common[t])
		}
	}
	least := r.full(s)
	f[matchHeld], f[matchMass] = min(1, max(least, f[matchHeld])), min(1, max(least, f[matchMass]))
	r.losses(&f, window)
	if r.q.Kind != question.YesNo && r.q.Negated != lexicon.Negated(s.text) { // "no" answers a yes-or-no question
		f[matchNegation] = 1
	}
	for _, t := range lexicon.Tokens(r.q.Text) {
		if asksNot[t.Stem] || strings.HasSuffix(t.Text, "n't") {
			f[matchAsksNot] = 1
		}
	}
	f[matchAntonym], f[matchSibling] = r.opposed(best, window)
	return f
}

// shareBut is share without one term, unless that is all there is.
func (r *reading) shareBut(held []float64, stem string) float64 {
	sum, all := 0.0, 0.0
	for t, tm := range r.q.Terms {
		if tm.Stem == stem && len(r.q.Terms) > 1 {
			continue
		}
		all += r.idf[t]
		sum += r.idf[t] * held[t]
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// typeLost reports that a date, a number, a name or a reason is asked for and
// neither the sentence nor the ones beside it have one.
func (r *reading) typeLost(s *sentence) bool {
	switch r.q.Kind {
	case question.Who, question.Where, question.When, question.Count, question.Amount, question.Money, question.Why:
	default:
		return false
	}
	if s.feat[featType] > 0 {
		return false
	}
	for _, n := range []int{s.prev, s.next} {
		if n >= 0 && answerType(r.q, &r.sents[n]) > 0 {
			return false
		}
	}
	return true
}

// full is the least that matchHeld and matchMass are for a sentence: more than 0
// if it has every word that matters and what is asked for. A word that names the
// section or the document it stands in need not be repeated, a name is one word.
func (r *reading) full(s *sentence) float64 {
	n, own, head := 0.0, 0.0, r.headOf(s)
	names := map[string]bool{}
	for t, tm := range r.q.Terms {
		if tm.Stem != r.q.Asked && (question.Light(tm.Stem) || question.Vague(tm.Stem) || tm.Stem == r.q.Focus) {
			continue
		}
		if name := r.q.NameWith(tm); name == "" || !names[name] {
			n++
			own += min(1, s.own[t])
			names[name] = true
		}
		if s.own[t] == 0 && head[t] == 0 {
			return 0
		}
	}
	if s.feat[featType] < typeFloor || own < n/2 || r.typeLost(s) {
		return 0
	}
	return min(fullMost, fullMass/max(1, n))
}

// headOf is what the heading and the title over a sentence hold.
func (r *reading) headOf(s *sentence) []float64 {
	return r.wordsOf(s.passage.Heading + " \n" + s.source.Page.Title)
}

// besides reports a sentence that does not speak of the X of Y where that is
// asked for. Either it is about Y, in passing, and says something else than X;
// or nothing of Y stands in it or around it.
func (r *reading) besides(best int) bool {
	if r.q.Asked == "" || len(r.q.Owner) == 0 {
		return false
	}
	s, window := &r.sents[best], r.window(best)
	head := r.headOf(s)
	x, y, topic := false, false, false
	others := map[string]bool{}
	for t, tm := range r.q.Terms {
		switch {
		case tm.Stem == r.q.Asked:
			x = s.credit[t] > creditPrev || head[t] > 0 // in it, or in what it leans on
			continue
		case slices.Contains(r.q.Owner, tm.Stem):
			y = y || window[t] > 0
			topic = topic || head[t] > 0
		}
		if s.own[t] > 0 && !question.Light(tm.Stem) {
			others[cmp.Or(r.q.NameWith(tm), tm.Stem)] = true
		}
	}
	return !y || !x && (r.typeLost(s) || !topic && len(others) < 2)
}

// lostNames are the names of the question of which no word stands in the
// document of the best sentence.
func (r *reading) lostNames(best int) []string {
	if len(r.q.Names) == 0 {
		return nil
	}
	src := r.sents[best].source
	held := r.wordsOf(src.Page.Title + " \n" + pathMarks.Replace(src.Page.Locator))
	for i := range r.sents {
		if r.sents[i].source == src {
			merge(held, r.sents[i].own)
			merge(held, r.wordsOf(r.sents[i].passage.Heading))
		}
	}
	return slices.DeleteFunc(slices.Clone(r.q.Names), func(n string) bool {
		stems := lexicon.Terms(n)
		for t, tm := range r.q.Terms {
			if held[t] > 0 && slices.Contains(stems, tm.Stem) {
				return true
			}
		}
		return len(stems) == 0
	})
}

// elsewhere reports a question about a place, an owner or a time that the
// document of the best sentence does not name: "the tower in London". What has no
// small letter may be an abbreviation of something that is written out, and does
// not count.
func (r *reading) elsewhere(best int) bool {
	for _, n := range r.lostNames(best) {
		if strings.ToUpper(n) == n || len(n) < 4 || question.Months(lexicon.Stem(n)) {
			continue
		}
		before, _, _ := strings.Cut(r.q.Text, n)
		words := strings.Fields(strings.ToLower(before))
		if k := len(words) - 1; k > 0 && words[k] == "the" {
			words = words[:k]
		}
		if len(words) > 0 && ofPlace[words[len(words)-1]] {
			return true
		}
	}
	return false
}

// ofPlace are words before the place or the owner of a thing.
var ofPlace = map[string]bool{"in": true, "of": true, "at": true, "near": true, "from": true, "for": true, "by": true, "on": true}

// losses fills the features of words that the window lacks, by what kind of
// word each is.
func (r *reading) losses(f *[numMatch]float64, window []float64) {
	names, numbers := 0.0, 0.0
	for t, tm := range r.q.Terms {
		lack := 1 - window[t]
		switch {
		case tm.Name:
			names++
			f[matchNamesLost] += lack
			if !r.known[t] {
				f[matchNameGone] = max(f[matchNameGone], lack)
			}
		case tm.Number:
			numbers++
			f[matchNumbersLost] += lack
		case tm.Stem == r.q.Focus:
			f[matchFocusLost] = lack
		case question.Light(tm.Stem):
			f[matchAskingLost] = max(f[matchAskingLost], lack)
		}
	}
	f[matchNamesLost] /= max(1, names)
	f[matchNumbersLost] /= max(1, numbers)
}

// answers is Match: how well the evidence answers. A question of several parts
// is answered as far as its parts are.
func (r *reading) answers(best int) float64 {
	whole := r.judge(best)
	if r.elsewhere(best) {
		whole = refuseBelow + lostNameShare*whole
	}
	if len(r.q.Parts) < 2 {
		return whole
	}
	sum := 0.0
	for p, pt := range r.q.Parts {
		top := 0.0
		for i := range r.sents {
			if r.usable(i) {
				top = max(top, r.partShare(p, i))
			}
		}
		switch {
		case top < partFloor:
		case pt.From > 0:
			sum += top
		default:
			sum += (top + whole) / 2
		}
	}
	return sum / float64(len(r.q.Parts))
}

// heard lowers Match for an answer from a part of what should have been read.
func heard(ranked, unread int) float64 {
	if unread == 0 {
		return 1
	}
	return math.Sqrt(float64(ranked-unread) / float64(ranked))
}

// alone is how well one sentence answers the question, or the part of it that it
// answers best.
func (r *reading) alone(i int) float64 {
	best := r.judge(i)
	if r.elsewhere(i) {
		best *= lostNameShare
	}
	if len(r.q.Parts) > 1 {
		for p := range r.q.Parts {
			best = max(best, r.partShare(p, i))
		}
	}
	return best
}

// evidence is the sentence at best with what stands around it.
func (r *reading) evidence(best int) *answerable.Evidence {
	as := func(i int) answerable.Sentence {
		return answerable.Sentence{Text: r.sents[i].text, Tokens: r.sents[i].toks, Held: r.sents[i].own}
	}
	s := &r.sents[best]
	e := &answerable.Evidence{Question: r.q, Best: as(best), Above: r.headOf(s), Rarity: r.idf, Type: s.feat[featType]}
	for _, n := range []int{s.prev, s.next} {
		if n >= 0 {
			e.Beside = append(e.Beside, as(n))
		}
	}
	if r.vectors {
		e.Cosines = []float64{s.near}
	}
	for i := range r.sents {
		o := &r.sents[i]
		if o.source == s.source && o.passage.Paragraph == s.passage.Paragraph {
			e.Paragraph = append(e.Paragraph, as(i))
		}
		if r.vectors && i != best {
			e.Cosines = append(e.Cosines, o.near)
		}
	}
	return e
}

// judge is how well the sentence at i answers, 0 to 1: what the fitted scorer says of
// it, and some of what the features of measure do, which know no length of a question
// and no vectors, and so hold for questions unlike the fitted ones too. Those alone
// tell that nothing was found: the fitted questions all come near some sentence.
func (r *reading) judge(i int) float64 {
	sum := matchBias - matchCentre
	for k, v := range r.measure(i) {
		sum += matchWeights[k] * v
	}
	odds := max(-oddsMost, min(oddsMost, r.evidence(i).Odds())) - oddsCentre
	odds += measureShare*sum + (1-measureShare)*min(0, sum-measureLow)
	return 1 / (1 + math.Exp(-oddsSlope*odds))
}

// window is what the sentence and the ones beside it hold. Title and heading
// name the subject, so they count as held.
func (r *reading) window(i int) []float64 {
	s := &r.sents[i]
	held := append([]float64(nil), s.own...)
	for _, n := range []int{s.prev, s.next} {
		if n >= 0 {
			merge(held, r.sents[n].own)
		}
	}
	merge(held, r.wordsOf(s.passage.Heading))
	merge(held, r.wordsOf(s.source.Page.Title))
	return held
}

// anywhere is what anything read holds, the titles and headings over it included.
func (r *reading) anywhere() []float64 {
	held := make([]float64, len(r.q.Terms))
	for i := range r.sents {
		s := &r.sents[i]
		merge(held, s.own)
		if i == 0 || s.passage.Heading != r.sents[i-1].passage.Heading || s.source != r.sents[i-1].source {
			merge(held, r.headOf(s))
		}
	}
	return held
}
