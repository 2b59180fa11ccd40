// Package bert runs encoders of the BERT family: it owns the forward pass from a
// text to its vector and from two texts to what heads say of them, and the form of the packed
// files of weights, which the lab makes. Weights are of 8
// bits and activations of 16, so that all matrix products are of integers, and a
// result has the same bits on every machine. The tokenizer and the arithmetic are here,
// too, and the sentence encoder that comes with the program; what else comes with it is in
// reader. Files of weights are parts of the program: one that is not sound is a panic.
package bert

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"golang.org/x/sync/errgroup"
)

// MiniLMID names the model and the arithmetic: a change of either that changes a bit of
// any vector changes the number behind the slash.
const MiniLMID = "minilm-l6-v2-q8/1"

// model is an encoder with its tokenizer: an embed.Embedder.
type model struct {
	id     string
	words  *Tokenizer
	enc    *encoder
	kernel *Kernel
}

// Open makes an embedder of a packed file of weights, as q8.go describes it, and a
// vocabulary with one token a line. It keeps packed, which must not change.
func Open(id string, packed []byte, vocabulary string) embed.Embedder {
	return &model{id: id, words: NewTokenizer(vocabulary), enc: unpack(packed), kernel: BestKernel()}
}

// ID names the weights.
func (m *model) ID() string { return m.id }

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
	ids := m.words.Encode(text, m.enc.Window)
	s, done := room()
	defer done()
	m.enc.run(m.kernel, s, ids, len(ids))
	v := make(embed.Vector, m.enc.Hidden)
	m.enc.pool(v, s.x, len(ids))
	return v
}

// pool makes one vector of the rows of a text, of length one.
func (e *encoder) pool(v embed.Vector, x []float32, n int) {
	for t := range n {
		for i, f := range x[t*e.Hidden:][:len(v)] {
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

// The rows of the heads. The first five are of the pooled row, the last two of
// every token.
const (
	rowRelation = 0 // and the two after it
	rowAnswer   = 3
	rowMatter   = 4
	rowStart    = 5
	rowEnd      = 6
	outputs     = 7
)

// heads speak of two texts.
type heads struct {
	pool       Matrix // the first row of the state, before its tanh
	rows, bias []float32
	columns    []float32 // rows, turned for a product: Panel numbers for each of the state
}

func (h *heads) turn(hidden int) {
	h.columns = make([]float32, hidden*Panel)
	for o := range outputs {
		for i, v := range h.rows[o*hidden:][:hidden] {
			h.columns[i*Panel+o] = v
		}
	}
}

// Cross reads two texts together. Its layers are its own; the table of tokens is
// that of an embedder. It is safe for concurrent use, and its results have the same
// bits on every machine.
type Cross struct {
	enc    *encoder
	words  *Tokenizer
	kernel *Kernel
}

// Scores are what the heads say, none of them scaled.
type Scores struct {
	Relation  [3]float32 // the first text entails the second, leaves it open, contradicts it
	Answer    float32    // the second text answers the first
	Relevance float32    // the second text is about the matter of the first
	Start     []float32  // an answer begins with the token
	End       []float32  // an answer ends with the token
}

// OpenCross makes a model of two texts of its packed file, and the packed file and the
// vocabulary of the embedder whose tokens it shares. It keeps both files, which must not
// change.
func OpenCross(packed, embedder []byte, vocabulary string) *Cross {
	enc := unpack(packed)
	enc.tokens = unpack(embedder).tokens
	enc.says.turn(enc.Hidden)
	return &Cross{enc: enc, words: NewTokenizer(vocabulary), kernel: BestKernel()}
}

// With is c with another kernel.
func (c *Cross) With(k *Kernel) *Cross { return &Cross{enc: c.enc, words: c.words, kernel: k} }

// Words is the tokenizer.
func (c *Cross) Words() *Tokenizer { return c.words }

// Run reads tokens, which are at least two and at most a window; from second on,
// they are of the second text.
func (c *Cross) Run(ids []int32, second int) Scores {
	if len(ids) < 2 || len(ids) > c.enc.Window {
		panic(fmt.Sprintf("bert: %d tokens, in a window of %d", len(ids), c.enc.Window))
	}
	s, done := room()
	defer done()
	c.enc.run(c.kernel, s, ids, second)
	return c.enc.speak(c.kernel, s, len(ids))
}

// speak gives what the heads say of the state of n tokens.
func (e *encoder) speak(k *Kernel, s *scratch, n int) Scores {
	const wide = Panel
	h, rows := e.Hidden, len(s.x)/e.Hidden
	columns := Block{Data: e.says.columns, Rows: h, Cols: wide, Stride: wide}
	say := func(x []float32, rows int) []float32 {
		s.score = grow(s.score, rows*wide)
		k.Product(Block{Data: s.score, Rows: rows, Cols: wide, Stride: wide}, Block{Data: x, Rows: rows, Cols: h, Stride: h}, columns, h)
		return s.score
	}
	bias := e.says.bias
	out := Scores{Start: make([]float32, n), End: make([]float32, n)}
	said := say(s.x, rows)
	for t := range n {
		out.Start[t] = said[t*wide+rowStart] + bias[rowStart]
		out.End[t] = said[t*wide+rowEnd] + bias[rowEnd]
	}
	pooled := s.delta[:2*h] // a row and one for the kernel
	linear(k, s, pooled, s.x[:2*h], &e.says.pool)
	Tanh(pooled)
	said = say(pooled, 2)
	for i := range out.Relation {
		out.Relation[i] = said[rowRelation+i] + bias[rowRelation+i]
	}
	out.Answer, out.Relevance = said[rowAnswer]+bias[rowAnswer], said[rowMatter]+bias[rowMatter]
	return out
}
