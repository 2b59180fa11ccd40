package main

import (
	"context"
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// maxReasons is how much of an opinion is printed.
const maxReasons = 3

// support tells what the claims were judged to be, by whom, and where the judge
// without a model, asked again, thinks less of one. That is for people to look into and
// no failure: it judges by words.
func (v *verdicts) support(ctx context.Context, log *trace.Log, res *marchwarden.Result) error {
	if len(res.Claims) == 0 {
		return nil
	}
	seconds, err := verify.SecondOpinions(ctx, res)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "judge the claims")
	}
	count := map[marchwarden.Support]int{}
	compared, well := 0, 0
	for _, s := range seconds {
		count[s.Claim.Support]++
		if s.Worse() {
			reasons := s.Opinion.Reasons
			v.print("- claim %s %s: by its words it is %s: %s: %s", markersOf(s.Claim.Citations), s.Claim.Support, s.Opinion.Verdict,
				strings.Join(reasons[:min(maxReasons, len(reasons))], "; "), clip(s.Claim.Text, 100))
		}
		if s.Compared() {
			compared++
			if !s.Worse() {
				well++
			}
		}
	}
	var parts []string
	for _, k := range []marchwarden.Support{marchwarden.Supported, marchwarden.Partial, marchwarden.Unsupported, marchwarden.Unchecked} {
		if count[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[k], k))
		}
	}
	line := "- support: " + strings.Join(parts, ", ")
	if step := lastVerify(log); step != nil && step.Judged > 0 {
		line += fmt.Sprintf("; in the run the two judges agreed on %d of %d claims", step.Agreed, step.Judged)
	}
	if compared > 0 {
		line += fmt.Sprintf("; judged again by words, %d of %d stand as well", well, compared)
	}
	v.print("%s", line)
	return nil
}

// report prints the citations, the claims and the answer's own problems.
func (v *verdicts) report(r verify.Report) {
	for _, f := range r.Citations {
		v.check(fmt.Sprintf("citation [%d] %s %s", f.Number, f.Locator, f.Hash), f.Problem)
	}
	for _, c := range r.Claims {
		v.check(fmt.Sprintf("claim %s %s: %s", markersOf(c.Citations), c.Support, clip(c.Text, 100)), c.Problem)
	}
	for _, problem := range r.Answer {
		v.check("answer", problem)
	}
}

func markersOf(citations []int) string {
	marks := ""
	for _, n := range citations {
		marks += fmt.Sprintf("[%d]", n)
	}
	return marks
}

// lastVerify is the gate's last step in a trace, or nil.
func lastVerify(log *trace.Log) *trace.Verify {
	if log == nil {
		return nil
	}
	for i := len(log.Steps) - 1; i >= 0; i-- {
		if s, ok := log.Steps[i].(*trace.Verify); ok {
			return s
		}
	}
	return nil
}
