package submit

import (
	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// Tell tells a sink what happens to a task.
func Tell(sink marchwarden.Sink) func(dispatch.Event) {
	return func(e dispatch.Event) {
		switch {
		case e.Kind == dispatch.Progress:
			sink(e.Progress)
		case e.Kind == dispatch.Taken && e.Attempt > 1:
			sink(marchwarden.Event{Stage: marchwarden.StagePlan, TraceID: e.Task, Message: "taken up again by " + e.Worker})
		}
	}
}
