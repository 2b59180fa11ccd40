// Package confidence computes the confidence of a result from its evidence: the
// factors of the contract, and a score from the factors by the rubric below. No
// number here comes from a model.
//
// The rubric, in the order it is applied:
//
//	no citation                        0.25 × match; nothing else counts
//	match                              how likely the answer is right, as the reasoner estimates it from the evidence
//	+ corroboration                    0.05 × (1 − match) if a second independent origin says the first sentence, too, 0.10 for three or more:
//	                                   origins that say something else corroborate nothing
//	− low authority                    0.05
//	− contradiction                    0.12, and the score is at most 0.69
//	− budget exhausted                 0.08, and the score is at most 0.79
//	− a researcher gave no answer      0.08, and the score is at most 0.79: one that the user has brought in
//	one origin only                    at most 0.89
//	result                             clamped to 0.05…0.99 and rounded to two digits
//
// So 0.9 and more needs several independent origins that say the same and do not
// disagree, which is what the contract means by it.
package confidence

import (
	"math"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Input is what confidence is computed from.
type Input struct {
	Sources         []*evidence.Source // all sources read, in the order of their numbers
	Grounded        verify.Grounded    // what passed the gate
	Match           float64            // how much of the question the evidence speaks to, 0 to 1
	BudgetExhausted bool
	Unheard         bool      // a researcher that the user has brought in gave no answer
	Now             time.Time // when the run started
}

// Assess computes factors and score. The same input gives the same output.
func Assess(in Input) (marchwarden.ConfidenceFactors, marchwarden.Unit) {
	cited := sourcesOf(in, in.Grounded.Sources)
	f := marchwarden.ConfidenceFactors{
		NumCorroboratingSources: len(origins(cited)),
		SourceAuthority:         authorityOf(cited),
		ContradictionDetected:   len(in.Grounded.Contradictions) > 0,
		QuerySpecificityMatch:   marchwarden.Unit(round(clamp(in.Match, 0, 1))),
		BudgetExhausted:         in.BudgetExhausted,
		Recency:                 recencyOf(cited, in.Now),
	}
	return f, score(f, in)
}

// Rate puts factors and score into a result, and into each of its citations its own
// confidence and the authority of its source. The citations must be those of in.
func Rate(res *marchwarden.Result, in Input) {
	res.ConfidenceFactors, res.Confidence = Assess(in)
	for i := range res.Citations {
		src := in.Sources[in.Grounded.Sources[i]-1]
		res.Citations[i].Confidence, res.Citations[i].Authority = Citation(src, in.Grounded.Support[i]), Authority(src.Page)
	}
}

// score applies the rubric. It works on the unrounded match, so that answers
// which differ only a little keep their order.
func score(f marchwarden.ConfidenceFactors, in Input) marchwarden.Unit {
	match := clamp(in.Match, 0, 1)
	if f.NumCorroboratingSources == 0 {
		return marchwarden.Unit(round(0.25 * match))
	}
	s := match
	n := agreeing(in)
	switch {
	case n >= 3:
		s += 0.10 * (1 - match)
	case n == 2:
		s += 0.05 * (1 - match)
	}
	if f.SourceAuthority == marchwarden.LowAuthority {
		s -= 0.05
	}
	most := 0.99
	if n < 2 {
		most = 0.89
	}
	if f.BudgetExhausted {
		s, most = s-0.08, min(most, 0.79)
	}
	if in.Unheard {
		s, most = s-0.08, min(most, 0.79)
	}
	if f.ContradictionDetected {
		s, most = s-0.12, min(most, 0.69)
	}
	return marchwarden.Unit(round(clamp(s, 0.05, most)))
}

// Citation is the confidence of one citation: the standing of its source and
// how well the claim resting on it is supported.
func Citation(src *evidence.Source, support marchwarden.Support) marchwarden.Unit {
	s := map[marchwarden.Authority]float64{marchwarden.HighAuthority: 0.95, marchwarden.MediumAuthority: 0.85, marchwarden.LowAuthority: 0.7}[Authority(src.Page)]
	switch support {
	case marchwarden.Supported, marchwarden.Quoted:
	case marchwarden.Partial:
		s -= 0.25
	default:
		s -= 0.4
	}
	return marchwarden.Unit(round(s))
}

// agreeing is how many independent origins say the first sentence of the answer.
func agreeing(in Input) int {
	if len(in.Grounded.Claims) == 0 {
		return 0
	}
	var numbers []int
	for _, n := range in.Grounded.Claims[0].Citations {
		numbers = append(numbers, in.Grounded.Sources[n-1])
	}
	return len(origins(sourcesOf(in, numbers)))
}

// sourcesOf are the sources of some numbers, each once.
func sourcesOf(in Input, numbers []int) []*evidence.Source {
	var out []*evidence.Source
	for _, n := range numbers {
		if s := in.Sources[n-1]; !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// recencyOf is the age of the newest dated source. A date that has not come yet
// is a mistake and counts as none.
func recencyOf(cited []*evidence.Source, now time.Time) marchwarden.Recency {
	var newest time.Time
	for _, s := range cited {
		if t, err := time.Parse(time.DateOnly, s.Page.Published); err == nil && t.After(newest) && !t.After(now.AddDate(0, 0, 1)) {
			newest = t
		}
	}
	switch {
	case newest.IsZero():
		return ""
	case newest.After(now.AddDate(-1, 0, 0)):
		return marchwarden.Current
	case newest.After(now.AddDate(-3, 0, 0)):
		return marchwarden.Recent
	}
	return marchwarden.Dated
}

func clamp(v, low, high float64) float64 {
	if math.IsNaN(v) {
		return low
	}
	return max(low, min(high, v))
}

func round(v float64) float64 { return math.Round(v*100) / 100 }
