package llm

import (
	"context"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// answering is a model made of a function.
type answering func(n int, c Call) (Reply, error)

func (answering) ID() string { return "test/model" }

func (f answering) Generate(_ context.Context, c Call) (Reply, error) { return f(c.Attempt, c) }

func meteredFor(tokens int, f answering) (*Metered, *budget.Meter, *[]trace.Step) {
	meter := budget.New(marchwarden.Limits{MaxIterations: 1, TokenBudget: tokens, MaxSources: 1}, 0)
	var notes []trace.Step
	m := NewMetered(f, meter, &trace.Start{}, func(s trace.Step) error { notes = append(notes, s); return nil }, func(string) {})
	return m, meter, &notes
}

func call(maxTokens int) Call {
	return Call{Prompt: "test", System: "Be brief.", Input: strings.Repeat("word ", 100), MaxTokens: maxTokens}
}

func TestACallThatDoesNotFitIsNotMade(t *testing.T) {
	m, meter, _ := meteredFor(1000, func(int, Call) (Reply, error) {
		t.Error("the model was asked")
		return Reply{}, nil
	})
	for _, c := range []Call{call(1000), {Prompt: "huge", Input: strings.Repeat("word ", 2000), MaxTokens: 10}} {
		if _, err := m.Generate(t.Context(), c); marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
			t.Errorf("%s: %v", c.Prompt, err)
		}
	}
	if _, err := m.Generate(t.Context(), call(0)); marchwarden.CodeOf(err) != marchwarden.CodeInternal {
		t.Errorf("a call without a bound: %v", err)
	}
	if use := meter.Usage(); use.Tokens != 0 || len(use.Exhausted) != 1 {
		t.Errorf("%+v", use)
	}
}

func TestWhatWasUsedIsCounted(t *testing.T) {
	least := leastUsed(call(100), Reply{Text: "ok"})
	for _, tt := range []struct {
		name  string
		reply Reply
		want  int
	}{
		{"as reported", Reply{Text: "ok", Usage: Usage{In: 120, Out: 5}}, 125},
		{"free, says the provider", Reply{Text: "ok"}, least},
		{"more than the budget", Reply{Text: "ok", Usage: Usage{In: 1 << 40}}, 1 << 40},
	} {
		m, meter, notes := meteredFor(2000, func(int, Call) (Reply, error) { return tt.reply, nil })
		if _, err := m.Generate(t.Context(), call(100)); err != nil {
			t.Error(err)
		}
		if got := meter.Usage().Tokens; got != tt.want {
			t.Errorf("%s: %d tokens counted, want %d", tt.name, got, tt.want)
		}
		if overrun := tt.want == 1<<40; overrun != meter.Usage().OverBudget || overrun != (len(*notes) == 1) || overrun != (len(meter.Usage().Exhausted) == 1) {
			t.Errorf("%s: notes %v, usage %+v", tt.name, *notes, meter.Usage())
		} else if want := "token budget of 2000 (the provider counted 1099511625776 more)"; overrun && meter.Usage().Exhausted[0] != want {
			t.Errorf("%s: exhausted %q, want %q", tt.name, meter.Usage().Exhausted, want)
		}
	}
}

// A call that broke off after it had cost something is repeated once, if there is
// room for it; every try is paid.
func TestChargedFaults(t *testing.T) {
	cut := marchwarden.Errorf(marchwarden.CodeTruncated, "the reply broke off")
	paid := Reply{Usage: Usage{In: 150, Out: 10}}
	for _, tt := range []struct {
		name   string
		budget int
		err    error
		want   int
		tries  int
		code   marchwarden.Code
	}{
		{"comes back", 2000, cut, 250 + 140, 2, ""},
		{"no room for another try", 400, cut, 250, 1, marchwarden.CodeTruncated},
		{"refused for good", 2000, marchwarden.Errorf(marchwarden.CodeDenied, "no"), 250, 1, marchwarden.CodeDenied},
	} {
		tries := 0
		m, meter, _ := meteredFor(tt.budget, func(attempt int, c Call) (Reply, error) {
			if tries++; attempt != tries-1 {
				t.Errorf("try %d is attempt %d: the record could not tell it from the first", tries, attempt)
			}
			if attempt == 0 {
				return paid, tt.err
			}
			return Reply{Text: "ok", Usage: Usage{In: 130, Out: 10}}, nil
		})
		reply, err := m.Generate(t.Context(), call(100))
		if marchwarden.CodeOf(err) != tt.code || tries != tt.tries || meter.Usage().Tokens != tt.want || reply.Usage.Total() != []int{160, 300}[tries-1] {
			t.Errorf("%s: %v after %d tries for %d tokens, reply %+v", tt.name, err, tries, meter.Usage().Tokens, reply.Usage)
		}
	}
}

// A tokenizer that makes more of a text than was estimated raises what later
// calls set aside; a lie beyond all reason does not.
func TestEstimatesLearn(t *testing.T) {
	in := 0
	m, _, _ := meteredFor(1<<20, func(int, Call) (Reply, error) { return Reply{Usage: Usage{In: in}}, nil })
	c := call(10)
	for _, tt := range []struct {
		ratio, want float64
	}{{0.5, 1}, {1.5, 1.5}, {1.2, 1.5}, {400, 1.5}} {
		in = int(float64(Estimate(c)) * tt.ratio)
		if _, err := m.Generate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got := m.Scale(); got < tt.want-.02 || got > tt.want+.02 {
			t.Errorf("after a ratio of %v the scale is %v, want %v", tt.ratio, got, tt.want)
		}
	}
}
