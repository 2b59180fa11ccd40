package mcpkit

import (
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// A gap is not always something that was not found: each says which kind it is.
func TestGapsInText(t *testing.T) {
	r := sample("Peas grow in March. [1]")
	want := map[marchwarden.GapCategory]string{
		marchwarden.SourceNotFound:       "not found in what was searched",
		marchwarden.AccessDenied:         "could not be reached or read",
		marchwarden.ContradictorySources: "sources disagree",
		marchwarden.BudgetExhausted:      "the budget ended first",
		marchwarden.ScopeExceeded:        "needs another kind of researcher",
		"of\x1b[31m tomorrow":            "of[31m tomorrow",
	}
	r.Gaps = nil
	for category := range want {
		r.Gaps = append(r.Gaps, marchwarden.Gap{Topic: "frost", Category: category, Detail: "why"})
	}
	text := shortText(r)
	if !strings.Contains(text, "\nGaps\n") || strings.Contains(text, "Not found\n") {
		t.Errorf("no section of gaps:\n%s", text)
	}
	for category, words := range want {
		if line := "- frost (" + words + "): why\n"; !strings.Contains(text, line) {
			t.Errorf("%s: no %q in\n%s", category, line, text)
		}
	}
}
