package bert

import (
	"math"
	"runtime"
	"sync"
)

// Shape is what a model is apart from its weights.
type Shape struct {
	Hidden, Heads, Inner int
	Depth                int // layers
	Vocabulary           int
	Positions            int
	Window               int  // tokens of a text that are read
	Pair                 bool // two texts are read together, and heads speak of them
	Eps                  float32
}

// encoder is a shape with its weights.
type encoder struct {
	Shape
	tokens, places table
	kind           []float32 // of a text that stands alone; of a pair, those of both
	looked         normal
	layers         []layer
	says           heads // of a pair
}

type layer struct {
	qkv, out, up, down Matrix
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

// masked is a score that no position can have: what is not there is not attended to.
const masked = -1e30

// scratch is the room that one run needs. It grows and is used again.
type scratch struct {
	x     []float32 // the state: a row for each token
	qkv   []float32 // queries, keys and values, side by side
	mixed []float32 // what attention gives
	delta []float32 // what is added to the state
	inner []float32 // the wide layer
	keys  []float32 // the keys of one head, a column for each token
	score []float32 // of one head, a row for each token
	short []int16   // a quantised input, and by row what one of its steps stands for
	steps []float32
}

// passes are those at once, of all models of the process: more than there are processors
// are not faster, and each needs megabytes. spare is the room of those that have ended.
var (
	passes = make(chan struct{}, runtime.GOMAXPROCS(0))
	spare  = sync.Pool{New: func() any { return &scratch{} }}
)

// room waits until a pass may run and gives it scratch, until done.
func room() (s *scratch, done func()) {
	passes <- struct{}{}
	s = spare.Get().(*scratch)
	return s, func() {
		spare.Put(s)
		<-passes
	}
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// run leaves the last hidden state of the tokens in s.x; from second on, they are
// of the second of two texts. Kernels want an even number of rows: an odd number
// gets one more, which no row attends to.
func (e *encoder) run(k *Kernel, s *scratch, ids []int32, second int) {
	n, h := len(ids), e.Hidden
	rows, cols := n+n&1, (n+Panel-1)/Panel*Panel
	s.x, s.mixed, s.delta = grow(s.x, rows*h), grow(s.mixed, rows*h), grow(s.delta, rows*h)
	s.qkv, s.inner = grow(s.qkv, rows*3*h), grow(s.inner, rows*e.Inner)
	s.keys, s.score = grow(s.keys, h/e.Heads*cols), grow(s.score, rows*cols)
	s.short, s.steps = grow(s.short, rows*max(h, e.Inner)), grow(s.steps, rows)

	e.look(k, s, ids, second)
	for i := range e.layers {
		l := &e.layers[i]
		linear(k, s, s.qkv, s.x, &l.qkv)
		e.attend(k, s, n, cols)
		linear(k, s, s.delta, s.mixed, &l.out)
		e.norm(k, s, &l.attended)
		linear(k, s, s.inner, s.x, &l.up)
		k.GELU(s.inner)
		linear(k, s, s.delta, s.inner, &l.down)
		e.norm(k, s, &l.done)
	}
}

// look fills the state with the rows of the tokens, their places and their kind.
func (e *encoder) look(k *Kernel, s *scratch, ids []int32, second int) {
	h, kind := e.Hidden, e.kind[:e.Hidden]
	clear(s.x[len(ids)*h:])
	clear(s.delta[len(ids)*h:])
	for t, id := range ids {
		if t == second {
			kind = e.kind[h:]
		}
		x := s.x[t*h:][:h]
		e.tokens.row(x, int(id))
		for i, v := range kind {
			x[i] += v
		}
		e.places.row(s.delta[t*h:][:h], t)
	}
	e.norm(k, s, &e.looked)
}

func (e *encoder) norm(k *Kernel, s *scratch, by *normal) {
	for o := 0; o < len(s.x); o += e.Hidden {
		k.Norm(s.x[o:][:e.Hidden], s.delta[o:][:e.Hidden], by.gain, by.shift, e.Eps)
	}
}

// linear gives y = m·x, the rows of x quantised each by itself.
func linear(k *Kernel, s *scratch, y, x []float32, m *Matrix) {
	rows, limit := len(x)/m.In, Limit(m.In)
	for t := range rows {
		s.steps[t] = k.Quantise(s.short[t*m.In:][:m.In], x[t*m.In:][:m.In], limit)
	}
	k.Linear(y, s.short, s.steps, m, rows)
}

// attend mixes the values of n tokens for every row and head.
func (e *encoder) attend(k *Kernel, s *scratch, n, cols int) {
	h, size := e.Hidden, e.Hidden/e.Heads
	rows := len(s.x) / h
	scale := float32(1 / math.Sqrt(float64(size)))
	for head := 0; head < h; head += size {
		for t := range n {
			for i, v := range s.qkv[t*3*h+h+head:][:size] {
				s.keys[i*cols+t] = v
			}
		}
		queries := Block{Data: s.qkv[head:], Rows: rows, Cols: size, Stride: 3 * h}
		keys := Block{Data: s.keys, Rows: size, Cols: cols, Stride: cols}
		scores := Block{Data: s.score, Rows: rows, Cols: cols, Stride: cols}
		values := Block{Data: s.qkv[2*h+head:], Rows: n, Cols: size, Stride: 3 * h}
		mixed := Block{Data: s.mixed[head:], Rows: rows, Cols: size, Stride: h}

		k.Product(scores, queries, keys, size)
		for t := range rows {
			row := s.score[t*cols:][:cols]
			for i := n; i < cols; i++ {
				row[i] = masked
			}
			s.steps[t] = 1 / k.ExpSum(row, scale)
		}
		k.Product(mixed, scores, values, n)
		for t := range rows {
			by, row := s.steps[t], s.mixed[t*h+head:][:size]
			for i, v := range row {
				row[i] = float32(v * by)
			}
		}
	}
}
