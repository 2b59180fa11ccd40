package bert

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The packed file, little endian:
//
//	"MWQ8", then 15 words of 32 bits: version, hidden, heads, inner, depth,
//	vocabulary, positions, window, flags, bits of eps, and five zeros
//	tokens, positions: a table each
//	kind: hidden floats
//	norm of what was looked up: gain, shift
//	for each layer: matrices qkv, out, up and down; norms after attention and after
//	the wide layer
//
// The file of a model of two texts has no tokens, which are those of an embedder; it
// has a second kind, and at its end the matrix of the pooler, the rows of the heads
// and their biases.
//
// A table is its scales as floats, then its rows of int8. A matrix is its scales and
// biases as floats, then its weights as Matrix has them, so that they are
// used where they lie.
const (
	magic     = "MWQ8"
	version   = 2
	headWords = 15
)

// The flags of a text that is folded before it is looked up, which every model wants, and
// of a model of two texts.
const (
	flagsFolded = 0b01110
	flagPair    = 0b10000
)

// read reads all weights, in the order of the file.
func (e *encoder) read(w *weights) {
	h := e.Hidden
	rows := func(n int) table { return table{scale: w.floats(n), bytes: w.bytes(n * h)} }
	norm := func() normal { return normal{gain: w.floats(h), shift: w.floats(h)} }
	matrix := func(in, out int) Matrix {
		return Matrix{In: in, Out: out, Scale: w.floats(out), Bias: w.floats(out), Weights: w.bytes(in * out)}
	}
	kinds := 2
	if !e.Pair {
		kinds = 1
		e.tokens = rows(e.Vocabulary)
	}
	e.places, e.kind, e.looked = rows(e.Positions), w.floats(kinds*h), norm()
	for i := range e.layers {
		e.layers[i] = layer{
			qkv: matrix(h, 3*h), out: matrix(h, h), up: matrix(h, e.Inner), down: matrix(e.Inner, h),
			attended: norm(), done: norm(),
		}
	}
	if e.Pair {
		e.says.pool, e.says.rows, e.says.bias = matrix(h, h), w.floats(outputs*h), w.floats(outputs)
	}
}

// ShapeOf is the shape of the model in a packed file.
func ShapeOf(packed []byte) Shape { return unpack(packed).Shape }

// unpack reads a packed file. Weights stay where they are in b.
func unpack(b []byte) *encoder {
	word := func(i int) int { return int(binary.LittleEndian.Uint32(b[len(magic)+4*i:])) }
	flags := word(8)
	if string(b[:len(magic)]) != magic || word(0) != version || flags&^flagPair != flagsFolded {
		panic("bert: the weights are not those of a packed model that this program reads")
	}
	e := &encoder{Shape: Shape{
		Hidden: word(1), Heads: word(2), Inner: word(3), Depth: word(4),
		Vocabulary: word(5), Positions: word(6), Window: word(7), Pair: flags&flagPair != 0, Eps: math.Float32frombits(uint32(word(9))),
	}}
	e.layers = make([]layer, e.Depth)
	rest := weights(b[len(magic)+4*headWords:])
	if e.read(&rest); len(rest) > 0 {
		panic(fmt.Sprintf("bert: %d bytes of weights too many", len(rest)))
	}
	return e
}

// weights is what is left of a packed file.
type weights []byte

func (w *weights) bytes(n int) []byte {
	b := (*w)[:n:n]
	*w = (*w)[n:]
	return b
}

func (w *weights) floats(n int) []float32 {
	out := make([]float32, n)
	_, _ = binary.Decode(w.bytes(4*n), binary.LittleEndian, out) // it is as long
	return out
}
