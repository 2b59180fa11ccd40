package bert

// neon is Portable with the products of matrices, which are most of the work, four
// and eight numbers at a time. Every 64-bit ARM processor has it.
var neon = func() Kernel {
	k := Portable
	k.Name, k.Linear, k.Product = "neon", linearNEON, productNEON
	return k
}()

func accelerated() []*Kernel { return []*Kernel{&neon} }

func linearNEON(y []float32, x []int16, scale []float32, m *Matrix, rows int) {
	m.fits(y, x, scale, rows)
	in, out := m.In, m.Out
	var sums [4][Panel]int32
	for o := 0; o < out; o += Panel {
		for t := 0; t < rows; t += 4 {
			// Where two rows are left, they are taken twice.
			n := min(4, rows-t)
			row := func(r int) *int16 { return &x[(t+r%n)*in] }
			sums4(row(0), row(1), row(2), row(3), &m.Weights[o*in], in, &sums)
			for r := range n {
				finish(y[(t+r)*out+o:], &sums[r], scale[t+r], m, o)
			}
		}
	}
}

func productNEON(c, a, b Block, k int) {
	if c.Rows == 0 || c.Cols == 0 {
		return
	}
	c.fits(a, b, k)
	for j := 0; j < c.Cols; j += Panel {
		for i := 0; i < c.Rows; i += 2 {
			product2(&c.Data[i*c.Stride+j], c.Stride, &a.Data[i*a.Stride], a.Stride, &b.Data[j], b.Stride, k)
		}
	}
}

//go:noescape
func sums4(x0, x1, x2, x3 *int16, w *byte, in int, sums *[4][Panel]int32)

//go:noescape
func product2(c *float32, cstride int, a *float32, astride int, b *float32, bstride int, k int)
