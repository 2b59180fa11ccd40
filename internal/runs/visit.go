package runs

import (
	"cmp"
	"context"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Visit is one caller of Begin, who waits for its run or leaves it. It is safe for
// concurrent use.
type Visit struct {
	*Run
	// Attached says that the run was going on when its caller came.
	Attached bool

	sink marchwarden.Sink
}

// visit adds a caller. A run that is being stopped has none to add: that is nil. One whose deadline has passed says
// what it has.
func (r *Run) visit(sink marchwarden.Sink, attached bool) *Visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := context.Cause(r.ctx); why != nil && why != context.DeadlineExceeded && r.stage != ended {
		return nil
	}
	v := &Visit{Run: r, Attached: attached, sink: sink}
	if r.stage != ended {
		r.visits = append(r.visits, v)
	}
	return v
}

// End ends the visit, and nothing else: the sink of its caller hears no more, but for
// an event that is being told already. It may be called more than once.
func (v *Visit) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone()
}

// gone takes the visit off the run's, and reports whether it was there; mu is held.
func (v *Visit) gone() bool {
	before := len(v.visits)
	v.visits = slices.DeleteFunc(v.visits, func(other *Visit) bool { return other == v })
	return len(v.visits) < before
}

// Leave ends the visit of a caller, and stops the run if it is not kept, is in this process, and no other caller
// waits for it. It reports whether the run is being stopped or has ended, so that Done is near; otherwise it
// goes on.
func (v *Visit) Leave() (stopped bool) {
	v.cancelIf(func() bool { return v.gone() && len(v.visits) == 0 && v.stage >= working && !v.rec.Kept })
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stage >= stopping
}

// Draft is what the run's own model has written so far of an answer, not checked: "" when it writes none, and of
// a run in another process.
func (r *Run) Draft() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage == ended {
		return ""
	}
	return r.draft
}

// note is the sink of the research.
func (r *Run) note(e marchwarden.Event) {
	for _, v := range r.heard(e) {
		if v.sink != nil {
			v.sink(e)
		}
	}
}

// heard takes an event in, and gives the visits that are to hear it.
func (r *Run) heard(e marchwarden.Event) []*Visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage == ended {
		return nil
	}
	text := cmp.Or(message(e.Message), message(string(e.Stage)))
	if text != "" && r.stage != stopping {
		r.rec.Message, r.last = text, &e
	}
	if e.Rihla == 0 && (e.Draft != "" || e.Stage == marchwarden.StageCheck || e.Stage == marchwarden.StageDone) {
		r.draft = e.Draft
	}
	r.touch()
	return slices.Clone(r.visits)
}
