package run

import (
	"cmp"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// State is what a lane is at, or where a whole run stands.
type State string

// The states of a lane, in the order of a run.
const (
	Planned   State = "planned"   // decided on, and not begun; of a whole run, only a plan was asked for
	Planning  State = "planning"  // deciding what to look for, or what to do about a report
	Searching State = "searching" // for what is known no closer, too: all that an external researcher does
	Reading   State = "reading"
	Writing   State = "writing"
	Checking  State = "checking" // evidence, reports or the answer
	Waiting   State = "waiting"  // an investigator, for its rihlas
	Done      State = "done"
	Failed    State = "failed"
)

// The further states of a whole run.
const (
	Complete    State = "complete"    // it has its answer
	Interrupted State = "interrupted" // its caller stopped it, or a crash cut it off
	Running     State = "running"     // a process is at work on it
	Damaged     State = "damaged"     // its trace cannot be read, or no run was begun in it
)

// Lane is one of those who work on a run.
type Lane struct {
	// Number is 0 for the investigator, or the only researcher; rihlas count from one.
	// One that waits to be sent has the number that comes next.
	Number               int
	Researcher, Question string
	State                State
	Doing                string // what it is at, or why it failed; one line
	Documents, Citations int
	Read                 []string // locators of documents, as they came; of many the first
	Discoveries          []marchwarden.DiscoveryEvent
}

// Board is a run as far as it is known. A trace may be damaged, or made up by another
// program: whatever is in it, a Board is bounded, and its texts are single lines. They are
// still text from outside.
type Board struct {
	Question       string
	Began          time.Time
	Last           time.Time // when the newest step was written
	Ended          bool      // it has its result
	Interrupted    bool      // the caller stopped it, or it was cut off
	Tokens, Budget int
	Lanes          []Lane                 // the own one first, then the rihlas by number, then those of the plan that wait for their turn
	Gaps           []marchwarden.Gap      // until it ended as the rihlas report them, each once
	Decisions      []marchwarden.Decision // what was done about what rihlas reported
}

// Bounds of a Board. Honest runs stay far below them.
const (
	maxLanes = 1000
	maxItems = 1000 // of a list
	maxLine  = 300  // characters
	maxRead  = 100  // documents of which the names are kept
)

// lookup is where a board finds what the trace of a run only names.
type lookup struct {
	steps  func(marchwarden.TraceID) []trace.Step // of the run of a rihla, none if it is not here
	result func(trace.Step) *marchwarden.Result   // with which a step ended a run or a rihla, nil for none
}

// boardOf is the run that the steps of its trace tell of.
func boardOf(steps []trace.Step, from lookup) *Board {
	b := &Board{}
	own, sent := &worker{}, &journeys{board: b, from: from, byNumber: map[int]*journey{}}
	for _, s := range steps {
		own.step(s)
		sent.step(s)
		b.step(s, from)
	}
	own.Discoveries = append(own.Discoveries, boundDiscoveries(from.result(lastEnd(steps)))...)
	b.Lanes = append([]Lane{own.Lane}, sent.lanes()...)
	b.count(steps, sent)
	return b
}

// lastEnd is the step with which a run ended, nil for one that goes on.
func lastEnd(steps []trace.Step) trace.Step {
	if end := (&trace.Log{Steps: steps}).Complete(); end != nil {
		return end
	}
	return nil
}

// step takes what a step of the run's own trace tells of all of it.
func (b *Board) step(s trace.Step, from lookup) {
	if at := s.Header().Timestamp; at.After(b.Last) {
		b.Last = at
	}
	switch s := s.(type) {
	case *trace.Start:
		if b.Began.IsZero() {
			b.Began, b.Budget = s.StartedAt, max(0, s.LimitsNow().TokenBudget)
			b.Question = plaintext.Line(s.Request.Question, marchwarden.MaxQuestionChars)
			if b.Began.IsZero() {
				b.Began = s.Timestamp
			}
			b.miss(s.Gaps)
		}
	case *trace.RihlaComplete:
		if res := from.result(s); res != nil {
			b.miss(res.Gaps)
		}
	case *trace.Decision:
		b.decide(s.What)
	case *trace.Resume:
		b.Ended, b.Interrupted = false, false
	case *trace.Complete:
		b.Ended, b.Interrupted = true, s.Interrupted
		if res := from.result(s); res != nil {
			b.Gaps = nil
			b.miss(res.Gaps)
		}
	}
}

// miss adds gaps that are not known yet.
func (b *Board) miss(gaps []marchwarden.Gap) {
	for _, g := range gaps {
		g.Topic, g.Detail, g.Category = plaintext.Line(g.Topic, maxLine), plaintext.Line(g.Detail, maxLine), marchwarden.GapCategory(plaintext.Line(string(g.Category), maxLine))
		known := slices.ContainsFunc(b.Gaps, func(o marchwarden.Gap) bool { return o.Category == g.Category && o.Topic == g.Topic })
		if !known && len(b.Gaps) < maxItems {
			b.Gaps = append(b.Gaps, g)
		}
	}
}

// decide keeps a decision, in the place of an earlier one about the same.
func (b *Board) decide(d marchwarden.Decision) {
	d.Topic, d.Reason, d.About = plaintext.Line(d.Topic, maxLine), plaintext.Line(d.Reason, maxLine), plaintext.Line(d.About, maxLine)
	same := func(o marchwarden.Decision) bool { return o.About == d.About && o.Topic == d.Topic && o.From == d.From }
	if i := slices.IndexFunc(b.Decisions, same); i >= 0 {
		b.Decisions[i] = d
	} else if len(b.Decisions) < maxItems {
		b.Decisions = append(b.Decisions, d)
	}
}

// count adds up the tokens: those of the run itself, and of its rihlas what they reported or,
// before they report, what their traces tell.
func (b *Board) count(steps []trace.Step, sent *journeys) {
	facts, reported := FactsOf(steps), map[marchwarden.TraceID]int{}
	for _, r := range facts.Reports {
		reported[r.TraceID] = max(reported[r.TraceID], r.TokensUsed)
	}
	b.Tokens = facts.Paid
	for id, steps := range sent.runs {
		b.Tokens += max(0, FactsOf(steps).Paid-reported[id])
	}
	if n := len(facts.Ends); n > 0 {
		b.Tokens = max(b.Tokens, facts.Ends[n-1].TokensUsed)
	}
	b.Tokens = max(0, b.Tokens)
}

// cut says of a run that has not ended that no process works on it any more: what is not done has failed.
func (b *Board) cut() {
	if b.Ended {
		return
	}
	b.Interrupted = true
	for i := range b.Lanes {
		if l := &b.Lanes[i]; l.State != Done && l.State != Failed {
			l.State, l.Doing = Failed, "cut off"
		}
	}
}

// journey is a rihla as the investigation tells of it.
type journey struct {
	Lane
	id   marchwarden.TraceID
	sent bool // it does not wait for its turn
	over bool // its report is here, or is not waited for any more
}

// journeys are the rihlas of an investigation.
type journeys struct {
	board    *Board
	from     lookup
	planOnly bool
	sent     []*journey
	byNumber map[int]*journey
	waiting  []*journey // of the plan, and not sent
	runs     map[marchwarden.TraceID][]trace.Step
}

func (a *journeys) step(s trace.Step) {
	switch s := s.(type) {
	case *trace.Start:
		a.planOnly = s.Investigation != nil && s.Investigation.PlanOnly
	case *trace.Plan:
		for _, r := range s.Rihlas {
			a.waiting = append(a.waiting, &journey{Lane: Lane{Researcher: plaintext.Line(r.Researcher, maxLine), Question: plaintext.Line(r.Question, marchwarden.MaxQuestionChars), State: Planned}})
		}
	case *trace.Rihla:
		a.send(s)
	case *trace.RihlaUnderWay:
		if j := a.byNumber[s.Number]; j != nil && s.TraceID.Valid() {
			j.id = s.TraceID
		}
	case *trace.RihlaComplete:
		a.back(s)
	case *trace.Arrival:
		for _, j := range a.sent {
			if s.Number == 0 && !j.over { // none comes any more
				j.over, j.State, j.Doing = true, Failed, "did not come back in time"
			}
		}
	case *trace.SynthesisStart:
		for _, j := range a.waiting {
			if !a.planOnly {
				j.State, j.Doing = Failed, "it was not sent"
			}
		}
	}
}

// send gives a rihla its lane: the one it had, that of the plan, or a new one. None has a number below 1.
func (a *journeys) send(s *trace.Rihla) {
	if s.Number < 1 {
		return
	}
	j := a.byNumber[s.Number]
	if j == nil {
		j = &journey{Lane: Lane{Number: s.Number, Researcher: plaintext.Line(s.Researcher, maxLine), Question: plaintext.Line(s.Question, marchwarden.MaxQuestionChars)}}
		a.waiting = slices.DeleteFunc(a.waiting, func(w *journey) bool {
			mine := !j.sent && w.Researcher == j.Researcher && w.Question == j.Question
			j.sent = j.sent || mine
			return mine
		})
		a.sent, a.byNumber[s.Number] = append(a.sent, j), j
	}
	j.sent, j.over, j.State, j.Doing = true, false, Searching, ""
	if s.TraceID.Valid() {
		j.id, j.State = s.TraceID, Planned // a run of this program, which is about to begin
	}
}

func (a *journeys) back(s *trace.RihlaComplete) {
	j := a.byNumber[s.Number]
	if j == nil {
		return
	}
	j.over, j.State, j.Doing, j.Citations = true, Done, plaintext.Line(s.Decision, maxLine), max(0, s.Citations)
	if s.Error != "" {
		j.State = Failed
	}
	if s.TraceID.Valid() {
		j.id = s.TraceID
	}
	j.Discoveries = boundDiscoveries(a.from.result(s))
}

// lanes are those of the rihlas: as the investigation tells of them, and in between as their
// own runs do.
func (a *journeys) lanes() []Lane {
	var lanes []Lane
	workers := map[marchwarden.TraceID]*worker{} // one rihla may resume the run of another
	a.runs = map[marchwarden.TraceID][]trace.Step{}
	slices.SortStableFunc(a.sent, func(x, y *journey) int { return cmp.Compare(x.Number, y.Number) })
	for _, j := range a.sent[:min(len(a.sent), maxLanes)] {
		w := workers[j.id]
		if w == nil {
			w = &worker{}
			a.runs[j.id] = a.from.steps(j.id)
			for _, s := range a.runs[j.id] {
				w.step(s)
			}
			workers[j.id] = w
		}
		j.Documents, j.Read, j.Citations = w.Documents, w.Read, max(j.Citations, w.Citations)
		switch {
		case !j.over && a.board.Ended:
			j.State, j.Doing = Failed, "did not come back before the end"
		case !j.over && w.State != "":
			j.State, j.Doing = w.State, w.Doing
		}
		lanes = append(lanes, j.Lane)
	}
	for _, j := range a.waiting[:min(len(a.waiting), maxLanes-len(lanes))] {
		if j.Number = 1; len(lanes) > 0 {
			last := lanes[len(lanes)-1].Number
			j.Number = max(last, last+1) // there is none after the largest
		}
		lanes = append(lanes, j.Lane)
	}
	return lanes
}

func boundDiscoveries(res *marchwarden.Result) []marchwarden.DiscoveryEvent {
	if res == nil {
		return nil
	}
	found := slices.Clone(res.DiscoveryEvents[:min(len(res.DiscoveryEvents), maxItems)])
	for i := range found {
		d := &found[i]
		d.Query, d.Reason, d.SourceLocator = plaintext.Line(d.Query, maxLine), plaintext.Line(d.Reason, maxLine), plaintext.Line(d.SourceLocator, 2*maxLine)
		d.SuggestedResearcher, d.Type = plaintext.Line(d.SuggestedResearcher, maxLine), marchwarden.DiscoveryType(plaintext.Line(string(d.Type), maxLine))
	}
	return found
}
