package stat

import (
	"fmt"
	"math"
)

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

// Sound is an error of trees that cannot score.
func (m *Trees) Sound() error {
	for i, t := range m.Trees {
		if len(t) == 0 {
			return fmt.Errorf("read trees: tree %d has no node", i)
		}
		for k, n := range t {
			inner := n.Left != 0 || n.Right != 0
			if inner && (n.Left <= k || n.Right <= k || n.Left >= len(t) || n.Right >= len(t)) || n.Feature < 0 || n.Feature >= len(m.Names) || !finite(n.At, n.Add) {
				return fmt.Errorf("read trees: node %d of tree %d leads nowhere, or asks for no feature there is", k, i)
			}
		}
	}
	if !finite(m.Base) {
		return fmt.Errorf("read trees: base: no finite number")
	}
	return nil
}

func finite(vs ...float64) bool {
	for _, v := range vs {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
