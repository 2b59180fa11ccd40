package answerable

import (
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
)

// The window is the best sentence with the ones beside it, its heading and its title.
// What only asks ("name", "kind") and the noun after "what" are not missed: an answer
// seldom repeats them.
var names = []string{
	"question words in the sentence",            // their number, lesser ones as less
	"rarity of these words",                     // added up
	"rarest word the sentence lacks",            //
	"names the window lacks",                    // their number
	"numbers the window lacks",                  //
	"superlatives the window lacks",             // first, only, largest
	"a word that only asks is lacking",          // 1 or 0
	"words elsewhere in the paragraph",          // that the sentence lacks
	"neighbours that are neighbours",            // share of the pairs of question words that stand together
	"pairs of written words in common",          // share of the question's pairs, stop words included
	"longest run of words in common",            //
	"longest run, share of the question",        //
	"length of the question",                    // in words
	"length of the sentence",                    //
	"new words in the sentence",                 // that may be the answer
	"kind of thing asked for in the sentence",   // a date, a number, a name, a reason
	"asks for what is not so",                   //
	"only one is negated",                       //
	"opposite in the sentence",                  // of a word that the window lacks
	"opposite beside the sentence",              //
	"another of its kind in the sentence",       // weeks for days, second for first
	"a number in the place of another",          // between the same words
	"cosine",                                    // of question and sentence; from here on with vectors only
	"highest cosine",                            // of the question and any sentence read
	"how much the highest cosine is above this", //
}

// plain is how many of the names need no vectors.
var plain = slices.Index(names, "cosine")

// Names are those of the features, in order.
func Names(vectors bool) []string {
	if vectors {
		return slices.Clone(names)
	}
	return slices.Clone(names[:plain])
}

// Features are the values of Names, with vectors where the evidence has them.
func (e *Evidence) Features() []float64 {
	x := make([]float64, 0, len(names))
	x = e.held(x)
	x = e.lost(x)
	x = e.together(x)
	x = e.asked(x)
	x = e.turned(x)
	if len(e.Cosines) > 0 {
		most := slices.Max(e.Cosines)
		x = append(x, e.Cosines[0], most, most-e.Cosines[0])
	}
	return x
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (e *Evidence) held(x []float64) []float64 {
	words, rarity := 0.0, 0.0
	for t, h := range e.Best.Held {
		words += h * min(1, e.Question.Terms[t].Weight)
		rarity += h * e.Rarity[t]
	}
	return append(x, words, rarity)
}

// window is what the window holds of each term.
func (e *Evidence) window() []float64 {
	w := slices.Clone(e.Best.Held)
	for _, s := range e.Beside {
		merge(w, s.Held)
	}
	merge(w, e.Above)
	return w
}

func merge(into, held []float64) {
	for t := range into {
		into[t] = max(into[t], held[t])
	}
}

func (e *Evidence) lost(x []float64) []float64 {
	q := e.Question
	window, paragraph := e.window(), slices.Clone(e.Best.Held)
	for _, s := range e.Paragraph {
		merge(paragraph, s.Held)
	}
	var rarest, names, numbers, superlative, asking, elsewhere float64
	for t, tm := range q.Terms {
		lack := 1 - window[t]
		switch {
		case tm.Name:
			names += lack
		case tm.Number:
			numbers += lack
		case tm.Stem == q.Focus:
			continue
		case superlatives[strings.ToLower(tm.Text)] || len(tm.Text) > 4 && strings.HasSuffix(tm.Text, "est"):
			superlative += lack
		case question.Light(tm.Stem):
			asking = max(asking, lack)
			continue
		}
		rarest = max(rarest, e.Rarity[t]*(1-e.Best.Held[t]))
		elsewhere += paragraph[t] - e.Best.Held[t]
	}
	return append(x, rarest, names, numbers, superlative, asking, elsewhere)
}

// superlatives are words that pick one of many, beside those on -est.
var superlatives = map[string]bool{"first": true, "last": true, "only": true, "most": true, "least": true, "best": true, "worst": true, "main": true, "primary": true,
	"major": true, "second": true, "third": true, "final": true, "original": true}

// reach is how far apart two words of a sentence stand together.
const reach = 3

// together compares how the question and the sentence put their words beside each
// other.
func (e *Evidence) together(x []float64) []float64 {
	q := e.Question
	asked, said := stems(lexicon.Tokens(q.Text)), stems(e.Best.Tokens)
	places := make([][]int, len(q.Terms))
	for t, tm := range q.Terms {
		for i, s := range said {
			if question.Alike(tm, s) > 0 {
				places[t] = append(places[t], i)
			}
		}
	}
	near, all := 0.0, 0.0
	for k := 1; k < len(q.Order); k++ {
		a, b := q.Order[k-1], q.Order[k]
		weight := e.Rarity[a] + e.Rarity[b]
		all += weight
		switch d := nearest(places[a], places[b]); {
		case d > 0 && d <= reach:
			near += weight
		case d < 0 && d >= -reach: // the other way round
			near += weight / 2
		}
	}
	pairs := 0
	for i := 1; i < len(asked); i++ {
		for j := 1; j < len(said); j++ {
			if asked[i] == said[j] && asked[i-1] == said[j-1] {
				pairs++
				break
			}
		}
	}
	run := longestRun(asked, said)
	return append(x, near/max(all, 1e-9), float64(pairs)/float64(max(1, len(asked)-1)), float64(run), float64(run)/float64(max(1, len(asked))))
}

func stems(toks []lexicon.Token) []string {
	out := make([]string, len(toks))
	for i, t := range toks {
		out[i] = t.Stem
	}
	return out
}

// nearest is the smallest step from a place of a to one of b, 0 if there is none.
func nearest(a, b []int) int {
	best := 0
	for _, i := range a {
		for _, j := range b {
			if d := j - i; d != 0 && (best == 0 || max(d, -d) < max(best, -best)) {
				best = d
			}
		}
	}
	return best
}

// longestRun is the number of words of the longest run that both have.
func longestRun(a, b []string) int {
	best, before := 0, make([]int, len(b)+1)
	for i := range a {
		now := make([]int, len(b)+1)
		for j := range b {
			if a[i] == b[j] {
				now[j+1] = before[j] + 1
				best = max(best, now[j+1])
			}
		}
		before = now
	}
	return best
}

// notSo are words with which a question asks for what is not so.
var notSo = question.StemSet("not never no without except fail failed fails lack lacks lacking avoid refuse refused prevent unable cannot nobody none neither nothing isn't wasn't aren't weren't doesn't didn't don't hasn't unlike unimportant unnecessary besides")

func (e *Evidence) asked(x []float64) []float64 {
	toks := lexicon.Tokens(e.Question.Text)
	fresh := 0
	for _, t := range e.Best.Tokens {
		if !t.Stop && !e.Question.Has(t.Stem) {
			fresh++
		}
	}
	not := slices.ContainsFunc(toks, func(t lexicon.Token) bool { return notSo[t.Stem] || strings.HasSuffix(t.Text, "n't") })
	return append(x, float64(len(toks)), float64(len(e.Best.Tokens)), float64(fresh), e.Type, number(not))
}

// turned looks for what makes an answer the answer to another question.
func (e *Evidence) turned(x []float64) []float64 {
	q := e.Question
	negated := q.Kind != question.YesNo && q.Negated != lexicon.Negated(e.Best.Text) // "no" answers a yes-or-no question
	window := e.window()
	var here, beside, sibling float64
	for t, tm := range q.Terms {
		if window[t] > 0 {
			continue
		}
		for _, s := range e.Best.Tokens {
			if !q.Has(s.Stem) {
				here = max(here, number(Opposite(tm.Stem, s.Stem)))
				sibling = max(sibling, number(Siblings(tm.Stem, s.Stem)))
			}
		}
		for _, o := range e.Beside {
			for _, s := range o.Tokens {
				beside = max(beside, number(!q.Has(s.Stem) && Opposite(tm.Stem, s.Stem)))
			}
		}
	}
	here = max(here, number(e.turnedRound()))
	return append(x, number(negated), here, beside, sibling, number(e.swapped()))
}

// turnedRound reports a small word of the question, such as "more" or "before", that the
// sentence lacks and has the opposite of. Such words are no terms.
func (e *Evidence) turnedRound() bool {
	asked := lexicon.Tokens(e.Question.Text)
	has := func(toks []lexicon.Token, stem string) bool {
		return slices.ContainsFunc(toks, func(t lexicon.Token) bool { return t.Stem == stem })
	}
	return slices.ContainsFunc(asked, func(t lexicon.Token) bool {
		return t.Stop && !has(e.Best.Tokens, t.Stem) && slices.ContainsFunc(e.Best.Tokens, func(s lexicon.Token) bool {
			return Opposite(t.Stem, s.Stem) && !has(asked, s.Stem)
		})
	})
}

// swapped reports a number of the question that the sentence has another for, between
// the same words.
func (e *Evidence) swapped() bool {
	asked, said := lexicon.Tokens(e.Question.Text), e.Best.Tokens
	for i, t := range asked {
		if !t.Number || slices.ContainsFunc(said, func(s lexicon.Token) bool { return s.Stem == t.Stem }) {
			continue
		}
		for j, s := range said {
			if !s.Number || e.Question.Has(s.Stem) {
				continue
			}
			left := i > 0 && j > 0 && asked[i-1].Stem == said[j-1].Stem
			right := i+1 < len(asked) && j+1 < len(said) && asked[i+1].Stem == said[j+1].Stem
			if left && right || left && !asked[i-1].Stop || right && !asked[i+1].Stop {
				return true
			}
		}
	}
	return false
}
