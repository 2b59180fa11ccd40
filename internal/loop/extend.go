package loop

import (
	"context"
	"maps"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// extend goes past an end of the gathering, if the run did: what was cut short there may be done now, with what was
// added to its limits. It reports false at the last end.
func (r *run) extend() bool {
	if r.past == len(r.start.Extended) {
		return false
	}
	e := r.start.Extended[r.past]
	r.past++
	r.j.Past(r.past)
	r.meter.Extend(e.Limits(), e.Wall, e.Spent)
	limits := r.meter.Limits()
	r.state.Limits, r.state.Past, r.fault = limits, r.past, ""
	r.meter.Hold(r.writing(limits.TokenBudget - r.meter.Usage().Tokens))

	r.vectors.Again()
	r.state.Interrupted = false
	r.leftover = nil
	r.gaps = slices.DeleteFunc(r.gaps, func(g missed) bool { return g.cut })
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

// catchUp does what was cut short before the run went on, in the iteration in which that was planned.
func (r *run) catchUp(ctx context.Context) error {
	plan := r.undone
	if r.past == 0 || len(plan.Searches)+len(plan.Reads) == 0 {
		return nil
	}
	stop, err := r.checkpoint("going on")
	if err != nil || stop {
		return err
	}
	r.undone = reason.Plan{}
	if err := r.j.Note(&trace.Message{Head: head("do what was left when the run ended before"), Iteration: r.state.Iteration, Queries: queriesOf(plan)}); err != nil {
		return err
	}
	return r.gather(replay.Shield(ctx), plan)
}
