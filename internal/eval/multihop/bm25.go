package multihop

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// The parameters of the plain ranking, which are those of most textbooks.
const (
	plainK1 = 1.2
	plainB  = 0.75
)

// text is a document by name.
type text struct{ name, text string }

// bm25 is the plain ranking: Okapi BM25 over whole documents, title and text alike,
// words in lower case, without stems, fields or a list of common words.
type bm25 struct {
	names []string
	sizes []float64
	mean  float64
	found map[string]map[int]float64 // per word, how often it stands in which document
}

func newBM25(docs []text) *bm25 {
	b := &bm25{found: map[string]map[int]float64{}}
	for i, d := range docs {
		words := plainWords(d.text)
		for _, w := range words {
			if b.found[w] == nil {
				b.found[w] = map[int]float64{}
			}
			b.found[w][i]++
		}
		b.names = append(b.names, d.name)
		b.sizes = append(b.sizes, float64(len(words)))
		b.mean += float64(len(words)) / float64(len(docs))
	}
	return b
}

func plainWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// rank returns the best documents, best first; equal ones in the order of the set.
func (b *bm25) rank(query string, limit int) []string {
	scores := make([]float64, len(b.names))
	words := plainWords(query)
	slices.Sort(words)
	for _, w := range slices.Compact(words) {
		in := float64(len(b.found[w]))
		idf := math.Log(1 + (float64(len(b.names))-in+.5)/(in+.5))
		for i, n := range b.found[w] {
			scores[i] += idf * n * (plainK1 + 1) / (n + plainK1*(1-plainB+plainB*b.sizes[i]/b.mean))
		}
	}
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	var names []string
	for _, i := range order[:min(limit, len(order))] {
		if scores[i] > 0 {
			names = append(names, b.names[i])
		}
	}
	return names
}
