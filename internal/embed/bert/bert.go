// Package bert runs encoders of the BERT family: it owns the forward pass from a
// text to its vector and from two texts to what heads say of them, the packed files
// of weights, and reading a model from a folder. Weights are of 8
// bits and activations of 16, so that all matrix products are of integers, and a
// result has the same bits on every machine. The tokenizer and the arithmetic are here,
// too; the models that come with the program are in embed/minilm and in reader.
package bert

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"golang.org/x/sync/errgroup"
)

// model is an encoder with its tokenizer: an embed.Pure.
type model struct {
	id     string
	words  *Tokenizer
	enc    *encoder
	kernel *Kernel
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
	return &model{id: id, words: words, enc: enc, kernel: BestKernel()}, nil
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

// OpenCross makes a model of two texts of its packed file, as PackCross writes it,
// and the packed file and the vocabulary of the embedder whose tokens it shares. It
// keeps both files, which must not change. A file that is not whole or not sound,
// or does not go with the other, is a *marchwarden.Error with CodeInvalid.
func OpenCross(packed, embedder []byte, vocabulary string) (*Cross, error) {
	enc, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	if !enc.pair {
		return nil, invalid("weights", "an embedder reads no two texts")
	}
	under, err := unpack(embedder)
	if err != nil {
		return nil, err
	}
	if under.pair || under.hidden != enc.hidden || under.vocabulary != enc.vocabulary {
		return nil, invalid("weights", "made for an embedder with %d tokens of %d numbers", enc.vocabulary, enc.hidden)
	}
	enc.tokens = under.tokens
	enc.says.turn(enc.hidden)
	words, err := enc.tokenizer(ParseVocabulary(vocabulary))
	if err != nil {
		return nil, err
	}
	return &Cross{enc: enc, words: words, kernel: BestKernel()}, nil
}

// With is c with another kernel.
func (c *Cross) With(k *Kernel) *Cross { return &Cross{enc: c.enc, words: c.words, kernel: k} }

// Words is the tokenizer.
func (c *Cross) Words() *Tokenizer { return c.words }

// Window is how many tokens are read at a time.
func (c *Cross) Window() int { return c.enc.window }

// Run reads tokens, which are at least two and at most a window; from second on,
// they are of the second text.
func (c *Cross) Run(ids []int32, second int) Scores {
	if len(ids) < 2 || len(ids) > c.enc.window {
		panic(fmt.Sprintf("bert: %d tokens, in a window of %d", len(ids), c.enc.window))
	}
	s, done := room()
	defer done()
	c.enc.run(c.kernel, s, ids, second)
	return c.enc.speak(c.kernel, s, len(ids))
}

// speak gives what the heads say of the state of n tokens.
func (e *encoder) speak(k *Kernel, s *scratch, n int) Scores {
	const wide = Panel
	h, rows := e.hidden, len(s.x)/e.hidden
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

// PackCross makes the packed file of a model of two texts that reads window tokens
// at a time. layers is what tools/reader/train.py writes: matrices as int8 by row,
// each with its scale, and floats for the rest. embedder is the packed file of the
// model that it was trained from, whose shape and tokens it has.
func PackCross(layers, embedder []byte, window int) ([]byte, error) {
	under, err := unpack(embedder)
	if err != nil {
		return nil, err
	}
	f, err := parseTensors(layers)
	if err != nil {
		return nil, err
	}
	e := &encoder{shape: under.shape}
	e.window, e.pair, e.first = window, true, false
	if err := e.check(); err != nil {
		return nil, err
	}
	if err := e.readCross(&tensors{file: f}); err != nil {
		return nil, err
	}
	packed := e.packed()
	_, err = unpack(packed)
	return packed, err
}

// readCross fills in the weights by the names of train.py.
func (e *encoder) readCross(r *tensors) error {
	h := e.hidden
	e.places = r.table("pos.weight", e.positions, h)
	e.kind = r.get("typ.weight", 2, h)
	e.looked = r.normal("n0", h)
	e.layers = make([]layer, e.depth)
	for i := range e.layers {
		name := fmt.Sprintf("layers.%d.", i)
		e.layers[i] = layer{
			qkv: r.packed(h, 3*h, name+"qkv"), out: r.packed(h, h, name+"out"), attended: r.normal(name+"n1", h),
			up: r.packed(h, e.inner, name+"up"), down: r.packed(e.inner, h, name+"down"), done: r.normal(name+"n2", h),
		}
	}
	e.says.pool = r.packed(h, h, "pool")
	for _, head := range []struct {
		name string
		rows int
	}{{"nli", 3}, {"ans", 1}, {"rel", 1}, {"span", 2}} {
		e.says.rows = append(e.says.rows, r.get(head.name+".weight", head.rows, h)...)
		e.says.bias = append(e.says.bias, r.get(head.name+".bias", head.rows)...)
	}
	if r.err != nil {
		return r.err
	}
	if over := fmt.Sprintf("layers.%d.qkv.weight", e.depth); r.file.has(over) {
		return invalid(over, "more layers than the %d of the embedder", e.depth)
	}
	return nil
}
