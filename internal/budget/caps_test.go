package budget_test

import (
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
)

// Traces have these words, and a user is told by them what to add.
func TestLimitOf(t *testing.T) {
	for _, c := range []struct {
		what, words string
		of          budget.Limit
	}{
		{budget.TokenCap(5), "token budget of 5", budget.Tokens},
		{budget.TokenCap(5) + " (the provider counted 3 more)", "token budget of 5 (the provider counted 3 more)", budget.Tokens},
		{budget.IterationCap(5), "cap of 5 iterations", budget.Iterations},
		{budget.SourceCap(5), "cap of 5 sources", budget.Sources},
		{budget.TryCap(5), "cap of 5 tries to read documents", budget.Sources},
		{budget.WallCap(5 * time.Minute), "wall time of 5m0s", budget.Wall},
		{budget.TimeFor("the reading"), "time for the reading", budget.Wall},
		{"patience of the caller, who stopped the run", "patience of the caller, who stopped the run", ""},
	} {
		if c.what != c.words || budget.LimitOf(c.what) != c.of {
			t.Errorf("%q is %q, want %q and %q", c.what, budget.LimitOf(c.what), c.words, c.of)
		}
	}
}
