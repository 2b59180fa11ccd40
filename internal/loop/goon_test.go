package loop_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// beginAs is begin with a start that the test changes, and a clock that it moves.
func (d *desk) beginAs(t *testing.T, ctx context.Context, change func(*trace.Start)) *marchwarden.Result {
	t.Helper()
	start, began := d.start(), d.began
	start.Mind, start.Model, start.Version = d.asker.id, "test/m", "test"
	change(start)
	w, err := d.traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	clock := func() time.Duration { return d.began.Sub(began) }
	res, err := d.loop().Run(ctx, replay.Record(w, d.blobs, clock, nil), start, clock)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// charging has the model tell what its calls cost.
func (d *desk) charging() {
	d.model = llmtest.New("test/m", map[string][]llmtest.Answer{"ask": {{Text: "yes", Usage: llm.Usage{In: 30, Out: 40}}}})
}

// paidIn is what the model was paid for in a run, as its record has it.
func paidIn(log *trace.Log) int {
	n := 0
	for _, s := range log.Steps {
		if m, ok := s.(*trace.ModelComplete); ok {
			n += m.TokensIn + m.TokensOut
		}
	}
	return n
}

// Addresses that the caller named are read when a run goes on that was stopped before
// it came to them.
func TestWhatTheCallerNamedIsReadAfterAll(t *testing.T) {
	const page = "https://given.example/page"
	cites := func(c marchwarden.Citation) bool { return strings.HasPrefix(c.Locator, page) }
	for name, planning := range map[string]bool{"before the first plan": false, "in the first plan": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, 1)
			d.fetcher.Texts[page] = "Peas of the given page like sun."
			ctx, cancel := context.WithCancel(t.Context())
			if planning {
				d.model = llmtest.New("test/m", map[string][]llmtest.Answer{"ask": {{Hang: true}, {Text: "yes"}}})
				go func() {
					for len(d.model.Calls()) == 0 {
						time.Sleep(time.Millisecond)
					}
					cancel()
				}()
			} else {
				cancel()
			}
			first := d.beginAs(t, ctx, func(s *trace.Start) { s.Given = []string{page} })
			if done := d.log(t).Complete(); !done.Interrupted || slices.ContainsFunc(first.Citations, cites) {
				t.Fatal("it was not stopped")
			}
			if res, _, _ := d.goOn(t, nil); !slices.ContainsFunc(res.Citations, cites) {
				t.Errorf("the page was not read: %+v", res.Citations)
			}
		})
	}
}

// A run that is stopped when its answer is written has ended: it is not gone on with,
// and costs nothing more.
func TestStoppedWhenAllIsWritten(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	d.asker.plans = [][]string{{"peas"}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.asker.write = func(s *reason.State) (reason.Draft, error) {
		cancel()
		d.asker.write = nil
		return d.asker.script.Write(context.Background(), s)
	}
	first := d.beginAs(t, ctx, func(*trace.Start) {})
	if ctx.Err() == nil || len(first.Citations) != 1 {
		t.Fatalf("%+v", first)
	}
	if done := d.log(t).Complete(); done == nil || done.Interrupted || first.CostMetadata.BudgetExhausted {
		t.Errorf("it counts as interrupted: %+v", done)
	}
	steps, calls := len(d.log(t).Steps), len(d.model.Calls())
	res, run, _ := d.goOn(t, nil)
	if run != nil || text(t, res) != text(t, first) || len(d.log(t).Steps) != steps || len(d.model.Calls()) != calls {
		t.Errorf("it went on: %d calls and %d steps more", len(d.model.Calls())-calls, len(d.log(t).Steps)-steps)
	}
}

// What was paid before a run was cut off is in what it has used, when it goes on with
// more and writes anew.
func TestWhatWasPaidBeforeTheCutIsCounted(t *testing.T) {
	t.Parallel()
	one, three := 1, 3
	d := newDesk(t, 2)
	d.req.Constraints = &marchwarden.Constraints{MaxIterations: &one}
	d.charging()
	d.begin(t, nil)
	last := 0
	for i, s := range d.log(t).Steps {
		if _, ok := s.(*trace.ModelComplete); ok {
			last = i + 1
		}
	}
	d.cut(t, d.dir, last) // the answer was written, and nothing after that
	d.charging()
	res, _, _ := d.goOn(t, &marchwarden.Constraints{MaxIterations: &three})
	if paid := paidIn(d.log(t)); paid == 0 || paid != res.CostMetadata.TokensUsed {
		t.Errorf("%d tokens were paid, and the result tells of %d", paid, res.CostMetadata.TokensUsed)
	}
}

// What a run had cost at its end is known after a cut in the part that followed, so
// that the lines of a ledger add up.
func TestWhatTheEndHadCostIsKnownAfterACut(t *testing.T) {
	t.Parallel()
	one, three := 1, 3
	d := newDesk(t, 2)
	d.req.Constraints = &marchwarden.Constraints{MaxIterations: &one}
	d.charging()
	first := d.begin(t, nil)
	if first.CostMetadata.TokensUsed == 0 || !first.CostMetadata.BudgetExhausted {
		t.Fatalf("%+v", first.CostMetadata)
	}
	d.goOn(t, &marchwarden.Constraints{MaxIterations: &three})
	from, lines, at := d.dir, len(d.log(t).Steps), 0
	for i, s := range d.log(t).Steps {
		if _, ok := s.(*trace.Resume); ok {
			at = i + 1
		}
	}
	for k := at; k < lines; k += 4 {
		d.cut(t, from, k)
		d.charging()
		res, run, _ := d.goOn(t, nil)
		if run.Before() != first.CostMetadata {
			t.Fatalf("cut after %d: before %+v, want %+v", k, run.Before(), first.CostMetadata)
		}
		if paid := paidIn(d.log(t)); paid != res.CostMetadata.TokensUsed {
			t.Errorf("cut after %d: %d tokens were paid, and the result tells of %d", k, paid, res.CostMetadata.TokensUsed)
		}
	}
}

// A run that has ended at its wall time works on with what is added to that, however
// far past it the run was.
func TestMoreTimeForARunThatWasLate(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 2)
	n := 0
	d.asker.look = func(context.Context) error {
		if n++; n == 3 { // in its second plan
			d.began = d.began.Add(90 * time.Minute)
		}
		return nil
	}
	first := d.beginAs(t, t.Context(), func(s *trace.Start) { s.Wall, s.Deadline = time.Minute, 3*time.Minute })
	if !first.CostMetadata.BudgetExhausted || first.CostMetadata.IterationsRun == 3 {
		t.Fatalf("it was not late: %+v", first.CostMetadata)
	}
	if res, run, _ := d.goOn(t, nil); run != nil || text(t, res) != text(t, first) {
		t.Fatal("it goes on with nothing")
	}
	d.asker.look, d.more = nil, 10*time.Minute
	res, _, _ := d.goOn(t, nil)
	if c := res.CostMetadata; c.BudgetExhausted || c.IterationsRun != 3 || !slices.ContainsFunc(res.Citations, func(c marchwarden.Citation) bool { return strings.HasPrefix(c.Locator, "soil.md") }) {
		t.Errorf("%+v, %+v", res.CostMetadata, res.Gaps)
	}
}

// A run that was cut off when its time was over, and gets more, stays with what it had
// decided then: what it has paid for is not thought over. One that was cut off before
// that has the time.
func TestMoreTimeForARunThatWasCutOff(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 2)
	n, late := 0, 0
	d.asker.look = func(context.Context) error {
		if n++; n == 3 { // in its second plan
			d.began = d.began.Add(90 * time.Minute)
		}
		return nil
	}
	first := d.beginAs(t, t.Context(), func(s *trace.Start) { s.Wall, s.Deadline = time.Minute, 3*time.Minute })
	from, steps := d.dir, d.log(t).Steps
	for i, s := range steps {
		if c, ok := s.(*trace.Checkpoint); ok && c.At == "gathering 3" {
			late = i + 1
		}
	}
	if !first.CostMetadata.BudgetExhausted || late == 0 {
		t.Fatalf("it was not late: %+v", first.CostMetadata)
	}
	d.asker.look, d.more = nil, 10*time.Minute
	for k := 1; k < len(steps); k++ {
		d.cut(t, from, k)
		res, _, _ := d.goOn(t, nil)
		if kept := res.CostMetadata.BudgetExhausted; kept != (k >= late) || kept && res.Answer != first.Answer {
			t.Errorf("cut after %d of %d: exhausted: %v, %s", k, late, kept, res.Answer)
		}
	}
}

// The caller is asked before every iteration, also after one that had been planned
// before the run went on.
func TestACallerWhoStopsARunThatGoesOn(t *testing.T) {
	t.Parallel()
	one, three := 1, 3
	d := newDesk(t, 2)
	d.req.Constraints = &marchwarden.Constraints{MaxIterations: &one}
	d.engine.Hits["pods"], d.fetcher.Texts["pods.md"] = []search.Hit{{Locator: "pods.md"}}, "Pods are green."
	d.begin(t, nil)
	lab := outcome.Lab{Traces: d.traces, Blobs: d.blobs, Version: "test", Now: func() time.Time { return d.began }}
	run, _, err := lab.GoOn(t.Context(), "", marchwarden.Request{Resume: labID, Constraints: &marchwarden.Constraints{MaxIterations: &three}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Begin(outcome.Ready{Mind: d.asker.id}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.asker.look = func(context.Context) error {
		if slices.ContainsFunc(d.log(t).Steps, func(s trace.Step) bool { i, ok := s.(*trace.Iteration); return ok && i.Iteration == 2 }) {
			cancel() // while it chooses in the iteration that was planned before
		}
		return nil
	}
	res, err := d.loop().Run(ctx, run, run.Start, run.Clock)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() == nil || res.CostMetadata.IterationsRun != 2 {
		t.Errorf("stopped: %v, and it ran %d iterations", ctx.Err(), res.CostMetadata.IterationsRun)
	}
}
