// Package metric holds the measures by which quality is judged, and fits to measured
// data the small models of package stat, which the program carries.
//
// Everything is a pure function of its arguments: the same rows give the same bits,
// in whatever order a map is walked. The package knows nothing of questions,
// documents or files.
package metric

import (
	"cmp"
	"math"
	"slices"
)

// NDCG is the normalised discounted cumulative gain of the first k of a ranking, with
// 2^gain-1 as the worth of a document. Without any gain to be had it is 0.
func NDCG(ranked []string, gain map[string]float64, k int) float64 {
	worth := func(g float64) float64 { return math.Exp2(g) - 1 }
	sum := 0.0
	for i, id := range ranked[:min(k, len(ranked))] {
		sum += worth(gain[id]) / math.Log2(float64(i+2))
	}
	ideal := make([]float64, 0, len(gain))
	for _, g := range gain {
		ideal = append(ideal, g)
	}
	slices.SortFunc(ideal, func(a, b float64) int { return cmp.Compare(b, a) })
	best := 0.0
	for i, g := range ideal[:min(k, len(ideal))] {
		best += worth(g) / math.Log2(float64(i+2))
	}
	return ratio(sum, best)
}

// AveragePrecision is the mean of the precision at every relevant document; one that is
// not in the ranking counts as 0. Without relevant documents it is 0.
func AveragePrecision(ranked []string, relevant map[string]bool) float64 {
	found, sum := 0.0, 0.0
	for i, id := range ranked {
		if relevant[id] {
			found++
			sum += found / float64(i+1)
		}
	}
	return ratio(sum, float64(count(relevant)))
}

// RecallAt is the share of the relevant documents among the first k.
func RecallAt(ranked []string, relevant map[string]bool, k int) float64 {
	found := 0.0
	for _, id := range ranked[:min(k, len(ranked))] {
		if relevant[id] {
			found++
		}
	}
	return ratio(found, float64(count(relevant)))
}

func count(set map[string]bool) (n int) {
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}

// AUROC is the chance that a random positive scores above a random negative, ties
// counting half. Without rows of both kinds it is 0.
func AUROC(pos, neg []float64) float64 {
	type scored struct {
		v   float64
		pos bool
	}
	all := make([]scored, 0, len(pos)+len(neg))
	for _, v := range pos {
		all = append(all, scored{v, true})
	}
	for _, v := range neg {
		all = append(all, scored{v, false})
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(a.v, b.v) })
	var area, below float64
	for i := 0; i < len(all); {
		j, p, n := i, 0.0, 0.0
		for ; j < len(all) && all[j].v == all[i].v; j++ {
			if all[j].pos {
				p++
			} else {
				n++
			}
		}
		area += p * (below + n/2)
		below += n
		i = j
	}
	return ratio(area, float64(len(pos)*len(neg)))
}

// MacroF1 is the mean of the F1 of every class, 0 to classes-1, that occurs in truth or
// in what was said.
func MacroF1(truth, said []int, classes int) float64 {
	sum, n := 0.0, 0.0
	for c := range classes {
		is := func(list []int) []bool {
			out := make([]bool, len(list))
			for i, v := range list {
				out[i] = v == c
			}
			return out
		}
		t, s := is(truth), is(said)
		if !slices.Contains(t, true) && !slices.Contains(s, true) {
			continue
		}
		_, _, f1 := PrecisionRecall(t, s)
		sum += f1
		n++
	}
	return ratio(sum, n)
}

// PrecisionRecall is how much of what was said is true, how much of what is true was
// said, and their harmonic mean. Nothing said, or nothing true, is 0.
func PrecisionRecall(truth, said []bool) (precision, recall, f1 float64) {
	var hit, t, s float64
	for i := range truth {
		if truth[i] {
			t++
		}
		if said[i] {
			s++
		}
		if truth[i] && said[i] {
			hit++
		}
	}
	return ratio(hit, s), ratio(hit, t), ratio(2*hit, s+t)
}

// Point is one point of a risk-coverage curve: of that share of the questions, those
// answered with the most confidence, that share is wrong.
type Point struct {
	Coverage, Risk float64
}

// RiskCoverage is the risk at every coverage, rows of equal confidence together, and the
// area under it: the mean risk over all coverages. Lower is better.
func RiskCoverage(confidence []float64, right []bool) (curve []Point, area float64) {
	order := make([]int, len(confidence))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(confidence[b], confidence[a]) })
	wrong := 0.0
	for i := 0; i < len(order); {
		j := i
		for ; j < len(order) && confidence[order[j]] == confidence[order[i]]; j++ {
			if !right[order[j]] {
				wrong++
			}
		}
		p := Point{float64(j) / float64(len(order)), wrong / float64(j)}
		area += p.Risk * float64(j-i) / float64(len(order))
		curve = append(curve, p)
		i = j
	}
	return curve, area
}

// ratio is a/b, or 0 where there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
