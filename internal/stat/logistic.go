package stat

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Feature is one input of a logistic model: where its values lie, and what one standard
// deviation more of it adds to the log-odds.
type Feature struct {
	Name   string  `json:"name"`
	Mean   float64 `json:"mean"`
	Scale  float64 `json:"scale"`
	Weight float64 `json:"weight"`
}

// Logistic is a linear model of a probability that people can read.
type Logistic struct {
	Made     string    `json:"made"`    // the day it was fitted
	Command  string    `json:"command"` // what fitted it
	Data     string    `json:"data"`    // on what
	Features []Feature `json:"features"`
	Bias     float64   `json:"bias"`
}

// FitLogistic fits the model to outcomes between 0 and 1 by Newton's method, with the
// weights of standardised features held small by l2 per row. Every row has one value for
// each name. A feature that never varies gets no weight.
func FitLogistic(x [][]float64, y []float64, names []string, l2 float64) Logistic {
	m := Logistic{Features: make([]Feature, len(names))}
	z := make([][]float64, len(x))
	for i := range z {
		z[i] = make([]float64, len(names)+1)
		z[i][len(names)] = 1
	}
	for f, name := range names {
		mean, scale := moments(x, f)
		m.Features[f] = Feature{Name: name, Mean: mean, Scale: scale}
		for i := range x {
			z[i][f] = (x[i][f] - mean) / scale
		}
	}
	w := newton(z, y, l2*float64(len(x)))
	for f := range names {
		m.Features[f].Weight = w[f]
	}
	m.Bias = w[len(names)]
	return m
}

// moments are the mean and the standard deviation of a column, the latter 1 where the
// column does not vary.
func moments(x [][]float64, f int) (mean, scale float64) {
	for i := range x {
		mean += x[i][f] / float64(len(x))
	}
	for i := range x {
		scale += (x[i][f] - mean) * (x[i][f] - mean) / float64(len(x))
	}
	if scale < 1e-18 {
		return mean, 1
	}
	return mean, math.Sqrt(scale)
}

// newton finds the weights of maximal likelihood; the last column is the bias, which is
// not held small.
func newton(z [][]float64, y []float64, l2 float64) []float64 {
	if len(z) == 0 {
		return make([]float64, 1)
	}
	n := len(z[0])
	w := make([]float64, n)
	for range 50 {
		grad, hess := make([]float64, n), make([][]float64, n)
		for a := range hess {
			hess[a] = make([]float64, n)
			hess[a][a] = 1e-9
			if a < n-1 {
				grad[a], hess[a][a] = -l2*w[a], hess[a][a]+l2
			}
		}
		for i, row := range z {
			s := 0.0
			for a, v := range row {
				s += w[a] * v
			}
			p := sigmoid(s)
			c := max(p*(1-p), 1e-9)
			for a, v := range row {
				grad[a] += v * (y[i] - p)
				for b := 0; b <= a; b++ {
					hess[a][b] += c * v * row[b]
				}
			}
		}
		step := solve(hess, grad)
		largest := 0.0
		for a := range w {
			w[a] += max(-2, min(2, step[a])) // a first step may be far too long
			largest = max(largest, math.Abs(step[a]))
		}
		if largest < 1e-9 {
			break
		}
	}
	return w
}

// solve solves h·s = g for a symmetric positive h, of which the lower half is given, by
// Cholesky's decomposition. It overwrites both.
func solve(h [][]float64, g []float64) []float64 {
	n := len(g)
	for a := range n {
		for b := 0; b <= a; b++ {
			s := h[a][b]
			for k := range b {
				s -= h[a][k] * h[b][k]
			}
			if a == b {
				h[a][a] = math.Sqrt(max(s, 1e-12))
			} else {
				h[a][b] = s / h[b][b]
			}
		}
	}
	for a := range n {
		for k := range a {
			g[a] -= h[a][k] * g[k]
		}
		g[a] /= h[a][a]
	}
	for a := n - 1; a >= 0; a-- {
		for k := a + 1; k < n; k++ {
			g[a] -= h[k][a] * g[k]
		}
		g[a] /= h[a][a]
	}
	return g
}

// Score is the probability for one row. A row that is too short lacks the values at its
// end, which count as average.
func (m *Logistic) Score(x []float64) float64 {
	s := m.Bias
	for f := range m.Features {
		if f < len(x) {
			s += m.Part(f, x[f])
		}
	}
	return sigmoid(s)
}

// Part is what the value of one feature adds to the log-odds.
func (m *Logistic) Part(f int, value float64) float64 {
	return m.Features[f].Weight * (value - m.Features[f].Mean) / m.Features[f].Scale
}

// ParseLogistic reads a model as it is committed, and refuses one that cannot score.
func ParseLogistic(b []byte) (*Logistic, error) {
	var m Logistic
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("read logistic model: %w", err)
	}
	if len(m.Features) == 0 {
		return nil, errors.New("read logistic model: features: none")
	}
	seen := map[string]bool{}
	for _, f := range m.Features {
		if f.Name == "" || seen[f.Name] || f.Scale <= 0 || !finite(f.Mean, f.Scale, f.Weight) {
			return nil, fmt.Errorf("read logistic model: features: %q is named twice or not at all, or has no finite numbers with a scale above 0", f.Name)
		}
		seen[f.Name] = true
	}
	if !finite(m.Bias) {
		return nil, errors.New("read logistic model: bias: no finite number")
	}
	return &m, nil
}

func finite(vs ...float64) bool {
	for _, v := range vs {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
