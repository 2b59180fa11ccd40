package retrieval

import (
	"cmp"
	"math"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// The parameters of the plain ranking, which are those of most textbooks.
const (
	plainK1 = 1.2
	plainB  = 0.75
)

// bm25 is the plain ranking: Okapi BM25 over the stems of whole documents, without stop
// words, fields, phrases or feedback.
type bm25 struct {
	ids   []string
	sizes []float64
	mean  float64
	found map[string][]posting
}

// posting is how often a term stands in a document.
type posting struct {
	doc int
	n   float64
}

func newBM25(docs []document) *bm25 {
	b := &bm25{found: map[string][]posting{}}
	for i, d := range docs {
		terms := lexicon.Terms(d.text)
		for _, t := range terms {
			list := b.found[t]
			if len(list) == 0 || list[len(list)-1].doc != i {
				list = append(list, posting{doc: i})
			}
			list[len(list)-1].n++
			b.found[t] = list
		}
		b.ids = append(b.ids, d.id)
		b.sizes = append(b.sizes, float64(len(terms)))
		b.mean += float64(len(terms)) / float64(len(docs))
	}
	return b
}

// rank returns the best documents, best first; equal ones in the order of the set.
func (b *bm25) rank(text string, limit int) []string {
	scores := make([]float64, len(b.ids))
	terms := lexicon.Terms(text)
	slices.Sort(terms)
	for _, t := range slices.Compact(terms) {
		list := b.found[t]
		idf := math.Log(1 + (float64(len(b.ids)-len(list))+.5)/(float64(len(list))+.5))
		for _, p := range list {
			scores[p.doc] += idf * p.n * (plainK1 + 1) / (p.n + plainK1*(1-plainB+plainB*b.sizes[p.doc]/b.mean))
		}
	}
	var order []int
	for i, s := range scores {
		if s > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	var ids []string
	for _, i := range order[:min(limit, len(order))] {
		ids = append(ids, b.ids[i])
	}
	return ids
}
