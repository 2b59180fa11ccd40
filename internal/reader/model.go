package reader

import (
	"cmp"
	"context"
	_ "embed"
	"runtime"
	"slices"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"golang.org/x/sync/errgroup"
)

// What of a text is read, in tokens, as in training.
const (
	maxQuestion = 48
	maxHeading  = 24
	maxClaim    = 96
	marks       = 3  // before, between and after the two texts
	leastStride = 32 // from one window to the next
	maxWindows  = 64 // of one passage
)

//go:embed reader.q8
var weights []byte

var load = sync.OnceValue(func() Reader {
	embedder, vocabulary := bert.MiniLMFiles()
	return &model{bert.OpenCross(weights, embedder, vocabulary)}
})

// New gives the model in the binary. It is loaded at the first call and shared by
// all; weights are read where they lie in the binary.
func New() Reader { return load() }

// model is a network with what goes in and what comes out.
type model struct{ net *bert.Cross }

// ID names the weights.
func (m *model) ID() string { return ID }

// Read runs the network on every window of every passage, on all processors.
func (m *model) Read(ctx context.Context, question string, passages []Passage) ([]Reading, error) {
	asked := m.tokens(question, maxQuestion)
	plans := make([]plan, len(passages))
	for i, p := range passages {
		var heading []bert.Token
		if p.Heading != "" {
			heading = m.tokens(p.Heading+".", maxHeading)
		}
		size := Window - marks - len(asked) - len(heading)
		stride := max(leastStride, size/2)
		text := m.tokens(p.Text, size+(maxWindows-1)*stride)
		plans[i] = plan{tokens: text, size: size, before: 2 + len(asked) + len(heading)}
		for _, at := range windows(len(text), size, stride) {
			w := m.window(asked, heading, text[at:min(len(text), at+size)])
			w.at = at
			plans[i].windows = append(plans[i].windows, w)
		}
	}
	if err := m.run(ctx, plans); err != nil {
		return nil, err
	}
	out := make([]Reading, len(passages))
	for i := range plans {
		out[i] = plans[i].reading()
	}
	return out, nil
}

// Relate runs the network on every window of all evidence, on all processors.
func (m *model) Relate(ctx context.Context, pairs []Pair) ([]Relation, error) {
	plans := make([]plan, len(pairs))
	for i, p := range pairs {
		claim := m.tokens(p.Claim, maxClaim)
		size := Window - marks - len(claim)
		stride := max(leastStride, size*2/3)
		evidence := m.tokens(p.Evidence, size+(maxWindows-1)*stride)
		for _, at := range windows(len(evidence), size, stride) {
			plans[i].windows = append(plans[i].windows, m.window(evidence[at:min(len(evidence), at+size)], nil, claim))
		}
	}
	if err := m.run(ctx, plans); err != nil {
		return nil, err
	}
	out := make([]Relation, len(pairs))
	for i := range plans {
		out[i] = plans[i].relation()
	}
	return out, nil
}

func (m *model) tokens(text string, limit int) []bert.Token {
	return m.net.Words().Tokens(text, limit)
}

// windows gives where windows of a size begin in n tokens; the last one ends with
// the last token.
func windows(n, size, stride int) []int {
	if n <= size {
		return []int{0}
	}
	var at []int
	for i := 0; i < n-size; i += stride {
		at = append(at, i)
	}
	return append(at, n-size)
}

// plan is one text to read: its windows, and how they lie in it.
type plan struct {
	tokens  []bert.Token // of the whole text
	size    int          // tokens of the text in a window
	before  int          // tokens before those of the text in a window
	windows []*window
}

// window is an input of the network and what it says.
type window struct {
	at     int // the place in the text of its first token
	ids    []int32
	second int // where the second text begins
	scores bert.Scores
}

// window lays two texts side by side: [CLS] first [SEP] second [SEP], the second in
// two parts.
func (m *model) window(first, heading, second []bert.Token) *window {
	begin, end := m.net.Words().Ends()
	w := &window{ids: make([]int32, 0, marks+len(first)+len(heading)+len(second))}
	add := func(tokens []bert.Token) {
		for _, t := range tokens {
			w.ids = append(w.ids, t.ID)
		}
	}
	w.ids = append(w.ids, begin)
	add(first)
	w.ids = append(w.ids, end)
	w.second = len(w.ids)
	add(heading)
	add(second)
	w.ids = append(w.ids, end)
	return w
}

// run fills in the scores of all windows. Each is by itself, so that neither their
// order nor the number of processors shows.
func (m *model) run(ctx context.Context, plans []plan) error {
	var g errgroup.Group
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for _, p := range plans {
		for _, w := range p.windows {
			g.Go(func() error {
				if ctx.Err() == nil {
					w.scores = m.net.Run(w.ids, w.second)
				}
				return ctx.Err()
			})
		}
	}
	return g.Wait()
}

// relation takes from every window what it has for the claim and against it.
func (p *plan) relation() Relation {
	var entailed, contradicted float64
	for _, w := range p.windows {
		said := w.scores.Relation
		bert.Softmax(said[:])
		entailed, contradicted = max(entailed, float64(said[0])), max(contradicted, float64(said[2]))
	}
	return Relation{Entailed: entailed, Neutral: max(0, 1-entailed-contradicted), Contradicted: contradicted}
}

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
