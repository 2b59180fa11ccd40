// Package calibrate turns the scores of answers into probabilities: it reads from the
// reports of evaluations which answers were right, chooses between two curves by
// cross-validation, and draws how far what is said lies from what is true. What it
// makes is a confidence.Table; applying one is package confidence's affair.
package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
)

const (
	// folds is how many parts cross-validation makes.
	folds = 5
	// least is the fewest answers that a curve is fitted to.
	least = 100
	// bins is into how many intervals forecasts are put to be measured.
	bins = 10
)

// Answer is one answer whose score is known, and whether it was right.
type Answer struct {
	Set   string // the suite
	Group string // answers of one group are not independent of each other
	Score float64
	Right bool
}

// FromRows takes the answers out of the rows of one suite: those with a value
// "confidence" and a value "right", which refusals lack.
func FromRows(suite string, rows []eval.Row) []Answer {
	var out []Answer
	for _, r := range rows {
		score, scored := r.Values["confidence"]
		right, judged := r.Values["right"]
		if !scored || !judged {
			continue
		}
		group := r.Group
		if group == "" {
			group = r.ID
		}
		out = append(out, Answer{Set: suite, Group: suite + "\x00" + group, Score: score, Right: right > 0.5})
	}
	return out
}

// Trial is how well one curve did on answers that it was not fitted to.
type Trial struct {
	Method string // "platt" or "isotonic"
	confidence.Measured
}

// Fit is what came of fitting.
type Fit struct {
	Table  *confidence.Table
	Trials []Trial // the better first
	// Before are the scores as they were, After what the chosen curve says of each
	// answer when it was fitted to other groups.
	Before, After []metric.Bin
}

// curves are the two kinds of curve.
var curves = []struct {
	method string
	fit    func(x []float64, y []bool) confidence.Table
}{
	{"platt", func(x []float64, y []bool) confidence.Table {
		p := metric.FitPlatt(x, y)
		p.A = min(p.A, 0) // a higher score never means less
		return confidence.Table{Platt: &p}
	}},
	{"isotonic", func(x []float64, y []bool) confidence.Table {
		c := metric.FitIsotonic(x, y)
		return confidence.Table{Isotonic: &c}
	}},
}

// Make fits both curves by cross-validation, takes the one with the smaller Brier score
// on answers held back, and fits it to all. Too few answers or groups, answers that are
// all right or all wrong, and scores that do not lie between 0 and 1 are CodeInvalid.
// Made and Command of the table are the caller's to fill in.
func Make(answers []Answer, seed uint64) (*Fit, error) {
	if err := check(answers); err != nil {
		return nil, err
	}
	x, y := split(answers)
	f := &Fit{Before: metric.Bins(x, y, bins)}
	best := -1
	for i, c := range curves {
		said := heldBack(answers, seed, c.fit)
		t := Trial{c.method, measure(said, y)}
		if best < 0 || t.Brier < f.Trials[0].Brier {
			best = i
			f.After = metric.Bins(said, y, bins)
			f.Trials = slices.Insert(f.Trials, 0, t)
		} else {
			f.Trials = append(f.Trials, t)
		}
	}
	table := curves[best].fit(x, y)
	table.Answers, table.Data = len(x), sets(answers)
	table.Before, table.After = measure(x, y), f.Trials[0].Measured
	f.Table = &table
	return f, nil
}

// check refuses answers that no curve can be fitted to.
func check(answers []Answer) error {
	refuse := func(hint, format string, args ...any) error {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	groups := map[string]bool{}
	for _, a := range answers {
		if !(a.Score >= 0 && a.Score <= 1) {
			return refuse("", "an answer of %s has a confidence of %v: it must lie between 0 and 1", a.Set, a.Score)
		}
		groups[a.Group] = true
	}
	_, y := split(answers)
	switch {
	case len(y) < least || !slices.Contains(y, true) || !slices.Contains(y, false):
		return refuse("run more of a suite that asks questions, such as: marchwarden-lab run squad2 --uncalibrated",
			"%d answers are not enough to calibrate: %d are needed, right and wrong ones", len(y), least)
	case len(groups) < folds:
		return refuse("run more of the suite, or another one as well",
			"answers from %d articles are not enough to calibrate: %d are needed, to hold some back", len(groups), folds)
	}
	return nil
}

// heldBack is what curves say of each answer that were fitted without its group.
func heldBack(answers []Answer, seed uint64, fit func([]float64, []bool) confidence.Table) []float64 {
	groups := make([]string, len(answers))
	for i, a := range answers {
		groups[i] = a.Group
	}
	fold := metric.Folds(groups, folds, seed)
	said := make([]float64, len(answers))
	for k := range folds {
		var rest []Answer
		for i, a := range answers {
			if fold[i] != k {
				rest = append(rest, a)
			}
		}
		table := fit(split(rest))
		for i, a := range answers {
			if fold[i] == k {
				said[i] = table.At(a.Score)
			}
		}
	}
	return said
}

func split(answers []Answer) (x []float64, y []bool) {
	for _, a := range answers {
		x, y = append(x, a.Score), append(y, a.Right)
	}
	return x, y
}

func measure(p []float64, y []bool) confidence.Measured {
	digits := func(v float64) float64 { return math.Round(v*1e4) / 1e4 }
	return confidence.Measured{ECE: digits(metric.ECE(p, y, bins)), Brier: digits(metric.Brier(p, y))}
}

// sets says how many answers are from which suite.
func sets(answers []Answer) string {
	counts := map[string]int{}
	var names []string
	for _, a := range answers {
		if counts[a.Set] == 0 {
			names = append(names, a.Set)
		}
		counts[a.Set]++
	}
	slices.Sort(names)
	for i, n := range names {
		names[i] = fmt.Sprintf("%s (%d)", n, counts[n])
	}
	return strings.Join(names, ", ")
}
