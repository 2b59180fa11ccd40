package run

import (
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// stages are the states that events speak of.
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
	at = f.last
	message := plaintext.Line(e.Message, maxLine)
	if !f.own.id.Valid() {
		f.own.id = e.TraceID
	}
	if e.Rihla > 0 {
		f.rihlaEvent(e, message, at)
		return
	}
	k := f.own
	k.at(at)
	k.enter(stateOf(e.Stage, k.state), at)
	k.doing, k.iteration, k.mark = message, max(k.iteration, e.Iteration), at
	k.ended = k.state == Done
}

func stateOf(stage marchwarden.Stage, now State) State {
	if s, ok := stages[stage]; ok {
		return s
	}
	if now == "" {
		return Planning
	}
	return now
}

func (f *Fold) rihlaEvent(e marchwarden.Event, message string, at time.Time) {
	j := f.byNumber[e.Rihla]
	if j == nil {
		if len(f.journeys) >= maxLanes {
			f.more++
			return
		}
		j = &journey{number: e.Rihla, researcher: plaintext.Line(e.Researcher, maxLine), planned: at, sent: at}
		f.journeys, f.byNumber[e.Rihla] = append(f.journeys, j), j
	}
	f.own.at(at)
	if question, ok := strings.CutPrefix(message, sentPrefix); ok && e.Stage == marchwarden.StagePlan {
		j.question, j.back, j.failed = question, time.Time{}, false
		if len(j.parts) == 0 {
			j.parts = []*track{newTrack()}
		}
		j.parts[0].enter(Planned, at)
	} else {
		j.heard(e, message, at)
	}
	if f.own.state != Writing && !f.own.ended && f.underWay() {
		f.own.enter(Waiting, at)
	}
}

// heard takes what a rihla says of itself, or the investigator of it.
func (j *journey) heard(e marchwarden.Event, message string, at time.Time) {
	if len(j.parts) == 0 {
		j.parts = []*track{newTrack()}
	}
	k := j.parts[0]
	k.at(at)
	k.enter(stateOf(e.Stage, k.state), at)
	k.doing, k.iteration = message, max(k.iteration, e.Iteration)
	if e.Stage != marchwarden.StageDone {
		j.back, j.failed = time.Time{}, false
		return
	}
	if j.back.IsZero() {
		j.back = at
	}
	j.said, j.failed = message, strings.HasPrefix(message, failedPrefix) || message == lostMessage
}

func (f *Fold) underWay() bool {
	for _, j := range f.journeys {
		if j.back.IsZero() {
			return true
		}
	}
	return false
}
