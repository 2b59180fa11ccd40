package verify_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// TestGateSaysWhatConflicts: a sentence that its passages deny is left out, and the gap
// says so; what two judges said goes on to the trace.
func TestGateSaysWhatConflicts(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "The dam was completed in 1937.")
	g := ground(t, blobs, set, reason.Draft{Judged: 3, Agreed: 2, Claims: []reason.Claim{
		{Text: "The dam was completed in 1957.", Passages: []evidence.ID{"S1.1"}, Support: marchwarden.Unsupported, Conflict: "another year"},
		{Text: "Bananas ripen.", Passages: []evidence.ID{"S1.1"}, Support: marchwarden.Unsupported},
	}})
	if len(g.Gaps) != 2 || g.Gaps[0].Category != marchwarden.ContradictorySources || !strings.HasSuffix(g.Gaps[0].Detail, ": another year") || g.Gaps[1].Category != marchwarden.SourceNotFound {
		t.Errorf("gaps %+v", g.Gaps)
	}
	if step := g.Step(); step.Judged != 3 || step.Agreed != 2 || step.DroppedClaims != 2 {
		t.Errorf("step %+v", step)
	}
}

// TestCheckSupport: a claim that its excerpts say nothing of does not stand, whatever it
// is called; what words cannot confirm, and what was called quoted, is no problem.
func TestCheckSupport(t *testing.T) {
	res := &marchwarden.Result{
		Citations: []marchwarden.Citation{{RawExcerpt: "The Pineview Dam in Ogden Canyon was completed in 1937."}, {RawExcerpt: marchwarden.ExcerptNonText}},
		Claims: []marchwarden.Claim{
			{Text: "The Pineview Dam in Ogden Canyon was completed in 1937.", Citations: []int{1}, Support: marchwarden.Supported},
			{Text: "Bananas ripen quickly beside apples in the closed bag.", Citations: []int{1}, Support: marchwarden.Partial},
			{Text: "The Pineview Dam was finished in 1937.", Citations: []int{1, 2}, Support: marchwarden.Supported},
			{Text: "Bananas ripen quickly beside apples in the closed bag.", Citations: []int{1}, Support: marchwarden.Unsupported},
			{Text: "Bananas ripen quickly beside apples in the closed bag.", Citations: []int{2}, Support: marchwarden.Unchecked},
		},
	}
	report := verify.Report{Claims: make([]verify.ClaimFinding, len(res.Claims))}
	if err := verify.CheckSupport(t.Context(), nil, res, &report); err != nil {
		t.Fatal(err)
	}
	for i, c := range report.Claims {
		if (c.Problem != "") != (i == 1) {
			t.Errorf("claim %d: %q", i+1, c.Problem)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := verify.CheckSupport(over, nil, res, &report); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
