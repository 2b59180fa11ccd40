package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"github.com/google/go-cmp/cmp"
)

// investigated is a result of an investigator: three rihlas, two sides that
// disagree, an unchecked citation and decisions of every kind.
func investigated(t testing.TB) (*marchwarden.Result, ScreenOptions) {
	r, o := rich(t)
	r.Citations[1].Published, r.Citations[1].Authority, r.Citations[1].Origin = "2019-04-02", marchwarden.HighAuthority, "example.edu"
	r.Citations[3].Unchecked, r.Citations[3].Source = true, "almanac"
	a, b := &r.Contradictions[0].A, &r.Contradictions[0].B
	a.Title, a.Published, a.Authority, a.Researcher = "Tomatoes at elevation", "2019-04-02", marchwarden.HighAuthority, "files"
	b.Authority, b.Researcher = marchwarden.LowAuthority, "almanac"
	r.Rihlas = []marchwarden.Rihla{
		{Researcher: "files", Question: o.Question, Reason: "the question itself", Outcome: "answered with 3 citations", Citations: 3, TraceID: screenID(t), TokensUsed: 912, WallTimeSec: 0.084},
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
	r, o := investigated(t)
	for name, st := range map[string]term.Style{"plan": {}, "plan-50": {Width: 50, Color: true}} {
		var b bytes.Buffer
		if err := Plan(&b, st, o.Question, "11 to 40 calls of openai/gpt-4.1, 11000 to 60000 tokens, $0.0352 to $0.4800", r.Rihlas); err != nil {
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

// Few of many decisions are shown, those for a person first, and the rest is
// counted.
func TestManyDecisions(t *testing.T) {
	r := &marchwarden.Result{Answer: "x"}
	for i := range 40 {
		action := marchwarden.Dispatched
		if i >= 20 {
			action = marchwarden.Accepted
		}
		r.Decisions = append(r.Decisions, marchwarden.Decision{Topic: fmt.Sprintf("topic %d.", i), Action: action})
	}
	r.Decisions = append(r.Decisions, marchwarden.Decision{Topic: "a later one.", Action: "postponed for ever"}, marchwarden.Decision{Topic: "the last.", Action: marchwarden.Flagged})
	got := screenOf(t, term.Style{}, r, ScreenOptions{})
	for _, want := range []string{"\n  flagged     the last.\n  accepted    topic 20.\n", "  accepted    topic 30.\n  10 more not followed · 20 reports followed · --verbose shows all\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	got = screenOf(t, term.Style{}, r, ScreenOptions{Verbose: true})
	for _, want := range []string{"  dispatched  topic 0.\n  dispatched  topic 1.\n", "  accepted    topic 39.\n  postponed…  a later one.\n  flagged     the last.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A contradiction that stands in its own section is counted in the follow-up; one
// that does not stand there is listed.
func TestFlaggedContradictions(t *testing.T) {
	head := strings.Repeat("the season above 6,000 feet ", 8)
	flagged := func(topic string) marchwarden.Decision {
		return marchwarden.Decision{About: string(marchwarden.ContradictorySources), Topic: topic, From: 1, Action: marchwarden.Flagged, Reason: "nobody else can be asked"}
	}
	contradictions := []marchwarden.Contradiction{{Subject: "the season", Attribute: "number of days"}, {Subject: head, Attribute: "days"}}
	for name, tc := range map[string]struct {
		decisions []marchwarden.Decision
		want      string // the whole section
	}{
		"all shown": {[]marchwarden.Decision{flagged("the season: number of days"), flagged(head[:100] + "…")},
			"  2 flagged as contradictory, shown above · --verbose shows all\n"},
		"not shown": {[]marchwarden.Decision{flagged("notes.md"), flagged("…"), flagged("the season")},
			"  flagged     contradictory sources: notes.md — nobody else can be asked (rihla 1)\n" +
				"  flagged     contradictory sources: … — nobody else can be asked (rihla 1)\n" +
				"  flagged     contradictory sources: the season — nobody else can be asked (rihla 1)\n"},
		"followed": {[]marchwarden.Decision{flagged("the season: number of days"),
			{About: string(marchwarden.ContradictorySources), Topic: "the season: number of days", From: 1, Action: marchwarden.Dispatched, Rihla: 2},
			{About: string(marchwarden.SourceNotFound), Topic: "the season: number of days", Action: marchwarden.Flagged}},
			"  flagged     source not found: the season: number of days\n" +
				"  1 flagged as contradictory, shown above · 1 report followed · --verbose shows all\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &marchwarden.Result{Answer: "x", Contradictions: contradictions, Decisions: tc.decisions}
			_, got, _ := strings.Cut(screenOf(t, term.Style{Width: 120}, r, ScreenOptions{}), "what was done about the reports\n")
			got, _, _ = strings.Cut(got, "\nconfidence")
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			all := screenOf(t, term.Style{}, r, ScreenOptions{Verbose: true})
			if n := strings.Count(all, "  flagged     "); n != len(slices.DeleteFunc(slices.Clone(tc.decisions), func(d marchwarden.Decision) bool { return d.Action != marchwarden.Flagged })) {
				t.Errorf("%d of the flagged are shown with verbose:\n%s", n, all)
			}
		})
	}
}
