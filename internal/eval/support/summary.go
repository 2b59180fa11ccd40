package support

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// How often a verdict on unseen pairs must be right for the judge to give it, and how
// many pairs must show that.
const (
	sureSupported    = 0.8
	sureEntailed     = 0.86
	sureContradicted = 0.8
	leastShown       = 20
	leastSupported   = 0.5
	leastEntailed    = 0.5
	mostEntailed     = 0.95
	never            = 1.01 // a cut that no probability reaches
)

// cuts reads the cuts off predictions: as low as the sets allow, and no open claim is
// on the wrong side.
func cuts(all []example, p map[string]float64) verify.Cuts {
	at := func(x example) float64 { return p[x.key()] }
	against := func(x example) float64 { return x.read.Contradicted }
	entailed := func(x example) float64 { return x.read.Entailed }
	pick := func(is func(example) bool) []example { return kept(all, is) }
	var c verify.Cuts
	alike := pick(func(x example) bool { return x.of.short && (x.of.name != "claims" || x.open) && !x.read.Ruled(c) })
	c.Entailed = min(mostEntailed, max(leastEntailed, cut(alike, entailed, example.supported, sureEntailed)))
	for _, x := range alike {
		if x.open && !x.supported() && entailed(x) >= c.Entailed {
			c.Entailed = beyond(entailed(x))
		}
	}
	free := pick(func(x example) bool { return x.of.fitted && !x.read.Ruled(c) })
	c.Supported = max(leastSupported, min(0.99, cut(free, at, example.supported, sureSupported)))
	denied := pick(func(x example) bool { return x.of.denies && x.read.Opposed() })
	c.Contradicted = cut(denied, against, example.contradicted, sureContradicted)
	for _, x := range pick(func(x example) bool { return x.open && x.supported() && x.read.Opposed() }) {
		c.Contradicted = max(c.Contradicted, beyond(against(x)))
	}
	return c
}

func beyond(p float64) float64 { return math.Round(p*1e4+1) / 1e4 }

// cut is the lowest value from which on so large a share has the outcome. It sorts.
func cut[T any](xs []T, value func(T) float64, is func(T) bool, share float64) float64 {
	slices.SortStableFunc(xs, func(a, b T) int { return cmp.Compare(value(b), value(a)) })
	right, found := 0, never
	for n, x := range xs {
		if is(x) {
			right++
		}
		last := n+1 == len(xs) || value(xs[n+1]) != value(x)
		if last && n+1 >= leastShown && float64(right) >= share*float64(n+1) {
			found = math.Round(value(x)*1e4) / 1e4
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

// summary is what cross-validation says, set by set: of sets that are fitted on, by
// folds. Of contradictions it says how many are found where four of five are right.
func summary(all []example, p map[string]float64, c verify.Cuts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-17s %5s %5s  %-8s %-8s %s\n", "", "pairs", "", "macro-F1", "AUROC", "contradicted: AUROC, found at .8")
	for _, name := range namesOf(all) {
		own := kept(all, func(x example) bool { return x.of.name == name })
		at := func(x example) float64 { return p[x.key()] }
		how := ""
		if own[0].of.fitted {
			how = "folds"
		}
		fmt.Fprintf(&b, "  %-17s %5d %5s  %s", name, len(own), how, told(own, at, example.supported))
		if slices.ContainsFunc(own, example.contradicted) {
			against := func(x example) float64 { return x.read.Contradicted * (1 - at(x)) }
			from, found, n := cut(slices.Clone(own), against, example.contradicted, 0.8), 0, 0
			for _, x := range kept(own, example.contradicted) {
				n++
				if against(x) >= from {
					found++
				}
			}
			fmt.Fprintf(&b, "   %s  %.3f", told(own, against, example.contradicted)[9:], float64(found)/float64(n))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "  supported from %.3f if entailed from %.3f on, contradicted from %.3f\n", c.Supported, c.Entailed, c.Contradicted)
	return b.String()
}

// key names an example among all.
func (x example) key() string { return x.of.name + " " + x.id }

func namesOf(xs []example) []string {
	var out []string
	for _, x := range xs {
		if !slices.Contains(out, x.of.name) {
			out = append(out, x.of.name)
		}
	}
	return out
}

// told is macro-F1 and AUROC of an outcome.
func told(xs []example, value func(example) float64, is func(example) bool) string {
	var truth, said []int
	var with, without []float64
	for _, x := range xs {
		truth, said = append(truth, int(number(is(x)))), append(said, int(number(value(x) >= 0.5)))
		if is(x) {
			with = append(with, value(x))
		} else {
			without = append(without, value(x))
		}
	}
	return fmt.Sprintf("%-8.3f %-8.3f", metric.MacroF1(truth, said, 2), metric.AUROC(with, without))
}
