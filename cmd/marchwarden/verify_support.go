package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// support tells what the claims were judged to be, and how far two judges agreed in the
// run.
func (v *verdicts) support(log *trace.Log, res *marchwarden.Result) {
	count := map[marchwarden.Support]int{}
	for _, c := range res.Claims {
		count[c.Support]++
	}
	var parts []string
	for _, k := range []marchwarden.Support{marchwarden.Supported, marchwarden.Quoted, marchwarden.Partial, marchwarden.Unsupported, marchwarden.Unchecked} {
		if count[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[k], k))
		}
	}
	if len(parts) == 0 {
		return
	}
	line := "- support: " + strings.Join(parts, ", ")
	if step := lastVerify(log); step != nil && step.Judged > 0 {
		line += fmt.Sprintf("; in the run the two judges agreed on %d of %d claims", step.Agreed, step.Judged)
	}
	v.print("%s", line)
}

// checked holds a result against the stored bytes, and its claims against what they
// cite.
func checked(ctx context.Context, blobs blob.Store, res *marchwarden.Result) (verify.Report, error) {
	report, err := verify.Check(ctx, blobs, res)
	if err != nil {
		return report, marchwarden.Wrap(err, marchwarden.CodeCanceled, "check the citations")
	}
	r, err := reader.New()
	if err != nil {
		r = nil // words do
	}
	if err := verify.CheckSupport(ctx, r, res, &report); err != nil {
		return report, marchwarden.Wrap(err, marchwarden.CodeCanceled, "judge the claims")
	}
	return report, nil
}

// report prints the citations, the claims and the answer's own problems.
func (v *verdicts) report(r verify.Report) {
	for _, f := range slices.Concat(r.Citations, r.Closest) {
		v.check(f.Name()+" "+f.Locator+" "+f.Hash, f.Problem)
	}
	for _, c := range r.Claims {
		v.check(fmt.Sprintf("claim %s %s: %s", markersOf(c.Citations), c.Support, plaintext.Clip(c.Text, 100)), c.Problem)
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
