package run

import (
	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Together is what a result with these logs spent, and what was searched.
func Together(res *marchwarden.Result, logs map[marchwarden.TraceID]*trace.Log, of Scope) (Spent, []string) {
	return together(res, func(id marchwarden.TraceID) (trail, bool) {
		if logs[id] == nil {
			return trail{}, false
		}
		return trailOf(logs[id], of), true
	})
}
