package kernel

// avx512 is avx2 with sixteen numbers at a time where most of the work is, and with
// the sums of products of integers in one instruction. Where there is too little for
// its wide steps, it does as avx2 does.
var avx512 = Kernel{
	Name:     "avx512",
	Quantise: quantiseAVX2,
	Linear:   linearAVX512,
	Product:  productAVX512,
	ExpSum:   expSumAVX512,
	GELU:     geluAVX512,
	Norm:     normAVX2,
}

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
	eights(x)
	top := maximum(&x[0], len(x))
	if len(x)%16 != 0 {
		return expSums(&x[0], len(x), top, scale, &spread)
	}
	return expSums16(&x[0], len(x), top, scale, &spread)
}

func geluAVX512(x []float32) {
	eights(x)
	if len(x)%16 != 0 {
		gelus(&x[0], len(x), &spread)
		return
	}
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
