package runs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// maxWaiting is how many runs wait for a slot before further ones are refused.
	maxWaiting = 4096
	// placeEvery is how often a run that waits says its place, if that has changed.
	placeEvery = 3 * time.Second
)

// turn is a place in the queue for a slot.
type turn struct {
	run  *Run
	come chan struct{} // closed when the slot is the run's
}

// join takes a slot or, if there is none, the last place in the queue.
func (d *Desk) join(r *Run) (t *turn, waits bool) {
	t = &turn{r, make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running < d.cfg.MaxRunning {
		d.running++
		close(t.come)
		return t, false
	}
	d.waiting = append(d.waiting, t)
	return t, true
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
	before := len(d.waiting)
	d.waiting = slices.DeleteFunc(d.waiting, func(other *turn) bool { return other == t })
	waited := len(d.waiting) < before
	d.mu.Unlock()
	if !waited {
		d.release()
	}
}

// acquire waits, in turn, for a slot for a run.
func (d *Desk) acquire(r *Run) bool {
	t, _ := d.join(r)
	return d.await(t)
}

// await waits for the slot of a turn, and has its run say its place meanwhile. A run that
// is stopped before has ended, and gets none.
func (d *Desk) await(t *turn) bool {
	waits, served := context.WithCancel(t.run.ctx)
	var telling sync.WaitGroup
	telling.Go(func() { d.tellPlace(waits, t) })
	select {
	case <-t.come:
	case <-waits.Done():
	}
	served()
	telling.Wait()
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

// tellPlace has a run that waits say its place, and that it has changed, until ctx ends.
func (d *Desk) tellPlace(ctx context.Context, t *turn) {
	for told := 0; ; {
		d.mu.Lock()
		place := slices.Index(d.waiting, t) + 1
		d.mu.Unlock()
		if place == 0 {
			return // its turn has come
		}
		if place != told {
			told = place
			t.run.note(marchwarden.Event{Stage: marchwarden.StagePlan, Message: fmt.Sprintf("waiting for its turn: number %d in the queue", place)})
		}
		if !sleep(ctx, placeEvery) {
			return
		}
	}
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
