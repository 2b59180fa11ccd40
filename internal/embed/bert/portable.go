package bert

import "math"

// Portable runs everywhere and defines what the others compute.
var Portable = Kernel{
	Name:     "portable",
	Quantise: quantise,
	Linear:   linearPlain,
	Product:  product,
	ExpSum:   expSum,
	GELU:     gelu,
	Norm:     normPlain,
}

// lanes are the sums of every eighth number: what a register of AVX holds.
type lanes [8]float32

// sum adds the lanes up as halving a register does.
func (l *lanes) sum() float32 {
	return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

func quantise(dst []int16, x []float32, limit int) float32 {
	var top float32
	for _, v := range x {
		top = max(top, abs(v))
	}
	back, scale := factors(top, limit)
	for i, v := range x {
		dst[i] = int16(math.RoundToEven(float64(float32(v * back))))
	}
	return scale
}

// steps gives the factor from numbers to integers, and back. A row that is all but
// zero is zero: the factor would be infinite.
func factors(top float32, limit int) (to, from float32) {
	if top < 1e-30 {
		return 0, 0
	}
	return float32(limit) / top, top / float32(limit)
}

func abs(v float32) float32 {
	return math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
}

func linearPlain(y []float32, x []int16, scale []float32, m *Matrix, rows int) {
	var sums [Panel]int32 // within their type by Limit
	for o := 0; o < m.Out; o += Panel {
		panel := m.Weights[o*m.In:][:Panel*m.In]
		for t := range rows {
			clear(sums[:])
			for i := 0; i < m.In; i += 2 {
				a, b := int32(x[t*m.In+i]), int32(x[t*m.In+i+1])
				w := panel[i*Panel:][:2*Panel]
				for j := range sums {
					sums[j] += a*int32(int8(w[2*j])) + b*int32(int8(w[2*j+1]))
				}
			}
			finish(y[t*m.Out+o:], &sums, scale[t], m, o)
		}
	}
}

// finish makes the outputs from o on of their sums.
func finish(y []float32, sums *[Panel]int32, scale float32, m *Matrix, o int) {
	for j, sum := range sums {
		y[j] = float32(float32(float32(sum)*m.Scale[o+j])*scale) + m.Bias[o+j]
	}
}

func product(c, a, b Block, k int) {
	for i := range c.Rows {
		row := c.Data[i*c.Stride:][:c.Cols]
		clear(row)
		for n, v := range a.Data[i*a.Stride:][:k] {
			for j, w := range b.Data[n*b.Stride:][:len(row)] {
				row[j] += float32(v * w)
			}
		}
	}
}

func expSum(x []float32, scale float32) float32 {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum lanes
	for i, v := range x {
		e := exp(float32((v - top) * scale))
		x[i] = e
		sum[i%8] += e
	}
	return sum.sum()
}

// The exponential by its series around 0, after taking whole powers of two away.
// ln 2 is in two parts, the first with zeros at its end, so that the difference is
// exact.
const (
	expFloor = -87 // below it, results would lose bits
	log2e    = 1.44269504088896341
	ln2High  = 0.693359375
	ln2Low   = -2.12194440e-4
	exp2     = 1.0 / 2
	exp3     = 1.0 / 6
	exp4     = 1.0 / 24
	exp5     = 1.0 / 120
	exp6     = 1.0 / 720
	exp7     = 1.0 / 5040
)

// exp is for x ≤ 0.
func exp(x float32) float32 {
	x = max(x, expFloor)
	n := float32(math.RoundToEven(float64(float32(x * log2e))))
	r := x - float32(n*ln2High)
	r -= float32(n * ln2Low)
	p := float32(float32(r*exp7) + exp6)
	p = float32(p*r) + exp5
	p = float32(p*r) + exp4
	p = float32(p*r) + exp3
	p = float32(p*r) + exp2
	p = float32(p*r) + 1
	p = float32(p*r) + 1
	return float32(p * math.Float32frombits(uint32(int32(n)+127)<<23))
}

// The tail of the normal distribution by a rational approximation of the error
// function (Abramowitz and Stegun 7.1.26, to 1.5·10⁻⁷), halved.
const (
	tailP  = 0.3275911 / math.Sqrt2
	tailA1 = 0.254829592 / 2
	tailA2 = -0.284496736 / 2
	tailA3 = 1.421413741 / 2
	tailA4 = -1.453152027 / 2
	tailA5 = 1.061405429 / 2
)

// gelu uses x·Φ(x) = max(x, 0) − |x|·Φ(−|x|).
func gelu(x []float32) {
	for i, v := range x {
		a := abs(v)
		t := 1 / (float32(a*tailP) + 1)
		p := float32(t*tailA5) + tailA4
		p = float32(p*t) + tailA3
		p = float32(p*t) + tailA2
		p = float32(p*t) + tailA1
		p = float32(p * t)
		tail := float32(p * exp(float32(float32(a*a)*-0.5)))
		if !(v > 0) {
			v = 0
		}
		x[i] = v - float32(a*tail)
	}
}

func normPlain(x, y, gain, shift []float32, eps float32) {
	var sum lanes
	for i, v := range y {
		s := x[i] + v
		x[i] = s
		sum[i%8] += s
	}
	mean := sum.sum() / float32(len(x))
	var squares lanes
	for i, v := range x {
		d := v - mean
		x[i] = d
		squares[i%8] += float32(d * d)
	}
	inv := inverse(squares.sum()/float32(len(x)), eps)
	for i, d := range x {
		x[i] = float32(float32(d*inv)*gain[i]) + shift[i]
	}
}

// inverse is one over the root of a variance.
func inverse(variance, eps float32) float32 {
	return 1 / float32(math.Sqrt(float64(variance+eps)))
}

// Functions of few numbers have one code for all machines.

// Tanh replaces each x by its hyperbolic tangent, to 2·10⁻⁷.
func Tanh(x []float32) {
	for i, v := range x {
		e := exp(float32(abs(v) * -2))
		t := (1 - e) / (1 + e)
		if v < 0 {
			t = -t
		}
		x[i] = t
	}
}

// Softmax replaces numbers by positive ones whose sum is 1, each the exponential of
// what was there but for a common factor.
func Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	sum := expSum(x, 1)
	for i, v := range x {
		x[i] = v / sum
	}
}
