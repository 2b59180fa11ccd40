// Package embed says what a sentence vector is and what makes one. It owns the
// interface that search and the extractive reasoner are written against, the cosine, a
// cache in front of any embedder with its store on disk. It knows no model: the one in the
// binary is in embed/bert.
package embed

import (
	"context"
	"fmt"
)

// Vector is the place of a text among all texts, of length one. A vector is shared
// between callers and is not to be written to.
type Vector []float32

// Dot is the cosine of the angle between two vectors of one model: 1 for the same
// text, near 0 for texts that have nothing to do with each other. Vectors of
// different lengths are of different models and have a cosine of 0.
func (v Vector) Dot(w Vector) float64 {
	if len(v) != len(w) {
		return 0
	}
	// Four sums in a fixed order; the conversions keep compilers from fusing the
	// steps, so that the cosine has the same bits on every machine.
	var s [4]float64
	i := 0
	for ; i+4 <= len(v); i += 4 {
		a, b := v[i:i+4:i+4], w[i:i+4:i+4]
		s[0] += float64(float64(a[0]) * float64(b[0]))
		s[1] += float64(float64(a[1]) * float64(b[1]))
		s[2] += float64(float64(a[2]) * float64(b[2]))
		s[3] += float64(float64(a[3]) * float64(b[3]))
	}
	for ; i < len(v); i++ {
		s[0] += float64(float64(v[i]) * float64(w[i]))
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// Embedder turns texts into vectors. It gives the same bits for the same text on every machine: what
// it says can be computed again and needs no record. Implementations are safe for concurrent use.
type Embedder interface {
	// ID names the model and its version, as "minilm-l6-v2-q8/1". Two embedders
	// with the same ID give vectors that may be compared; it enters cache keys and
	// the trace.
	ID() string

	// Embed gives one vector for each text, in order. A text over the model's
	// window is cut. It gives all vectors or an error, which is ctx's own where
	// ctx ended.
	Embed(ctx context.Context, texts []string) ([]Vector, error)
}

// Store keeps vectors by model and content. Implementations are safe for
// concurrent use.
type Store interface {
	// Get gives one vector for each text, in order, nil where none is known.
	Get(model string, texts []string) ([]Vector, error)

	// Put keeps the vectors of the texts. It may forget any of them at any time.
	Put(model string, texts []string, vectors []Vector) error
}

// Cached is e with a store in front of it: a text is embedded once, and a text
// that stands twice in a call is embedded once, too. Callers of one process make vectors in
// turns and find those of the others, so that a library which all of them ask is embedded
// once. The ID is that of e. A store that fails costs time,
// never the result.
func Cached(e Embedder, s Store) Embedder { return cached{Embedder: e, store: s} }

type cached struct {
	Embedder
	store Store
}

// turnTexts is how many texts a turn is for, about a second's work, so that little is lost
// when the process ends.
const turnTexts = 32

// making is full during a turn.
var making = make(chan struct{}, 1)

// Embed gives what the store knows and asks the embedder for the rest.
func (c cached) Embed(ctx context.Context, texts []string) ([]Vector, error) {
	known := make(map[string]Vector, len(texts))
	for missing := c.look(texts, known); len(missing) > 0; {
		var err error
		if missing, err = c.turn(ctx, missing, known); err != nil {
			return nil, err
		}
	}
	out := make([]Vector, len(texts))
	for i, t := range texts {
		out[i] = known[t]
	}
	return out, ctx.Err()
}

// turn makes some of the missing vectors that were not made by others meanwhile, and
// says which are missing still.
func (c cached) turn(ctx context.Context, missing []string, known map[string]Vector) ([]string, error) {
	select {
	case making <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-making }()
	if missing = c.look(missing, known); len(missing) == 0 {
		return nil, nil
	}
	some := missing[:min(len(missing), turnTexts)]
	made, err := c.Embedder.Embed(ctx, some)
	if err != nil {
		return nil, err
	}
	if len(made) != len(some) {
		return nil, fmt.Errorf("embed: %s gave %d vectors for %d texts", c.ID(), len(made), len(some))
	}
	_ = c.store.Put(c.ID(), some, made) // what cannot be kept is made again next time
	for i, t := range some {
		known[t] = made[i]
	}
	return missing[len(some):], nil
}

// look asks the store for texts and returns those that it does not know, each once.
func (c cached) look(texts []string, known map[string]Vector) (missing []string) {
	found, err := c.store.Get(c.ID(), texts)
	if err != nil || len(found) != len(texts) {
		found = make([]Vector, len(texts))
	}
	listed := map[string]bool{}
	for i, t := range texts {
		switch {
		case found[i] != nil:
			known[t] = found[i]
		case !listed[t]:
			listed[t] = true
			missing = append(missing, t)
		}
	}
	return missing
}
