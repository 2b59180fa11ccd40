package inverted

import (
	"cmp"
	"context"
	"fmt"
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
	Dead []int64 // documents of it that are gone, in order; others are ignored
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
	chunks int // that are left
	pool   sync.Pool
}

type part struct {
	Part
	at   int       // of its first chunk among those of the view
	live []bool    // by chunk; nil if all are
	norm []float64 // by chunk: what its length does to its counts
}

// NewView makes a view of parts, which share no documents.
func NewView(parts []Part) *View {
	v := &View{}
	words, at := uint64(0), 0
	for _, p := range parts {
		live := p.live()
		for i, size := range p.sizes {
			if live == nil || live[i] {
				v.chunks++
				words += uint64(p.length(i, size))
			}
		}
		v.parts = append(v.parts, part{Part: p, at: at, live: live})
		at += p.Chunks()
	}
	mean := float64(words) / float64(max(1, v.chunks))
	for i := range v.parts {
		p := &v.parts[i]
		p.norm = make([]float64, p.Chunks())
		for c, size := range p.sizes {
			p.norm[c] = k1 * (1 - lengthWeight + lengthWeight*float64(p.length(c, size))/max(1, mean))
		}
	}
	v.pool.New = func() any { return &scratch{scores: make([]float64, at), counts: make([]float64, at)} }
	return v
}

// length is how many words a chunk has, with those of its document.
func (s *Segment) length(chunk int, size uint32) uint32 {
	d := &s.docs[s.docOf[chunk]]
	return size + d.size[title] + d.size[path]
}

// live tells of every chunk whether it is left; nil if all are.
func (p *Part) live() []bool {
	var live []bool
	for i := range p.docs {
		d := &p.docs[i]
		if _, dead := slices.BinarySearch(p.Dead, p.Base+int64(d.number)); !dead {
			continue
		}
		if live == nil {
			live = slices.Repeat([]bool{true}, p.Chunks())
		}
		clear(live[d.first : d.first+d.chunks])
	}
	return live
}

// Chunks is how many chunks there are.
func (v *View) Chunks() int { return v.chunks }

// IDF tells how much finding a stem says: about the logarithm of how rare it is.
func (v *View) IDF(stem string) (float64, error) {
	s := v.pool.Get().(*scratch)
	defer v.pool.Put(s)
	m, err := v.match(s, Term{Stem: stem})
	return idf(v.chunks, m.any), err
}

func idf(chunks, found int) float64 {
	return max(1e-6, math.Log((float64(chunks-found)+0.5)/(float64(found)+0.5)))
}

// Search returns the k chunks that score highest for the terms, and those that
// score as high as the last of them, best first; equal ones are in order of their
// numbers. Chunks without any of the terms are not found. If allow is not nil,
// documents that it refuses are passed over. An error is ErrDamaged, or ctx's.
func (v *View) Search(ctx context.Context, terms []Term, k int, allow func(doc int64) bool) ([]Hit, error) {
	s := v.pool.Get().(*scratch)
	defer v.pool.Put(s)
	if err := v.score(ctx, s, terms); err != nil {
		return nil, err
	}
	return v.best(s.scores, k, allow), nil
}

// Every returns all chunks with their scores for the terms, those without any of them
// too, in order of their numbers.
func (v *View) Every(ctx context.Context, terms []Term, allow func(doc int64) bool) ([]Hit, error) {
	s := v.pool.Get().(*scratch)
	defer v.pool.Put(s)
	if err := v.score(ctx, s, terms); err != nil {
		return nil, err
	}
	var hits []Hit
	for i := range v.parts {
		p := &v.parts[i]
		for c, score := range s.scores[p.at : p.at+p.Chunks()] {
			d := &p.docs[p.docOf[c]]
			doc := p.Base + int64(d.number)
			if (p.live == nil || p.live[c]) && (allow == nil || allow(doc)) {
				hits = append(hits, Hit{Chunk: doc + int64(uint32(c)-d.first), Doc: doc, Score: score})
			}
		}
	}
	return hits, nil
}

// score leaves in s what each chunk scores for the terms.
func (v *View) score(ctx context.Context, s *scratch, terms []Term) error {
	clear(s.scores)
	for _, t := range terms {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := v.match(s, t)
		if err != nil {
			return err
		}
		v.add(s, t.Weight, m)
	}
	return nil
}

// scratch is memory of one search.
type scratch struct {
	scores []float64 // by chunk of the view
	counts []float64 // by chunk; all 0 between terms
	found  []spot    // of one term
	exact  []spot
}

// spot is a chunk that holds a term, and its weighted count there.
type spot struct {
	chunk uint32 // of the view
	count float64
}

// matched says in how many chunks there are a stem and the very word.
type matched struct{ any, exact int }

// match leaves in s where a term stands.
func (v *View) match(s *scratch, t Term) (matched, error) {
	s.found, s.exact = s.found[:0], s.exact[:0]
	for i := range v.parts {
		p := &v.parts[i]
		err := p.find(t.Stem, t.Word, func(post []byte, exact bool) error { return p.read(s, post, exact) })
		if err != nil {
			clear(s.counts) // what the parts before it have left
			return matched{}, err
		}
	}
	for i := range s.found {
		at := s.found[i].chunk
		s.found[i].count = s.counts[at]
		s.counts[at] = 0
	}
	return matched{len(s.found), len(s.exact)}, nil
}

// read adds the postings of one word to s.
func (p *part) read(s *scratch, post []byte, exact bool) error {
	chunks := uint32(p.Chunks())
	for it := (postings{r: reader{b: post}}); ; {
		if !it.advance() {
			if it.r.bad {
				break
			}
			return nil
		}
		if it.chunk >= chunks {
			break
		}
		if p.live != nil && !p.live[it.chunk] {
			continue
		}
		n := float64(it.n[body])
		if it.n[title]|it.n[path] != 0 {
			n += fieldWeight[title]*float64(it.n[title]) + fieldWeight[path]*float64(it.n[path])
		}
		at := uint32(p.at) + it.chunk
		if s.counts[at] == 0 {
			s.found = append(s.found, spot{chunk: at})
		}
		s.counts[at] += n
		if exact {
			s.exact = append(s.exact, spot{at, n})
		}
	}
	return fmt.Errorf("read postings: %w", ErrDamaged)
}

// add adds to the scores what a term is worth.
func (v *View) add(s *scratch, weight float64, m matched) {
	v.addSpots(s, s.found, weight*idf(v.chunks, m.any))
	if m.exact > 0 {
		v.addSpots(s, s.exact, wordWeight*weight*idf(v.chunks, m.exact))
	}
}

func (v *View) addSpots(s *scratch, spots []spot, weight float64) {
	weight *= k1 + 1
	var p *part
	end := uint32(0)
	for _, sp := range spots {
		if p == nil || sp.chunk >= end || sp.chunk < uint32(p.at) {
			p = v.partOf(sp.chunk)
			end = uint32(p.at + p.Chunks())
		}
		s.scores[sp.chunk] += weight * sp.count / (sp.count + p.norm[sp.chunk-uint32(p.at)])
	}
}

func (v *View) partOf(chunk uint32) *part {
	i, _ := slices.BinarySearchFunc(v.parts, chunk, func(p part, chunk uint32) int {
		return cmp.Compare(uint32(p.at+p.Chunks()), chunk+1)
	})
	return &v.parts[i]
}

// best picks the chunks that scored highest.
func (v *View) best(scores []float64, k int, allow func(doc int64) bool) []Hit {
	if k < 1 {
		return nil
	}
	least := make([]float64, 0, min(k, len(scores))) // a heap of the k highest, the lowest on top
	answers := map[int64]bool{}
	allowed := func(doc int64) bool {
		ok, known := answers[doc]
		if !known {
			ok = allow(doc)
			answers[doc] = ok
		}
		return ok
	}
	var hits []Hit
	for i := range v.parts {
		p := &v.parts[i]
		for c, score := range scores[p.at : p.at+p.Chunks()] {
			if score <= 0 || len(least) == k && score < least[0] {
				continue
			}
			d := &p.docs[p.docOf[c]]
			doc := p.Base + int64(d.number)
			if allow != nil && !allowed(doc) {
				continue
			}
			least = push(least, score, k)
			hits = append(hits, Hit{Chunk: doc + int64(uint32(c)-d.first), Doc: doc, Score: score})
		}
	}
	if len(least) > 0 {
		hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Score < least[0] })
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
	})
	return hits
}

// push puts a score into a heap of at most k and drops the lowest beyond.
func push(heap []float64, score float64, k int) []float64 {
	if len(heap) < k {
		heap = append(heap, score)
		for i := len(heap) - 1; i > 0 && heap[i] < heap[(i-1)/2]; i = (i - 1) / 2 {
			heap[i], heap[(i-1)/2] = heap[(i-1)/2], heap[i]
		}
		return heap
	}
	heap[0] = score
	for i := 0; ; {
		low := 2*i + 1
		if low >= len(heap) {
			return heap
		}
		if low+1 < len(heap) && heap[low+1] < heap[low] {
			low++
		}
		if heap[i] <= heap[low] {
			return heap
		}
		heap[i], heap[low] = heap[low], heap[i]
		i = low
	}
}
