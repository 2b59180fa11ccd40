package run_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const runID = "00000000-0000-7000-8000-000000000001"

// place is a desk with one run on it, and a clock that the test moves.
type place struct {
	run.Lab
	now time.Time
}

// newPlace makes a run that worked for a minute; ended is how, nil for not at all.
func newPlace(t *testing.T, ended *run.Ending) *place {
	t.Helper()
	p := &place{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return p.now }
	traces, err := trace.OpenDir(t.TempDir(), clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { traces.Close() })
	p.Lab = run.Lab{Traces: traces, Blobs: blob.NewMem(), Version: "2", Now: clock}
	id, err := marchwarden.ParseTraceID(runID)
	if err != nil {
		t.Fatal(err)
	}
	w, err := traces.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	start := &trace.Start{Format: trace.Format, TraceID: id, Mind: "m/1", Version: "1", StartedAt: p.now, Request: marchwarden.Request{Question: "What is it?"}, Limits: marchwarden.Limits{TokenBudget: 5000}, Wall: time.Hour, Deadline: 2 * time.Hour}
	if err := w.Append(start); err != nil {
		t.Fatal(err)
	}
	p.now = p.now.Add(time.Minute)
	if ended == nil {
		if err := w.Append(&trace.Message{}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	res := &marchwarden.Result{Answer: "Nothing was found.", TraceID: id, CostMetadata: marchwarden.CostMetadata{TokensUsed: 700, BudgetExhausted: len(ended.Exhausted) > 0, ModelID: "m/1"}}
	res.Normalize()
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := p.Blobs.Put(t.Context(), encoded)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&trace.Complete{Result: ref, TokensUsed: 700, Interrupted: ended.Interrupted}); err != nil {
		t.Fatal(err)
	}
	return p
}

func more(tokens int) *marchwarden.Constraints {
	if tokens == 0 {
		return nil
	}
	return &marchwarden.Constraints{TokenBudget: &tokens}
}

// What a run can be gone on with depends on how it ended and on what is added.
func TestWhatCanBeGoneOnWith(t *testing.T) {
	tests := map[string]struct {
		ended  *run.Ending
		tokens int
		wall   time.Duration
		goes   bool
		extend bool // it goes past an end
	}{
		"cut off":                  {nil, 0, 0, true, false},
		"cut off, with more":       {nil, 2000, 0, true, true},
		"complete":                 {&run.Ending{}, 0, 0, false, false},
		"complete, with more":      {&run.Ending{}, 2000, 0, false, false},
		"stopped":                  {&run.Ending{Interrupted: true}, 0, 0, true, true},
		"at a cap":                 {&run.Ending{Exhausted: []string{"cap"}}, 0, 0, false, false},
		"at a cap, with more":      {&run.Ending{Exhausted: []string{"cap"}}, 2000, 0, true, true},
		"at a cap, with more time": {&run.Ending{Exhausted: []string{"cap"}}, 0, time.Hour, true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, tt.ended)
			p.now = p.now.Add(24 * time.Hour)
			p.More = tt.wall
			on, res, err := p.GoOn(t.Context(), "", marchwarden.Request{Resume: runID, Constraints: more(tt.tokens)}, nil)
			if err != nil || (on != nil) != tt.goes || (res != nil) == tt.goes {
				t.Fatalf("%v, %v, %v", on, res, err)
			}
			if on == nil {
				return
			}
			defer on.Close()
			said, err := on.Begin(run.Ready{Mind: "m/2"})
			if err != nil || len(said) != 2 || !strings.Contains(said[0], "m/1") || !strings.Contains(said[1], "version 2") {
				t.Errorf("said %q, %v", said, err)
			}
			p.now = p.now.Add(time.Second)
			if worked := on.Clock(); worked != time.Minute+time.Second {
				t.Errorf("it has worked %v: the day between is not its", worked)
			}
			log, err := p.Traces.Load(on.Start.TraceID)
			if err != nil {
				t.Fatal(err)
			}
			start, err := log.Start()
			if err != nil || start.Mind != "m/2" || on.Start.Mind != "m/2" || (len(start.Extended) == 1) != tt.extend || len(on.Start.Extended) != len(start.Extended) {
				t.Fatalf("%+v, %v", start, err)
			}
			if !tt.extend {
				return
			}
			spent := 0
			if tt.ended != nil {
				spent = 700
			}
			if e := start.Extended[0]; e != (trace.Extension{Spent: spent, Tokens: tt.tokens, Wall: tt.wall}) || on.Before().TokensUsed != spent {
				t.Errorf("%+v, before %d", e, on.Before().TokensUsed)
			}
		})
	}
}

// A caller that waits longer than a run has left gives it time and no further part, so
// that what it has paid for is not thought over. Whoever asks a second time for the
// same more has it already.
func TestTimeForARunThatWasCutOff(t *testing.T) {
	p := newPlace(t, nil)
	waiting, stop := context.WithDeadline(t.Context(), time.Now().Add(3*time.Hour))
	defer stop()
	p.Now = time.Now // a context's deadline is of the real clock
	resume := func(tokens int) *trace.Start {
		t.Helper()
		on, _, err := p.GoOn(waiting, "", marchwarden.Request{Resume: runID, Constraints: more(tokens)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer on.Close()
		if _, err := on.Begin(run.Ready{Mind: "m/1"}); err != nil {
			t.Fatal(err)
		}
		return on.Start
	}
	near := func(d, want time.Duration) bool { return (d - want).Abs() < time.Minute }

	start := resume(0)
	if len(start.Extended) != 0 || len(start.Lengthened) != 1 || !near(replay.Left(start, start.Wall), 3*time.Hour) {
		t.Errorf("%+v: %v left", start, replay.Left(start, start.Wall))
	}
	if got := start.Counted(30 * time.Second); got != 30*time.Second {
		t.Errorf("what was before the time was given counts %v of 30s", got)
	}
	if start = resume(2000); len(start.Extended) != 1 {
		t.Errorf("%+v", start.Extended)
	}
	if start = resume(2000); len(start.Extended) != 1 || start.LimitsNow().TokenBudget != 7000 {
		t.Errorf("the same more was given twice: %+v", start.Extended)
	}
}

// Time that is given counts from then on, also where the clock was set back meanwhile:
// whatever the run had seen of its clock is judged as it was.
func TestTimeIsGivenAfterAllThatWasSeen(t *testing.T) {
	p := newPlace(t, nil)
	w, log, err := p.Traces.Append(theRun(t))
	if err != nil {
		t.Fatal(err)
	}
	const seen = 50 * time.Minute // the last line was written a minute after the start
	clock := func() time.Duration { return seen }
	if _, err := replay.Checkpoint(t.Context(), replay.Record(w, p.Blobs, clock, nil), "here", clock); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || log.Worked() != time.Minute {
		t.Fatalf("%v, worked %v", err, log.Worked())
	}
	p.More = time.Hour
	on := goesOn(t, t.Context(), &p.Lab, "", nil)
	defer on.Close()
	if got := on.Start.Counted(seen); got != seen {
		t.Errorf("what was seen before the time was given counts %v of %v", got, seen)
	}
	if now := on.Clock(); now <= seen || on.Start.Counted(now) != now-time.Hour {
		t.Errorf("now it has worked %v, of which %v count", now, on.Start.Counted(now))
	}
}

// A trace that cannot be written, and whose earlier result is gone, is an error.
func TestNeitherWrittenNorRead(t *testing.T) {
	const bound = "MARCHWARDEN_TEST_BOUND"
	if os.Geteuid() == 0 && os.Getenv(bound) == "" { // whom permissions do not bind
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip(err)
		}
		cmd := exec.Command("setpriv", "--bounding-set=-dac_override", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), bound+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	p := newPlace(t, &run.Ending{Interrupted: true})
	goesOn(t, t.Context(), &p.Lab, "", nil).Close() // and was cut off
	p.Blobs = blob.NewMem()
	if err := os.Chmod(filepath.Join(p.Traces.(*trace.Dir).Path(), runID+".jsonl"), 0o400); err != nil {
		t.Fatal(err)
	}
	if on, _, err := p.GoOn(t.Context(), "", marchwarden.Request{Resume: runID}, nil); on != nil || !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%v, %v", on, err)
	}
}

func TestWhatCannotBeGoneOnWith(t *testing.T) {
	p := newPlace(t, nil)
	for name, tt := range map[string]struct {
		req  marchwarden.Request
		code marchwarden.Code
	}{
		"another question": {marchwarden.Request{Resume: runID, Question: "What is that?"}, marchwarden.CodeInvalid},
		"another run":      {marchwarden.Request{Resume: strings.Replace(runID, "1", "2", 1)}, marchwarden.CodeNotFound},
	} {
		if on, _, err := p.GoOn(t.Context(), "", tt.req, nil); on != nil || !errors.Is(err, tt.code) {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
	p.Model = aModel("a")
	if _, err := p.Resume(t.Context(), "", marchwarden.Request{Resume: runID}, nil, nil, nil); !errors.Is(err, marchwarden.CodeInvalid) || !strings.Contains(err.Error(), "no model") {
		t.Errorf("%v", err)
	}
}

// aModel is a model that is never asked.
type aModel string

func (m aModel) ID() string { return string(m) }

func (aModel) Generate(context.Context, llm.Call) (llm.Reply, error) { return llm.Reply{}, nil }

// A run that another process goes on with is told of after a few seconds.
func TestARunThatGoesOnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, nil)
		on, _, err := p.GoOn(t.Context(), "", marchwarden.Request{Resume: runID}, nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, _, err := p.GoOn(t.Context(), "", marchwarden.Request{Resume: runID}, nil); !errors.Is(err, marchwarden.CodeUnavailable) || !strings.Contains(err.Error(), "another process") {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took < time.Second || took > 10*time.Second {
			t.Errorf("it waited %v", took)
		}
		if err := on.Close(); err != nil {
			t.Fatal(err)
		}
		on, _, err = p.GoOn(t.Context(), "", marchwarden.Request{Resume: runID}, nil)
		if err != nil {
			t.Fatal(err)
		}
		on.Close()
	})
}

// A result whose evidence is gone stays in: nobody gets it as the end of a run.
func TestAResultThatNoLongerStandsStaysIn(t *testing.T) {
	p := newPlace(t, nil)
	text := []byte("It was built in 1931.")
	res := &marchwarden.Result{TraceID: theRun(t), Answer: string(text) + " [1]", Claims: []marchwarden.Claim{{Text: string(text), Citations: []int{1}, Support: marchwarden.Supported}},
		Citations: []marchwarden.Citation{{Source: "file", Locator: "a.md", RawExcerpt: string(text), ContentHash: blob.Of(text).String(), Span: &marchwarden.Span{End: len(text)}}}}
	res.Normalize()
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := p.Blobs.Put(t.Context(), encoded)
	if err != nil {
		t.Fatal(err)
	}
	w, _, err := p.Traces.Append(theRun(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(&trace.Complete{Result: ref}), w.Close()); err != nil {
		t.Fatal(err)
	}
	resumed := func() (*marchwarden.Result, error) {
		_, res, err := p.GoOn(t.Context(), "", marchwarden.Request{Resume: runID}, nil)
		return res, err
	}
	if got, err := resumed(); got != nil || !errors.Is(err, marchwarden.CodeCorrupt) {
		t.Errorf("without its evidence: %v, %v", got, err)
	}
	if _, err := p.Blobs.Put(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if got, err := resumed(); got == nil || err != nil {
		t.Errorf("with its evidence: %v, %v", got, err)
	}
}

// A run that was imported is not gone on with: one that was cut off is refused, one that
// has ended is shown as it is, whatever is added.
func TestImportedRunsAreNotGoneOnWith(t *testing.T) {
	for name, ended := range map[string]*run.Ending{"cut off": nil, "stopped": {Interrupted: true}, "at a cap": {Exhausted: []string{"token budget"}}} {
		p := newPlace(t, ended)
		if err := os.WriteFile(filepath.Join(p.Traces.(*trace.Dir).Path(), runID+trace.ForeignSuffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		on, res, err := p.GoOn(t.Context(), "", marchwarden.Request{Resume: runID, Constraints: more(2000)}, nil)
		if on != nil || (res != nil) != (ended != nil) || ended == nil && !errors.Is(err, marchwarden.CodeInvalid) || ended != nil && err != nil {
			t.Errorf("%s: %v, %v, %v", name, on, res, err)
		}
	}
}

// mind is one whose id does not hold its version.
type mind struct{ id, version string }

func (m mind) ID() string      { return m.id }
func (m mind) Version() string { return m.version }

// A run that another mind made is not run again, nor one that another version of the
// mind made, or one of before those were recorded.
func TestSameMind(t *testing.T) {
	has := mind{"some/model", "model/4"}
	for name, c := range map[string]struct {
		start trace.Start
		want  string
	}{
		"the same":       {trace.Start{Mind: "some/model", Model: "some/model", MindVersion: "model/4"}, ""},
		"an earlier one": {trace.Start{Mind: "some/model", Model: "some/model", MindVersion: "model/3"}, "made by model/3 of the mind that asks a model; this program has model/4"},
		"not recorded":   {trace.Start{Mind: "some/model", Model: "some/model"}, "made by an earlier version of the mind"},
		"another mind":   {trace.Start{Mind: "plain/1"}, "made by plain/1; this program has some/model"},
		"another model":  {trace.Start{Mind: "other", Model: "other", MindVersion: "model/4"}, "made by other"},
	} {
		err := run.SameMind(&c.start, has)
		if c.want == "" && err == nil {
			continue
		}
		if marchwarden.CodeOf(err) != marchwarden.CodeUnsupported || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
