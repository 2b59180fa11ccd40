package network_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// dear is what the models of these worlds cost.
var dear = ledger.Prices{"test/meek": {Input: 3, Output: 15}, "test/greedy": {Input: 3, Output: 15}}

// bill is what calls really cost, and what their provider says.
type bill struct {
	lie func(llm.Usage) llm.Usage

	mu    sync.Mutex // guards what follows
	usd   float64
	calls int
}

func (b *bill) charge(c llm.Call, r llm.Reply) llm.Usage {
	n := len(c.System) + len(c.Input) + len(c.Schema)
	for _, tool := range c.Tools {
		n += len(tool.Description) + len(tool.Schema)
	}
	out := len(r.Text)
	for _, call := range r.Calls {
		out += len(call.Name) + len(call.Input)
	}
	truth := llm.Usage{In: n / 4, Out: min(c.MaxTokens, out/4)}
	usd, _ := dear.Cost("test/meek", ledger.Tokens{In: truth.In, Out: truth.Out})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usd, b.calls = b.usd+usd, b.calls+1
	return b.lie(truth)
}

// Whatever a provider says that rihlas side by side and the investigator have used, what they really
// cost together stays within the cap, and the result says what it cost.
func TestMoneyHoldsWhateverIsReported(t *testing.T) {
	lies := map[string]func(llm.Usage) llm.Usage{
		"honest":  func(u llm.Usage) llm.Usage { return u },
		"nothing": func(llm.Usage) llm.Usage { return llm.Usage{} },
		"a tenth": func(u llm.Usage) llm.Usage { return llm.Usage{In: u.In / 10, Out: u.Out / 10} },
		"half":    func(u llm.Usage) llm.Usage { return llm.Usage{In: u.In / 2, Out: u.Out / 2} },
		"thrice":  func(u llm.Usage) llm.Usage { return llm.Usage{In: u.In * 3, Out: u.Out * 3} },
	}
	exhausted, asked := 0, 0
	for name, lie := range lies {
		for i, most := range []float64{0.0005, 0.02, 0.05, 2} {
			t.Run(fmt.Sprintf("%s under $%v", name, most), func(t *testing.T) {
				w := newWorld(t, setting{seed: i, question: questions[0], depth: marchwarden.Balanced, members: []string{"files", "database", "web", "arxiv"}, filePlace: filePlaces[0], tablePlace: tablePlaces[0],
					model: namedModel, manner: "meek", trust: dispatch.Known, bill: &bill{lie: lie}})
				res, err := pi.New(w.cfg).Research(t.Context(), marchwarden.Request{Question: w.question, Constraints: &marchwarden.Constraints{MaxCostUSD: &most}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				c := res.CostMetadata
				if w.bill.usd > most || c.CostUSD == nil || *c.CostUSD > most && !c.OverBudget {
					t.Errorf("%d calls cost $%f under $%v; %+v", w.bill.calls, w.bill.usd, most, c)
				}
				if name != "thrice" && (c.OverBudget || *c.CostUSD < w.bill.usd*0.999) {
					t.Errorf("$%f, over budget %v; really $%f", *c.CostUSD, c.OverBudget, w.bill.usd)
				}
				if slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool {
					return g.Category == marchwarden.BudgetExhausted && strings.Contains(g.Detail, "cost cap of $")
				}) {
					if exhausted++; !c.BudgetExhausted {
						t.Error("a gap says that the money ran out, and the result does not")
					}
				} else if most < 0.001 {
					t.Errorf("nothing says that the money ran out: %+v", res.Gaps)
				}
				asked += w.bill.calls
				log, err := w.traces.Load(res.TraceID)
				if err != nil {
					t.Fatal(err)
				}
				want, got, err := pi.Again(t.Context(), log, w.blobs, minds())
				if err != nil || string(want) != string(got) {
					t.Errorf("%v\nwant %s\ngot  %s", err, want, got)
				}
			})
		}
	}
	t.Logf("%d calls; the money ran out in %d of %d runs", asked, exhausted, 4*len(lies))
	if asked == 0 || exhausted == 0 {
		t.Errorf("%d calls, %d runs exhausted: nothing was tried", asked, exhausted)
	}
}

// A cap over a model whose price is not known is refused before anything is asked.
func TestNoPriceNoCap(t *testing.T) {
	w := newWorld(t, setting{question: questions[0], members: []string{"web"}, filePlace: filePlaces[0], tablePlace: tablePlaces[0], model: namedModel, manner: "meek", bill: &bill{lie: func(u llm.Usage) llm.Usage { return u }}})
	w.cfg.Prices = nil
	_, err := pi.New(w.cfg).Research(t.Context(), marchwarden.Request{Question: w.question, Constraints: &marchwarden.Constraints{MaxCostUSD: new(0.5)}}, nil)
	if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || !strings.Contains(err.Error(), "constraints.max_cost_usd") || !strings.Contains(marchwarden.HintOf(err), "MARCHWARDEN_PRICES") || w.bill.calls > 0 {
		t.Errorf("%v (%s), %d calls", err, marchwarden.HintOf(err), w.bill.calls)
	}
}
