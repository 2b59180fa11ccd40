package run

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
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
	return &trace.Start{TraceID: anID(id), Researcher: "files", Request: marchwarden.Request{Question: "What?"}, Limits: marchwarden.Limits{TokenBudget: 5000}, PartOf: true}
}

func ended(code marchwarden.Code) trace.Effect { return trace.Effect{Error: code} }

// world is what the traces of rihlas and the stored results say.
type world struct {
	runs    map[marchwarden.TraceID][]trace.Step
	results map[trace.Step]*marchwarden.Result
}

func (w world) board(steps ...trace.Step) *Board {
	return boardOf(steps, lookup{func(id marchwarden.TraceID) []trace.Step { return w.runs[id] }, func(s trace.Step) *marchwarden.Result { return w.results[s] }})
}

// lanes are those of a board in words.
func lanes(b *Board) (out []string) {
	for _, l := range b.Lanes {
		out = append(out, fmt.Sprintf("%d %s: %s", l.Number, l.State, l.Doing))
	}
	return out
}

// A single researcher's steps are states, side by side too, and numbers.
func TestAResearcher(t *testing.T) {
	model := begin(1)
	model.Model, model.StartedAt = "m/1", sec(-1)
	steps := []trace.Step{
		on(0, model), on(1, &trace.Model{Prompt: "step"}), on(3, &trace.ModelComplete{Prompt: "step", TokensIn: 100, TokensOut: 10}),
		on(3, &trace.Iteration{Iteration: 1}), on(3, &trace.Message{}),
		on(4, &trace.Search{}), on(4, &trace.Fetch{}), on(5, &trace.SearchComplete{}), on(6, &trace.FetchComplete{URL: "a", ContentHash: blob.Of([]byte("text"))}), on(7, &trace.Fetch{}),
		on(8, &trace.FetchComplete{Effect: ended(marchwarden.CodeDenied)}),
		on(9, &trace.SynthesisStart{}), on(9, &trace.Model{Prompt: "write"}), on(12, &trace.ModelComplete{Prompt: "write", TokensIn: 1000, TokensOut: 200}),
		on(12, &trace.Model{Prompt: "judge"}), on(13, &trace.ModelComplete{Prompt: "judge", TokensIn: 50, TokensOut: 5}),
		on(13, &trace.SynthesisComplete{}), on(14, &trace.Verify{Citations: 2}), on(15, &trace.Checkpoint{}),
		on(16, &trace.Complete{TokensUsed: 1400, Citations: 2, Confidence: 0.5, Interrupted: true}),
	}
	for n, want := range map[int]string{1: "0 planning: ", 6: "0 searching: Search", 7: "0 reading: Fetch", 8: "0 reading: Fetch", 9: "0 planning: Fetch", 14: "0 writing: Model", 16: "0 checking: Model", 20: "0 done: Complete"} {
		if diff := cmp.Diff([]string{want}, lanes(world{}.board(steps[:n]...))); diff != "" {
			t.Errorf("after %d steps: %s", n, diff)
		}
	}
	b := world{}.board(steps...)
	if !b.Ended || !b.Interrupted || b.Tokens != 1400 || b.Budget != 5000 || !b.Began.Equal(sec(-1)) || !b.Last.Equal(sec(16)) {
		t.Errorf("%+v", b)
	}
	if l := b.Lanes[0]; l.Documents != 1 || l.Citations != 2 || len(l.Read) != 1 {
		t.Errorf("%+v", l)
	}
}

// plan is the beginning of an investigation of two with one place.
func plan() []trace.Step {
	start := begin(9)
	start.Researcher, start.Investigation, start.PartOf = "pi", &trace.Investigation{Parallel: 1}, false
	return []trace.Step{
		on(0, start), on(1, &trace.Plan{Rihlas: []trace.Sending{{Researcher: "web", Question: "one"}, {Researcher: "files", Question: "two"}}}),
		on(1, &trace.Checkpoint{}), on(2, &trace.Rihla{Number: 1, Researcher: "web", Question: "one", TraceID: anID(1)}),
	}
}

// Rihlas have lanes from when they are planned, which their own runs tell of until they report.
func TestAnInvestigation(t *testing.T) {
	steps := plan()
	w := world{runs: map[marchwarden.TraceID][]trace.Step{}, results: map[trace.Step]*marchwarden.Result{}}
	if diff := cmp.Diff([]string{"0 waiting: Rihla", "1 planned: ", "2 planned: "}, lanes(w.board(steps...))); diff != "" {
		t.Error(diff)
	}
	w.runs[anID(1)] = []trace.Step{on(3, begin(1)), on(4, &trace.Search{})}
	if diff := cmp.Diff([]string{"0 waiting: Rihla", "1 searching: Search", "2 planned: "}, lanes(w.board(steps...))); diff != "" {
		t.Error(diff)
	}
	one := &trace.RihlaComplete{Number: 1, TraceID: anID(1), Citations: 1, TokensUsed: 300}
	w.results[one] = &marchwarden.Result{Gaps: []marchwarden.Gap{{Topic: "x\ny"}}, DiscoveryEvents: []marchwarden.DiscoveryEvent{{Query: "q"}}}
	steps = append(steps,
		on(6, one), on(6, &trace.Arrival{Number: 1}), on(8, &trace.Evidence{}),
		on(9, &trace.Decision{What: marchwarden.Decision{About: "a", Topic: "b", Action: marchwarden.Accepted}}),
		on(10, &trace.Rihla{Number: 2, Researcher: "files", Question: "two"}), // an external researcher
		on(14, &trace.RihlaComplete{Number: 2, Effect: ended(marchwarden.CodeTimeout), Head: trace.Head{Decision: "too slow"}}), on(15, &trace.Arrival{Number: 2}),
		on(16, &trace.SynthesisStart{}), on(18, &trace.SynthesisComplete{}), on(20, &trace.Complete{TokensUsed: 350}))
	b := w.board(steps...)
	if diff := cmp.Diff([]string{"0 done: Complete", "1 done: RihlaComplete", "2 failed: too slow"}, lanes(b)); diff != "" {
		t.Error(diff)
	}
	if one := b.Lanes[1]; one.Citations != 1 || len(one.Discoveries) != 1 || b.Gaps[0].Topic != "x y" || b.Tokens != 350 || len(b.Decisions) != 1 {
		t.Errorf("%+v", b)
	}
}

// What is planned and left out has failed, but for a run that ends with its plan; what
// does not come back has failed, too.
func TestWhatIsLeftOut(t *testing.T) {
	left := append(plan(), on(5, &trace.Arrival{}), on(6, &trace.SynthesisStart{}), on(8, &trace.Complete{}))
	if diff := cmp.Diff([]string{"0 done: Complete", "1 failed: did not come back in time", "2 failed: it was not sent"}, lanes(world{}.board(left...))); diff != "" {
		t.Error(diff)
	}
	only := plan()[:2]
	only[0].(*trace.Start).Investigation.PlanOnly = true
	if diff := cmp.Diff([]string{"0 done: Complete", "1 planned: ", "2 planned: "}, lanes(world{}.board(append(only, on(3, &trace.SynthesisStart{}), on(4, &trace.Complete{}))...))); diff != "" {
		t.Error(diff)
	}
	b := world{}.board(plan()...)
	b.cut()
	if diff := cmp.Diff([]string{"0 failed: cut off", "1 failed: cut off", "2 failed: cut off"}, lanes(b)); diff != "" || !b.Interrupted {
		t.Error(diff)
	}
}

// A rihla that was cut off keeps its lane when it is sent again; the time between is nobody's.
// One may go on with the run of another, which is counted once.
func TestRunsThatGoOn(t *testing.T) {
	steps := append(plan(), on(100, &trace.Resume{}), on(101, &trace.Rihla{Number: 1, Researcher: "web", Question: "one", TraceID: anID(1)}),
		on(106, &trace.RihlaComplete{Number: 1, TraceID: anID(1), TokensUsed: 40}),
		on(120, &trace.Rihla{Number: 3, Researcher: "web", Question: "one", Parent: 1}), on(121, &trace.RihlaUnderWay{Number: 3, TraceID: anID(1)}),
		on(125, &trace.RihlaComplete{Number: 3, TraceID: anID(1), TokensUsed: 100, Researcher: ""}))
	w := world{runs: map[marchwarden.TraceID][]trace.Step{anID(1): {
		on(3, begin(1)), on(4, &trace.Search{}), on(5, &trace.SearchComplete{}), on(102, &trace.Resume{}), on(103, &trace.Search{}), on(105, &trace.SearchComplete{}), on(106, &trace.Complete{TokensUsed: 40}),
		on(121, &trace.Resume{}), on(122, &trace.Fetch{}), on(123, &trace.FetchComplete{ContentHash: blob.Of(nil)}), on(124, &trace.Complete{TokensUsed: 100})}}}
	b := w.board(steps...)
	if diff := cmp.Diff([]string{"1 done: RihlaComplete", "3 done: RihlaComplete", "4 planned: "}, lanes(b)[1:]); diff != "" || b.Tokens != 100 || b.Lanes[2].Documents != 1 {
		t.Errorf("%s\n%+v", diff, b)
	}
	// Before it reports, it has used what it was seen to pay.
	w.runs[anID(2)] = []trace.Step{on(131, begin(2)), on(132, &trace.ModelComplete{Prompt: "step", TokensIn: 7})}
	if b := w.board(append(steps, on(130, &trace.Rihla{Number: 4, Researcher: "web", Question: "more", TraceID: anID(2)}))...); b.Tokens != 107 {
		t.Errorf("%+v", b)
	}
}

// A gap that several report is one; at the end those count that are left.
func TestGapsAreToldOnce(t *testing.T) {
	one, two, end := &trace.RihlaComplete{Number: 1}, &trace.RihlaComplete{Number: 2}, &trace.Complete{}
	mayor, rest := marchwarden.Gap{Topic: "mayor", Category: marchwarden.SourceNotFound}, marchwarden.Gap{Topic: "mayor", Category: marchwarden.BudgetExhausted}
	w := world{results: map[trace.Step]*marchwarden.Result{one: {Gaps: []marchwarden.Gap{mayor}}, two: {Gaps: []marchwarden.Gap{rest, mayor}}, end: {Gaps: []marchwarden.Gap{rest}}}}
	steps := append(plan(), on(3, &trace.Rihla{Number: 2, Researcher: "files", Question: "two"}), on(4, one), on(4, two))
	if diff := cmp.Diff([]marchwarden.Gap{mayor, rest}, w.board(steps...).Gaps); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]marchwarden.Gap{rest}, w.board(append(steps, on(9, end))...).Gaps); diff != "" {
		t.Error(diff)
	}
}

// Numbers and times that cannot be are made into such that can.
func TestOddTraces(t *testing.T) {
	start := begin(1)
	start.Limits.TokenBudget, start.Investigation = math.MaxInt, &trace.Investigation{}
	start.Request.Question = strings.Repeat("x\x1b[31m\n", 10000)
	b := world{}.board(on(10, start), on(5, &trace.Search{}), on(1, &trace.SearchComplete{}), on(20, start), on(3, &trace.ModelComplete{TokensIn: math.MaxInt, TokensOut: math.MaxInt}),
		on(4, &trace.ModelComplete{TokensIn: -5, TokensOut: math.MinInt}), on(4, &trace.Resume{Extension: &trace.Extension{Tokens: math.MaxInt}}),
		on(5, &trace.Rihla{Number: math.MinInt}), on(5, &trace.Rihla{Number: math.MaxInt, Parent: -1}), on(5, &trace.RihlaComplete{Number: math.MaxInt, TokensUsed: math.MaxInt}),
		on(6, &trace.Plan{Rihlas: make([]trace.Sending, 5000)}), on(7, &trace.Complete{Confidence: 7, Citations: -1}), on(8, &trace.Unknown{}))
	if len([]rune(b.Question)) > 501 || strings.ContainsAny(b.Question, "\x1b\n") || len(b.Lanes) != 1001 {
		t.Errorf("%d lanes of %q", len(b.Lanes), b.Question)
	}
	sound(t, b, 6000)
}
