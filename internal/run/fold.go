package run

import (
	"cmp"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Fold makes a Board of steps, or of events, as they come. The steps of one trace come in
// their order; those of different traces may come in any, as long as a rihla is named
// before its own steps come: the Board is the same. A Fold is fed with either steps or
// events. It is not safe for concurrent use.
type Fold struct {
	own      *track
	planOnly bool
	last     time.Time
	begun    bool   // a start was there
	pauses   []Span // in which no process worked on the run

	journeys  []*journey // in the order in which they were sent
	byNumber  map[int]*journey
	waiting   []*journey // of the plan, and not sent
	more      int
	decisions []marchwarden.Decision
}

// journey is a rihla as the investigation tells of it, with what its own run tells.
type journey struct {
	Lane                // as far as the investigation tells it: Sent is when it was sent last, and Doing what became of it
	id                  marchwarden.TraceID
	planned, sent, back time.Time
	told                bool // it was told which run to make: it is one of this program
	unsent              bool // it was planned, and the investigation went on without it
	failed              bool
	parts               []*track // of its own run, as often as that went on
}

func newJourney(researcher, question string, planned time.Time) *journey {
	return &journey{Lane: Lane{Researcher: plaintext.Line(researcher, maxLine), Question: plaintext.Line(question, marchwarden.MaxQuestionChars)}, planned: planned}
}

// NewFold makes a fold of nothing.
func NewFold() *Fold { return &Fold{own: newTrack(), byNumber: map[int]*journey{}} }

// Step takes the next step of the run's own trace.
func (f *Fold) Step(s trace.Step) {
	if s == nil {
		return
	}
	f.last = latest(f.last, s.Header().Timestamp)
	if _, again := s.(*trace.Start); again && f.begun {
		return // there is one in a trace
	}
	before := f.own.last
	f.own.step(s)
	at := f.own.last
	switch s := s.(type) {
	case *trace.Start:
		f.begin(s)
	case *trace.Resume:
		if len(f.pauses) < maxParts {
			f.pauses = append(f.pauses, Span{From: before, To: at})
		}
	case *trace.Plan:
		f.plan(s, at)
	case *trace.Rihla:
		f.send(s, at)
	case *trace.RihlaUnderWay:
		if j := f.byNumber[s.Number]; j != nil && s.TraceID.Valid() {
			j.id = s.TraceID
		}
	case *trace.RihlaComplete:
		f.comeBack(s, at)
	case *trace.Arrival:
		for _, j := range f.journeys {
			if s.Number == 0 && j.back.IsZero() { // none comes any more
				j.back, j.failed, j.Doing = at, true, "did not come back in time"
			}
		}
	case *trace.Decision:
		f.decide(s.What)
	case *trace.SynthesisStart:
		for _, j := range f.waiting { // they are not sent
			if !f.planOnly && !j.unsent {
				j.unsent, j.back = true, at
			}
		}
	}
}

func (f *Fold) begin(s *trace.Start) {
	f.begun = true
	f.own.Researcher, f.own.Question = plaintext.Line(s.Researcher, maxLine), plaintext.Line(s.Request.Question, marchwarden.MaxQuestionChars)
	f.planOnly = s.Investigation != nil && s.Investigation.PlanOnly
	f.own.Gaps = boundGaps(s.Gaps)
}

func (f *Fold) plan(s *trace.Plan, at time.Time) {
	for _, sending := range s.Rihlas {
		if len(f.journeys)+len(f.waiting) >= maxLanes {
			f.more++
			continue
		}
		f.waiting = append(f.waiting, newJourney(sending.Researcher, sending.Question, at))
	}
}

// send gives a rihla its lane: the one it had, that of the plan, or a new one.
func (f *Fold) send(s *trace.Rihla, at time.Time) {
	if s.Number < 1 {
		return
	}
	if j := f.byNumber[s.Number]; j != nil {
		j.back, j.failed, j.Doing, j.Sent = time.Time{}, false, "", latest(j.Sent, at)
		if s.TraceID.Valid() {
			j.id = s.TraceID
		}
		return
	}
	j := newJourney(s.Researcher, s.Question, at)
	i := slices.IndexFunc(f.waiting, func(w *journey) bool { return w.Researcher == j.Researcher && w.Question == j.Question })
	switch {
	case i >= 0:
		j = f.waiting[i]
		f.waiting = slices.Delete(f.waiting, i, i+1)
	case len(f.journeys)+len(f.waiting) >= maxLanes:
		f.more++
		return
	}
	j.Number, j.id, j.sent, j.Sent, j.unsent = s.Number, s.TraceID, at, at, false
	j.back, j.told = time.Time{}, s.TraceID.Valid()
	f.journeys = append(f.journeys, j)
	f.byNumber[s.Number] = j
}

func (f *Fold) comeBack(s *trace.RihlaComplete, at time.Time) {
	j := f.byNumber[s.Number]
	if j == nil {
		return
	}
	j.back, j.failed, j.Doing = at, s.Error != "", plaintext.Line(s.Decision, maxLine)
	j.Citations, j.Tokens = max(0, s.Citations), max(0, s.TokensUsed)
	if s.TraceID.Valid() {
		j.id = s.TraceID
	}
}

// decide keeps a decision, in the place of an earlier one about the same.
func (f *Fold) decide(d marchwarden.Decision) {
	d.Topic, d.Reason = plaintext.Line(d.Topic, maxLine), plaintext.Line(d.Reason, maxLine)
	d.About = plaintext.Line(d.About, maxLine)
	for i, was := range f.decisions {
		if was.About == d.About && was.Topic == d.Topic && was.From == d.From {
			f.decisions[i] = d
			return
		}
	}
	if len(f.decisions) < maxItems {
		f.decisions = append(f.decisions, d)
	}
}

// RihlaStep takes the next step of the trace of a rihla. One that no step of the
// investigation has named is ignored. Where the rihla is told to be another run, what
// came of that before counts no more.
func (f *Fold) RihlaStep(number int, s trace.Step) {
	j := f.byNumber[number]
	if j == nil || s == nil {
		return
	}
	f.last = latest(f.last, s.Header().Timestamp)
	switch s.(type) {
	case *trace.Start:
		j.parts = []*track{newTrack()}
	case *trace.Resume:
		if n := len(j.parts); n > 0 && n < maxParts {
			next, was := newTrack(), j.parts[n-1]
			was.close(was.mark) // the time in between is not its
			if was.State != Done {
				was.State = ""
			}
			next.id, next.model, next.Iteration, next.State = was.id, was.model, was.Iteration, Planning
			j.parts = append(j.parts, next)
			next.since = s.Header().Timestamp
		}
	}
	if n := len(j.parts); n > 0 {
		j.parts[n-1].step(s)
	}
}

func (j *journey) ended() bool { return len(j.parts) > 0 && j.parts[len(j.parts)-1].ended }

// Report takes what a rihla reported, or, with number 0, what came of the whole run: its
// gaps and discoveries.
func (f *Fold) Report(number int, res *marchwarden.Result) {
	if res == nil {
		return
	}
	lane := &f.own.Lane
	if number != 0 {
		j := f.byNumber[number]
		if j == nil {
			return
		}
		lane = &j.Lane
	}
	lane.Gaps, lane.Discoveries = boundGaps(res.Gaps), boundDiscoveries(res.DiscoveryEvents)
}

// Ended reports whether the run has its result.
func (f *Fold) Ended() bool { return f.own.ended }

func boundGaps(gaps []marchwarden.Gap) []marchwarden.Gap {
	gaps = slices.Clone(gaps[:min(len(gaps), maxItems)])
	for i := range gaps {
		g := &gaps[i]
		g.Topic, g.Detail, g.Category = plaintext.Line(g.Topic, maxLine), plaintext.Line(g.Detail, maxLine), marchwarden.GapCategory(plaintext.Line(string(g.Category), maxLine))
	}
	return gaps
}

func boundDiscoveries(found []marchwarden.DiscoveryEvent) []marchwarden.DiscoveryEvent {
	found = slices.Clone(found[:min(len(found), maxItems)])
	for i := range found {
		d := &found[i]
		d.Query, d.Reason, d.SourceLocator = plaintext.Line(d.Query, maxLine), plaintext.Line(d.Reason, maxLine), plaintext.Line(d.SourceLocator, 2*maxLine)
		d.SuggestedResearcher, d.Type = plaintext.Line(d.SuggestedResearcher, maxLine), marchwarden.DiscoveryType(plaintext.Line(string(d.Type), maxLine))
	}
	return found
}

var stages = map[marchwarden.Stage]State{
	marchwarden.StageIndex: Planning, marchwarden.StagePlan: Planning, marchwarden.StageSearch: Searching, marchwarden.StageFetch: Reading,
	marchwarden.StageSynthesize: Writing, marchwarden.StageCheck: Checking, marchwarden.StageDone: Done,
}

// What an investigator says of a rihla in words, since events have no field for it.
const (
	sentPrefix   = "sent: "
	failedPrefix = "failed: "
	lostMessage  = "did not come back"
)

// Event takes an event that came at a time. Events may be lost: what they tell is for
// people who wait, and the trace has the rest.
func (f *Fold) Event(e marchwarden.Event, at time.Time) {
	f.last = latest(f.last, at)
	message := plaintext.Line(e.Message, maxLine)
	if e.Rihla > 0 {
		f.rihlaEvent(e, message, f.last)
		return
	}
	f.own.hear(e, message, f.last)
	f.own.ended = f.own.State == Done
}

// hear takes what a run says of itself, or the investigator of it.
func (k *track) hear(e marchwarden.Event, message string, at time.Time) {
	k.at(at)
	k.enter(cmp.Or(stages[e.Stage], k.State, Planning), at)
	k.Doing, k.Iteration, k.mark = message, max(k.Iteration, e.Iteration), at
}

func (f *Fold) rihlaEvent(e marchwarden.Event, message string, at time.Time) {
	j := f.byNumber[e.Rihla]
	if j == nil {
		if len(f.journeys) >= maxLanes {
			f.more++
			return
		}
		j = newJourney(e.Researcher, "", at)
		j.Number, j.sent, j.Sent, j.parts = e.Rihla, at, at, []*track{newTrack()}
		f.journeys, f.byNumber[e.Rihla] = append(f.journeys, j), j
	}
	f.own.at(at)
	question, sent := strings.CutPrefix(message, sentPrefix)
	if sent = sent && e.Stage == marchwarden.StagePlan; sent {
		j.Question = question
		j.parts[0].enter(Planned, at)
	} else {
		j.parts[0].hear(e, message, at)
	}
	if e.Stage != marchwarden.StageDone {
		j.back, j.failed = time.Time{}, false
	} else {
		if j.back.IsZero() {
			j.back = at
		}
		j.Doing, j.failed = message, strings.HasPrefix(message, failedPrefix) || message == lostMessage
	}
	underWay := slices.ContainsFunc(f.journeys, func(j *journey) bool { return j.back.IsZero() })
	if underWay && f.own.State != Writing && !f.own.ended {
		f.own.enter(Waiting, at)
	}
}
