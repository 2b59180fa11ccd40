package inverted

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
)

// How chunks are scored: BM25 over the counts of the fields, weighted and added
// up, and the length of all of them. The weights were compared on SciFact, CACM,
// Cranfield and SQuAD, where nDCG@10 is .697, .486, .398 and .912; it changes by
// little with any of them.
const (
	k1           = 1.2
	lengthWeight = 0.75 // how much the length of a chunk matters
	// wordWeight is what the form that was written counts beside all forms: half
	// was best among 0, ¼, ½ and 1.
	wordWeight = 0.5
	// compoundWeight is what a compound counts beside its parts: a quarter was best
	// among 0, ¼, ½ and 1.
	compoundWeight = 0.25
)

var fieldWeight = [fields]float64{body: 1, title: 2, path: 1}

// Part is a segment as part of a view.
type Part struct {
	*Segment
	Base int64   // added to the numbers of documents and chunks
	Live []int64 // documents that are left, in order, of any segment; nil if all are
}

// Hit is a chunk that was found.
type Hit struct {
	Chunk, Doc int64 // numbers with the part's base
	Score      float64
}

// View is what can be searched: segments without the documents that are gone. It
// never changes and is safe for concurrent use.
type View struct {
	parts  []part
	chunks int       // that are left
	live   []bool    // by chunk
	norm   []float64 // by chunk: what its length does to its counts
	pool   sync.Pool
}

type part struct {
	Part
	at uint32 // of its first chunk among those of the view
}

// NewView makes a view of parts, which share no documents.
func NewView(parts []Part) *View {
	v := &View{}
	words := uint64(0)
	for _, p := range parts {
		v.parts = append(v.parts, part{p, uint32(len(v.live))})
		for i, live := range p.live() {
			v.live = append(v.live, live)
			if live {
				v.chunks++
				words += uint64(p.length(i))
			}
		}
	}
	mean := float64(words) / float64(max(1, v.chunks))
	for _, p := range parts {
		for c := range p.sizes {
			v.norm = append(v.norm, k1*(1-lengthWeight+lengthWeight*float64(p.length(c))/max(1, mean)))
		}
	}
	v.pool.New = func() any {
		return &scratch{scores: make([]float64, len(v.live)), counts: make([]float64, len(v.live))}
	}
	return v
}

// length is how many words a chunk has, with those of its document.
func (s *Segment) length(chunk int) uint32 { return s.sizes[chunk] + s.docs[s.docOf[chunk]].size }

// live tells of every chunk whether it is left.
func (p *Part) live() []bool {
	live := make([]bool, p.Chunks())
	for _, d := range p.docs {
		_, found := slices.BinarySearch(p.Live, p.Base+int64(d.number))
		for c := range d.chunks {
			live[d.first+c] = found || p.Live == nil
		}
	}
	return live
}

// Chunks is how many chunks there are.
func (v *View) Chunks() int { return v.chunks }

// IDF tells how much finding a stem says: about the logarithm of how rare it is.
func (v *View) IDF(stem string) (float64, error) {
	s := v.pool.Get().(*scratch)
	defer v.pool.Put(s)
	err := v.match(s, Term{Stem: stem})
	return v.idf(s.found), err
}

func (v *View) idf(found []spot) float64 {
	return max(1e-6, math.Log((float64(v.chunks-len(found))+0.5)/(float64(len(found))+0.5)))
}

// Search returns the k chunks that score highest for the terms, and those that
// score as high as the last of them, best first; equal ones are in order of their
// numbers. Chunks without any of the terms are not found. If allow is not nil,
// documents that it refuses are passed over. An error is ErrDamaged, or ctx's.
func (v *View) Search(ctx context.Context, terms []Term, k int, allow func(doc int64) bool) ([]Hit, error) {
	hits, err := v.hits(ctx, terms, func(score float64, doc int64) bool { return score > 0 && (allow == nil || allow(doc)) })
	if err != nil || k < 1 {
		return nil, err
	}
	if len(hits) > k { // most are not worth being sorted
		scores := make([]float64, len(hits))
		for i, h := range hits {
			scores[i] = h.Score
		}
		slices.Sort(scores)
		hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Score < scores[len(scores)-k] })
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
	})
	return hits, nil
}

// Every returns all chunks with their scores for the terms, those without any of them
// too, in order of their numbers.
func (v *View) Every(ctx context.Context, terms []Term, allow func(doc int64) bool) ([]Hit, error) {
	return v.hits(ctx, terms, func(_ float64, doc int64) bool { return allow == nil || allow(doc) })
}

// hits scores the chunks that are left and returns those that want takes.
func (v *View) hits(ctx context.Context, terms []Term, want func(score float64, doc int64) bool) ([]Hit, error) {
	s := v.pool.Get().(*scratch)
	defer v.pool.Put(s)
	clear(s.scores)
	for _, t := range terms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := v.match(s, t); err != nil {
			return nil, err
		}
		v.add(s, s.found, t.Weight*v.idf(s.found))
		v.add(s, s.exact, wordWeight*t.Weight*v.idf(s.exact))
	}
	var hits []Hit
	for i := range v.parts {
		p := &v.parts[i]
		for c := range p.sizes {
			at := p.at + uint32(c)
			d := &p.docs[p.docOf[c]]
			if doc := p.Base + int64(d.number); v.live[at] && want(s.scores[at], doc) {
				hits = append(hits, Hit{Chunk: doc + int64(uint32(c)-d.first), Doc: doc, Score: s.scores[at]})
			}
		}
	}
	return hits, nil
}

// scratch is memory of one search.
type scratch struct {
	scores []float64 // by chunk of the view
	counts []float64 // by chunk; all 0 between terms
	found  []spot    // where a stem stands
	exact  []spot    // and where the very word does
}

// spot is a chunk that holds a term, and its weighted count there.
type spot struct {
	chunk uint32 // of the view
	count float64
}

// match leaves in s where a term stands.
func (v *View) match(s *scratch, t Term) error {
	s.found, s.exact = s.found[:0], s.exact[:0]
	for i := range v.parts {
		p := &v.parts[i]
		err := p.find(t.Stem, t.Word, func(word int, exact bool) error {
			return p.postings(word, func(chunk uint32, n counts) { v.spot(s, p.at+chunk, n, exact) })
		})
		if err != nil {
			clear(s.counts) // what the parts before it have left
			return err
		}
	}
	for i := range s.found {
		at := s.found[i].chunk
		s.found[i].count = s.counts[at]
		s.counts[at] = 0
	}
	return nil
}

// spot notes that a word stands in a chunk of the view.
func (v *View) spot(s *scratch, at uint32, n counts, exact bool) {
	if !v.live[at] {
		return
	}
	count := fieldWeight[body]*float64(n[body]) + fieldWeight[title]*float64(n[title]) + fieldWeight[path]*float64(n[path])
	if s.counts[at] == 0 {
		s.found = append(s.found, spot{chunk: at})
	}
	s.counts[at] += count
	if exact {
		s.exact = append(s.exact, spot{at, count})
	}
}

// add adds to the scores what a term is worth where it stands.
func (v *View) add(s *scratch, spots []spot, weight float64) {
	weight *= k1 + 1
	for _, sp := range spots {
		s.scores[sp.chunk] += weight * sp.count / (sp.count + v.norm[sp.chunk])
	}
}
