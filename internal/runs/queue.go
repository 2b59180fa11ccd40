package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// maxWaiting is how many runs wait for a slot before further ones are refused.
	maxWaiting = 4096
	// placeEvery is how often a run that waits says its place, if that has changed.
	placeEvery = 3 * time.Second
)

// turn is a slot, or a place in the queue for one.
type turn struct {
	run   *Run
	waits bool          // there was none at first
	come  chan struct{} // closed when the slot is the run's
}

// join takes a slot or, if there is none, the last place in the queue.
func (d *Desk) join(r *Run) *turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &turn{run: r, waits: d.running >= d.cfg.MaxRunning, come: make(chan struct{})}
	if t.waits {
		d.waiting = append(d.waiting, t)
	} else {
		d.running++
	}
	return t
}

// release gives a slot to the first in the queue, or back.
func (d *Desk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		d.running--
		return
	}
	close(d.waiting[0].come)
	d.waiting = slices.Delete(d.waiting, 0, 1)
}

// leave gives up a place, or the slot that it has become.
func (d *Desk) leave(t *turn) {
	d.mu.Lock()
	at := slices.Index(d.waiting, t)
	if at >= 0 {
		d.waiting = slices.Delete(d.waiting, at, at+1)
	}
	d.mu.Unlock()
	if at < 0 {
		d.release()
	}
}

// await waits for the slot of a turn, and has its run say its place meanwhile. A run that
// is stopped before has ended, and gets none.
func (d *Desk) await(t *turn) bool {
	if !t.waits {
		return true
	}
	for told, waits := 0, true; waits; {
		d.mu.Lock()
		place := slices.Index(d.waiting, t) + 1
		d.mu.Unlock()
		if place != 0 && place != told {
			told = place
			t.run.note(marchwarden.Event{Stage: marchwarden.StagePlan, Message: fmt.Sprintf("waiting for its turn: number %d in the queue", place)})
		}
		select {
		case <-t.come:
			waits = false
		case <-t.run.ctx.Done():
			waits = false
		case <-time.After(placeEvery):
		}
	}
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if !closed && t.run.ctx.Err() == nil {
		return true
	}
	d.leave(t)
	<-t.run.ctx.Done() // Close stops one run after the other
	err := context.Cause(t.run.ctx)
	if err == context.DeadlineExceeded {
		err = marchwarden.Errorf(marchwarden.CodeTimeout, "the time of the call was over before its turn came")
	}
	t.run.settle(outcome{err: err})
	return false
}

// room refuses a run when the queue is full, or the desk closed.
func (d *Desk) room() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return ErrShutdown
	case len(d.waiting) >= maxWaiting:
		return &marchwarden.Error{
			Code:    marchwarden.CodeUnavailable,
			Message: fmt.Sprintf("server busy: %d research calls are running and %d wait, which is the limit", d.cfg.MaxRunning, maxWaiting),
			Hint:    "call again when some of them have ended",
		}
	}
	return nil
}

// Running is how many calls of Research have not returned.
func (d *Desk) Running() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}

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

// Draft is what the run's own model has written so far of an answer, not checked: "" before it writes one, when
// the run has ended, and of a run in another process.
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
	if e.Rihla == 0 {
		r.draft = cmp.Or(e.Draft, r.draft)
	}
	r.touch()
	return slices.Clone(r.visits)
}
