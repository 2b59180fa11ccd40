package evidence

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
	"unique"

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

// index holds what ranking needs to know of the passages. Their words are read when
// they are first ranked, each term kept once: a text of tens of megabytes has millions of
// words. Postings are made of the terms that are asked for.
//
// Several may rank at once: mu guards what is read and made meanwhile.
type index struct {
	mu       sync.Mutex
	passages []*Passage
	titles   []string // of each source

	words   []word // of all passages that were read, sentence by sentence
	ends    []int  // of each passage that was read, in words
	heads   [][]word
	named   [][]word // the words of the title
	lengths []float64
	total   float64
	lists   map[word][]posting
}

// word is a term; the zero word ends a sentence.
type word = unique.Handle[string]

var sentenceEnd word

// add takes in the passages of a document with the given title.
func (x *index) add(title string, passages []Passage) {
	for i := range passages {
		x.passages = append(x.passages, &passages[i])
	}
	x.titles = append(x.titles, title)
	clear(x.lists)
}

// read takes in the words of the passages that were added since.
func (x *index) read() {
	if x.lists == nil {
		x.lists = map[word][]posting{}
	}
	from, known := len(x.ends), spellings{}
	var heading, title string
	var head, named []word
	for _, p := range x.passages[from:] {
		for _, span := range p.Sentences {
			x.words = append(known.words(x.words, p.Text[span.Start-p.Span.Start:span.End-p.Span.Start]), sentenceEnd)
		}
		if p.Heading != heading {
			heading, head = p.Heading, known.words(nil, p.Heading)
		}
		if t := x.titles[p.Source-1]; t != title {
			title, named = t, known.words(nil, t)
		}
		x.ends, x.heads, x.named = append(x.ends, len(x.words)), append(x.heads, head), append(x.named, named)
	}
	for at := from; at < len(x.passages); at++ {
		length := x.lengthOf(at)
		x.lengths = append(x.lengths, length)
		x.total += length
	}
}

// spellings are the terms of words as they stand in texts, the zero word for those that
// are none.
type spellings map[string]word

// words appends the terms of a text.
func (s spellings) words(to []word, text string) []word {
	for spelling := range lexicon.Words(text) {
		w, known := s[spelling]
		if !known {
			if !lexicon.IsStop(spelling) {
				w = unique.Make(lexicon.Stem(spelling))
			}
			s[spelling] = w
		}
		if w != (word{}) {
			to = append(to, w)
		}
	}
	return to
}

func (x *index) own(at int) []word {
	if at == 0 {
		return x.words[:x.ends[0]]
	}
	return x.words[x.ends[at-1]:x.ends[at]]
}

// near are the passages before and after one in the same paragraph.
func (x *index) near(at int) []int {
	var out []int
	for _, i := range []int{at - 1, at + 1} {
		if i >= 0 && i < len(x.passages) && x.passages[i].Source == x.passages[at].Source && x.passages[i].Paragraph == x.passages[at].Paragraph {
			out = append(out, i)
		}
	}
	return out
}

// lengthOf is how long a passage counts, with what stands around it.
func (x *index) lengthOf(at int) float64 {
	own := x.own(at)
	length := float64(len(own) - len(x.passages[at].Sentences))
	add := func(n int, weight float64) {
		for range n {
			length += weight
		}
	}
	add(len(x.heads[at]), headingWeight)
	add(len(x.named[at]), titleWeight)
	for _, near := range x.near(at) {
		add(len(x.own(near))-len(x.passages[near].Sentences), contextWeight)
	}
	return length
}

// postings are the passages that hold a term, or stand beside one that does. The caller
// holds mu.
func (x *index) postings(term string) []posting {
	x.read()
	w := unique.Make(term)
	list, known := x.lists[w]
	if known {
		return list
	}
	counts := make([]int, len(x.passages))
	for at := range x.passages {
		counts[at] = occurs(x.own(at), w)
	}
	for at := range x.passages {
		p := posting{passage: at}
		add := func(n int, weight float64, own bool) {
			for range n {
				p.weight += weight
				p.own = p.own || own
			}
		}
		add(counts[at], 1, true)
		add(occurs(x.heads[at], w), headingWeight, true)
		add(occurs(x.named[at], w), titleWeight, true)
		for _, near := range x.near(at) {
			add(counts[near], contextWeight, false)
		}
		if p.weight == 0 {
			continue
		}
		if counts[at] > 0 {
			p.sentences = sentencesWith(x.own(at), w)
		}
		list = append(list, p)
	}
	x.lists[w] = list
	return list
}

func occurs(words []word, w word) (n int) {
	for _, other := range words {
		if other == w {
			n++
		}
	}
	return n
}

// sentencesWith are the sentences that hold a term, as in posting.
func sentencesWith(words []word, w word) (bits uint64) {
	k := 0
	for _, other := range words {
		switch other {
		case w:
			bits |= 1 << min(k, 63)
		case sentenceEnd:
			k++
		}
	}
	return bits
}

// Rank returns the n passages that fit a query best, best first, ties in the
// order of ids; n ≤ 0 means all that fit at all. The query is stems, as
// lexicon.Terms gives them; repetitions do not count.
func (s *Set) Rank(query []string, n int) []Scored {
	scores := s.index.scores(query)
	ranked := make([]Scored, 0, len(scores))
	for at, score := range scores {
		if score > 0 {
			ranked = append(ranked, Scored{*s.index.passages[at], score})
		}
	}
	slices.SortStableFunc(ranked, func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	if n > 0 && len(ranked) > n {
		ranked = ranked[:n]
	}
	return ranked
}

// Holding is how many passages hold a stem, or stand beside one that does.
func (s *Set) Holding(stem string) int {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return len(s.index.postings(stem))
}

// scores returns the score of every passage. Passages that only stand near a
// word of the query get none.
func (x *index) scores(query []string) []float64 {
	scores := make([]float64, len(x.passages))
	if len(x.passages) == 0 {
		return scores
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.read()
	terms := slices.Clone(query)
	slices.Sort(terms)
	terms = slices.Compact(terms)

	mean := max(x.total/float64(len(x.passages)), 1)
	matches := make([]match, len(x.passages))
	all := 0.0
	for _, term := range terms {
		idf := x.idf(term)
		all += idf
		for _, e := range x.postings(term) {
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
	df := float64(len(x.postings(term)))
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
