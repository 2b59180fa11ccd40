package pi_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

func init() {
	plays["adversary"] = endless
	plays["spender"] = spend
}

// dice are random and the same for the same words.
func dice(words ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, words...)
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

var adversaries = []string{"web", "arxiv", "files", "mole"}

// endless answers every question with more than anybody can follow, in new words
// each time, about evidence that is true, false or both.
func endless(a *actor, n int, req marchwarden.Request) *marchwarden.Result {
	d := dice(a.Name, req.Context, n, req.Question)
	words := func() string {
		return fmt.Sprintf("w%x x%x y%x %s", d.Uint32(), d.Uint32(), d.Uint32(), []string{"", "pages", "papers", "folders", "?"}[d.IntN(5)])
	}
	var docs []doc
	for range d.IntN(4) {
		text := "It is said that " + words() + " melts."
		if d.IntN(2) == 0 {
			a.store(text)
		}
		docs = append(docs, doc{At: fmt.Sprintf("https://%s.example/%x", a.Name, d.Uint32()), Text: text})
	}
	res := reportOf(docs...)
	res.CostMetadata.TokensUsed = d.IntN(2 * *req.Constraints.TokenBudget)
	res.CostMetadata.SourcesRead = d.IntN(3 * *req.Constraints.MaxSources)
	res.Confidence = marchwarden.Unit(d.Float64())
	for range d.IntN(60) {
		category := []marchwarden.GapCategory{marchwarden.SourceNotFound, marchwarden.AccessDenied, marchwarden.BudgetExhausted, marchwarden.ContradictorySources, marchwarden.ScopeExceeded}[d.IntN(5)]
		res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: words(), Category: category, Detail: words()})
	}
	for range d.IntN(60) {
		kind := []marchwarden.DiscoveryType{marchwarden.RelatedResearch, marchwarden.NewSource, marchwarden.ContradictionDetected}[d.IntN(3)]
		to := append([]string{"", "oracle", a.Name}, adversaries...)[d.IntN(7)]
		res.DiscoveryEvents = append(res.DiscoveryEvents, marchwarden.DiscoveryEvent{Type: kind, SuggestedResearcher: to, Query: words(), Reason: words()})
	}
	for range d.IntN(60) {
		res.OpenQuestions = append(res.OpenQuestions, marchwarden.OpenQuestion{Question: words(), Context: words(), Priority: marchwarden.High})
	}
	return res
}

// TestEndlessDiscoveries is an investigation among researchers who never come to
// an end: it does, within its caps, and asks nobody the same thing twice.
func TestEndlessDiscoveries(t *testing.T) { onRoads(t, endlessDiscoveries, overStream) }

func endlessDiscoveries(t *testing.T, o *office) {
	var roles []role
	for i, name := range adversaries {
		trust := []dispatch.Trust{dispatch.Own, dispatch.Known, dispatch.Unknown, dispatch.Own}[i]
		roles = append(roles, role{Member: dispatch.Member{Name: name, Trust: trust, Private: name == "files"}, Play: "adversary"})
	}
	tr := gather(t, roles...)
	together(o.times(100, 40), 4, func(i int) {
		d := dice("caps", i)
		depth := []marchwarden.Depth{marchwarden.Shallow, marchwarden.Balanced, marchwarden.Deep}[d.IntN(3)]
		tokens, sources := 1000+d.IntN(59000), 1+d.IntN(60)
		cfg := pi.Config{Dispatcher: tr, Options: pi.Options{Parallel: 1 + d.IntN(5), MaxRihlas: d.IntN(25), MaxDepth: d.IntN(6) - 1}}
		req := marchwarden.Request{Question: "What melts?", Context: fmt.Sprint("run ", i), Depth: depth, Constraints: &marchwarden.Constraints{TokenBudget: &tokens, MaxSources: &sources}}
		holdsCaps(t, o, tr, cfg, req)
	})
}

func holdsCaps(t *testing.T, o *office, tr *troupe, cfg pi.Config, req marchwarden.Request) {
	res := o.ask(t, cfg, req)
	log, err := o.traces.Load(res.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	start, err := log.Start()
	if err != nil {
		t.Fatal(err)
	}
	inv := start.Investigation
	if len(res.Rihlas) > inv.MaxRihlas {
		t.Errorf("%s: %d rihlas, at most %d", req.Context, len(res.Rihlas), inv.MaxRihlas)
	}
	depth, led := make([]int, len(res.Rihlas)), map[int]int{}
	for i, r := range res.Rihlas {
		if r.Parent > 0 {
			depth[i] = depth[r.Parent-1] + 1
			if led[r.Parent]++; led[r.Parent] > 4 {
				t.Errorf("%s: rihla %d led to %d others", req.Context, r.Parent, led[r.Parent])
			}
		}
		if depth[i] > inv.MaxDepth {
			t.Errorf("%s: rihla %d is %d deep, at most %d", req.Context, i+1, depth[i], inv.MaxDepth)
		}
	}
	for _, name := range adversaries {
		granted := map[string][]int{}
		for _, r := range tr.asked(t, name, req.Context) {
			granted[r.Question] = append(granted[r.Question], *r.Constraints.TokenBudget)
			if err := r.Validate(); err != nil {
				t.Errorf("%s: %s was asked %+v: %v", req.Context, name, r, err)
			}
		}
		for q, g := range granted {
			if o.network != nil { // an engine repeats a task whose lease ran out, word for word
				g = slices.Compact(g)
			}
			if len(g) > 2 || len(g) == 2 && g[1] <= g[0] {
				t.Errorf("%s: %s was asked %q with %v tokens", req.Context, name, q, g)
			}
		}
	}
	for _, d := range res.Decisions {
		var before int
		if _, told, ok := strings.Cut(d.Reason, "was asked this already (rihla "); ok {
			if _, err := fmt.Sscanf(told, "%d)", &before); err != nil || before < 1 || before > len(res.Rihlas) || !strings.HasPrefix(d.Reason, res.Rihlas[before-1].Researcher) {
				t.Errorf("%s: %+v points at nothing", req.Context, d)
			}
		}
	}
}

// spend says that it has cost less than it was granted, just that, or more.
func spend(a *actor, n int, req marchwarden.Request) *marchwarden.Result {
	d := dice(a.Name, req.Context, n)
	text := fmt.Sprintf("%s knows %x.", a.Name, d.Uint32())
	a.store(text)
	res := reportOf(doc{At: fmt.Sprintf("https://%s.example/%x", a.Name, d.Uint32()), Text: text})
	grant := *req.Constraints.TokenBudget
	res.CostMetadata.TokensUsed = []int{0, grant / 3, grant, grant + d.IntN(grant), 1 << 40}[d.IntN(5)]
	if strings.HasPrefix(req.Context, "honest") {
		res.CostMetadata.TokensUsed = min(res.CostMetadata.TokensUsed, grant)
	}
	res.CostMetadata.SourcesRead = d.IntN(2 * *req.Constraints.MaxSources)
	res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: "more", Category: marchwarden.BudgetExhausted})
	res.DiscoveryEvents = append(res.DiscoveryEvents, marchwarden.DiscoveryEvent{Type: marchwarden.NewSource, SuggestedResearcher: "arxiv", Query: fmt.Sprintf("q%x", d.Uint32())})
	return res
}

// purse watches what is granted at the same time.
type purse struct {
	dispatch.Dispatcher
	mu            sync.Mutex // guards what follows
	granted, most int        // tokens under way, and the most at once
	committed     int        // the most that was under way or spent
	spent         int        // as reported
	requests      []marchwarden.Request
}

func (p *purse) Dispatch(ctx context.Context, name string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	p.mu.Lock()
	p.requests = append(p.requests, req)
	p.granted += *req.Constraints.TokenBudget
	p.most, p.committed = max(p.most, p.granted), max(p.committed, p.granted+p.spent)
	p.mu.Unlock()
	res, err := p.Dispatcher.Dispatch(ctx, name, req, sink)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted -= *req.Constraints.TokenBudget
	if err == nil {
		p.spent += min(res.CostMetadata.TokensUsed, *req.Constraints.TokenBudget)
	}
	return res, err
}

// TestBudgetHolds has networks of all kinds spend budgets of all sizes.
func TestBudgetHolds(t *testing.T) {
	t.Parallel()
	var roles []role
	for _, name := range adversaries {
		roles = append(roles, role{Member: dispatch.Member{Name: name}, Play: "spender"})
	}
	tr, o := gather(t, roles...), newOffice(t)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		var network some
		network.Dispatcher = tr
		for _, m := range tr.Members()[:rapid.IntRange(1, 4).Draw(rt, "members")] {
			m.Share = rapid.SampledFrom([]float64{0, 0.001, 0.5, 1, 3, 1e6}).Draw(rt, "share")
			network.members = append(network.members, m)
		}
		p := &purse{Dispatcher: network}
		budget := rapid.OneOf(rapid.IntRange(1000, 8000), rapid.IntRange(1000, 60000)).Draw(rt, "tokens")
		sources := rapid.IntRange(1, 30).Draw(rt, "sources")
		honest := rapid.SampledFrom([]string{"honest", "lying"}).Draw(rt, "manners")
		cfg := pi.Config{Dispatcher: p, Options: pi.Options{Parallel: rapid.IntRange(1, 5).Draw(rt, "parallel"), MaxRihlas: rapid.IntRange(0, 12).Draw(rt, "rihlas")}}
		res := o.ask(t, cfg, marchwarden.Request{Question: "Who knows?", Context: fmt.Sprint(honest, runs), Depth: marchwarden.Deep,
			Constraints: &marchwarden.Constraints{TokenBudget: &budget, MaxSources: &sources}})
		if c := res.CostMetadata; c.OverBudget && honest == "honest" || (c.TokensUsed > budget) != c.OverBudget || c.SourcesRead > sources {
			rt.Fatalf("%+v of %d tokens and %d sources", res.CostMetadata, budget, sources)
		}
		if p.most > budget || p.committed > budget && honest == "honest" || p.granted != 0 {
			rt.Fatalf("%d tokens were given away at once, %d with those that were spent, of %d", p.most, p.committed, budget)
		}
		for _, r := range p.requests {
			if err := r.Validate(); err != nil || *r.Constraints.TokenBudget < marchwarden.MinTokenBudget || *r.Constraints.MaxSources < 1 || *r.Constraints.MaxIterations < 1 {
				rt.Fatalf("%+v: %v", r, err)
			}
		}
		if len(p.requests) == 0 {
			rt.Fatal("nobody was asked")
		}
	})
}
