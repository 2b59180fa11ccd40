package reader

import (
	"cmp"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// maxSpan is how many tokens an answer has at most.
const maxSpan = 30

// answer is a run of tokens of one window and its score.
type answer struct {
	first, last int
	score       float32
}

// answers gives the best runs within n tokens that do not overlap, best first. Of
// those with one score, the first in the text is the better one.
func answers(start, end []float32) []answer {
	var out []answer
	for range MaxSpans {
		best, found := answer{}, false
		for a := range start {
			for b := a; b < min(len(end), a+maxSpan); b++ {
				if slices.ContainsFunc(out, func(o answer) bool { return o.first <= b && a <= o.last }) {
					break // longer ones do, too
				}
				if v := start[a] + end[b]; !found || v > best.score {
					best, found = answer{a, b, v}, true
				}
			}
		}
		if !found {
			break
		}
		out = append(out, best)
	}
	return out
}

// reading takes the best of all windows.
func (p *plan) reading() Reading {
	first := p.windows[0].scores
	relevance, answerable := first.Relevance, first.Answer
	var spans []Scored
	for _, w := range p.windows {
		relevance, answerable = max(relevance, w.scores.Relevance), max(answerable, w.scores.Answer)
		spans = append(spans, p.spans(w)...)
	}
	slices.SortStableFunc(spans, func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	r := Reading{Relevance: float64(relevance), Answerable: float64(answerable), SpanScore: NoSpan}
	for _, s := range spans {
		if len(r.Spans) < MaxSpans && !slices.ContainsFunc(r.Spans, func(o Scored) bool { return o.Span.Start < s.Span.End && s.Span.Start < o.Span.End }) {
			r.Spans = append(r.Spans, s)
		}
	}
	if len(r.Spans) > 0 {
		r.Span, r.SpanScore = r.Spans[0].Span, r.Spans[0].Score
	}
	return r
}

// spans gives the best answers of a window as parts of the text. The first token
// stands for there being no answer.
func (p *plan) spans(w *window) []Scored {
	n := len(w.ids) - 1
	start, end := w.scores.Start, w.scores.End
	none := start[0] + end[0]
	var out []Scored
	for _, a := range answers(start[p.before:n], end[p.before:n]) {
		span := marchwarden.Span{Start: p.tokens[w.at+a.first].Start, End: p.tokens[w.at+a.last].End}
		out = append(out, Scored{span, float64(a.score - none)})
	}
	return out
}
