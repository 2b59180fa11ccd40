package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// investigated is a result of an investigator: three rihlas, two sides that
// disagree, an unchecked citation and decisions of every kind.
const utah = "What are ideal crops for a garden in Utah?"

func investigated(t testing.TB) (*marchwarden.Result, Options) {
	r, o := rich(t)
	r.Citations[1].Published, r.Citations[1].Authority, r.Citations[1].Origin = "2019-04-02", marchwarden.HighAuthority, "example.edu"
	r.Citations[3].Unchecked, r.Citations[3].Source = true, "almanac"
	a, b := &r.Contradictions[0].A, &r.Contradictions[0].B
	a.Title, a.Published, a.Authority, a.Researcher = "Tomatoes at elevation", "2019-04-02", marchwarden.HighAuthority, "files"
	b.Authority, b.Researcher = marchwarden.LowAuthority, "almanac"
	r.Rihlas = []marchwarden.Rihla{
		{Researcher: "files", Question: utah, Reason: "the question itself", Outcome: "answered with 3 citations", Citations: 3, TraceID: screenID(t), TokensUsed: 912, WallTimeSec: 0.084},
		{Researcher: "almanac", Question: "Which vegetables ripen above 6,000 feet in Utah, and which of them need a greenhouse or another shelter from the cold?", Reason: "within its scope: mountain gardens", Outcome: "report taken as it is", Citations: 1, TraceID: screenID(t), WallTimeSec: 12.44},
		{Researcher: "web", Question: "What are the frost dates of Kanab?", Reason: "files found nothing", Outcome: "failed: web: the search engine cannot be reached", Parent: 1},
	}
	r.Decisions = []marchwarden.Decision{
		{About: "source_not_found", Topic: "frost dates of Kanab", From: 1, Action: marchwarden.Dispatched, Reason: "another researcher may know", Rihla: 3},
		{About: "open_question", Topic: "Which cultivars were tried?", From: 1, Action: marchwarden.Accepted, Reason: "kept as an open question"},
		{About: "new_source", Topic: "the seed list of 2025", From: 2, Action: marchwarden.Withheld, Reason: "it holds words from files, which web must not learn"},
		{About: "contradictory_sources", Topic: "tomatoes above 6,000 feet", From: 2, Action: marchwarden.Flagged, Reason: "nobody else can be asked; both excerpts are given for a person to compare"},
		{About: "related_research", Topic: "cold tolerance", From: 3, Action: marchwarden.Capped, Reason: "there are 3 rihlas at most"},
	}
	return r, o
}

func TestPlanGolden(t *testing.T) {
	r, _ := investigated(t)
	for name, st := range map[string]term.Style{"plan": {}, "plan-50": {Width: 50, Color: true}} {
		var b bytes.Buffer
		if err := Plan(&b, st, utah, "11 to 40 calls of openai/gpt-4.1, 11000 to 60000 tokens, $0.0352 to $0.4800", r.Rihlas); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
	}
	for _, hostile := range hostileTexts() {
		var b bytes.Buffer
		if err := Plan(&b, term.Style{}, hostile, hostile, []marchwarden.Rihla{{Researcher: hostile, Question: hostile, Reason: hostile, Outcome: hostile}}); err != nil || firstControl(b.String()) >= 0 {
			t.Errorf("%q, %v", b.String(), err)
		}
	}
	var b bytes.Buffer
	if err := Plan(&b, term.Style{}, "", "", nil); err != nil || b.String() != "no researcher would be asked\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if err := Plan(failing{}, term.Style{}, "q", "", nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Plan: %v", err)
	}
}

// With verbose a page has every decision, in its order.
func TestDecisions(t *testing.T) {
	r := &marchwarden.Result{Answer: "x"}
	for i := range 40 {
		r.Decisions = append(r.Decisions, marchwarden.Decision{Topic: fmt.Sprintf("topic %d.", i), Action: marchwarden.Dispatched, From: 1, Rihla: i})
	}
	r.Decisions = append(r.Decisions, marchwarden.Decision{Topic: "a later one.", Action: "postponed for ever"}, marchwarden.Decision{Topic: "the last.", Action: marchwarden.Flagged})
	got := readingPage(t, term.Style{}, &Report{Result: r}, Options{Verbose: true})
	for _, want := range []string{"  dispatched  topic 0. (question 1)\n  dispatched  topic 1. (question 1 → 1)\n", "  postponed…  a later one.\n  flagged     the last.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
