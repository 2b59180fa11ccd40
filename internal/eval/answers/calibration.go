package answers

import (
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
)

const eceGiven = "ECE as given"

// calibration measures how far the confidence of the answers that were given is a
// probability. Refusals have no value "confidence" or no value "right".
func calibration(rows []eval.Row) []eval.Metric {
	var said []float64
	var came []bool
	for _, r := range rows {
		score, scored := r.Values["confidence"]
		right, judged := r.Values["right"]
		if scored && judged {
			said, came = append(said, score), append(came, right > 0.5)
		}
	}
	return []eval.Metric{
		{Name: eceGiven, Value: metric.ECE(said, came, 10), N: len(said)},
		{Name: "Brier score as given", Value: metric.Brier(said, came), N: len(said)},
	}
}
