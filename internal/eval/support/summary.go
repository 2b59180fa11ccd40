package support

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify/judge"
)

// How often a verdict on unseen pairs must be right for the judge to give it, and how
// many pairs must show that.
const (
	sureSupported    = 0.8
	sureUnsupported  = 0.9
	sureContradicted = 0.75
	leastShown       = 20
	never            = 1.01 // a cut that no probability reaches
)

// cutAbove is the lowest cut from which on so large a share has the outcome.
func cutAbove(xs []example, p []float64, o outcome, share float64) float64 {
	return cut(xs, p, o.is, share, func(a, b float64) int { return cmp.Compare(b, a) }, never)
}

// cutBelow is the highest cut up to which so large a share does not have the outcome.
func cutBelow(xs []example, p []float64, o outcome, share float64) float64 {
	return cut(xs, p, func(x example) bool { return !o.is(x) }, share, cmp.Compare[float64], 0)
}

func cut(xs []example, p []float64, is func(example) bool, share float64, order func(a, b float64) int, none float64) float64 {
	at := make([]int, len(xs))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return order(p[a], p[b]) })
	right, found := 0, none
	for n, i := range at {
		if is(xs[i]) {
			right++
		}
		last := n+1 == len(at) || p[at[n+1]] != p[i]
		if last && n+1 >= leastShown && float64(right) >= share*float64(n+1) {
			found = math.Round(p[i]*1e4) / 1e4
		}
	}
	return found
}

// round gives the numbers of a model as many digits as people can read.
func round(t *stat.Trees) {
	short := func(v float64) float64 {
		f, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
		if err != nil {
			return v
		}
		return f
	}
	t.Base = short(t.Base)
	for _, tree := range t.Trees {
		for k := range tree {
			tree[k].At, tree[k].Add = short(tree[k].At), short(tree[k].Add)
		}
	}
}

// summary is what cross-validation says of support, set by set: fitted on the other
// folds of all sets that are fitted on, on the other folds of the set alone where that
// is what its suite measures, and on other sets alone. Of contradictions it says how often the verdict would be given and
// right.
func summary(all []example, p, q map[string]float64, vectors bool, c judge.Cuts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-17s %5s   %-13s %-13s %-13s\n", "macro-F1, AUROC", "pairs", "all sets", "set alone", "other sets")
	for _, name := range namesOf(all) {
		own := kept(all, func(x example) bool { return x.set == name })
		others := kept(all, func(x example) bool { return x.set != name && x.uses.support })
		m := fit(thinned(others, supported), vectors, supported)
		far := make([]float64, len(own))
		for i, x := range own {
			far[i] = m.Score(x.values(vectors))
		}
		whole, alone := "-", "-"
		if own[0].uses.support {
			whole = told(own, look(own, p), supported)
		}
		if crossed[name] {
			alone = told(own, unseen(own, vectors, supported, 1), supported)
		}
		fmt.Fprintf(&b, "  %-17s %5d   %-13s %-13s %-13s\n", name, len(own), whole, alone, told(own, far, supported))
	}
	fmt.Fprintf(&b, "  supported from %.3f, unsupported up to %.3f, contradicted from %.3f\n", c.Supported, c.Unsupported, c.Contradicted)
	for _, name := range namesOf(all) {
		own := kept(all, func(x example) bool { return x.set == name && x.uses.conflict })
		if len(own) == 0 {
			continue
		}
		var truth, said []bool
		for i, v := range look(own, q) {
			truth, said = append(truth, contradicted.is(own[i])), append(said, own[i].plain || own[i].clash && v >= c.Contradicted)
		}
		precision, recall, _ := stat.PrecisionRecall(truth, said)
		fmt.Fprintf(&b, "  contradicted: %-17s AUROC %s, precision %.3f, recall %.3f\n", name, told(own, look(own, q), contradicted)[6:], precision, recall)
	}
	return b.String()
}

// key names an example among all.
func (x example) key() string { return x.set + " " + x.id }

func look(xs []example, p map[string]float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = p[x.key()]
	}
	return out
}

func keyed(xs []example, p []float64) map[string]float64 {
	m := map[string]float64{}
	for i, x := range xs {
		m[x.key()] = p[i]
	}
	return m
}

func namesOf(xs []example) []string {
	var out []string
	for _, x := range xs {
		if !slices.Contains(out, x.set) {
			out = append(out, x.set)
		}
	}
	return out
}

// told is macro-F1 and AUROC of an outcome.
func told(xs []example, p []float64, o outcome) string {
	var truth, said []int
	var with, without []float64
	for i, x := range xs {
		truth, said = append(truth, int(number(o.is(x)))), append(said, int(number(p[i] >= 0.5)))
		if o.is(x) {
			with = append(with, p[i])
		} else {
			without = append(without, p[i])
		}
	}
	return fmt.Sprintf("%.3f %.3f", stat.MacroF1(truth, said, 2), stat.AUROC(with, without))
}
