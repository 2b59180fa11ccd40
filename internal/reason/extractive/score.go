package extractive

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
)

// sentence is one sentence that was read, with what it says about the question.
type sentence struct {
	source  *evidence.Source
	passage evidence.Passage
	span    marchwarden.Span // in the source's text
	text    string
	toks    []lexicon.Token
	ids     []int     // vocabulary id of each token
	own     []float64 // how well it holds each term of the question, 0 to 1
	credit  []float64 // the same with its neighbours, heading and title
	prev    int       // the sentence before it in its paragraph, or -1
	next    int
	feat    [numFeatures]float64
	score   float64
	near    float64 // cosine of its vector and the question's; 0 without vectors
	titled  float64 // the same, the sentence read under the title of its document
	vector  embed.Vector
}

// What a sentence is scored by. Each lies between 0 and 1.
const (
	featOwn    = iota // share of the question's weight that stands in the sentence itself
	featNear          // the same with neighbours, heading and title
	featPairs         // pairs of neighbouring question words that are neighbours here too
	featType          // holds the kind of thing that is asked for
	featNames         // names and numbers of the question that stand in it or beside it
	featSource        // rank of its passage among all
	featThin          // no statement: see thin
	numFeatures
)

// sentenceWeights turn the features into a score. They were set by hand, to find
// the sentences that hold the answers of SQuAD2 (eval suite squad2).
var sentenceWeights = [numFeatures]float64{
	featOwn:    1.0,
	featNear:   0.9,
	featPairs:  0.35,
	featType:   0.22,
	featNames:  0.25,
	featSource: 0.35,
	featThin:   -0.8,
}

// typeBonus is added to the weight of featType where the kind of answer shows
// plainly in a sentence: who asks what a thing is or costs is not served by one
// that says neither, whatever words it shares.
var typeBonus = map[question.Kind]float64{question.Define: 0.4, question.Money: 0.8, question.When: 0.15, question.Count: 0.4}

// Shares of a term that stands beside a sentence rather than in it.
const (
	creditPrev  = 0.55
	creditLean  = 0.85 // the sentence before one that begins with "it" or "they"
	creditNext  = 0.35
	creditHead  = 0.5
	creditTitle = 0.4
	softBonus   = 0.2
)

// reading is the sentences that were read for a question, in the order of their
// sources and of the text.
type reading struct {
	q      *question.Question
	sents  []sentence
	vocab  map[string]int
	stems  []string
	match  [][]float64 // per term, per vocabulary id: how well that word stands for it
	idf    []float64   // per term: weight times rarity
	known  []bool      // per term: it stands somewhere in what was read
	common []float64   // per term: share of the passages that have it
	total  float64     // sum of idf
	// vectors says that the sentences were compared by meaning.
	vectors bool
}

// read indexes passages for a question.
func read(q *question.Question, set *evidence.Set, packed []evidence.Scored) *reading {
	r := &reading{q: q, vocab: map[string]int{}}
	best := 0.0
	for _, p := range packed {
		best = max(best, p.Score)
	}
	ordered := slices.Clone(packed)
	slices.SortStableFunc(ordered, func(a, b evidence.Scored) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Span.Start, b.Span.Start))
	})
	for _, p := range ordered {
		src, _, ok := set.Passage(p.ID)
		if !ok {
			continue
		}
		share := 0.0
		if best > 0 {
			share = p.Score / best
		}
		r.add(src, p.Passage, share)
	}
	r.weigh(ordered)
	for i := range r.sents {
		r.hold(i)
	}
	for i := range r.sents {
		r.rate(i)
	}
	return r
}

func (r *reading) add(src *evidence.Source, p evidence.Passage, share float64) {
	if p.IsHeading {
		return
	}
	for _, sp := range p.Sentences {
		s := sentence{source: src, passage: p, span: sp, text: src.Text[sp.Start:sp.End], prev: -1, next: -1}
		s.toks = lexicon.Tokens(s.text)
		s.ids = make([]int, len(s.toks))
		for i, t := range s.toks {
			s.ids[i] = r.id(t.Stem)
		}
		s.feat[featSource] = share
		if n := len(r.sents); n > 0 && adjoining(&r.sents[n-1], &s) {
			s.prev, r.sents[n-1].next = n-1, n
		}
		r.sents = append(r.sents, s)
	}
}

// adjoining reports whether b follows a in the same paragraph.
func adjoining(a, b *sentence) bool {
	if a.source != b.source || a.passage.Paragraph != b.passage.Paragraph || a.span.End > b.span.Start {
		return false
	}
	return strings.TrimSpace(a.source.Text[a.span.End:b.span.Start]) == ""
}

func (r *reading) id(stem string) int {
	i, ok := r.vocab[stem]
	if !ok {
		i = len(r.stems)
		r.vocab[stem] = i
		r.stems = append(r.stems, stem)
	}
	return i
}

// weigh finds which words can stand for each term and how rare the term is. The
// root keeps one rare word from outweighing all that the question is about.
func (r *reading) weigh(passages []evidence.Scored) {
	r.match = make([][]float64, len(r.q.Terms))
	r.idf = make([]float64, len(r.q.Terms))
	r.known = make([]bool, len(r.q.Terms))
	r.common = make([]float64, len(r.q.Terms))
	in := map[evidence.ID]bool{}
	for t, tm := range r.q.Terms {
		r.match[t] = make([]float64, len(r.stems))
		for id, stem := range r.stems {
			r.match[t][id] = question.Alike(tm, stem)
		}
		clear(in)
		for i := range r.sents {
			s := &r.sents[i]
			for _, id := range s.ids {
				if r.match[t][id] >= 1 {
					in[s.passage.ID] = true
					break
				}
			}
		}
		n, all := float64(len(in)), float64(len(passages))
		r.known[t] = n > 0
		r.common[t] = n / max(1, all)
		r.idf[t] = tm.Weight * math.Sqrt(math.Log(1+(all-n+0.5)/(max(n, 1)+0.5)))
		r.total += r.idf[t]
	}
}

// hold fills own.
func (r *reading) hold(i int) {
	s := &r.sents[i]
	s.own = make([]float64, len(r.q.Terms))
	for t := range r.q.Terms {
		for _, id := range s.ids {
			s.own[t] = max(s.own[t], r.match[t][id])
		}
	}
}

// rate fills credit, the features and the score.
func (r *reading) rate(i int) {
	s := &r.sents[i]
	s.credit = slices.Clone(s.own)
	beside := func(own []float64, share float64) {
		for t := range s.credit {
			s.credit[t] = max(s.credit[t], share*own[t])
		}
	}
	switch {
	case s.prev >= 0 && leans(s.toks):
		beside(r.sents[s.prev].own, creditLean)
	case s.prev >= 0:
		beside(r.sents[s.prev].own, creditPrev)
	}
	if s.next >= 0 {
		beside(r.sents[s.next].own, creditNext)
	}
	beside(r.wordsOf(s.passage.Heading), creditHead)
	beside(r.wordsOf(s.source.Page.Title), creditTitle)

	s.feat[featOwn] = r.share(s.own)
	s.feat[featNear] = r.share(s.credit)
	s.feat[featPairs] = r.pairs(s)
	s.feat[featType] = answerType(r.q, s)
	s.feat[featNames] = r.names(s)
	s.feat[featThin] = thin(s)
	for f, w := range sentenceWeights {
		s.score += w * s.feat[f]
	}
	s.score += typeBonus[r.q.Kind] * s.feat[featType]
	if len(r.q.Soft) > 0 {
		s.score += softBonus * r.softly(s)
	}
}

// softly is how far a sentence turns to the words of the context, three of them
// being far.
func (r *reading) softly(s *sentence) float64 {
	n := 0
	for i, t := range s.toks {
		if r.q.Soft[t.Stem] && !slices.Contains(s.ids[:i], s.ids[i]) {
			n++
		}
	}
	return float64(min(n, 3)) / 3
}

func (r *reading) wordsOf(line string) []float64 {
	own := make([]float64, len(r.q.Terms))
	for _, tok := range lexicon.Tokens(line) {
		for t, tm := range r.q.Terms {
			own[t] = max(own[t], question.Alike(tm, tok.Stem))
		}
	}
	return own
}

// share is the part of the question's weight that held covers.
func (r *reading) share(held []float64) float64 {
	if r.total == 0 {
		return 0
	}
	sum := 0.0
	for t, h := range held {
		sum += r.idf[t] * h
	}
	return sum / r.total
}

// pairs is the share of neighbouring question words that stand in the sentence
// with at most two words between them; in the other order they count half.
func (r *reading) pairs(s *sentence) float64 {
	if len(r.q.Order) < 2 {
		return 0
	}
	sum, all := 0.0, 0.0
	for k := 1; k < len(r.q.Order); k++ {
		a, b := r.q.Order[k-1], r.q.Order[k]
		w := r.idf[a] + r.idf[b]
		all += w
		switch {
		case s.own[a] == 0 || s.own[b] == 0:
		case follow(s.ids, r.match[a], r.match[b]):
			sum += w
		case follow(s.ids, r.match[b], r.match[a]):
			sum += w / 2
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

func follow(ids []int, a, b []float64) bool {
	for i, id := range ids {
		if a[id] == 0 {
			continue
		}
		for j := i + 1; j < min(len(ids), i+4); j++ {
			if b[ids[j]] > 0 {
				return true
			}
		}
	}
	return false
}

// names is the share of the question's names and numbers found here or beside.
func (r *reading) names(s *sentence) float64 {
	sum, all := 0.0, 0.0
	for t, tm := range r.q.Terms {
		if tm.Name || tm.Number {
			all += r.idf[t]
			sum += r.idf[t] * s.credit[t]
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// What vectors are asked about, and what they count beside the score of words.
const (
	embedded      = 48  // sentences, the best by their words
	underTitle    = 24  // of them, the best by their meaning too, are read under their titles
	meaningWeight = 1.2 // of the cosine
)

// mean lets the sentences that bear on the question by their words, or stand beside such,
// be ranked by meaning too.
// An embedder that fails leaves the ranking as it is: the run says so by itself.
func (r *reading) mean(ctx context.Context, e embed.Embedder) {
	order := slices.DeleteFunc(r.top(len(r.sents)), func(i int) bool { return r.sents[i].feat[featThin] >= 1 })
	order = order[:min(embedded, len(order))]
	if e == nil || len(order) == 0 {
		return
	}
	texts := []string{r.q.Text}
	for _, i := range order {
		texts = append(texts, r.sents[i].text)
	}
	vectors, err := e.Embed(ctx, texts)
	if err != nil {
		return
	}
	r.vectors = true
	for k, i := range order {
		s := &r.sents[i]
		s.vector = vectors[k+1]
		s.near = max(0, vectors[0].Dot(s.vector))
		s.titled = s.near
		s.score += meaningWeight * s.near
	}
	r.meanTitled(ctx, e, vectors[0])
}

// meanTitled lets the best sentences be ranked by their meaning under the title of their
// document, where they do not name it themselves: it says who "it" is.
func (r *reading) meanTitled(ctx context.Context, e embed.Embedder, asked embed.Vector) {
	var order []int
	var texts []string
	for _, i := range r.top(len(r.sents)) {
		s := &r.sents[i]
		if len(order) < underTitle && s.vector != nil && r.unnamed(s) {
			order, texts = append(order, i), append(texts, s.source.Page.Title+". "+s.text)
		}
	}
	if len(order) == 0 {
		return
	}
	vectors, err := e.Embed(ctx, texts)
	if err != nil {
		return
	}
	for k, i := range order {
		s := &r.sents[i]
		s.titled = max(0, asked.Dot(vectors[k]))
		s.score += meaningWeight * (s.titled - s.near)
	}
}

// top lists up to n sentences, best first.
func (r *reading) top(n int) []int {
	order := make([]int, len(r.sents))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.sents[b].score, r.sents[a].score) })
	return order[:min(n, len(order))]
}
