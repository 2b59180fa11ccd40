package bert

// This part owns the arithmetic: multiplying by a matrix of small integers, attention's
// products, the exponential, GELU and layer normalisation. Every operation is defined down
// to its rounding, so that the portable code and those for AVX2, AVX-512 and NEON give the
// same bits, on every machine: sums of products of integers are exact in any order, sums of
// floats have a fixed order, and nothing of floats is fused. It knows no model and no layer.

// Panel is how many outputs of a matrix lie side by side.
const Panel = 16

// Matrix is a linear layer with weights of 8 bits: y = (W·x)·Scale + Bias.
//
// The weights of Panel outputs stand together, two inputs at a time: the byte at
// ((o/Panel)·In + i&^1)·Panel + 2·(o%Panel) + i&1 is the weight of output o for
// input i. In is a multiple of 8 and Out one of Panel.
type Matrix struct {
	In, Out int
	Weights []byte    // int8, In·Out of them
	Scale   []float32 // what a weight of one stands for, by output
	Bias    []float32 // by output
}

// At is the weight of an output for an input.
func (m *Matrix) At(out, in int) int8 { return int8(m.Weights[m.Place(out, in)]) }

// Place is where in Weights the weight of an output for an input stands.
func (m *Matrix) Place(out, in int) int {
	return (out/Panel*m.In+in&^1)*Panel + 2*(out%Panel) + in&1
}

// fits panics where a slice is too small for rows of input, or a size is not what
// assembly takes: it would write elsewhere.
func (m *Matrix) fits(y []float32, x []int16, scale []float32, rows int) {
	in, out := m.In, m.Out
	if rows%2 != 0 || in%8 != 0 || in == 0 || out%Panel != 0 || len(x) < rows*in || len(y) < rows*out || len(scale) < rows ||
		len(m.Weights) < in*out || len(m.Scale) < out || len(m.Bias) < out {
		panic("kernel: a linear layer does not fit its input")
	}
}

// Limit is the largest quantised input, in absolute value, for which no sum over n
// products with a weight of at most 127 leaves an int32.
func Limit(n int) int { return min(1<<15-1, (1<<31-1)/(127*n)) }

// Kernel is one implementation of the arithmetic. All give the same bits.
//
// Rows are padded: where an operation takes a number of rows, that number is even.
// Lengths of float rows are multiples of Panel.
type Kernel struct {
	Name string

	// Quantise rounds x to integers of at most limit in absolute value and gives
	// what an integer of one stands for: 0 where x is all zero.
	Quantise func(dst []int16, x []float32, limit int) float32

	// Linear gives rows·m.Out numbers: y = (sum of x·w as int32, as float32) ·
	// m.Scale · scale + m.Bias, rounded after each step. x holds rows·m.In
	// integers and scale one number for each row.
	Linear func(y []float32, x []int16, scale []float32, m *Matrix, rows int)

	// Product gives c[i][j] = sum over k of a[i][k]·b[k][j], from k = 0 upwards,
	// starting from 0. The number of columns of c is a multiple of Panel.
	Product func(c, a, b Block, k int)

	// ExpSum replaces each x by exp((x − its largest)·scale), scale > 0, and gives
	// the sum of the new ones.
	ExpSum func(x []float32, scale float32) float32

	// GELU replaces each x by x·Φ(x), to 5·10⁻⁷.
	GELU func(x []float32)

	// Norm adds y to x and brings the sum to mean 0 and variance 1, then scales it
	// by gain and moves it by shift.
	Norm func(x, y, gain, shift []float32, eps float32)
}

// Block is a part of a matrix: Rows times Cols numbers, the rows Stride apart.
type Block struct {
	Data               []float32
	Rows, Cols, Stride int
}

// fits is for c = a·b what it is for a matrix.
func (c *Block) fits(a, b Block, k int) {
	if k == 0 || c.Rows%2 != 0 || c.Cols%Panel != 0 || len(c.Data) < (c.Rows-1)*c.Stride+c.Cols ||
		len(a.Data) < (c.Rows-1)*a.Stride+k || len(b.Data) < (k-1)*b.Stride+c.Cols {
		panic("kernel: the blocks of a product do not fit")
	}
}

// Kernels gives the kernels that this machine runs: the fastest first, Portable last.
func Kernels() []*Kernel { return append(accelerated(), &Portable) }

// BestKernel is the fastest kernel for this machine.
func BestKernel() *Kernel { return Kernels()[0] }
