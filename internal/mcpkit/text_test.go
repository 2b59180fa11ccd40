package mcpkit

import (
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The short answer stands above the answer, as text, and what is closest is no answer.
func TestShortAnswerInText(t *testing.T) {
	r := sample("They grow in March. [1]")
	r.ShortAnswer = &marchwarden.ShortAnswer{Text: "Peas\x1b[31m\nand <b>beans</b>", Citation: 99, Kind: marchwarden.ShortSpan}
	if text := shortText(r); !strings.HasPrefix(text, "Peas[31m and <b>beans</b>\n\nThey grow in March. [1]\n") {
		t.Errorf("the text begins:\n%s", text)
	}
	r.ShortAnswer, r.CostMetadata.SourcesRead = &marchwarden.ShortAnswer{Kind: marchwarden.ShortUnknown}, 2
	for range 3 {
		r.Closest = append(r.Closest, marchwarden.Closest{Locator: "peas.md#L3\x1b]0;", Title: "Peas", RawExcerpt: "Peas\nare\u202e green."})
	}
	text := shortText(r)
	if !strings.HasPrefix(text, "I don't know. 2 documents were looked through.\n\n") || strings.Count(text, "- peas.md#L3]0; (Peas)\n    \"Peas are green.\"\n") != 2 || !strings.Contains(text, "\nClosest passages (not an answer)\n- ") {
		t.Errorf("the refusal is:\n%s", text)
	}
}

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

// What a reader must know stands on the first line.
func TestWarningsComeFirst(t *testing.T) {
	res := &marchwarden.Result{Answer: "Peas like cool soil. [1]", Warnings: []string{"some/model did not write this answer"}}
	if text := shortText(res); !strings.HasPrefix(text, "Warning: some/model did not write this answer\n") {
		t.Errorf("%s", text)
	}
}
