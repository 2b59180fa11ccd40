// Package stat holds the small model that the program carries, which is fitted to
// measured data: a sum of shallow trees. It is data that people can read, with the
// command that made it. It stands apart because package verify applies the model and
// package eval/metric fits it.
package stat

import "math"

// Sigmoid is the probability of log-odds.
func Sigmoid(v float64) float64 {
	if v < 0 {
		e := math.Exp(v)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-v))
}

// Trees is a sum of shallow decision trees on the log-odds, fitted one after the other,
// each to what those before it left.
type Trees struct {
	Made    string   `json:"made"`
	Command string   `json:"command"`
	Data    string   `json:"data"`
	Names   []string `json:"names"` // of the features
	Base    float64  `json:"base"`  // log-odds before any tree
	Trees   []Tree   `json:"trees"`
}

// Tree is nodes, the root first.
type Tree []Node

// Node is a question about one feature, or a leaf. A value up to At goes to Left, one
// above it to Right, which are places in the tree; a leaf has both 0 and adds Add.
type Node struct {
	Feature int     `json:"f"`
	At      float64 `json:"at"`
	Left    int     `json:"l"`
	Right   int     `json:"r"`
	Add     float64 `json:"add"`
}

// Add is what the tree adds for a row.
func (t Tree) Add(x []float64) float64 {
	n := t[0]
	for n.Left != 0 {
		if n.Feature < len(x) && x[n.Feature] > n.At {
			n = t[n.Right]
		} else {
			n = t[n.Left]
		}
	}
	return n.Add
}

// Score is the probability for one row.
func (m *Trees) Score(x []float64) float64 {
	s := m.Base
	for _, t := range m.Trees {
		s += t.Add(x)
	}
	return Sigmoid(s)
}
