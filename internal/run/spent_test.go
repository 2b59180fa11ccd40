package run_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func model(in, out int) *trace.ModelComplete {
	return &trace.ModelComplete{Model: priced, TokensIn: in, TokensOut: out}
}

// A run that went past its end is told as a whole, and since that end: then the rihlas
// that reported before are not counted once more.
func TestTogether(t *testing.T) {
	t.Parallel()
	first, second, stranger := idOf(2), idOf(3), idOf(4)
	logs := map[marchwarden.TraceID]*trace.Log{
		idOf(1): {Steps: []trace.Step{
			&trace.Start{Library: []string{"mine"}}, model(100, 10), &trace.SearchComplete{}, &trace.RihlaComplete{TraceID: first}, &trace.BudgetExhausted{What: []string{"token_budget"}}, &trace.Complete{Interrupted: true},
			&trace.Resume{}, model(1, 2), &trace.EmbedComplete{Model: priced, TokensIn: 4}, &trace.FetchComplete{}, &trace.FetchComplete{Effect: trace.Effect{Error: marchwarden.CodeDenied}}, &trace.RihlaComplete{TraceID: second}, &trace.Complete{},
		}},
		first:  {Steps: []trace.Step{&trace.Start{Library: []string{"lib"}}, model(1000, 0), &trace.FetchComplete{}, &trace.Complete{}}},
		second: {Steps: []trace.Step{&trace.Start{Library: []string{"lib", "web"}}, model(2000, 0), &trace.BudgetExhausted{What: []string{"max_sources"}}, &trace.Complete{}}},
	}
	res := &marchwarden.Result{TraceID: idOf(1), Rihlas: []marchwarden.Rihla{{Researcher: "files", TraceID: first}, {Researcher: "web", TraceID: second}, {Researcher: "web", TraceID: second}}}
	tell := func(res *marchwarden.Result, of run.Scope) (run.Spent, []string) {
		return run.SpentIn(func(id marchwarden.TraceID) (*trace.Log, error) {
			if logs[id] == nil {
				return nil, errors.New("not here")
			}
			return logs[id], nil
		}, res, of)
	}
	whole, searched := tell(res, run.Whole)
	want := run.Spent{Read: 2, Searches: 1, Tokens: map[string]ledger.Tokens{priced: {In: 3105, Out: 12}}, Exhausted: []string{"max_sources"}, Known: true}
	if !cmp.Equal(whole, want) || !cmp.Equal(searched, []string{"lib", "web"}) {
		t.Errorf("whole: %+v, %v", whole, searched)
	}
	since, searched := tell(res, run.SinceItsEnd)
	want = run.Spent{Read: 1, Tokens: map[string]ledger.Tokens{priced: {In: 2005, Out: 2}}, Exhausted: []string{"max_sources"}, Known: true}
	if !cmp.Equal(since, want) || !cmp.Equal(searched, []string{"lib", "web"}) {
		t.Errorf("since: %+v, %v", since, searched)
	}
	res.Rihlas = append(res.Rihlas, marchwarden.Rihla{Researcher: "theirs", TraceID: stranger, TokensUsed: 1})
	if got, searched := tell(res, run.Whole); !got.Unpriced || !cmp.Equal(searched, []string{"lib", "web", "theirs"}) {
		t.Errorf("with a stranger: %+v, %v", got, searched)
	}
	res.Rihlas[3] = marchwarden.Rihla{Researcher: "theirs", Outcome: "failed: no answer"}
	if got, searched := tell(res, run.Whole); !got.Unpriced || !cmp.Equal(searched, []string{"lib", "web"}) {
		t.Errorf("with one that failed: %+v, %v", got, searched)
	}
	if got, _ := tell(&marchwarden.Result{TraceID: idOf(9)}, run.Whole); got.Known || got.Tokens == nil {
		t.Errorf("without a trace: %+v", got)
	}
}
