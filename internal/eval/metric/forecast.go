package metric

import (
	"cmp"
	"math"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

// Bin is the forecasts of one interval of probability: how many, their mean, and the
// share of them that came true.
type Bin struct {
	Low, High  float64
	N          int
	Said, True float64
}

// Bins puts forecasts into n intervals of equal width; an upper bound belongs to the
// interval below it, and 0 to the first. Empty intervals are there, with N 0.
func Bins(p []float64, y []bool, n int) []Bin {
	bins := make([]Bin, n)
	for i := range bins {
		bins[i].Low, bins[i].High = float64(i)/float64(n), float64(i+1)/float64(n)
	}
	for i, v := range p {
		b := &bins[min(n-1, max(0, int(math.Ceil(v*float64(n)))-1))]
		b.N++
		b.Said += v
		if y[i] {
			b.True++
		}
	}
	for i := range bins {
		bins[i].Said, bins[i].True = ratio(bins[i].Said, float64(bins[i].N)), ratio(bins[i].True, float64(bins[i].N))
	}
	return bins
}

// ECE is the expected calibration error: how far, on average over the forecasts, what
// is said in an interval lies from what came true in it.
func ECE(p []float64, y []bool, bins int) float64 {
	sum := 0.0
	for _, b := range Bins(p, y, bins) {
		sum += float64(b.N) * math.Abs(b.Said-b.True)
	}
	return ratio(sum, float64(len(p)))
}

// Brier is the mean squared distance of forecasts from what came true.
func Brier(p []float64, y []bool) float64 {
	sum := 0.0
	for i, v := range p {
		d := v - number(y[i])
		sum += d * d
	}
	return ratio(sum, float64(len(p)))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// FitIsotonic fits the curve that never falls and lies closest to the outcomes, by
// pooling neighbours that are out of order. A level stretch keeps its two ends as points.
func FitIsotonic(x []float64, y []bool) stat.Isotonic {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	type block struct{ low, high, sum, n float64 }
	var blocks []block
	for i := 0; i < len(order); {
		b := block{low: x[order[i]], high: x[order[i]]}
		for ; i < len(order) && x[order[i]] == b.low; i++ { // equal scores cannot be told apart
			b.sum += number(y[order[i]])
			b.n++
		}
		blocks = append(blocks, b)
		for k := len(blocks) - 1; k > 0 && blocks[k-1].sum*blocks[k].n >= blocks[k].sum*blocks[k-1].n; k-- {
			blocks[k-1].high = blocks[k].high
			blocks[k-1].sum += blocks[k].sum
			blocks[k-1].n += blocks[k].n
			blocks = blocks[:k]
		}
	}
	var c stat.Isotonic
	for _, b := range blocks {
		c.X, c.Y = append(c.X, b.low), append(c.Y, b.sum/b.n)
		if b.high > b.low {
			c.X, c.Y = append(c.X, b.high), append(c.Y, b.sum/b.n)
		}
	}
	return c
}

// FitPlatt fits the sigmoid by maximum likelihood, with targets drawn in a little from
// 0 and 1, as many as there are rows to say so, so that rows which can be told apart
// without error do not make it a step.
func FitPlatt(x []float64, y []bool) stat.Platt {
	yes := 0.0
	for _, v := range y {
		yes += number(v)
	}
	no := float64(len(y)) - yes
	high, low := (yes+1)/(yes+2), 1/(no+2)
	p := stat.Platt{B: math.Log((no + 1) / (yes + 1))}
	for range 100 { // Newton's method; the problem is convex
		var ga, gb, haa, hab, hbb float64
		for i, v := range x {
			t := low
			if y[i] {
				t = high
			}
			q := p.At(v)
			w := max(q*(1-q), 1e-12)
			ga += v * (t - q)
			gb += t - q
			haa += v * v * w
			hab += v * w
			hbb += w
		}
		haa, hbb = haa+1e-9, hbb+1e-9
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		if math.IsNaN(da) || math.IsNaN(db) {
			break
		}
		p.A, p.B = p.A-da, p.B-db
		if math.Abs(da)+math.Abs(db) < 1e-10 {
			break
		}
	}
	return p
}
