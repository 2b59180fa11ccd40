package pi_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/model"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
)

const gallium = "What is the melting point of gallium?"

// TestThreeOfFourFail has one researcher killed in the middle of its call, one that
// hangs and one that gives garbage: the fourth one's evidence is the answer, and
// each of the others is a gap that names it.
func TestThreeOfFourFail(t *testing.T) {
	onRoads(t, func(t *testing.T, o *office) {
		together(o.times(100, 9), 10, func(i int) { threeOfFour(t, o, []string{"junk", "schema", "lie"}[i%3]) })
	}, overStream)
}

func threeOfFour(t *testing.T, o *office, garbage string) {
	const truth = "Gallium melts at 29.76 degrees Celsius."
	bad := role{Member: dispatch.Member{Name: "garbler"}}
	switch garbage {
	case "junk":
		bad.Acts = map[string][]act{"": {{How: "junk", Lasts: 20 * time.Millisecond}}}
	case "schema":
		bad.Play = "raw"
	case "lie":
		lie := answering(doc{At: "https://garbler.example/", Text: "Gallium melts at 1,000 degrees Celsius."})
		lie.Result.Citations[0].ContentHash = answering(doc{Text: "Nothing of the kind is said here."}).Result.Citations[0].ContentHash
		lie.Stored = []string{"Nothing of the kind is said here."}
		bad.Acts = map[string][]act{"": {lie}}
	}
	good := role{Member: dispatch.Member{Name: "good"}, Acts: map[string][]act{"": {answering(doc{At: "https://good.example/gallium", Text: truth}).lasting(100 * time.Millisecond)}}}
	tr := gather(t,
		role{Member: dispatch.Member{Name: "killed"}, Acts: map[string][]act{"": {{How: "kill", Lasts: 50 * time.Millisecond}}}},
		role{Member: dispatch.Member{Name: "hanging"}, Acts: map[string][]act{"": {{How: "hang"}}}},
		bad, good)
	defer tr.Close()
	tr.warm(t)
	const deadline = 10 * time.Second
	cfg := pi.Config{Dispatcher: tr, Lab: researcher.Lab{Deadline: deadline}}
	began := time.Now()
	res := o.ask(t, cfg, marchwarden.Request{Question: gallium})
	if took := time.Since(began); took > deadline+time.Minute { // the one that hangs would hang for good
		t.Errorf("it took %s: %+v", took, res.Rihlas)
	}
	if len(res.Citations) != 1 || res.Citations[0].RawExcerpt != truth || !strings.Contains(res.Answer, truth) || res.Citations[0].Unchecked {
		t.Errorf("the answer is %q on %+v", res.Answer, res.Citations)
	}
	for _, name := range []string{"killed", "hanging", "garbler"} {
		if !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.Contains(g.Topic+g.Detail, name) }) {
			t.Errorf("no gap names %s: %+v", name, res.Gaps)
		}
	}
	if slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return g.Topic == "researcher good" }) {
		t.Errorf("a gap names the one that answered: %+v", res.Gaps)
	}
}

// advised is an investigator of two researchers whose model plans and writes.
func advised(m *llmtest.Model) pi.Config {
	s := newStage()
	for i, text := range []string{"Gallium melts at 29.76 degrees Celsius.", "The melting point of gallium is 29.76 degrees Celsius."} {
		name := string(rune('a' + i))
		s.add(dispatch.Member{Name: name}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			return s.report(map[string]string{"https://" + name + ".example/gallium": text}), nil
		})
	}
	return pi.Config{Dispatcher: s, Lab: researcher.Lab{Model: m}, Options: pi.Options{ModelSeesPrivate: true}, Minds: pi.Minds{
		Planner: func(id string) pi.Planner { return pi.PlannerFor(id, everybody{}) },
		Writer: func(id string) reason.Reasoner {
			if id == "" {
				return extractive.New()
			}
			return model.New(id)
		},
	}}
}

// One reply to the planner that costs more than all there is does not end the
// investigation: the researchers are asked, without a model.
func TestAnOversizedPlanEndsNothing(t *testing.T) {
	huge := llmtest.Answer{Text: `{"rihlas":[]}` + strings.Repeat(" ", 1<<20), Usage: llm.Usage{In: 300, Out: 90_000}}
	res := newOffice(t).ask(t, advised(llmtest.New("test/model", map[string][]llmtest.Answer{"investigate": {huge}})), marchwarden.Request{Question: gallium})
	if len(res.Rihlas) != 2 || len(res.Citations) == 0 || !strings.Contains(res.Answer, "29.76") {
		t.Errorf("%q of %+v", res.Answer, res.Rihlas)
	}
	if !res.CostMetadata.BudgetExhausted || !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool {
		return g.Category == marchwarden.BudgetExhausted && strings.Contains(g.Detail, "counted")
	}) {
		t.Errorf("the overrun is not told: %+v", res.Gaps)
	}
}

// A model that never answered the investigator is not credited.
func TestADeadModelOfAnInvestigator(t *testing.T) {
	denied := llmtest.Answer{Err: marchwarden.Errorf(marchwarden.CodeDenied, "the key is refused")}
	res := newOffice(t).ask(t, advised(llmtest.New("test/model", map[string][]llmtest.Answer{"investigate": {denied}, "write": {denied}})), marchwarden.Request{Question: gallium})
	by := extractive.New().ID()
	if c := res.CostMetadata; c.ModelID != by || c.ReasonerID != by {
		t.Errorf("credited to %q, written by %q", c.ModelID, c.ReasonerID)
	}
	if len(res.Warnings) != 1 || !strings.HasPrefix(res.Warnings[0], "test/model did not write this answer") || !strings.Contains(res.Warnings[0], "the key is refused") {
		t.Errorf("warnings: %q", res.Warnings)
	}
	alone := advised(nil)
	alone.Model = nil
	if want := newOffice(t).ask(t, alone, marchwarden.Request{Question: gallium}); res.Confidence != want.Confidence {
		t.Errorf("confidence %v, without a model %v", res.Confidence, want.Confidence)
	}
}

// A small budget is the researchers': nothing is kept for the investigator's writing while
// their models have too little to write. Where it has too little left in the end, what they
// wrote is the answer.
func TestASmallBudgetIsNotKept(t *testing.T) {
	plan := llmtest.Answer{Text: `{"rihlas":[]}`, Usage: llm.Usage{In: 200, Out: 20}}
	for used, starved := range map[int]bool{500: false, 2200: true} {
		cfg := advised(llmtest.New("test/model", map[string][]llmtest.Answer{"investigate": {plan}, "write": {{Text: `{"claims":[{"text":"Gallium melts at 29.76 degrees.","passages":["S1.1"]}]}`}}, "judge": {{Text: "{}"}}}))
		s := cfg.Dispatcher.(*stage)
		for name, answer := range s.scripts {
			s.scripts[name] = func(ctx context.Context, n int, req marchwarden.Request) (*marchwarden.Result, error) {
				if given := *req.Constraints.TokenBudget; given < 2000 {
					t.Errorf("%s has %d tokens", name, given)
				}
				res, err := answer(ctx, n, req)
				res.CostMetadata.TokensUsed = min(used, *req.Constraints.TokenBudget)
				return res, err
			}
		}
		res := newOffice(t).ask(t, cfg, marchwarden.Request{Question: gallium, Depth: marchwarden.Shallow})
		own := strings.Contains(res.Answer, "Gallium melts at 29.76 degrees Celsius.") && strings.Contains(res.Answer, "The melting point of gallium is")
		if own != starved || res.CostMetadata.BudgetExhausted != starved {
			t.Errorf("%d used by each: %q, %+v", used, res.Answer, res.CostMetadata)
		}
	}
}
