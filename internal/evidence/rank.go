package evidence

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// The ranking function is BM25 with its usual constants. A word of the heading
// or the title counts as a part of an occurrence: it says what the passage is
// about, but does not answer by itself.
const (
	bm25K1        = 1.2
	bm25B         = 0.75
	headingWeight = 0.5
	titleWeight   = 0.3
	// contextWeight is for the passages before and after it in the same paragraph,
	// where what "it" and "they" stand for is often named.
	contextWeight = 0.2
	// proximityWeight is how much more a passage is worth whose best sentence
	// holds all that was asked.
	proximityWeight = 1.0
	// headingPenalty is what a heading is worth as evidence.
	headingPenalty = 0.25
)

// Scored is a passage and how well it fits a query. Higher is better; scores of
// one Rank call can be compared, others cannot.
type Scored struct {
	Passage
	Score float64
}

// posting is one term in one passage.
type posting struct {
	passage   int     // position in index.passages
	weight    float64 // occurrences, those outside the text at their weight
	sentences uint64  // bit i: the term is in sentence i; the last bit stands for all further ones
	own       bool    // the term is in the text, its heading or the title, not only nearby
}

// index holds what ranking needs to know of the passages, made when they are
// added.
type index struct {
	passages []Passage
	lengths  []float64
	total    float64
	terms    map[string][]posting
}

// add takes in the passages of a document with the given title.
func (x *index) add(title string, passages []Passage) {
	if x.terms == nil {
		x.terms = make(map[string][]posting)
	}
	titleTerms := lexicon.Terms(title)
	words := make([][]string, len(passages))  // of each passage
	sentences := make([][]int, len(passages)) // which sentence each of them is in
	for i, p := range passages {
		for k, span := range p.Sentences {
			terms := lexicon.Terms(p.Text[span.Start-p.Span.Start : span.End-p.Span.Start])
			words[i] = append(words[i], terms...)
			for range terms {
				sentences[i] = append(sentences[i], min(k, 63))
			}
		}
	}
	for i, p := range passages {
		e := entry{at: len(x.passages), postings: make(map[string]*posting)}
		for k, term := range words[i] {
			e.count(term, 1, true).sentences |= 1 << sentences[i][k]
		}
		e.countAll(lexicon.Terms(p.Heading), headingWeight, true)
		e.countAll(titleTerms, titleWeight, true)
		for _, near := range []int{i - 1, i + 1} {
			if near >= 0 && near < len(passages) && passages[near].Paragraph == p.Paragraph {
				e.countAll(words[near], contextWeight, false)
			}
		}
		for term, post := range e.postings {
			x.terms[term] = append(x.terms[term], *post)
		}
		x.passages = append(x.passages, p)
		x.lengths = append(x.lengths, e.length)
		x.total += e.length
	}
}

// entry gathers the terms of one passage.
type entry struct {
	at       int
	postings map[string]*posting
	length   float64
}

// count adds one occurrence of a term.
func (e *entry) count(term string, weight float64, own bool) *posting {
	p := e.postings[term]
	if p == nil {
		p = &posting{passage: e.at}
		e.postings[term] = p
	}
	p.weight += weight
	p.own = p.own || own
	e.length += weight
	return p
}

func (e *entry) countAll(terms []string, weight float64, own bool) {
	for _, term := range terms {
		e.count(term, weight, own)
	}
}

// Rank returns the n passages that fit a query best, best first, ties in the
// order of ids; n ≤ 0 means all that fit at all. The query is stems, as
// lexicon.Terms gives them; repetitions do not count.
func (s *Set) Rank(query []string, n int) []Scored {
	scores := s.index.scores(query)
	ranked := make([]Scored, 0, len(scores))
	for at, score := range scores {
		if score > 0 {
			ranked = append(ranked, Scored{s.index.passages[at], score})
		}
	}
	slices.SortStableFunc(ranked, func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	if n > 0 && len(ranked) > n {
		ranked = ranked[:n]
	}
	return ranked
}

// Holding is how many passages hold a stem, or stand beside one that does.
func (s *Set) Holding(stem string) int { return len(s.index.terms[stem]) }

// scores returns the score of every passage. Passages that only stand near a
// word of the query get none.
func (x *index) scores(query []string) []float64 {
	scores := make([]float64, len(x.passages))
	if len(x.passages) == 0 {
		return scores
	}
	terms := slices.Clone(query)
	slices.Sort(terms)
	terms = slices.Compact(terms)

	mean := max(x.total/float64(len(x.passages)), 1)
	matches := make([]match, len(x.passages))
	all := 0.0
	for _, term := range terms {
		list := x.terms[term]
		idf := x.idf(term)
		all += idf
		for _, e := range list {
			norm := bm25K1 * (1 - bm25B + bm25B*x.lengths[e.passage]/mean)
			scores[e.passage] += idf * e.weight * (bm25K1 + 1) / (e.weight + norm)
			matches[e.passage].add(e, idf)
		}
	}
	for at := range scores {
		m := &matches[at]
		if !m.own {
			scores[at] = 0
			continue
		}
		scores[at] *= 1 + proximityWeight*m.bestSentence()/all
		if x.passages[at].IsHeading {
			scores[at] *= headingPenalty
		}
	}
	return scores
}

// idf is how much a term says: the more, the fewer passages hold it.
func (x *index) idf(term string) float64 {
	df := float64(len(x.terms[term]))
	return math.Log(1 + (float64(len(x.passages))-df+0.5)/(df+0.5))
}

// match is which terms of a query are in which sentences of a passage.
type match struct {
	own       bool
	sentences []uint64  // of each term, as in posting
	weights   []float64 // of each term
}

func (m *match) add(e posting, weight float64) {
	m.own = m.own || e.own
	if e.sentences != 0 {
		m.sentences = append(m.sentences, e.sentences)
		m.weights = append(m.weights, weight)
	}
}

// bestSentence returns the weight of the terms that the fullest sentence holds.
func (m *match) bestSentence() float64 {
	var any uint64
	for _, s := range m.sentences {
		any |= s
	}
	best := 0.0
	for any != 0 {
		bit := uint64(1) << bits.TrailingZeros64(any)
		any &^= bit
		sum := 0.0
		for i, s := range m.sentences {
			if s&bit != 0 {
				sum += m.weights[i]
			}
		}
		best = max(best, sum)
	}
	return best
}
