package bert

import "math"

// avx2 is Portable with eight numbers at a time.
var avx2 = Kernel{
	Name:     "avx2",
	Quantise: quantiseAVX2,
	Linear:   linearAVX2,
	Product:  productAVX2,
	ExpSum:   expSumAVX2,
	GELU:     geluAVX2,
	Norm:     normAVX2,
}

// accelerated gives avx2 where the processor has it and the system keeps its
// registers, and avx512 before it where the same holds.
func accelerated() []*Kernel {
	const osxsave, avx, two, registers = 1 << 27, 1 << 28, 1 << 5, 1<<1 | 1<<2
	if leaves, _, _, _ := cpuid(0, 0); leaves < 7 {
		return nil
	}
	if _, _, cx, _ := cpuid(1, 0); cx&(osxsave|avx) != osxsave|avx || saved()&registers != registers {
		return nil
	}
	if _, bx, _, _ := cpuid(7, 0); bx&two == 0 {
		return nil
	}
	if hasAVX512() {
		return []*Kernel{&avx512, &avx2}
	}
	return []*Kernel{&avx2}
}

// constants are those of portable.go, each as often as a register has lanes, at the
// places that the assembly knows.
type constants [20][8]uint32

var spread = func() (c constants) {
	for i, v := range []float32{
		expFloor, log2e, ln2High, ln2Low, exp7, exp6, exp5, exp4, exp3, exp2, 1, math.Float32frombits(127),
		tailP, tailA5, tailA4, tailA3, tailA2, tailA1, -0.5,
	} {
		for j := range c[i] {
			c[i][j] = math.Float32bits(v)
		}
	}
	for j := range c[19] {
		c[19][j] = 1<<31 - 1 // all but the sign
	}
	return c
}()

// Slices are checked against the sizes before the assembly, which trusts them.

func quantiseAVX2(dst []int16, x []float32, limit int) float32 {
	n := len(x)
	sixteens(x)
	if len(dst) < n {
		panic("kernel: no room for a quantised row")
	}
	to, from := factors(absMax(&x[0], n, &spread), limit)
	round(&dst[0], &x[0], n, to)
	return from
}

func linearAVX2(y []float32, x []int16, scale []float32, m *Matrix, rows int) {
	m.fits(y, x, scale, rows)
	for o := 0; o < m.Out; o += Panel {
		panelAVX2(y, x, scale, m, rows, o)
	}
}

// panelAVX2 gives the outputs from o on that lie side by side.
func panelAVX2(y []float32, x []int16, scale []float32, m *Matrix, rows, o int) {
	in, out := m.In, m.Out
	w := &m.Weights[o*in]
	t := 0
	for ; t+6 <= rows; t += 6 {
		linear6(&x[t*in], in, w, &y[t*out+o], out, &m.Scale[o], &m.Bias[o], &scale[t])
	}
	for ; t < rows; t += 2 {
		linear2(&x[t*in], in, w, &y[t*out+o], out, &m.Scale[o], &m.Bias[o], &scale[t])
	}
}

func productAVX2(c, a, b Block, k int) {
	if c.Rows == 0 || c.Cols == 0 {
		return
	}
	c.fits(a, b, k)
	for j := 0; j < c.Cols; j += Panel {
		i := 0
		for ; i+6 <= c.Rows; i += 6 {
			product6(&c.Data[i*c.Stride+j], c.Stride, &a.Data[i*a.Stride], a.Stride, &b.Data[j], b.Stride, k)
		}
		for ; i < c.Rows; i += 2 {
			product2(&c.Data[i*c.Stride+j], c.Stride, &a.Data[i*a.Stride], a.Stride, &b.Data[j], b.Stride, k)
		}
	}
}

func expSumAVX2(x []float32, scale float32) float32 {
	sixteens(x)
	return expSums(&x[0], len(x), maximum(&x[0], len(x)), scale, &spread)
}

func geluAVX2(x []float32) {
	sixteens(x)
	gelus(&x[0], len(x), &spread)
}

func normAVX2(x, y, gain, shift []float32, eps float32) {
	n := len(x)
	sixteens(x)
	if len(y) < n || len(gain) < n || len(shift) < n {
		panic("kernel: a norm does not fit its row")
	}
	mean := add(&x[0], &y[0], n) / float32(n)
	variance := centre(&x[0], n, mean) / float32(n)
	stretch(&x[0], n, inverse(variance, eps), &gain[0], &shift[0])
}

func sixteens(x []float32) {
	if len(x) == 0 || len(x)%16 != 0 {
		panic("kernel: a row is not of sixteens")
	}
}

//go:noescape
func linear6(x *int16, in int, w *byte, y *float32, out int, scale, bias, steps *float32)

//go:noescape
func linear2(x *int16, in int, w *byte, y *float32, out int, scale, bias, steps *float32)

//go:noescape
func product6(c *float32, cstride int, a *float32, astride int, b *float32, bstride int, k int)

//go:noescape
func product2(c *float32, cstride int, a *float32, astride int, b *float32, bstride int, k int)

//go:noescape
func absMax(x *float32, n int, c *constants) float32

//go:noescape
func round(dst *int16, x *float32, n int, factor float32)

//go:noescape
func maximum(x *float32, n int) float32

//go:noescape
func expSums(x *float32, n int, top, scale float32, c *constants) float32

//go:noescape
func gelus(x *float32, n int, c *constants)

//go:noescape
func add(x, y *float32, n int) float32

//go:noescape
func centre(x *float32, n int, mean float32) float32

//go:noescape
func stretch(x *float32, n int, factor float32, gain, shift *float32)

func cpuid(leaf, sub uint32) (ax, bx, cx, dx uint32)

func saved() uint32

// avx512 is avx2 with sixteen numbers at a time where most of the work is, and with
// the sums of products of integers in one instruction. Where there is too little for
// its wide steps, it does as avx2 does.
var avx512 = func() Kernel {
	k := avx2
	k.Name, k.Linear, k.Product, k.ExpSum, k.GELU = "avx512", linearAVX512, productAVX512, expSumAVX512, geluAVX512
	return k
}()

// wideRows is how many rows are taken at a time.
const wideRows = 12

// hasAVX512 reports whether the processor, which has AVX2, has the instructions for
// avx512 and the system keeps their registers.
func hasAVX512() bool {
	const foundation, words, vnni, registers = 1 << 16, 1 << 30, 1 << 11, 1<<1 | 1<<2 | 1<<5 | 1<<6 | 1<<7
	_, bx, cx, _ := cpuid(7, 0)
	return bx&(foundation|words) == foundation|words && cx&vnni != 0 && saved()&registers == registers
}

// twelves calls f with the rows where twelve begin, so that all rows are covered: the
// last twelve may have been covered in part.
func twelves(rows int, f func(t int)) {
	for t := 0; t < rows; t += wideRows {
		f(min(t, rows-wideRows))
	}
}

func linearAVX512(y []float32, x []int16, scale []float32, m *Matrix, rows int) {
	if rows < wideRows {
		linearAVX2(y, x, scale, m, rows)
		return
	}
	m.fits(y, x, scale, rows)
	in, out := m.In, m.Out
	o := 0
	for ; o+2*Panel <= out; o += 2 * Panel {
		w := &m.Weights[o*in]
		twelves(rows, func(t int) {
			linear12(&x[t*in], in, w, &y[t*out+o], out, &m.Scale[o], &m.Bias[o], &scale[t])
		})
	}
	if o < out {
		panelAVX2(y, x, scale, m, rows, o)
	}
}

func productAVX512(c, a, b Block, k int) {
	if c.Rows < wideRows || c.Cols == 0 {
		productAVX2(c, a, b, k)
		return
	}
	c.fits(a, b, k)
	for j := 0; j < c.Cols; j += Panel {
		twelves(c.Rows, func(i int) {
			product12(&c.Data[i*c.Stride+j], c.Stride, &a.Data[i*a.Stride], a.Stride, &b.Data[j], b.Stride, k)
		})
	}
}

func expSumAVX512(x []float32, scale float32) float32 {
	sixteens(x)
	return expSums16(&x[0], len(x), maximum(&x[0], len(x)), scale, &spread)
}

func geluAVX512(x []float32) {
	sixteens(x)
	gelus16(&x[0], len(x), &spread)
}

//go:noescape
func linear12(x *int16, in int, w *byte, y *float32, out int, scale, bias, steps *float32)

//go:noescape
func product12(c *float32, cstride int, a *float32, astride int, b *float32, bstride int, k int)

//go:noescape
func expSums16(x *float32, n int, top, scale float32, c *constants) float32

//go:noescape
func gelus16(x *float32, n int, c *constants)
