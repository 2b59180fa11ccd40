package bert

import (
	"math"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/kernel"
)

// maxWeight bounds every number of a model: real ones are far below, and no sum of
// the forward pass can become infinite.
const maxWeight = 1000

// maxTable bounds the table of tokens, the largest part of a model.
const maxTable = 1 << 30

// shape is what a model is apart from its weights.
type shape struct {
	hidden, heads, inner int
	depth                int // layers
	vocabulary           int
	positions            int
	window               int  // tokens of a text that are read
	first                bool // the first row is the vector, not the mean of all
	lower, stripAccents  bool
	splitHan             bool
	pair                 bool // two texts are read together, and heads speak of them
	eps                  float32
}

// encoder is a shape with its weights.
type encoder struct {
	shape
	tokens, places table
	kind           []float32 // of a text that stands alone; of a pair, those of both
	looked         normal
	layers         []layer
	says           heads // of a pair
}

type layer struct {
	qkv, out, up, down kernel.Matrix
	attended, done     normal
}

type normal struct{ gain, shift []float32 }

// table has rows of int8, each with what a step stands for.
type table struct {
	scale []float32
	bytes []byte
}

func (t *table) row(dst []float32, i int) {
	scale := t.scale[i]
	for j, b := range t.bytes[i*len(dst):][:len(dst)] {
		dst[j] = float32(float32(int8(b)) * scale)
	}
}

// check holds a shape to the limits that keep sizes and sums in bounds.
func (s *shape) check() error {
	for _, f := range []struct {
		name           string
		value, low, up int
		step           int
	}{
		{"hidden_size", s.hidden, 16, 4096, 16},
		{"num_attention_heads", s.heads, 1, 256, 1},
		{"intermediate_size", s.inner, 16, 16384, 16},
		{"num_hidden_layers", s.depth, 1, 48, 1},
		{"vocab_size", s.vocabulary, 3, 1 << 20, 1},
		{"max_position_embeddings", s.positions, 2, 8192, 1},
		{"max_seq_length", s.window, 2, s.positions, 1},
	} {
		if f.value < f.low || f.value > f.up || f.value%f.step != 0 {
			of := ""
			if f.step > 1 {
				of = " in steps of 16"
			}
			return invalid(f.name, "%d is not within %d and %d%s", f.value, f.low, f.up, of)
		}
	}
	if s.hidden%(s.heads*kernel.Panel) != 0 {
		return invalid("num_attention_heads", "%d heads do not share a hidden size of %d in steps of 16", s.heads, s.hidden)
	}
	if int64(s.vocabulary)*int64(s.hidden) > maxTable {
		return invalid("vocab_size", "%d rows of %d are more than %d numbers", s.vocabulary, s.hidden, maxTable)
	}
	if !(s.eps >= 0 && s.eps < 1) {
		return invalid("layer_norm_eps", "%g is not within 0 and 1", s.eps)
	}
	return nil
}

// steps turns a row into int8 and gives what one of them stands for.
func steps(dst []int8, row []float32) float32 {
	var top float32
	for _, v := range row {
		top = max(top, v, -v)
	}
	scale := top / 127
	if scale == 0 {
		clear(dst)
		return 0
	}
	for i, v := range row {
		dst[i] = int8(max(-127, min(127, math.RoundToEven(float64(v)/float64(scale)))))
	}
	return scale
}

// newTable turns rows of n numbers into int8.
func newTable(rows []float32, n int) table {
	t := table{make([]float32, len(rows)/n), make([]byte, len(rows))}
	short := make([]int8, n)
	for i := range t.scale {
		t.scale[i] = steps(short, rows[i*n:][:n])
		for j, v := range short {
			t.bytes[i*n+j] = byte(v)
		}
	}
	return t
}

// fill turns rows of weights into those of a matrix, from output o on.
func fill(m *kernel.Matrix, o int, rows, bias []float32) {
	short := make([]int8, m.In)
	for r, b := range bias {
		m.Scale[o+r] = steps(short, rows[r*m.In:][:m.In])
		m.Bias[o+r] = b
		for i, v := range short {
			m.Weights[m.Place(o+r, i)] = byte(v)
		}
	}
}

func newMatrix(in, out int) kernel.Matrix {
	return kernel.Matrix{In: in, Out: out, Weights: make([]byte, in*out), Scale: make([]float32, out), Bias: make([]float32, out)}
}

func invalid(field, format string, args ...any) error {
	e := marchwarden.Errorf(marchwarden.CodeInvalid, format, args...)
	e.Field = field
	return e
}
