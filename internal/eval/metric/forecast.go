package metric

import "math"

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
