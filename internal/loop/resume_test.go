package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// asker is a mind that asks its model before each plan and before it writes; how
// depends on its version.
type asker struct {
	script
	id, words string
}

func (a *asker) ID() string { return a.id }

func (a *asker) ask(ctx context.Context, s *reason.State, what string) error {
	_, err := s.Model.Generate(ctx, llm.Call{Prompt: "ask", Input: a.words + what, MaxTokens: 50})
	return err
}

func (a *asker) Plan(ctx context.Context, s *reason.State) (reason.Plan, error) {
	if err := a.ask(ctx, s, fmt.Sprint("plan ", s.Iteration)); err != nil {
		return reason.Plan{}, err
	}
	return a.script.Plan(ctx, s)
}

func (a *asker) Write(ctx context.Context, s *reason.State) (reason.Draft, error) {
	if err := a.ask(ctx, s, fmt.Sprint("write ", len(s.Evidence.Passages()))); err != nil {
		return reason.Draft{}, err
	}
	return a.script.Write(ctx, s)
}

// desk is a lab whose runs can go on.
type desk struct {
	*lab
	dir   string
	model *llmtest.Model
	asker *asker
	more  time.Duration // is added to the time of a run that goes on
}

func newDesk(t *testing.T, docs int) *desk {
	t.Helper()
	d := &desk{lab: newLab(t, docs), dir: resumetest.Memory(t), asker: &asker{id: "asker/1"}}
	d.asker.plans = [][]string{{"peas"}, {"pods"}, {"soil"}}
	d.engine.Hits["soil"] = []search.Hit{{Locator: "soil.md"}}
	d.fetcher.Texts["soil.md"] = "Soil is cool in spring."
	d.open(t, d.dir)
	return d
}

func (d *desk) open(t *testing.T, dir string) {
	t.Helper()
	traces, err := trace.OpenDir(dir, func() time.Time { return d.began })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { traces.Close() })
	d.dir, d.traces = dir, traces
	d.model = llmtest.New("test/m", map[string][]llmtest.Answer{"ask": {{Text: "yes"}}})
}

func still() time.Duration { return 0 }

func (d *desk) loop() *loop.Loop {
	return loop.New(loop.Config{Engine: d.engine, Fetcher: d.fetcher, Reasoner: d.asker, Model: d.model, Blobs: d.blobs})
}

// begin makes a run; the writer is the test's to break.
func (d *desk) begin(t *testing.T, breaks func(w *trace.Writer)) *marchwarden.Result {
	t.Helper()
	start := d.start()
	start.Mind, start.Model, start.Version = d.asker.id, "test/m", "test"
	w, err := d.traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if breaks != nil {
		breaks(w)
	}
	res, err := d.loop().Run(t.Context(), replay.Record(w, d.blobs, still, nil), start, still)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// goOn goes on with the run, and holds that its rerun gives the same.
func (d *desk) goOn(t *testing.T, more *marchwarden.Constraints) (*marchwarden.Result, *outcome.Resumed, []string) {
	t.Helper()
	lab := outcome.Lab{Traces: d.traces, Blobs: d.blobs, Version: "test", Now: func() time.Time { return d.began }, More: d.more}
	run, res, err := lab.GoOn(t.Context(), "", marchwarden.Request{Resume: labID, Constraints: more}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if run == nil {
		return res, nil, nil
	}
	said, err := run.Begin(outcome.Ready{Mind: d.asker.id})
	if err != nil {
		t.Fatal(err)
	}
	if res, err = d.loop().Run(t.Context(), run, run.Start, run.Clock); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	log := d.log(t)
	start, err := log.Start()
	if err != nil {
		t.Fatal(err)
	}
	again, err := loop.New(loop.Config{Reasoner: d.asker, Blobs: d.blobs}).Run(t.Context(), replay.Rerun(log, d.blobs), start, nil)
	if err != nil {
		t.Fatalf("rerun: %v", err)
	}
	if want, got := text(t, res), text(t, again); want != got {
		t.Fatalf("the rerun differs\n%s\n%s", want, got)
	}
	return res, run, said
}

func text(t *testing.T, res *marchwarden.Result) string {
	t.Helper()
	out, err := marchwarden.EncodeResult(res)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// cut leaves the first k lines of the trace, in a new folder.
func (d *desk) cut(t *testing.T, from string, k int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(from, labID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	dir := resumetest.Memory(t)
	lines := bytes.SplitAfter(data, []byte("\n"))
	if err := os.WriteFile(filepath.Join(dir, labID+".jsonl"), bytes.Join(lines[:k], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	d.open(t, dir)
}

// A mind whose prompts have changed goes another way from where they did; nothing is said of
// that, and its rerun holds all the same.
func TestChangedPromptsGoOn(t *testing.T) {
	d := newDesk(t, 2)
	d.begin(t, nil)
	from, steps := d.dir, d.log(t).Steps
	d.asker.words = "kindly "
	for k := 1; k < len(steps); k += 2 {
		d.cut(t, from, k)
		if _, _, said := d.goOn(t, nil); len(said) != 0 {
			t.Errorf("cut after %d: said %q", k, said)
		}
	}
}

// A mind of another version goes on: that is said and recorded once, and the run has
// one start.
func TestAMindOfAnotherVersionGoesOn(t *testing.T) {
	d := newDesk(t, 2)
	want := d.begin(t, nil)
	from, steps := d.dir, d.log(t).Steps
	d.asker.id = "asker/2"
	for k := 1; k < len(steps); k += 5 {
		d.cut(t, from, k)
		res, _, said := d.goOn(t, nil)
		if len(said) != 1 || !strings.Contains(said[0], "asker/1") || !strings.Contains(said[0], "asker/2") {
			t.Errorf("said %q", said)
		}
		if res.Answer != want.Answer {
			t.Errorf("another answer: %s", res.Answer)
		}
		starts := 0
		for _, s := range d.log(t).Steps {
			if _, ok := s.(*trace.Start); ok {
				starts++
			}
		}
		if start, err := d.log(t).Start(); starts != 1 || err != nil || start.Mind != "asker/2" {
			t.Errorf("%d starts, %+v, %v", starts, start, err)
		}
	}
}

// A trace that cannot be written from any effect on is a part of the run that can be
// gone on with; the answer does not suffer.
func TestTheTraceBreaksAtAnyEffect(t *testing.T) {
	want := newDesk(t, 2).begin(t, nil)
	for n := 1; ; n++ {
		d := newDesk(t, 2)
		calls := 0
		broke := false
		var w *trace.Writer
		d.asker.look = func(context.Context) error { // before each plan, choice and draft
			if calls++; calls == n {
				broke = true
				w.Close()
			}
			return nil
		}
		res := d.begin(t, func(made *trace.Writer) { w = made })
		if res.Answer != want.Answer {
			t.Fatalf("broken at %d: another answer %s", n, res.Answer)
		}
		if !broke {
			t.Logf("%d places", n-1)
			break
		}
		log := d.log(t)
		if log.Complete() != nil || log.Torn != 0 {
			t.Fatalf("broken at %d: the trace is complete or torn", n)
		}
		if err := replay.CheckBlobs(t.Context(), log, d.blobs); err != nil {
			t.Fatal(err)
		}
		d.asker.look = nil
		if again, _, _ := d.goOn(t, nil); again.Answer != want.Answer {
			t.Errorf("broken at %d: goes on to %s", n, again.Answer)
		}
	}
}

// A run that was cut off and gets more, and is cut off again, has all of it in the
// end, and its rerun tells the parts apart.
func TestMoreForARunThatWasCutOff(t *testing.T) {
	one, three := 1, 3
	d := newDesk(t, 2)
	d.req.Constraints = &marchwarden.Constraints{MaxIterations: &one}
	d.begin(t, nil)
	from, n, step := d.dir, len(d.log(t).Steps), 4
	if os.Getenv("MARCHWARDEN_TEST_FULL") != "" {
		step = 1
	}
	for k := 1; k < n; k += step {
		d.cut(t, from, k)
		res, _, _ := d.goOn(t, &marchwarden.Constraints{MaxIterations: &three})
		if res.CostMetadata.IterationsRun != 3 || !slices.ContainsFunc(res.Citations, func(c marchwarden.Citation) bool { return strings.HasPrefix(c.Locator, "soil.md") }) {
			t.Fatalf("cut after %d: %+v", k, res)
		}
		more, want := d.dir, text(t, res)
		for m := k + 1; m < len(d.log(t).Steps); m += 7 {
			d.cut(t, more, m)
			again, _, _ := d.goOn(t, nil)
			if got := text(t, again); got != want {
				t.Fatalf("cut after %d and %d:\n%s\n%s", k, m, got, want)
			}
			d.open(t, more)
		}
	}
}

// What was cut short, and what a cap had kept out, is done first when the run goes
// on, in the iteration in which it was planned.
func TestWhatWasLeftIsDoneFirst(t *testing.T) {
	two, four := 2, 4
	d := newDesk(t, 5)
	d.asker.plans = [][]string{{"peas"}}
	d.req.Constraints = &marchwarden.Constraints{MaxSources: &two}
	if first := d.begin(t, nil); len(first.Citations) != 2 {
		t.Fatalf("%+v", first)
	}
	res, _, _ := d.goOn(t, &marchwarden.Constraints{MaxSources: &four})
	if len(res.Citations) != 5 || res.CostMetadata.IterationsRun != 1 || res.CostMetadata.BudgetExhausted {
		t.Errorf("%d citations, %+v, %+v", len(res.Citations), res.CostMetadata, res.Gaps)
	}
}
