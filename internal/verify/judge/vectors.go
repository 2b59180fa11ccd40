package judge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

// What is put into vectors for one claim at most.
const (
	maxSentences = 12
	maxClauses   = 6
)

// semantic are the features from vectors: how near the claim, and each of its
// parts, is to what the evidence says, in one sentence or in several.
func (p *pair) semantic(ctx context.Context, e embed.Embedder) (table, error) {
	picked := p.nearest(maxSentences)
	texts := []string{p.claim.text}
	for _, i := range picked {
		texts = append(texts, p.ev.sentences[i].text)
	}
	parts := p.parts[:min(len(p.parts), maxClauses)]
	if len(parts) > 1 {
		for _, c := range parts {
			texts = append(texts, c.text)
		}
	}
	vs, err := e.Embed(ctx, texts)
	if err != nil {
		return table{}, fmt.Errorf("embed a claim and its excerpts: %w", err)
	}
	if len(vs) != len(texts) {
		return table{}, fmt.Errorf("embed a claim and its excerpts: %d vectors for %d texts", len(vs), len(texts))
	}
	sents, clauses := vs[1:1+len(picked)], vs[1+len(picked):]
	if len(clauses) == 0 {
		clauses = vs[:1]
	}
	return p.compare(vs[0], clauses, sents, picked), nil
}

// compare holds the vectors of a claim and its clauses against those of the picked
// sentences.
func (p *pair) compare(claim embed.Vector, clauses, sents []embed.Vector, picked []int) table {
	most, at, lexical := 0.0, 0, 0.0
	for k, s := range sents {
		near := claim.Dot(s)
		if near > most {
			most, at = near, k
		}
		if len(p.best) > 0 && picked[k] == p.best[0] {
			lexical = near
		}
	}
	two, window := most, most
	for k := range sents {
		if k != at {
			two = max(two, cosine(claim, sents[at], sents[k]))
		}
		var near []embed.Vector
		for i := k; i < len(sents) && picked[i] < picked[k]+3; i++ {
			near = append(near, sents[i])
			window = max(window, cosine(claim, near...))
		}
	}
	worst, mean := 1.0, 0.0
	for _, c := range clauses {
		top := 0.0
		for _, s := range sents {
			top = max(top, c.Dot(s))
		}
		worst, mean = min(worst, top), mean+top/float64(len(clauses))
	}
	var t table
	t.add("cos_1", most)
	t.add("cos_2", two)
	t.add("cos_window", window)
	t.add("cos_all", cosine(claim, sents...))
	t.add("cos_best_words", lexical)
	t.add("cos_clause_worst", worst)
	t.add("cos_clause_mean", mean)
	return t
}

// nearest are the n sentences that hold most of the claim's words, in their order.
func (p *pair) nearest(n int) []int {
	order := make([]int, len(p.share))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.share[b], p.share[a]) })
	order = order[:min(n, len(order))]
	slices.Sort(order)
	return order
}

// cosine is that of a vector and the sum of others.
func cosine(v embed.Vector, others ...embed.Vector) float64 {
	if len(others) == 0 {
		return 0
	}
	dot, norm := 0.0, 0.0
	for i := range v {
		s := 0.0
		for _, o := range others {
			if len(o) == len(v) {
				s += float64(o[i])
			}
		}
		dot += float64(s * float64(v[i])) // the conversions keep compilers from fusing the steps
		norm += float64(s * s)
	}
	if norm == 0 {
		return 0
	}
	return dot / math.Sqrt(norm)
}
