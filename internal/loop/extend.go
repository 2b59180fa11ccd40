package loop

import (
	"maps"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// extend goes past an end of the gathering, if the run did: it has what was added to
// its limits, and what was cut short there may be done now. It reports false at the
// last end.
func (r *run) extend() bool {
	if r.past == len(r.start.Extended) {
		return false
	}
	e := r.start.Extended[r.past]
	r.past++
	r.j.Past(r.past)
	r.meter.Extend(marchwarden.Limits{TokenBudget: e.Tokens, MaxIterations: e.Iterations, MaxSources: e.Sources}, e.Wall, e.Spent)
	limits := r.meter.Limits()
	r.start.Limits, r.state.Limits = limits, limits
	r.meter.Hold(r.writing(limits.TokenBudget - r.meter.Usage().Tokens))

	r.interrupted, r.state.Interrupted = false, false
	r.cutGaps, r.leftover = nil, nil
	cut := func(err error) bool { return marchwarden.CodeOf(err) == marchwarden.CodeCanceled }
	r.state.Searches = slices.DeleteFunc(r.state.Searches, func(s reason.Searched) bool { return cut(s.Err) })
	maps.DeleteFunc(r.state.Failed, func(locator string, err error) bool {
		if cut(err) {
			delete(r.state.Asked, locator)
		}
		return cut(err)
	})
	return true
}
