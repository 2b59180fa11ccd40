// Package bert runs encoders of the BERT family: it owns the forward pass from a
// text to its vector and from two texts to what heads say of them, the packed files
// of weights, and reading a model from a folder. Weights are of 8
// bits and activations of 16, so that all matrix products are of integers, and a
// result has the same bits on every machine. The tokenizer is here, too, the
// arithmetic in embed/kernel, the models that come with the program in embed/minilm
// and in reader.
package bert

import (
	"context"
	"math"
	"runtime"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/kernel"
	"golang.org/x/sync/errgroup"
)

// model is an encoder with its tokenizer: an embed.Pure.
type model struct {
	id     string
	words  *Tokenizer
	enc    *encoder
	kernel *kernel.Kernel
}

// Open makes an embedder of a packed file of weights, as Pack writes it, and a
// vocabulary with one token a line. It keeps packed, which must not change. A file
// that is not whole or not sound is a *marchwarden.Error with CodeInvalid.
func Open(id string, packed []byte, vocabulary string) (embed.Embedder, error) {
	enc, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	if enc.pair {
		return nil, invalid("weights", "a model of two texts is no embedder")
	}
	return newModel(id, enc, ParseVocabulary(vocabulary))
}

func newModel(id string, enc *encoder, vocabulary []string) (embed.Embedder, error) {
	words, err := enc.tokenizer(vocabulary)
	if err != nil {
		return nil, err
	}
	return &model{id: id, words: words, enc: enc, kernel: kernel.Best()}, nil
}

// tokenizer makes that of a vocabulary, with the settings of the encoder.
func (e *encoder) tokenizer(vocabulary []string) (*Tokenizer, error) {
	if len(vocabulary) > e.vocabulary {
		return nil, invalid("vocabulary", "%d tokens, and the weights are for %d", len(vocabulary), e.vocabulary)
	}
	words, err := NewTokenizer(vocabulary, TokenizerConfig{Lower: e.lower, StripAccents: e.stripAccents, SplitHan: e.splitHan})
	if err != nil {
		return nil, invalid("vocabulary", "%v", err)
	}
	return words, nil
}

// ID names the weights.
func (m *model) ID() string { return m.id }

// Pure marks that vectors are the same bits everywhere.
func (m *model) Pure() {}

// Embed runs the encoder on each text, on all processors.
func (m *model) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	out := make([]embed.Vector, len(texts))
	var g errgroup.Group
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for i, text := range texts {
		g.Go(func() error {
			if ctx.Err() == nil {
				out[i] = m.vector(text)
			}
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

func (m *model) vector(text string) embed.Vector {
	ids := m.words.Encode(text, m.enc.window)
	s, done := room()
	defer done()
	m.enc.run(m.kernel, s, ids, len(ids))
	v := make(embed.Vector, m.enc.hidden)
	m.enc.pool(v, s.x, len(ids))
	return v
}

// pool makes one vector of the rows of a text, of length one.
func (e *encoder) pool(v embed.Vector, x []float32, n int) {
	if e.first {
		n = 1
	}
	for t := range n {
		for i, f := range x[t*e.hidden:][:len(v)] {
			v[i] += f
		}
	}
	var sum float64
	for _, f := range v {
		sum += float64(float64(f) * float64(f))
	}
	if sum == 0 {
		return
	}
	inv := 1 / math.Sqrt(sum)
	for i, f := range v {
		v[i] = float32(float64(f) * inv)
	}
}
