package run_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

var zero = time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)

// sec is a moment of the tests.
func sec(n float64) time.Time { return zero.Add(time.Duration(n * float64(time.Second))) }

func anID(n int) marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return id
}

// on dates a step.
func on(at float64, s trace.Step) trace.Step {
	h := s.Header()
	h.Timestamp = sec(at)
	if h.Decision == "" {
		h.Decision = strings.TrimPrefix(fmt.Sprintf("%T", s), "*trace.")
	}
	return s
}

func begin(id int) *trace.Start {
	return &trace.Start{TraceID: anID(id), Researcher: "files", Request: marchwarden.Request{Question: "What?"}, Limits: marchwarden.Limits{TokenBudget: 5000}}
}

func ended(code marchwarden.Code) trace.Effect { return trace.Effect{Error: code} }

// told is a lane's spans in words, in seconds since the beginning.
func told(l run.Lane) string {
	var out []string
	for _, s := range l.Spans {
		to := "…"
		if !s.To.IsZero() {
			to = fmt.Sprint(s.To.Sub(zero).Seconds())
		}
		out = append(out, fmt.Sprintf("%s %v-%s", s.State, s.From.Sub(zero).Seconds(), to))
	}
	return fmt.Sprintf("%s: %s", l.State, strings.Join(out, ", "))
}

func all(b *run.Board) (out []string) {
	for _, l := range b.Lanes {
		out = append(out, fmt.Sprintf("%d %s", l.Number, told(l)))
	}
	return out
}

func fold(steps ...trace.Step) *run.Fold {
	f := run.NewFold()
	for _, s := range steps {
		f.Step(s)
	}
	return f
}

// A single researcher's steps are states, side by side too, and numbers.
func TestAResearcher(t *testing.T) {
	model := begin(1)
	model.Model, model.StartedAt = "m/1", sec(-1)
	stored := blob.Of([]byte("text"))
	steps := []trace.Step{
		on(0, model), on(1, &trace.Model{Prompt: "step"}), on(3, &trace.ModelComplete{Prompt: "step", TokensIn: 100, TokensOut: 10}),
		on(3, &trace.Iteration{Iteration: 1}), on(3, &trace.Message{}),
		on(4, &trace.Search{}), on(4, &trace.Fetch{}), on(5, &trace.SearchComplete{}), on(6, &trace.FetchComplete{ContentHash: stored}), on(7, &trace.Fetch{}),
		on(8, &trace.FetchComplete{Effect: ended(marchwarden.CodeDenied)}),
		on(9, &trace.SynthesisStart{}), on(9, &trace.Model{Prompt: "write"}), on(12, &trace.ModelComplete{Prompt: "write", TokensIn: 1000, TokensOut: 200}),
		on(12, &trace.Model{Prompt: "judge"}), on(13, &trace.ModelComplete{Prompt: "judge", TokensIn: 50, TokensOut: 5}),
		on(13, &trace.SynthesisComplete{}), on(14, &trace.Verify{Citations: 2}), on(15, &trace.Checkpoint{}),
		on(16, &trace.Complete{TokensUsed: 1400, Citations: 2, Confidence: 0.5, Interrupted: true}),
	}
	want := map[int]string{
		0:  "planning: planning -1-…",
		5:  "searching: planning -1-4, searching 4-…",
		6:  "reading: planning -1-4, reading 4-…",
		7:  "reading: planning -1-4, reading 4-…",
		8:  "planning: planning -1-4, reading 4-6, planning 6-…",
		13: "writing: planning -1-4, reading 4-6, planning 6-7, reading 7-8, planning 8-9, writing 9-…",
		19: "done: planning -1-4, reading 4-6, planning 6-7, reading 7-8, planning 8-9, writing 9-12, checking 12-16",
	}
	f := run.NewFold()
	for i, s := range steps {
		f.Step(s)
		if w, ok := want[i]; ok {
			if got := told(f.Board().Lanes[0]); got != w {
				t.Errorf("after step %d:\n%s\nwant\n%s", i, got, w)
			}
		}
	}
	b := f.Board()
	l := b.Lanes[0]
	if !b.Ended || !b.Interrupted || b.Tokens != 1400 || b.Budget != 5000 || b.Citations != 2 || !b.Began.Equal(sec(-1)) || !b.Last.Equal(sec(16)) {
		t.Errorf("%+v", b)
	}
	if l.Iteration != 1 || l.Searches != 1 || l.Documents != 1 || l.Tokens != 1400 || l.Budget != 5000 {
		t.Errorf("%+v", l)
	}
	if diff := cmp.Diff([]run.Stage{
		{State: run.Planning, Tokens: 110, Time: 7 * time.Second}, {State: run.Reading, Time: 3 * time.Second},
		{State: run.Writing, Tokens: 1200, Time: 3 * time.Second}, {State: run.Checking, Tokens: 55, Time: 4 * time.Second},
		{Tokens: 35},
	}, b.Stages()); diff != "" {
		t.Error(diff)
	}
}

// plan is the beginning of an investigation of two with one place.
func plan() []trace.Step {
	start := begin(9)
	start.Researcher, start.Investigation = "pi", &trace.Investigation{Parallel: 1}
	return []trace.Step{
		on(0, start), on(1, &trace.Plan{Rihlas: []trace.Sending{{Researcher: "web", Question: "one"}, {Researcher: "files", Question: "two"}}}),
		on(1, &trace.Checkpoint{}), on(2, &trace.Rihla{Number: 1, Researcher: "web", Question: "one", TraceID: anID(1)}),
	}
}

// Rihlas have lanes from when they are planned, and the investigator waits between what
// it does about them.
func TestAnInvestigation(t *testing.T) {
	f := fold(plan()...)
	if diff := cmp.Diff([]string{"0 waiting: planning 0-2", "1 planned: planned 1-…", "2 planned: planned 1-…"}, all(f.Board())); diff != "" {
		t.Error(diff)
	}
	for _, s := range []trace.Step{on(3, begin(1)), on(4, &trace.Search{})} {
		f.RihlaStep(1, s)
	}
	if diff := cmp.Diff([]string{"0 waiting: planning 0-2", "1 searching: planned 1-3, planning 3-4, searching 4-…", "2 planned: planned 1-…"}, all(f.Board())); diff != "" {
		t.Error(diff)
	}
	for _, s := range []trace.Step{
		on(6, &trace.RihlaComplete{Number: 1, TraceID: anID(1), Citations: 1, TokensUsed: 300}), on(6, &trace.Arrival{Number: 1}), on(8, &trace.Evidence{}),
		on(9, &trace.Decision{What: marchwarden.Decision{About: "a", Topic: "b", Action: marchwarden.Accepted}}),
		on(10, &trace.Rihla{Number: 2, Researcher: "files", Question: "two"}), // a stranger
		on(14, &trace.RihlaComplete{Number: 2, Effect: ended(marchwarden.CodeTimeout), Head: trace.Head{Decision: "too slow"}}), on(15, &trace.Arrival{Number: 2}),
		on(16, &trace.SynthesisStart{}), on(18, &trace.SynthesisComplete{}), on(20, &trace.Complete{TokensUsed: 350}),
	} {
		f.Step(s)
	}
	f.Report(1, &marchwarden.Result{Gaps: []marchwarden.Gap{{Topic: "x\ny"}}, DiscoveryEvents: []marchwarden.DiscoveryEvent{{Query: "q"}}})
	f.Report(7, &marchwarden.Result{})
	f.RihlaStep(7, on(1, begin(1)))
	b := f.Board()
	if diff := cmp.Diff([]string{
		"0 done: planning 0-2, checking 6-9, planning 9-10, checking 14-16, writing 16-18, checking 18-20",
		"1 done: planned 1-3, planning 3-4, searching 4-6",
		"2 failed: planned 1-10, searching 10-14",
	}, all(b)); diff != "" {
		t.Error(diff)
	}
	if one := b.Lanes[1]; one.Tokens != 300 || one.Citations != 1 || one.Gaps[0].Topic != "x y" || len(one.Discoveries) != 1 || !one.Sent.Equal(sec(2)) {
		t.Errorf("%+v", one)
	}
	if two := b.Lanes[2]; two.Doing != "too slow" || b.Lanes[0].Tokens != 50 || b.Tokens != 350 || len(b.Decisions) != 1 {
		t.Errorf("%+v, %+v", two, b)
	}
	b.Lanes[1].Spans[0].State, b.Lanes[1].Gaps[0].Topic, b.Lanes[1].Paid[run.Reading] = "x", "x", 9
	if again := f.Board(); again.Lanes[1].Spans[0].State == "x" || again.Lanes[1].Gaps[0].Topic == "x" {
		t.Error("a board shares what is in it with the fold")
	}
}

// What is planned and left out has failed, but for a run that ends with its plan; what
// does not come back has failed, too.
func TestWhatIsLeftOut(t *testing.T) {
	left := append(plan(), on(5, &trace.Arrival{}), on(6, &trace.SynthesisStart{}), on(8, &trace.Complete{}))
	if diff := cmp.Diff([]string{"0 done: planning 0-2, checking 5-6, writing 6-8", "1 failed: planned 1-5", "2 failed: planned 1-6"}, all(fold(left...).Board())); diff != "" {
		t.Error(diff)
	}
	only := plan()[:2]
	only[0].(*trace.Start).Investigation.PlanOnly = true
	if diff := cmp.Diff([]string{"0 done: planning 0-3, writing 3-4", "1 planned: planned 1-4", "2 planned: planned 1-4"}, all(fold(append(only, on(3, &trace.SynthesisStart{}), on(4, &trace.Complete{}))...).Board())); diff != "" {
		t.Error(diff)
	}
	cut := fold(plan()...).Board()
	cut.Last = sec(4)
	cut.Cut()
	if diff := cmp.Diff([]string{"0 failed: planning 0-2", "1 failed: planned 1-4", "2 failed: planned 1-4"}, all(cut)); diff != "" || !cut.Interrupted {
		t.Error(diff)
	}
}

// A rihla that was cut off keeps its lane when it is sent again, with the part of its run
// before that; the time between is nobody's.
func TestARihlaThatGoesOn(t *testing.T) {
	f := fold(plan()...)
	inner := []trace.Step{on(3, begin(1)), on(4, &trace.Search{}), on(5, &trace.SearchComplete{}), on(102, &trace.Resume{}), on(103, &trace.Search{}), on(104, &trace.SearchComplete{}), on(105, &trace.Complete{TokensUsed: 40})}
	outer := []trace.Step{on(100, &trace.Resume{}), on(101, &trace.Rihla{Number: 1, Researcher: "web", Question: "one", TraceID: anID(1)}), on(106, &trace.RihlaComplete{Number: 1, TraceID: anID(1), TokensUsed: 40})}
	for _, s := range outer {
		f.Step(s)
	}
	for _, s := range inner {
		f.RihlaStep(1, s)
	}
	b := f.Board()
	if diff := cmp.Diff([]string{"0 waiting: planning 0-2, planning 100-101", "1 done: planned 1-3, planning 3-4, searching 4-5, planning 102-103, searching 103-104, planning 104-106", "2 planned: planned 1-2, planned 100-…"}, all(b)); diff != "" {
		t.Error(diff)
	}
	if l := b.Lanes[1]; l.Searches != 2 || l.Tokens != 40 || l.Paid[run.Reading] != 40 {
		t.Errorf("%+v", l)
	}
	// It is another run from now on, of which nothing is known.
	f.Step(on(107, &trace.RihlaUnderWay{Number: 1, TraceID: anID(5)}))
	if got := told(f.Board().Lanes[1]); got != "done: planned 1-2, searching 100-106" {
		t.Error(got)
	}
}

// The time between the parts of a run is no lane's, whatever was under way before it.
func TestAPause(t *testing.T) {
	for name, c := range map[string]struct {
		inner []trace.Step
		told  bool // which run to make
		want  string
	}{
		"it had not begun": {[]trace.Step{on(103, begin(1)), on(105, &trace.Complete{})}, true, "planned 1-2, planned 100-103, planning 103-106"},
		"it is begun anew": {[]trace.Step{on(3, begin(5)), on(103, begin(1)), on(105, &trace.Complete{})}, true, "planned 1-2, planned 100-103, planning 103-106"},
		"it had begun":     {[]trace.Step{on(3, begin(1)), on(4, &trace.Search{}), on(102, &trace.Resume{}), on(105, &trace.Complete{})}, true, "planned 1-3, planning 3-4, planning 102-106"},
		"it went on":       {[]trace.Step{on(3, begin(1)), on(4, &trace.Search{}), on(50, &trace.SearchComplete{}), on(105, &trace.Complete{})}, true, "planned 1-3, planning 3-4, searching 4-50, planning 50-106"},
		"a stranger":       {nil, false, "planned 1-2, searching 100-106"},
	} {
		f := fold(plan()[:2]...)
		sent := func(at float64) trace.Step {
			s := &trace.Rihla{Number: 1, Researcher: "web", Question: "one"}
			if c.told {
				s.TraceID = anID(1)
			}
			return on(at, s)
		}
		for _, s := range []trace.Step{sent(2), on(100, &trace.Resume{}), sent(101), on(106, &trace.RihlaComplete{Number: 1}), on(107, &trace.Arrival{Number: 1}), on(107, &trace.SynthesisStart{}), on(108, &trace.Complete{})} {
			f.Step(s)
		}
		for _, s := range c.inner {
			f.RihlaStep(1, s)
		}
		b := f.Board()
		if got := told(b.Lanes[1]); got != "done: "+c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// An investigator waits while no report is there that it has not looked at, and no
// longer.
func TestReportsThatWait(t *testing.T) {
	f := fold(append(plan(), on(2, &trace.Rihla{Number: 2, Researcher: "files", Question: "two"}), on(2, &trace.Rihla{Number: 3, Researcher: "files", Question: "three"}),
		on(4, &trace.RihlaComplete{Number: 2}), on(5, &trace.Arrival{Number: 2}), on(6, &trace.RihlaComplete{Number: 1}), on(7, &trace.Evidence{}))...)
	if got := told(f.Board().Lanes[0]); got != "checking: planning 0-2, checking 4-…" {
		t.Error(got) // the first report is here, and was not looked at
	}
	for _, s := range []trace.Step{on(9, &trace.Arrival{Number: 1}), on(10, &trace.Evidence{}), on(12, &trace.RihlaComplete{Number: 3}), on(13, &trace.Arrival{Number: 3}), on(14, &trace.SynthesisStart{})} {
		f.Step(s)
	}
	if got := told(f.Board().Lanes[0]); got != "writing: planning 0-2, checking 4-10, checking 12-14, writing 14-…" {
		t.Error(got)
	}
}

// A gap that several report is one; at the end those count that are left.
func TestGapsAreToldOnce(t *testing.T) {
	f := fold(plan()...)
	f.Step(on(3, &trace.Rihla{Number: 2, Researcher: "files", Question: "two"}))
	mayor, rest := marchwarden.Gap{Topic: "mayor", Category: marchwarden.SourceNotFound}, marchwarden.Gap{Topic: "mayor", Category: marchwarden.BudgetExhausted}
	f.Report(1, &marchwarden.Result{Gaps: []marchwarden.Gap{mayor}})
	f.Report(2, &marchwarden.Result{Gaps: []marchwarden.Gap{rest, mayor}})
	if diff := cmp.Diff([]marchwarden.Gap{mayor, rest}, f.Board().Gaps()); diff != "" {
		t.Error(diff)
	}
	f.Step(on(9, &trace.Complete{}))
	f.Report(0, &marchwarden.Result{Gaps: []marchwarden.Gap{rest}})
	if diff := cmp.Diff([]marchwarden.Gap{rest}, f.Board().Gaps()); diff != "" {
		t.Error(diff)
	}
}

// Where one rihla goes on with the run of another, each lane has its part of it.
func TestARunOfTwoRihlas(t *testing.T) {
	inner := []trace.Step{on(3, begin(1)), on(4, &trace.Search{}), on(5, &trace.SearchComplete{}), on(6, &trace.Complete{TokensUsed: 40}),
		on(21, &trace.Resume{Extension: &trace.Extension{Tokens: 1000}}), on(22, &trace.Fetch{}), on(23, &trace.FetchComplete{ContentHash: blob.Of(nil)}), on(24, &trace.Complete{TokensUsed: 100})}
	f := fold(append(plan(), on(7, &trace.RihlaComplete{Number: 1, TraceID: anID(1), TokensUsed: 40}),
		on(20, &trace.Rihla{Number: 3, Researcher: "web", Question: "one", Parent: 1}), on(21, &trace.RihlaUnderWay{Number: 3, TraceID: anID(1)}),
		on(25, &trace.RihlaComplete{Number: 3, TraceID: anID(1), TokensUsed: 100}))...)
	for _, s := range inner {
		f.RihlaStep(1, s)
		f.RihlaStep(3, s)
	}
	b := f.Board()
	if diff := cmp.Diff([]string{"1 done: planned 1-3, planning 3-4, searching 4-5, planning 5-7", "3 done: planned 20-21, planning 21-22, reading 22-23, planning 23-25"}, all(b)[1:3]); diff != "" {
		t.Error(diff)
	}
	one, three := b.Lanes[1], b.Lanes[2]
	if one.Tokens != 40 || three.Tokens != 60 || b.Tokens != 100 || one.Documents != 0 || three.Documents != 1 || three.Searches != 0 || three.Budget != 1000 || b.Lanes[3].Number != 4 {
		t.Errorf("%+v\n%+v\n%+v", one, three, b.Lanes[3])
	}

	// Before it reports, it has used what it was seen to pay.
	f.Step(on(30, &trace.Rihla{Number: 4, Researcher: "web", Question: "one", Parent: 3}))
	f.Step(on(31, &trace.RihlaUnderWay{Number: 4, TraceID: anID(1)}))
	for _, s := range append(inner, on(31, &trace.Resume{}), on(32, &trace.ModelComplete{Prompt: "step", TokensIn: 7})) {
		f.RihlaStep(4, s)
	}
	if b := f.Board(); b.Lanes[3].Tokens != 7 || b.Tokens != 107 {
		t.Errorf("%+v", b.Lanes[3])
	}
}

// Numbers and times that cannot be are made into such that can.
func TestOddTraces(t *testing.T) {
	start := begin(1)
	start.Limits.TokenBudget, start.Investigation = math.MaxInt, &trace.Investigation{}
	start.Request.Question = strings.Repeat("x\x1b[31m\n", 10000)
	f := fold(on(10, start), on(5, &trace.Search{}), on(1, &trace.SearchComplete{}), on(20, start), on(3, &trace.ModelComplete{TokensIn: math.MaxInt, TokensOut: math.MaxInt}),
		on(4, &trace.ModelComplete{TokensIn: -5, TokensOut: math.MinInt}), on(4, &trace.Resume{Extension: &trace.Extension{Tokens: math.MaxInt}}),
		on(5, &trace.Rihla{Number: math.MinInt}), on(5, &trace.Rihla{Number: math.MaxInt, Parent: -1}), on(5, &trace.RihlaComplete{Number: math.MaxInt, TokensUsed: math.MaxInt}),
		on(6, &trace.Plan{Rihlas: make([]trace.Sending, 5000)}), on(7, &trace.Complete{Confidence: 7, Citations: -1}), on(8, &trace.Unknown{}))
	f.Step(nil)
	f.RihlaStep(1, nil)
	f.Report(1, nil)
	b := f.Board()
	if b.Tokens != math.MaxInt || b.Budget != math.MaxInt || b.Citations != 0 || len([]rune(b.Question)) > 501 || strings.ContainsAny(b.Question, "\x1b\n") {
		t.Errorf("%+v", b)
	}
	if len(b.Lanes) != 1001 || b.More != 4001 {
		t.Errorf("%d lanes, %d more", len(b.Lanes), b.More)
	}
	b.Stages()
	long := fold(on(0, begin(1)))
	for i := range 20000 {
		long.Step(on(float64(i+1), []trace.Step{&trace.Search{}, &trace.SearchComplete{}}[i%2]))
	}
	if n := len(long.Board().Lanes[0].Spans); n > 4001 {
		t.Errorf("%d spans", n)
	}
}

// Events give the same lanes, as far as they tell.
func TestEvents(t *testing.T) {
	f := run.NewFold()
	for _, e := range []struct {
		at      float64
		rihla   int
		stage   marchwarden.Stage
		message string
	}{
		{0, 0, marchwarden.StagePlan, "planning"}, {1, 1, marchwarden.StagePlan, "sent: What?"}, {1, 2, marchwarden.StagePlan, "sent: And what?"},
		{2, 1, marchwarden.StageSearch, "searching"}, {3, 1, marchwarden.StageFetch, "reading"}, {3, 1, "new", "?"}, {4, 1, marchwarden.StageDone, "2 citations"},
		{5, 1, marchwarden.StageDone, "answered with 2 citations"}, {6, 2, marchwarden.StageDone, "failed: gone"}, {7, 0, marchwarden.StageSynthesize, "writing"}, {9, 0, marchwarden.StageDone, "done"},
	} {
		f.Event(marchwarden.Event{Stage: e.stage, Message: e.message, Rihla: e.rihla, TraceID: anID(3), Iteration: 1}, sec(e.at))
	}
	b := f.Board()
	if diff := cmp.Diff([]string{"0 done: planning 0-1, writing 7-9", "1 done: planned 1-2, searching 2-3, reading 3-4", "2 failed: planned 1-6"}, all(b)); diff != "" {
		t.Error(diff)
	}
	if !b.Ended || b.Lanes[1].Question != "What?" || b.Lanes[1].Doing != "answered with 2 citations" || b.Lanes[2].Doing != "failed: gone" || b.Lanes[1].Iteration != 1 {
		t.Errorf("%+v", b)
	}
}
