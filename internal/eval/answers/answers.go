// Package answers measures the answers to questions: whether a citation holds what was
// asked for, whether the sentences are those that people chose, and whether confidence
// and refusal tell questions that have an answer from those that have none. It owns its
// suites and the fit of the refusal scorer. It opens libraries through eval.Desk alone,
// so that any mind can be measured.
package answers

import (
	"cmp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// Suites are the suites of this package.
func Suites() []eval.Suite {
	return []eval.Suite{squad2(), clapnq(), mtrag(), pubmedqa(), selfaware()}
}

// Values that rows share.
const (
	confidence = "confidence" // of the result
	right      = "right"      // of what was answered: 1 if it is an answer
	answerable = "answerable" // 1 for a question that has an answer
	refused    = "refused"    // 1 where nothing is cited
	cited      = "cited"      // share of the answer's sentences that carry a citation
)

// titled is a document with a title.
func titled(title, text string) string {
	return "---\ntitle: " + oneLine(title) + "\n---\n" + text + "\n"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// common are the values that every answer has.
func common(res *marchwarden.Result) map[string]float64 {
	v := map[string]float64{confidence: float64(res.Confidence), refused: number(len(res.Citations) == 0)}
	if len(res.Claims) > 0 {
		n := 0
		for _, c := range res.Claims {
			if len(c.Citations) > 0 {
				n++
			}
		}
		v[cited] = float64(n) / float64(len(res.Claims))
	}
	return v
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// told are the metrics of how well confidence tells questions with an answer from those
// without.
func told(rows []eval.Row) []eval.Metric {
	var yes, no []float64
	refusedYes, refusedNo := 0.0, 0.0
	for _, r := range rows {
		if r.Values[answerable] == 1 {
			yes = append(yes, r.Values[confidence])
			refusedYes += r.Values[refused]
		} else {
			no = append(no, r.Values[confidence])
			refusedNo += r.Values[refused]
		}
	}
	return []eval.Metric{
		{Name: "answerable refused", Value: refusedYes / float64(max(1, len(yes))), N: len(yes)},
		{Name: "unanswerable refused", Value: refusedNo / float64(max(1, len(no))), N: len(no)},
		{Name: "answerability AUROC", Value: metric.AUROC(yes, no), N: len(yes) + len(no)},
	}
}

// risk is the area under the curve of risk over coverage: how often an answer is wrong
// when the least sure ones are held back. Rows go by id, so that their order does not
// matter.
func risk(rows []eval.Row) eval.Metric {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b eval.Row) int { return cmp.Compare(a.ID, b.ID) })
	var conf []float64
	var ok []bool
	for _, r := range rows {
		if v, answered := r.Values[right]; answered {
			conf, ok = append(conf, r.Values[confidence]), append(ok, v == 1)
		}
	}
	_, area := metric.RiskCoverage(conf, ok)
	return eval.Metric{Name: "risk-coverage area", Value: area, N: len(conf)}
}

// overlap is the F1 of the words of two texts, each word as often as it stands there.
func overlap(a, b string) float64 {
	count := map[string]int{}
	n, m, both := 0, 0, 0
	for _, t := range lexicon.Tokens(a) {
		count[strings.ToLower(t.Text)]++
		n++
	}
	for _, t := range lexicon.Tokens(b) {
		m++
		if w := strings.ToLower(t.Text); count[w] > 0 {
			count[w]--
			both++
		}
	}
	if both == 0 {
		return 0
	}
	return 2 * float64(both) / float64(n+m)
}
