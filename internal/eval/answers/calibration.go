package answers

import (
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/calibrate"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
)

// The calibration errors of the answers that were given: of the confidence as it is, and
// of what a curve says that was fitted to other articles.
const (
	eceGiven  = "ECE as given"
	eceFitted = "ECE, calibrated on other articles"
)

// calibrationSeed deals the articles into folds, the same ones in every run.
const calibrationSeed = 1

// calibration measures how far confidence is a probability.
func calibration(suite string, rows []eval.Row) []eval.Metric {
	given := calibrate.FromRows(suite, rows)
	p, y := make([]float64, len(given)), make([]bool, len(given))
	for i, a := range given {
		p[i], y[i] = a.Score, a.Right
	}
	out := []eval.Metric{{Name: eceGiven, Value: metric.ECE(p, y, 10), N: len(given)}, {Name: "Brier score as given", Value: metric.Brier(p, y), N: len(given)}}
	if f, err := calibrate.Make(given, calibrationSeed); err == nil { // a small sample has too few
		out = append(out, eval.Metric{Name: eceFitted, Value: f.Table.After.ECE, N: len(given)})
	}
	return out
}
