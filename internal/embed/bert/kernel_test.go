package bert

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func floats(rnd *rand.Rand, n int, size float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64() * size)
	}
	return x
}

func bits(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i, v := range x {
		out[i] = math.Float32bits(v)
	}
	return out
}

// inputs gives rows of n numbers of many kinds.
func inputs(rnd *rand.Rand, n int) [][]float32 {
	all := [][]float32{make([]float32, n)}
	for _, size := range []float64{1e-38, 1e-20, 1e-3, 1, 3, 30, 1e4} {
		all = append(all, floats(rnd, n, size))
	}
	edges := floats(rnd, n, 1)
	for i := range edges {
		edges[i] = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 87, -87, 100, -100, math.SmallestNonzeroFloat32, 2.5, -2.5}[i%13]
	}
	return append(all, edges)
}

// TestKernelsAgree compares every operation of every kernel with the portable one,
// bit by bit.
func TestKernelsAgree(t *testing.T) {
	for _, k := range accelerated() {
		rnd := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{16, 32, 48, 384, 1536} {
			for c, x := range inputs(rnd, n) {
				name := fmt.Sprintf("%s, %d numbers, case %d", k.Name, n, c)
				agree(t, name+", GELU", x, func(p *Kernel, x []float32) float32 { p.GELU(x); return 0 }, k)
				agree(t, name+", ExpSum", x, func(p *Kernel, x []float32) float32 { return p.ExpSum(x, 0.176) }, k)
				y, gain, shift := floats(rnd, n, 1), floats(rnd, n, 1), floats(rnd, n, 1)
				agree(t, name+", Norm", x, func(p *Kernel, x []float32) float32 { p.Norm(x, y, gain, shift, 1e-12); return 0 }, k)
				agree(t, name+", Quantise", x, func(p *Kernel, x []float32) float32 {
					q := make([]int16, n)
					step := p.Quantise(q, x, Limit(n))
					for i, v := range q {
						x[i] = float32(v)
					}
					return step
				}, k)
			}
		}
	}
}

// agree runs an operation by two kernels on copies of x.
func agree(t *testing.T, name string, x []float32, op func(*Kernel, []float32) float32, k *Kernel) {
	t.Helper()
	want, got := append([]float32(nil), x...), append([]float32(nil), x...)
	want = append(want, op(&Portable, want))
	got = append(got, op(k, got))
	if diff := cmp.Diff(bits(want), bits(got)); diff != "" {
		t.Fatalf("%s differs from portable (-want +got):\n%s", name, diff)
	}
}

func matrix(rnd *rand.Rand, in, out int) *Matrix {
	m := &Matrix{In: in, Out: out, Weights: make([]byte, in*out), Scale: floats(rnd, out, 0.01), Bias: floats(rnd, out, 1)}
	for i := range m.Weights {
		m.Weights[i] = byte(int8(rnd.IntN(255) - 127))
	}
	return m
}

// TestLinear compares every kernel with sums in int64, also where all weights and
// inputs are as large as they may be.
func TestLinear(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, size := range []struct{ in, out, rows int }{{16, 16, 2}, {48, 32, 8}, {384, 48, 6}, {1536, 16, 16}, {24, 64, 12}, {384, 96, 14}, {1536, 48, 26}, {64, 32, 36}} {
		for _, worst := range []bool{false, true} {
			m := matrix(rnd, size.in, size.out)
			x := make([]int16, size.in*size.rows)
			limit := Limit(size.in)
			for i := range x {
				x[i] = int16(rnd.IntN(2*limit+1) - limit)
				if worst {
					x[i] = int16(limit)
				}
			}
			if worst {
				for i := range m.Weights {
					m.Weights[i] = byte(127)
					if i/2%3 == 0 {
						m.Weights[i] = 0x81 // -127
					}
				}
			}
			steps := floats(rnd, size.rows, 1e-3)
			want := slow(t, x, steps, m, size.rows)
			for _, k := range Kernels() {
				got := make([]float32, size.rows*size.out)
				k.Linear(got, x, steps, m, size.rows)
				if diff := cmp.Diff(bits(want), bits(got)); diff != "" {
					t.Fatalf("%s %+v worst=%t (-want +got):\n%s", k.Name, size, worst, diff)
				}
			}
		}
	}
}

func slow(t *testing.T, x []int16, steps []float32, m *Matrix, rows int) []float32 {
	var y []float32
	for r := range rows {
		for o := range m.Out {
			var sum int64
			for i := range m.In {
				sum += int64(m.At(o, i)) * int64(x[r*m.In+i])
			}
			if sum != int64(int32(sum)) {
				t.Fatalf("a sum of %d products leaves an int32: %d", m.In, sum)
			}
			y = append(y, float32(float32(float32(sum)*m.Scale[o])*steps[r])+m.Bias[o])
		}
	}
	return y
}

// TestProduct compares every kernel with the sum in its order, on parts of larger
// matrices.
func TestProduct(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, size := range []struct{ rows, cols, k int }{{2, 16, 1}, {8, 32, 32}, {16, 48, 7}, {12, 16, 5}, {26, 32, 40}, {36, 16, 1}} {
		a := Block{Data: floats(rnd, size.rows*(size.k+3), 1), Stride: size.k + 3}
		b := Block{Data: floats(rnd, size.k*(size.cols+5), 1), Stride: size.cols + 5}
		var want []float32
		for i := range size.rows {
			for j := range size.cols {
				var sum float32
				for k := range size.k {
					sum += float32(a.Data[i*a.Stride+k] * b.Data[k*b.Stride+j])
				}
				want = append(want, sum)
			}
		}
		for _, k := range Kernels() {
			c := Block{Data: floats(rnd, size.rows*size.cols, 1), Rows: size.rows, Cols: size.cols, Stride: size.cols}
			k.Product(c, a, b, size.k)
			if diff := cmp.Diff(bits(want), bits(c.Data)); diff != "" {
				t.Fatalf("%s %+v (-want +got):\n%s", k.Name, size, diff)
			}
		}
	}
}

// TestFunctions compares the exponential and GELU with the library's.
func TestFunctions(t *testing.T) {
	for x := float32(-86); x <= 0; x += 1.0 / 256 {
		want := math.Exp(float64(x))
		if got := float64(exp(x)); math.Abs(got/want-1) > 2e-7 {
			t.Fatalf("exp(%g) = %g, want %g", x, got, want)
		}
	}
	for x := float32(-12); x <= 12; x += 1.0 / 256 {
		want := 0.5 * float64(x) * (1 + math.Erf(float64(x)/math.Sqrt2))
		y := []float32{x}
		Portable.GELU(y)
		if math.Abs(float64(y[0])-want) > 5e-7 {
			t.Fatalf("GELU(%g) = %g, want %g", x, y[0], want)
		}
	}
}

func TestTanh(t *testing.T) {
	for x := float32(-50); x <= 50; x += 1.0 / 256 {
		y := []float32{x}
		Tanh(y)
		if want := math.Tanh(float64(x)); math.Abs(float64(y[0])-want) > 2e-7 {
			t.Fatalf("Tanh(%g) = %g, want %g", x, y[0], want)
		}
	}
}

func TestSoftmax(t *testing.T) {
	x := []float32{1, -2, 3.5}
	Softmax(x)
	for i, v := range []float64{1, -2, 3.5} {
		want := math.Exp(v) / (math.Exp(1) + math.Exp(-2) + math.Exp(3.5))
		if math.Abs(float64(x[i])-want) > 1e-6 {
			t.Errorf("number %d is %g, want %g", i, x[i], want)
		}
	}
	Softmax(nil)
}

func TestNorm(t *testing.T) {
	x, y := []float32{1, 2, 3, 4, 5, 6, 7, 8}, make([]float32, 8)
	gain, shift := []float32{2, 2, 2, 2, 2, 2, 2, 2}, []float32{1, 1, 1, 1, 1, 1, 1, 1}
	Portable.Norm(x, y, gain, shift, 0)
	for i, v := range x {
		want := (float64(i)+1-4.5)/math.Sqrt(5.25)*2 + 1
		if math.Abs(float64(v)-want) > 1e-6 {
			t.Errorf("number %d is %g, want %g", i, v, want)
		}
	}
}

// TestLimit holds the promise that no sum overflows, for the sizes there are.
func TestQuantisedLimit(t *testing.T) {
	for n := 2; n <= 16384; n *= 2 {
		if l := int64(Limit(n)); l < 1000 || l > math.MaxInt16 || l*127*int64(n) > math.MaxInt32 {
			t.Errorf("Limit(%d) = %d", n, l)
		}
	}
}

func BenchmarkLinear(b *testing.B) {
	rnd := rand.New(rand.NewPCG(7, 8))
	m := matrix(rnd, 384, 1536)
	const rows = 126
	x, steps := make([]int16, rows*m.In), floats(rnd, rows, 1)
	for i := range x {
		x[i] = int16(rnd.IntN(2000) - 1000)
	}
	y := make([]float32, rows*m.Out)
	for _, k := range Kernels() {
		b.Run(k.Name, func(b *testing.B) {
			for b.Loop() {
				k.Linear(y, x, steps, m, rows)
			}
			b.ReportMetric(float64(b.N)*rows*float64(m.In*m.Out)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}
