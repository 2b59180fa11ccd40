package submit

import (
	"encoding/json"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Tell tells a sink what happens to a task. What is recorded of it is told until there is
// something that happens now.
func Tell(sink marchwarden.Sink) func(dispatch.Event) {
	live := false
	return func(e dispatch.Event) {
		switch e.Kind {
		case dispatch.Progress:
			live = true
			sink(e.Progress)
		case dispatch.Taken:
			if e.Attempt > 1 {
				sink(marchwarden.Event{Stage: marchwarden.StagePlan, TraceID: e.Task, Message: "taken up again by " + e.Worker})
			}
		case dispatch.Written:
			if said, ok := recalled(e.Line); ok && !live {
				said.TraceID = e.Task
				sink(said)
			}
		}
	}
}

// recalled is a line of a record as the event that it was, if people want to know of it.
func recalled(line []byte) (marchwarden.Event, bool) {
	var step struct {
		Action     trace.Action `json:"action"`
		Decision   string       `json:"decision"`
		Number     int          `json:"number"`
		Researcher string       `json:"researcher"`
	}
	if err := json.Unmarshal(line, &step); err != nil || step.Decision == "" {
		return marchwarden.Event{}, false
	}
	e := marchwarden.Event{Message: step.Decision}
	switch step.Action {
	case trace.ActionStart, trace.ActionPlan, trace.ActionResume:
		e.Stage = marchwarden.StagePlan
	case trace.ActionRihla:
		e.Stage, e.Rihla, e.Researcher = marchwarden.StagePlan, step.Number, step.Researcher
	case trace.ActionSearch:
		e.Stage = marchwarden.StageSearch
	case trace.ActionSynthesisStart:
		e.Stage = marchwarden.StageSynthesize
	default:
		return e, false
	}
	return e, true
}
