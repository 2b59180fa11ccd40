package metric

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

// TreeOptions say how many trees there are and how much each may learn. Zero values
// mean 100 trees of depth 3, a rate of 0.1, at least 20 rows in a leaf, half of the rows
// and all features for each tree.
type TreeOptions struct {
	Trees, Depth, MinLeaf int
	Rate, Rows            float64
	Seed                  uint64
}

func (o *TreeOptions) fill() {
	o.Trees, o.Depth, o.MinLeaf = cmp.Or(o.Trees, 100), min(3, cmp.Or(o.Depth, 3)), cmp.Or(o.MinLeaf, 20)
	o.Rate, o.Rows = cmp.Or(o.Rate, 0.1), cmp.Or(o.Rows, 0.5)
}

// leafPenalty keeps the leaves of few rows near zero.
const leafPenalty = 1.0

// FitTrees fits the sum to outcomes between 0 and 1. Every row has one value for each
// name.
func FitTrees(x [][]float64, y []float64, names []string, o TreeOptions) stat.Trees {
	o.fill()
	m := stat.Trees{Names: slices.Clone(names)}
	if len(x) == 0 {
		return m
	}
	mean := 0.0
	for _, v := range y {
		mean += v / float64(len(y))
	}
	mean = max(0.001, min(0.999, mean))
	m.Base = math.Log(mean / (1 - mean))
	odds := make([]float64, len(x))
	for i := range odds {
		odds[i] = m.Base
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x74726565))
	g := grower{x: x, o: o, grad: make([]float64, len(x)), hess: make([]float64, len(x))}
	for f := range x[0] {
		order := make([]int, len(x))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(x[a][f], x[b][f]), a-b) })
		g.sorted = append(g.sorted, order)
	}
	for range o.Trees {
		var rows []int
		for i := range x {
			p := stat.Sigmoid(odds[i])
			g.grad[i], g.hess[i] = y[i]-p, p*(1-p)
			if rng.Float64() < o.Rows {
				rows = append(rows, i)
			}
		}
		t := g.tree(rows)
		for i := range x {
			odds[i] += t.Add(x[i])
		}
		m.Trees = append(m.Trees, t)
	}
	return m
}

// grower grows the trees of one fit.
type grower struct {
	x          [][]float64
	grad, hess []float64
	o          TreeOptions
	out        stat.Tree
	sorted     [][]int // the rows by each feature
}

func (g *grower) tree(rows []int) stat.Tree {
	g.out = nil
	g.grow(rows, g.o.Depth)
	return g.out
}

// grow adds the node for some rows and those below it, and returns its place.
func (g *grower) grow(rows []int, depth int) int {
	at := len(g.out)
	var sumG, sumH float64
	for _, i := range rows {
		sumG += g.grad[i]
		sumH += g.hess[i]
	}
	g.out = append(g.out, stat.Node{Add: g.o.Rate * sumG / (sumH + leafPenalty)})
	if depth == 0 || len(rows) < 2*g.o.MinLeaf {
		return at
	}
	f, cut := g.split(rows, sumG, sumH)
	if f < 0 {
		return at
	}
	var left, right []int
	for _, i := range rows {
		if g.x[i][f] <= cut {
			left = append(left, i)
		} else {
			right = append(right, i)
		}
	}
	l := g.grow(left, depth-1)
	r := g.grow(right, depth-1)
	g.out[at] = stat.Node{Feature: f, At: cut, Left: l, Right: r}
	return at
}

// split finds the feature and the value that part the rows best, or -1 where nothing is
// gained.
func (g *grower) split(rows []int, sumG, sumH float64) (feature int, cut float64) {
	feature = -1
	gain := 1e-9
	worth := func(g, h float64) float64 { return g * g / (h + leafPenalty) }
	in := make([]bool, len(g.x))
	for _, i := range rows {
		in[i] = true
	}
	order := make([]int, 0, len(rows))
	for f := range g.x[0] {
		order = order[:0]
		for _, i := range g.sorted[f] { // filtered, it stays in order
			if in[i] {
				order = append(order, i)
			}
		}
		var leftG, leftH float64
		for k, i := range order[:len(order)-1] {
			leftG += g.grad[i]
			leftH += g.hess[i]
			here, next := g.x[i][f], g.x[order[k+1]][f]
			if here == next || k+1 < g.o.MinLeaf || len(order)-k-1 < g.o.MinLeaf {
				continue
			}
			if won := worth(leftG, leftH) + worth(sumG-leftG, sumH-leftH) - worth(sumG, sumH); won > gain {
				gain, feature, cut = won, f, here+(next-here)/2
			}
		}
	}
	return feature, cut
}
