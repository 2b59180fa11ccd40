package loop

import (
	"context"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// twice is a model whose provider counts everything two times.
type twice struct{}

func (twice) ID() string { return "test/model" }

func (twice) Generate(_ context.Context, c llm.Call) (llm.Reply, error) {
	return llm.Reply{Usage: llm.Usage{In: 2 * llm.Estimate(c)}}, nil
}

// What the metered model has learnt is in the state for the reasoner to plan with.
func TestTheReasonerSeesTheScale(t *testing.T) {
	m := twice{}
	start := &trace.Start{Model: m.ID(), Limits: marchwarden.Limits{MaxIterations: 1, TokenBudget: 9000, MaxSources: 1}}
	r := New(Config{Model: m}).newRun(free{}, start, nil)
	if got := r.state.Scale(); got != 1 {
		t.Errorf("the scale is %v before any call", got)
	}
	if _, err := r.state.Model.Generate(t.Context(), llm.Call{Prompt: "test", System: "Be brief.", Input: "What is new?", MaxTokens: 100}); err != nil {
		t.Fatal(err)
	}
	if got := r.state.Scale(); got != 2 {
		t.Errorf("the scale is %v after a call that was counted twice", got)
	}
	start.Model = ""
	if r := New(Config{}).newRun(free{}, start, nil); r.state.Scale != nil || r.state.Model != nil {
		t.Error("a run without a model has one, or its scale")
	}
}

// free is a journal that keeps nothing.
type free struct{}

func (free) Do(ctx context.Context, _ replay.Effect, run func(context.Context) ([]byte, error)) ([]byte, error) {
	return run(ctx)
}
func (free) Note(trace.Step) error  { return nil }
func (free) Live(marchwarden.Event) {}
func (free) Past(int)               {}
func (free) Lose(error)             {}
