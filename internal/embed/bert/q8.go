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

const (
	flagFirst = 1 << iota
	flagLower
	flagStripAccents
	flagSplitHan
	flagPair
)

// read reads all weights, in the order of the file.
func (e *encoder) read(c *reader) {
	h := e.Hidden
	table := func(name string, t *table, rows int) {
		c.floats(name+".scale", &t.scale, rows)
		c.bytes(name, &t.bytes, rows*h)
	}
	norm := func(name string, n *normal) {
		c.floats(name+".gain", &n.gain, h)
		c.floats(name+".shift", &n.shift, h)
	}
	matrix := func(name string, m *Matrix, in, out int) {
		m.In, m.Out = in, out
		c.floats(name+".scale", &m.Scale, out)
		c.floats(name+".bias", &m.Bias, out)
		c.bytes(name, &m.Weights, in*out)
	}
	kinds := 2
	if !e.Pair {
		kinds = 1
		table("tokens", &e.tokens, e.Vocabulary)
	}
	table("positions", &e.places, e.Positions)
	c.floats("kind", &e.kind, kinds*h)
	norm("looked", &e.looked)
	for i := range e.layers {
		l, name := &e.layers[i], fmt.Sprintf("layer.%d.", i)
		matrix(name+"qkv", &l.qkv, h, 3*h)
		matrix(name+"out", &l.out, h, h)
		matrix(name+"up", &l.up, h, e.Inner)
		matrix(name+"down", &l.down, e.Inner, h)
		norm(name+"attended", &l.attended)
		norm(name+"done", &l.done)
	}
	if e.Pair {
		matrix("pool", &e.says.pool, h, h)
		c.floats("heads", &e.says.rows, outputs*h)
		c.floats("heads.bias", &e.says.bias, outputs)
	}
}

// ShapeOf is the shape of the model in a packed file.
func ShapeOf(packed []byte) (Shape, error) {
	e, err := unpack(packed)
	if err != nil {
		return Shape{}, err
	}
	return e.Shape, nil
}

// unpack reads a packed file. Weights stay where they are in b.
func unpack(b []byte) (*encoder, error) {
	if len(b) < len(magic)+4*headWords || string(b[:len(magic)]) != magic {
		return nil, invalid("weights", "not a packed model")
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[len(magic)+4*i:]) }
	if v := word(0); v != version {
		return nil, invalid("weights", "version %d, and this program reads %d", v, version)
	}
	flags := word(8)
	e := &encoder{Shape: Shape{
		Hidden: int(word(1)), Heads: int(word(2)), Inner: int(word(3)), Depth: int(word(4)),
		Vocabulary: int(word(5)), Positions: int(word(6)), Window: int(word(7)), Eps: math.Float32frombits(word(9)),
		First: flags&flagFirst != 0, Lower: flags&flagLower != 0, StripAccents: flags&flagStripAccents != 0, SplitHan: flags&flagSplitHan != 0,
		Pair: flags&flagPair != 0,
	}}
	if err := e.Check(); err != nil {
		return nil, err
	}
	e.layers = make([]layer, e.Depth)
	r := &reader{b: b[len(magic)+4*headWords:]}
	e.read(r)
	if r.err == nil && len(r.b) > 0 {
		r.err = invalid("weights", "%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, r.err
	}
	return e, nil
}

// reader keeps the first error and reads nothing after it.
type reader struct {
	b   []byte
	err error
}

func (r *reader) bytes(name string, p *[]byte, n int) {
	if r.err == nil && n > len(r.b) {
		r.err = invalid(name, "%d bytes are missing", n-len(r.b))
	}
	if r.err == nil {
		*p, r.b = r.b[:n:n], r.b[n:]
	}
}

func (r *reader) floats(name string, p *[]float32, n int) {
	var b []byte
	if r.bytes(name, &b, 4*n); r.err != nil {
		return
	}
	out := make([]float32, n)
	for i := range out {
		v := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if !(v >= -maxWeight && v <= maxWeight) {
			r.err = invalid(name, "number %d is %g, beyond %d", i, v, maxWeight)
			return
		}
		out[i] = v
	}
	*p = out
}
