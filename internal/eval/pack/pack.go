// Package pack makes the packed files of weights that the program carries, in the form that
// embed/bert reads: a sentence model of a folder with a model of the BERT family, and the reader
// of what tools/reader/train.py writes. It stands in the lab, so that the program has no part of it.
package pack

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
)

// Vectors reads a model of the BERT family from a folder:
//
//	config.json                  sizes, layers, heads, layer_norm_eps; hidden_act must be gelu
//	model.safetensors            F32, F16 or BF16
//	vocab.txt or tokenizer.json  the vocabulary
//	tokenizer_config.json        do_lower_case, strip_accents, tokenize_chinese_chars (optional; all of them true)
//	sentence_bert_config.json    max_seq_length (optional; else 256)
//	1_Pooling/config.json        the mean of all tokens (optional)
//
// It gives the packed file and the vocabulary with one token a line. A file that is missing,
// malformed or of another family is a *marchwarden.Error with CodeInvalid and the file or field.
func Vectors(fsys fs.FS) (packed []byte, vocabulary string, err error) {
	enc, words, err := readFolder(fsys)
	if err != nil {
		return nil, "", err
	}
	return enc.packed(), strings.Join(words, "\n") + "\n", nil
}

// maxWeight bounds every number of a model: real ones are far below, and no sum of
// the forward pass can become infinite.
const maxWeight = 1000

// maxTable bounds the table of tokens, the largest part of a model.
const maxTable = 1 << 30

// encoder is a shape with its weights.
type encoder struct {
	bert.Shape
	tokens, places table
	kind           []float32 // of a text that stands alone; of a pair, those of both
	looked         normal
	layers         []layer
	pool           bert.Matrix // of a pair, as what follows
	rows, bias     []float32
}

type layer struct {
	qkv, out, up, down bert.Matrix
	attended, done     normal
}

type normal struct{ gain, shift []float32 }

// table has rows of int8, each with what a step stands for.
type table struct {
	scale []float32
	bytes []byte
}

// packed is the packed file, in the order that bert describes.
func (e *encoder) packed() []byte {
	w := writer(e.head())
	if !e.Pair {
		w.table(e.tokens)
	}
	w.table(e.places)
	w.floats(e.kind)
	w.norm(e.looked)
	for _, l := range e.layers {
		for _, m := range []bert.Matrix{l.qkv, l.out, l.up, l.down} {
			w.matrix(m)
		}
		w.norm(l.attended)
		w.norm(l.done)
	}
	if e.Pair {
		w.matrix(e.pool)
		w.floats(e.rows)
		w.floats(e.bias)
	}
	return w
}

func (e *encoder) head() []byte {
	flags := uint32(0b01110) // texts are folded
	if e.Pair {
		flags |= 0b10000
	}
	b := []byte("MWQ8")
	for _, w := range [15]uint32{2, uint32(e.Hidden), uint32(e.Heads), uint32(e.Inner), uint32(e.Depth),
		uint32(e.Vocabulary), uint32(e.Positions), uint32(e.Window), flags, math.Float32bits(e.Eps)} {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

type writer []byte

func (w *writer) floats(all []float32) {
	for _, v := range all {
		*w = binary.LittleEndian.AppendUint32(*w, math.Float32bits(v))
	}
}

func (w *writer) table(t table) {
	w.floats(t.scale)
	*w = append(*w, t.bytes...)
}

func (w *writer) norm(n normal) {
	w.floats(n.gain)
	w.floats(n.shift)
}

func (w *writer) matrix(m bert.Matrix) {
	w.floats(m.Scale)
	w.floats(m.Bias)
	*w = append(*w, m.Weights...)
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
func fill(m *bert.Matrix, o int, rows, bias []float32) {
	short := make([]int8, m.In)
	for r, b := range bias {
		m.Scale[o+r] = steps(short, rows[r*m.In:][:m.In])
		m.Bias[o+r] = b
		for i, v := range short {
			m.Weights[m.Place(o+r, i)] = byte(v)
		}
	}
}

func newMatrix(in, out int) bert.Matrix {
	return bert.Matrix{In: in, Out: out, Weights: make([]byte, in*out), Scale: make([]float32, out), Bias: make([]float32, out)}
}

// check holds a shape to the limits that keep sizes and sums in bounds.
func (e *encoder) check() error {
	for _, f := range []struct {
		name           string
		value, low, up int
		step           int
	}{
		{"hidden_size", e.Hidden, 16, 4096, 16},
		{"num_attention_heads", e.Heads, 1, 256, 1},
		{"intermediate_size", e.Inner, 16, 16384, 16},
		{"num_hidden_layers", e.Depth, 1, 48, 1},
		{"vocab_size", e.Vocabulary, 3, 1 << 20, 1},
		{"max_position_embeddings", e.Positions, 2, 8192, 1},
		{"max_seq_length", e.Window, 2, e.Positions, 1},
	} {
		if f.value < f.low || f.value > f.up || f.value%f.step != 0 {
			of := ""
			if f.step > 1 {
				of = " in steps of 16"
			}
			return invalid(f.name, "%d is not within %d and %d%s", f.value, f.low, f.up, of)
		}
	}
	if e.Hidden%(e.Heads*bert.Panel) != 0 {
		return invalid("num_attention_heads", "%d heads do not share a hidden size of %d in steps of 16", e.Heads, e.Hidden)
	}
	if int64(e.Vocabulary)*int64(e.Hidden) > maxTable {
		return invalid("vocab_size", "%d rows of %d are more than %d numbers", e.Vocabulary, e.Hidden, maxTable)
	}
	if !(e.Eps >= 0 && e.Eps < 1) {
		return invalid("layer_norm_eps", "%g is not within 0 and 1", e.Eps)
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	e := marchwarden.Errorf(marchwarden.CodeInvalid, format, args...)
	e.Field = field
	return e
}

// Reader makes the packed file of a model of two texts that reads window tokens
// at a time. layers is what tools/reader/train.py writes: matrices as int8 by row,
// each with its scale, and floats for the rest. embedder is the packed file of the
// model that it was trained from, whose shape and tokens it has.
func Reader(layers, embedder []byte, window int) ([]byte, error) {
	f, err := parseTensors(layers)
	if err != nil {
		return nil, err
	}
	e := &encoder{Shape: bert.ShapeOf(embedder)}
	e.Window, e.Pair = window, true
	if err := e.check(); err != nil {
		return nil, err
	}
	if err := e.readCross(&tensors{file: f}); err != nil {
		return nil, err
	}
	return e.packed(), nil
}

// readCross fills in the weights by the names of train.py.
func (e *encoder) readCross(r *tensors) error {
	h := e.Hidden
	e.places = r.table("pos.weight", e.Positions, h)
	e.kind = r.get("typ.weight", 2, h)
	e.looked = r.normal("n0", h)
	e.layers = make([]layer, e.Depth)
	for i := range e.layers {
		name := fmt.Sprintf("layers.%d.", i)
		e.layers[i] = layer{
			qkv: r.packed(h, 3*h, name+"qkv"), out: r.packed(h, h, name+"out"), attended: r.normal(name+"n1", h),
			up: r.packed(h, e.Inner, name+"up"), down: r.packed(e.Inner, h, name+"down"), done: r.normal(name+"n2", h),
		}
	}
	e.pool = r.packed(h, h, "pool")
	for _, head := range []struct {
		name string
		rows int
	}{{"nli", 3}, {"ans", 1}, {"rel", 1}, {"span", 2}} {
		e.rows = append(e.rows, r.get(head.name+".weight", head.rows, h)...)
		e.bias = append(e.bias, r.get(head.name+".bias", head.rows)...)
	}
	if r.err != nil {
		return r.err
	}
	if over := fmt.Sprintf("layers.%d.qkv.weight", e.Depth); r.file.has(over) {
		return invalid(over, "more layers than the %d of the embedder", e.Depth)
	}
	return nil
}
