package metric

import (
	"cmp"
	"math"
	"slices"
)

// The parameters, which are those of most textbooks.
const (
	k1    = 1.2
	slope = 0.75
)

// BM25 is texts in memory, ranked as the textbooks do: Okapi BM25 over whole texts, what the
// search of this program is held against. The caller decides what a word is. It never changes and is safe for concurrent use if the
// function that finds words is.
type BM25 struct {
	words func(string) []string
	sizes []float64 // words of each text
	mean  float64
	found map[string][]posting
}

// posting is how often a word stands in a text.
type posting struct {
	text int
	n    float64
}

// NewBM25 indexes texts by what words finds in each.
func NewBM25(texts []string, words func(string) []string) *BM25 {
	ix := &BM25{words: words, found: map[string][]posting{}}
	for i, t := range texts {
		list := words(t)
		for _, w := range list {
			at := ix.found[w]
			if len(at) == 0 || at[len(at)-1].text != i {
				at = append(at, posting{text: i})
			}
			at[len(at)-1].n++
			ix.found[w] = at
		}
		ix.sizes = append(ix.sizes, float64(len(list)))
		ix.mean += float64(len(list)) / float64(len(texts))
	}
	return ix
}

// Rank returns the places of at most limit texts that hold a word of the query, best
// first; equal ones are in their order. A word counts once however often the query has
// it.
func (ix *BM25) Rank(query string, limit int) []int {
	scores := ix.scores(query)
	var order []int
	for i, s := range scores {
		if s > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(scores[j], scores[i]), i-j) })
	return order[:max(0, min(limit, len(order)))]
}

func (ix *BM25) scores(query string) []float64 {
	scores := make([]float64, len(ix.sizes))
	words := slices.Sorted(slices.Values(ix.words(query))) // the sums of a score have one order
	for _, w := range slices.Compact(words) {
		in := float64(len(ix.found[w]))
		idf := math.Log(1 + (float64(len(ix.sizes))-in+0.5)/(in+0.5))
		for _, p := range ix.found[w] {
			scores[p.text] += idf * p.n * (k1 + 1) / (p.n + k1*(1-slope+slope*ix.sizes[p.text]/ix.mean))
		}
	}
	return scores
}
