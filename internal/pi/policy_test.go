package pi_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// turn is one row of the follow-up policy as it is acted out: what the first
// researcher reports, and what comes of it.
type turn struct {
	name    string
	members string // of the network; "" is "web arxiv files"
	plan    string // who is asked first; "" is web
	acts    map[string][]act
	options pi.Options
	tokens  int
	want    marchwarden.Decision // its reason is a part of the real one
	then    map[string][]string  // who is asked what, after the plan
	open    string               // an open question of the result
	closed  string               // one that it must not have
	more    func(*testing.T, *marchwarden.Result, *troupe)
}

// found is a report that cites something; empty one that cites nothing.
func found() act {
	return answering(doc{At: "https://web.example/gallium", Text: "Gallium melts at 29.76 degrees Celsius."})
}
func empty() act { return act{Result: reportOf()} }

func (a act) gap(c marchwarden.GapCategory, topic string) act {
	return a.with(func(r *marchwarden.Result) {
		r.Gaps = append(r.Gaps, marchwarden.Gap{Topic: topic, Category: c, Detail: "it says so"})
	})
}

func (a act) discovery(d marchwarden.DiscoveryType, to, query string) act {
	return a.with(func(r *marchwarden.Result) {
		r.DiscoveryEvents = append(r.DiscoveryEvents, marchwarden.DiscoveryEvent{Type: d, SuggestedResearcher: to, Query: query, Reason: "it was on the way"})
	})
}

func (a act) leaves(p marchwarden.Priority, question string) act {
	return a.with(func(r *marchwarden.Result) {
		r.OpenQuestions = append(r.OpenQuestions, marchwarden.OpenQuestion{Question: question, Context: "it came up", Priority: p})
	})
}

// costing is the act of a researcher that says it used so many tokens.
func (a act) costing(tokens int) act {
	res := *a.Result
	res.CostMetadata.TokensUsed = tokens
	a.Result = &res
	return a
}

func web(acts ...act) map[string][]act { return map[string][]act{"web": acts} }

// decided is what is wanted of a decision about the first rihla's report.
func decided(about, topic string, a marchwarden.Action, rihla int, reason string) marchwarden.Decision {
	return marchwarden.Decision{About: about, Topic: topic, From: 1, Action: a, Reason: reason, Rihla: rihla}
}

var gapTurns = []turn{
	{name: "source_not_found", acts: web(empty().gap(marchwarden.SourceNotFound, "gallium")),
		want: decided("source_not_found", "gallium", marchwarden.Dispatched, 2, `web has nothing on "gallium"`), then: map[string][]string{"arxiv": {gallium}},
		more: func(t *testing.T, r *marchwarden.Result, _ *troupe) {
			if len(r.Gaps) > 0 {
				t.Errorf("what another researcher found is still a gap: %+v", r.Gaps)
			}
		}},
	{name: "source_not_found, twice", acts: map[string][]act{"web": {empty().gap(marchwarden.SourceNotFound, "gallium")}, "arxiv": {empty().gap(marchwarden.SourceNotFound, "gallium")}},
		want: marchwarden.Decision{About: "source_not_found", Topic: "gallium", From: 2, Action: marchwarden.Accepted, Reason: "nobody else to ask"}, then: map[string][]string{"arxiv": {gallium}}},
	{name: "source_not_found, nobody else", members: "web", acts: web(empty().gap(marchwarden.SourceNotFound, "gallium")),
		want: decided("source_not_found", "gallium", marchwarden.Accepted, 0, "nobody else to ask")},
	{name: "access_denied", acts: web(empty().gap(marchwarden.AccessDenied, "a paywall")),
		want: decided("access_denied", "a paywall", marchwarden.Dispatched, 2, "web could not look"), then: map[string][]string{"arxiv": {gallium}}},
	{name: "access_denied among others", acts: web(found().gap(marchwarden.AccessDenied, "a paywall")),
		want: decided("access_denied", "a paywall", marchwarden.Flagged, 0, "a person has to see why")},
	{name: "access_denied, nobody else", members: "web", acts: web(empty().gap(marchwarden.AccessDenied, "a paywall")),
		want: decided("access_denied", "a paywall", marchwarden.Flagged, 0, "a person has to see why")},
	{name: "budget_exhausted", plan: "web arxiv", acts: web(empty().gap(marchwarden.BudgetExhausted, "the rest").after("arxiv", 400*time.Millisecond), found()),
		want: decided("budget_exhausted", "the rest", marchwarden.Dispatched, 3, "web ran out of budget; it gets more"), then: map[string][]string{"web": {gallium}},
		more: func(t *testing.T, r *marchwarden.Result, tr *troupe) {
			asked := tr.asked(t, "web", "budget_exhausted")
			if first, second := *asked[0].Constraints.TokenBudget, *asked[1].Constraints.TokenBudget; second < first*3/2 {
				t.Errorf("it got %d tokens, then %d", first, second)
			}
		}},
	{name: "budget_exhausted again", plan: "web arxiv", acts: web(empty().gap(marchwarden.BudgetExhausted, "the rest").after("arxiv", 400*time.Millisecond)),
		want: marchwarden.Decision{About: "budget_exhausted", Topic: "the rest", From: 3, Action: marchwarden.Accepted, Reason: "what it brought is enough"}, then: map[string][]string{"web": {gallium}}},
	{name: "budget_exhausted, and no more of it", acts: web(found().gap(marchwarden.BudgetExhausted, "the rest").with(func(r *marchwarden.Result) { r.Confidence, r.CostMetadata.TokensUsed = 0.3, 19000 })),
		want: decided("budget_exhausted", "the rest", marchwarden.Accepted, 0, "what it brought is enough")},
	{name: "contradictory_sources", acts: web(found().gap(marchwarden.ContradictorySources, "gallium: melting point")),
		want: decided("contradictory_sources", "gallium: melting point", marchwarden.Dispatched, 2, "web found sources that disagree"),
		then: map[string][]string{"arxiv": {"Which is right about gallium: melting point?"}},
		more: func(t *testing.T, r *marchwarden.Result, _ *troupe) {
			if !slices.ContainsFunc(r.Gaps, func(g marchwarden.Gap) bool { return g.Category == marchwarden.ContradictorySources }) {
				t.Errorf("the disagreement is smoothed away: %+v", r.Gaps)
			}
		}},
	{name: "contradictory_sources, nobody else", members: "web", acts: web(found().gap(marchwarden.ContradictorySources, "gallium: melting point")),
		want: decided("contradictory_sources", "gallium: melting point", marchwarden.Flagged, 0, "for a person to compare"), closed: "gallium: melting point"}, // gap and decision say it
	{name: "scope_exceeded", acts: web(found().gap(marchwarden.ScopeExceeded, "folders with lab notes on gallium")),
		want: decided("scope_exceeded", "folders with lab notes on gallium", marchwarden.Dispatched, 2, "outside the scope of web"),
		then: map[string][]string{"files": {"folders with lab notes on gallium"}}},
	{name: "scope_exceeded, no specialist", acts: web(found().gap(marchwarden.ScopeExceeded, "tide tables")),
		want: decided("scope_exceeded", "tide tables", marchwarden.Flagged, 0, "no researcher of this network covers it"), open: "tide tables"},
}

var leadTurns = []turn{
	{name: "related_research", acts: web(found().discovery(marchwarden.RelatedResearch, "arxiv", "supercooling of gallium")),
		want: decided("related_research", "supercooling of gallium", marchwarden.Dispatched, 2, "web met it: it was on the way"), then: map[string][]string{"arxiv": {"supercooling of gallium"}}},
	{name: "related_research, unknown researcher", acts: web(found().discovery(marchwarden.RelatedResearch, "oracle", "supercooling of gallium")),
		want: decided("related_research", "supercooling of gallium", marchwarden.Accepted, 0, "kept as an open question"), open: "supercooling of gallium"},
	{name: "new_source", acts: web(found().discovery(marchwarden.NewSource, "files", "the gallium handbook")),
		want: decided("new_source", "the gallium handbook", marchwarden.Dispatched, 2, "web met it"), then: map[string][]string{"files": {"the gallium handbook"}}},
	{name: "new_source, unknown researcher", acts: web(found().discovery(marchwarden.NewSource, "oracle", "the gallium handbook")),
		want: decided("new_source", "the gallium handbook", marchwarden.Accepted, 0, "kept as an open question"), open: "the gallium handbook"},
	{name: "contradiction", acts: web(found().discovery(marchwarden.ContradictionDetected, "arxiv", "two melting points")),
		want: decided("contradiction", "two melting points", marchwarden.Dispatched, 2, "web met it"), then: map[string][]string{"arxiv": {"two melting points"}}},
	{name: "contradiction, by scope", acts: web(found().discovery(marchwarden.ContradictionDetected, "", "preprints with two melting points")),
		want: decided("contradiction", "preprints with two melting points", marchwarden.Dispatched, 2, "web met it"), then: map[string][]string{"arxiv": {"preprints with two melting points"}}},
	{name: "contradiction, unknown researcher", acts: web(found().discovery(marchwarden.ContradictionDetected, "oracle", "two melting points")),
		want: decided("contradiction", "two melting points", marchwarden.Flagged, 0, "kept as an open question"), open: "two melting points"},
	{name: "open question for a specialist", acts: web(found().leaves(marchwarden.High, "Which preprints measure gallium?")),
		want: decided("open_question", "Which preprints measure gallium?", marchwarden.Dispatched, 2, "web left it open"),
		then: map[string][]string{"arxiv": {"Which preprints measure gallium?"}}, closed: "Which preprints measure gallium?"},
	{name: "open question for the same", acts: web(found().leaves(marchwarden.High, "Why does it supercool?")),
		want: decided("open_question", "Why does it supercool?", marchwarden.Dispatched, 2, "web left it open"), then: map[string][]string{"web": {"Why does it supercool?"}}},
	{name: "open question of medium priority", acts: web(found().leaves(marchwarden.Medium, "Why does it supercool?")), open: "Why does it supercool?"},
}

var cappedTurns = []turn{
	{name: "asked before", acts: web(found().discovery(marchwarden.RelatedResearch, "web", "the melting point of gallium")),
		want: decided("related_research", "the melting point of gallium", marchwarden.Accepted, 0, "web was asked this already (rihla 1)")},
	{name: "too many", options: pi.Options{MaxRihlas: 1}, acts: web(found().discovery(marchwarden.RelatedResearch, "arxiv", "supercooling")),
		want: decided("related_research", "supercooling", marchwarden.Capped, 0, "there are 1 rihlas at most"), open: "supercooling"},
	{name: "too deep", options: pi.Options{MaxDepth: -1}, acts: web(found().discovery(marchwarden.RelatedResearch, "arxiv", "supercooling")),
		want: decided("related_research", "supercooling", marchwarden.Capped, 0, "follow-ups go 0 deep at most"), open: "supercooling"},
	{name: "too little", tokens: 1000, acts: web(found().discovery(marchwarden.RelatedResearch, "arxiv", "supercooling")),
		want: decided("related_research", "supercooling", marchwarden.Capped, 0, "500 tokens are left, and a rihla needs 1000"), open: "supercooling",
		more: func(t *testing.T, r *marchwarden.Result, _ *troupe) {
			if !r.CostMetadata.BudgetExhausted || !slices.ContainsFunc(r.Gaps, func(g marchwarden.Gap) bool {
				return g.Category == marchwarden.BudgetExhausted && strings.Contains(g.Detail, "arxiv was not asked")
			}) {
				t.Errorf("%+v", r.Gaps)
			}
		}},
	{name: "too little for more", plan: "web files", options: pi.Options{MaxRihlas: 16},
		acts: map[string][]act{"arxiv": {empty().costing(4000), empty().costing(4000), empty().costing(100)},
			"web": {empty().gap(marchwarden.BudgetExhausted, "the rest").discovery(marchwarden.NewSource, "arxiv", "alpha").discovery(marchwarden.NewSource, "arxiv", "beta").
				discovery(marchwarden.NewSource, "arxiv", "gamma").after("files", 400*time.Millisecond)}},
		want: decided("budget_exhausted", "the rest", marchwarden.Capped, 0, "would be more than it had"), then: map[string][]string{"arxiv": {"alpha", "beta", "gamma"}}},
	{name: "too many of one report", options: pi.Options{MaxRihlas: 16},
		acts: web(found().discovery(marchwarden.NewSource, "arxiv", "alpha").discovery(marchwarden.NewSource, "arxiv", "beta").discovery(marchwarden.NewSource, "files", "gamma").
			discovery(marchwarden.NewSource, "files", "delta").discovery(marchwarden.NewSource, "arxiv", "epsilon").discovery(marchwarden.NewSource, "arxiv", "zeta")),
		want: decided("new_source", "zeta", marchwarden.Capped, 0, "one report leads to 4 rihlas at most"),
		then: map[string][]string{"arxiv": {"alpha", "beta"}, "files": {"gamma", "delta"}}, open: "zeta"},
	{name: "asks nothing", acts: web(found().discovery(marchwarden.NewSource, "arxiv", "\u200b").leaves(marchwarden.High, " ")),
		want: decided("new_source", "", marchwarden.Accepted, 0, "kept as an open question")},
	{name: "failed", plan: "web files", acts: map[string][]act{"web": {{How: "fail"}}},
		want: decided("access_denied", "researcher web", marchwarden.Dispatched, 3, "web could not look"), then: map[string][]string{"arxiv": {gallium}}},
}

// TestPolicy acts out the follow-up policy with researchers in processes of their
// own, which write down what they are asked.
func TestPolicy(t *testing.T) { onRoads(t, policy, overStream) }

func policy(t *testing.T, o *office) {
	turns := slices.Concat(gapTurns, leadTurns, cappedTurns)
	roles := []role{
		{Member: dispatch.Member{Name: "web", Scope: "pages of the open web"}},
		{Member: dispatch.Member{Name: "arxiv", Scope: "scholarly papers and preprints"}},
		{Member: dispatch.Member{Name: "files", Scope: "documents in the user's folders"}},
	}
	for i := range roles {
		roles[i].Acts = map[string][]act{}
		for _, tn := range turns {
			if acts := tn.acts[roles[i].Name]; acts != nil {
				roles[i].Acts[tn.name] = acts
			}
		}
	}
	tr := gather(t, roles...)
	seen := map[string]bool{}
	for i, tn := range turns {
		if o.network != nil && roadsAsked != "full" && i%4 > 0 {
			seen[tn.want.About] = true // who is asked how is tested by fewer
			continue
		}
		t.Run(tn.name, func(t *testing.T) { tn.act(t, tr, o, seen) })
	}
	for _, about := range []string{"source_not_found", "access_denied", "budget_exhausted", "contradictory_sources", "scope_exceeded",
		"related_research", "new_source", "contradiction", "open_question"} {
		if !seen[about] {
			t.Errorf("no row is about %s", about)
		}
	}
}

func (tn turn) act(t *testing.T, tr *troupe, o *office, seen map[string]bool) {
	if tn.members == "" {
		tn.members = "web arxiv files"
	}
	if tn.plan == "" {
		tn.plan = "web"
	}
	plan := strings.Fields(tn.plan)
	req := marchwarden.Request{Question: gallium, Context: tn.name}
	if tn.tokens > 0 {
		req.Constraints = &marchwarden.Constraints{TokenBudget: &tn.tokens}
	}
	res := o.ask(t, pi.Config{Dispatcher: only(tr, strings.Fields(tn.members)...), Minds: minds(plan...), Options: tn.options}, req)
	seen[tn.want.About] = true
	at := slices.IndexFunc(res.Decisions, func(d marchwarden.Decision) bool {
		return strings.Contains(d.Reason, tn.want.Reason) && d.About == tn.want.About && d.Topic == tn.want.Topic && d.From == tn.want.From && d.Action == tn.want.Action && d.Rihla == tn.want.Rihla
	})
	if at < 0 && tn.want.About != "" {
		t.Errorf("decided %+v, want %+v", res.Decisions, tn.want)
	}
	for _, name := range []string{"web", "arxiv", "files"} {
		var asked, want []string
		for _, r := range tr.asked(t, name, tn.name) {
			asked = append(asked, r.Question)
		}
		if slices.Contains(plan, name) {
			want = append(want, gallium)
		}
		want = append(want, tn.then[name]...)
		slices.Sort(want) // what is sent together comes in any order
		slices.Sort(asked)
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("%s was asked (-want +got)\n%s", name, diff)
		}
	}
	if n := tn.want.Rihla; n > 0 && (len(res.Rihlas) < n || res.Rihlas[n-1].Parent != 1 || res.Rihlas[n-1].Reason != res.Decisions[max(at, 0)].Reason) {
		t.Errorf("rihla %d does not follow: %+v", n, res.Rihlas)
	}
	asks := func(question string) bool {
		return slices.ContainsFunc(res.OpenQuestions, func(q marchwarden.OpenQuestion) bool { return q.Question == question })
	}
	if tn.open != "" && !asks(tn.open) || tn.closed != "" && asks(tn.closed) {
		t.Errorf("open questions are %+v", res.OpenQuestions)
	}
	if tn.more != nil {
		tn.more(t, res, tr)
	}
}
