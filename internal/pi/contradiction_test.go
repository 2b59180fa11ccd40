package pi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// quarrel is a network in which two members disagree. Referees are asked nothing
// at first.
func quarrel(t *testing.T) *troupe {
	high := answering(doc{At: "https://www.dams.gov/kessler", Text: "The Kessler dam is 120 metres high.", Title: "Register of dams", Published: "2025-03-01", Authority: marchwarden.HighAuthority})
	low := answering(doc{At: "https://blog.example/kessler", Text: "The Kessler dam is 95 metres high.", Title: "My holidays", Published: "2012-08-09", Authority: marchwarden.LowAuthority})
	agrees := answering(doc{At: "https://blog.example/kessler", Text: "The height of the Kessler dam is 120 metres.", Title: "My holidays"})
	return gather(t,
		role{Member: dispatch.Member{Name: "web", Scope: "pages"}, Acts: map[string][]act{"": {high}, "agreed": {high}, "private": {high}}},
		role{Member: dispatch.Member{Name: "arxiv", Scope: "papers"}, Acts: map[string][]act{"": {low}, "agreed": {agrees}, "private": {low}}},
		role{Member: dispatch.Member{Name: "referee", Scope: "everything else"}})
}

// TestResearchersDisagree shows the two sides of a contradiction across reports,
// and asks somebody else about the very point.
func TestResearchersDisagree(t *testing.T) {
	t.Parallel()
	tr, o := quarrel(t), newOffice(t)
	for _, network := range []string{"web arxiv", "web arxiv referee"} {
		t.Run(network, func(t *testing.T) {
			before := len(tr.asked(t, "referee", ""))
			res := o.ask(t, pi.Config{Dispatcher: only(tr, strings.Fields(network)...), Minds: minds("web", "arxiv")}, marchwarden.Request{Question: dam})
			sides := disagreement(t, res)
			want := []marchwarden.Side{
				{Locator: "https://blog.example/kessler", RawExcerpt: "The Kessler dam is 95 metres high.", Title: "My holidays", Published: "2012-08-09", Authority: marchwarden.LowAuthority, Researcher: "arxiv"},
				{Locator: "https://www.dams.gov/kessler", RawExcerpt: "The Kessler dam is 120 metres high.", Title: "Register of dams", Published: "2025-03-01", Authority: marchwarden.HighAuthority, Researcher: "web"},
			}
			if diff := cmp.Diff(want, sides, cmpopts.IgnoreFields(marchwarden.Side{}, "Value")); diff != "" {
				t.Errorf("sides (-want +got)\n%s", diff)
			}
			asked := tr.asked(t, "referee", "")[before:]
			at := slices.IndexFunc(res.Decisions, func(d marchwarden.Decision) bool { return d.About == "contradictory_sources" })
			if at < 0 {
				t.Fatalf("nothing was decided: %+v", res.Decisions)
			}
			if network == "web arxiv" {
				if res.Decisions[at].Action != marchwarden.Flagged || len(res.Rihlas) != 2 {
					t.Errorf("%+v, %+v", res.Decisions, res.Rihlas)
				}
				return
			}
			if len(asked) != 1 || !strings.HasPrefix(asked[0].Question, "Which is right about ") || !strings.Contains(strings.ToLower(asked[0].Question), "kessler") {
				t.Errorf("the referee was asked %+v", asked)
			}
			if d := res.Decisions[at]; d.Action != marchwarden.Dispatched || d.Rihla != 3 || res.Rihlas[2].Researcher != "referee" || res.Rihlas[2].Parent != d.From {
				t.Errorf("%+v, %+v", d, res.Rihlas)
			}
		})
	}
}

// disagreement are the sides of the one contradiction of a result, which lowers
// its confidence and is a gap.
func disagreement(t *testing.T, res *marchwarden.Result) []marchwarden.Side {
	t.Helper()
	if len(res.Contradictions) != 1 {
		t.Fatalf("contradictions are %+v", res.Contradictions)
	}
	if f := res.ConfidenceFactors; !f.ContradictionDetected || res.Confidence > 0.69 {
		t.Errorf("confidence %v, %+v", res.Confidence, f)
	}
	if !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return g.Category == marchwarden.ContradictorySources }) {
		t.Errorf("no gap tells of it: %+v", res.Gaps)
	}
	sides := []marchwarden.Side{res.Contradictions[0].A, res.Contradictions[0].B}
	slices.SortFunc(sides, func(a, b marchwarden.Side) int { return strings.Compare(a.Locator, b.Locator) })
	return sides
}

// TestResearchersAgree must not see a contradiction where there is none.
func TestResearchersAgree(t *testing.T) {
	t.Parallel()
	tr := quarrel(t)
	res := newOffice(t).ask(t, pi.Config{Dispatcher: tr, Minds: minds("web", "arxiv")}, marchwarden.Request{Question: dam, Context: "agreed"})
	if len(res.Contradictions) != 0 || res.ConfidenceFactors.ContradictionDetected || res.ConfidenceFactors.NumCorroboratingSources != 2 || len(res.Rihlas) != 2 {
		t.Errorf("%+v, %+v, %+v", res.Contradictions, res.ConfidenceFactors, res.Rihlas)
	}
}

// TestPrivateDisagreementIsNotTold keeps a quarrel with a private side from those
// who must not know of it, also where only the other side may be told.
func TestPrivateDisagreementIsNotTold(t *testing.T) {
	t.Parallel()
	tr, o := quarrel(t), newOffice(t)
	for name, c := range map[string]struct {
		private, allowed []string
		told             bool
	}{
		"one is private":           {[]string{"arxiv"}, nil, false},
		"the other is private":     {[]string{"web"}, nil, false},
		"both, one may be told":    {[]string{"web", "arxiv"}, []string{"web"}, false},
		"both, the other may":      {[]string{"web", "arxiv"}, []string{"arxiv"}, false},
		"both, and both may":       {[]string{"web", "arxiv"}, []string{"web", "arxiv"}, true},
		"one, and it may be told":  {[]string{"arxiv"}, []string{"arxiv"}, true},
		"nobody is private at all": {nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			network := some{Dispatcher: tr}
			for _, m := range tr.Members() {
				m.Private = slices.Contains(c.private, m.Name)
				network.members = append(network.members, m)
			}
			before := len(tr.asked(t, "referee", "private"))
			res := o.ask(t, pi.Config{Dispatcher: network, Minds: minds("web", "arxiv"), Options: pi.Options{AllowEgress: c.allowed}}, marchwarden.Request{Question: dam, Context: "private"})
			disagreement(t, res)
			if told := len(tr.asked(t, "referee", "private")) > before; told != c.told {
				t.Errorf("the referee was told: %t; %+v", told, res.Decisions)
			}
			if withheld := slices.ContainsFunc(res.Decisions, func(d marchwarden.Decision) bool { return d.Action == marchwarden.Withheld }); withheld == c.told {
				t.Errorf("%+v", res.Decisions)
			}
		})
	}
}
