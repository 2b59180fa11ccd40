// Package stat holds the small models that the program carries, which are fitted to
// measured data: a sum of shallow trees and the two curves of calibration. A model is
// data that people can read, with the command that made it. Fitting is the affair of
// package eval/metric.
package stat

import (
	"math"
	"slices"
)

// Bin is the forecasts of one interval of probability: how many, their mean, and the
// share of them that came true.
type Bin struct {
	Low, High  float64
	N          int
	Said, True float64
}

// Isotonic is a curve that never falls: Y at the points X, which rise, straight between
// them and level beyond the ends.
type Isotonic struct {
	X []float64 `json:"x"`
	Y []float64 `json:"y"`
}

// At is the value of the curve; without points it is x itself.
func (c Isotonic) At(x float64) float64 {
	n := len(c.X)
	if n == 0 {
		return x
	}
	i, found := slices.BinarySearch(c.X, x)
	switch {
	case found:
		return c.Y[i]
	case i == 0:
		return c.Y[0]
	case i == n:
		return c.Y[n-1]
	}
	share := (x - c.X[i-1]) / (c.X[i] - c.X[i-1])
	return c.Y[i-1] + share*(c.Y[i]-c.Y[i-1])
}

// Platt is a sigmoid: the probability is 1/(1+exp(A·x+B)).
type Platt struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// At is the probability at x.
func (p Platt) At(x float64) float64 { return Sigmoid(-(p.A*x + p.B)) }

// Sigmoid is the probability of log-odds.
func Sigmoid(v float64) float64 {
	if v < 0 {
		e := math.Exp(v)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-v))
}
