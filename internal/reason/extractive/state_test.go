package extractive

import (
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// kept keeps what the models said, from test to test.
var kept = &memory{}

// memory is a store in memory.
type memory struct{ held sync.Map }

func (m *memory) Get(model string, texts []string) ([]embed.Vector, error) {
	out := make([]embed.Vector, len(texts))
	for i, t := range texts {
		v, _ := m.held.Load([2]string{model, t})
		out[i], _ = v.(embed.Vector)
	}
	return out, nil
}

func (m *memory) Put(model string, texts []string, vectors []embed.Vector) error {
	for i, t := range texts {
		m.held.Store([2]string{model, t}, vectors[i])
	}
	return nil
}

func stateOf(question string, set *evidence.Set, l marchwarden.Limits) *reason.State {
	return &reason.State{
		Reader:  reader.New(),
		Vectors: embed.Cached(bert.MiniLM(), kept),
		Request: marchwarden.Request{Question: question}, Limits: l, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Iteration: 1, Evidence: set, Meter: budget.New(l, 0),
	}
}

// excerpts are the citations of a draft in order, each once.
func excerpts(d reason.Draft, set *evidence.Set) []string {
	type key struct {
		n int
		s marchwarden.Span
	}
	seen := map[key]bool{}
	var out []string
	for _, c := range d.Claims {
		for i, id := range c.Passages {
			src, _, _ := set.Passage(id)
			k := key{src.N, c.Spans[i]}
			if seen[k] {
				continue
			}
			seen[k] = true
			e, _ := evidence.Excerpt(src.Text, c.Spans[i])
			out = append(out, e)
		}
	}
	return out
}
