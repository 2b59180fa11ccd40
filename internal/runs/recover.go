package runs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	waitingText = "waiting to go on after a restart"

	firstPause = time.Second
	longPause  = 30 * time.Second
	// unavailableLimit is how long a run is retried whose researcher cannot resume it now, such as
	// because another process still writes its trace.
	unavailableLimit = 2 * time.Minute
)

// Recover resumes every kept run that had not ended, in the order in which they were begun and as
// slots are free. Those that another process has are left to it for as long as it lives.
func (d *Desk) Recover() {
	d.mu.Lock()
	d.recovering = !d.closed
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return
	}
	for _, rec := range d.records.of(d.cfg.Name, true, func(rec record) time.Time { return rec.Created }) {
		if r, err := d.find(rec.ID); err == nil && r != nil { // else it has gone meanwhile
			r.GoOn()
		}
	}
}

// GoOn goes on, in the background, with a kept run that waits for Recover; one that goes
// on is left alone.
func (r *Run) GoOn() {
	d := r.desk
	d.mu.Lock()
	r.mu.Lock()
	waits := !d.closed && r.stage == left
	if waits {
		r.stage = followed
		d.group.Add(1) // lookAfter ends it
	}
	r.mu.Unlock()
	d.mu.Unlock()
	if waits {
		d.lookAfter(r)
	}
}

// follow is a run that a record says has not ended, and that this process knows nothing of: another
// process has it, or crashed with it.
func (d *Desk) follow(rec record) *Run {
	d.mu.Lock()
	if there := d.runs[rec.ID]; there != nil {
		d.mu.Unlock()
		return there
	}
	r := d.newRun(context.Background(), rec)
	r.recorded, r.stage = true, left
	if rec.Kept {
		r.rec.Message = waitingText
	}
	closed, wanted := d.closed, !rec.Kept || d.recovering
	if !closed {
		d.runs[rec.ID] = r
	}
	d.mu.Unlock()
	switch {
	case closed:
		r.shutDown()
	case wanted:
		r.GoOn()
	}
	return r
}

// lookAfter resumes a run here as soon as no process has it and there is a slot. Until then it
// follows the run where it is.
func (d *Desk) lookAfter(r *Run) {
	take := func() (now stage, t *turn) {
		r.disk.Lock()
		defer r.disk.Unlock()
		if now = r.take(); now == working {
			t = d.join(r) // in the order of the calls
		}
		return now, t
	}
	now, t := take() // at once: a call whose process is gone has ended
	go func() {
		defer d.group.Done()
		for pause := firstPause; now == followed; pause = min(2*pause, longPause) {
			r.say("going on in another process")
			if !sleep(r.ctx, pause) {
				r.settle(outcome{err: context.Cause(r.ctx)})
				return
			}
			now, t = take()
		}
		if now == working {
			d.goOn(r, t)
		}
	}()
}

// goOn resumes a run that this process has the lock of, when its turn has come.
func (d *Desk) goOn(r *Run, t *turn) {
	ask := marchwarden.Request{Resume: r.id.String()}
	waited := time.Duration(0)
	for pause := firstPause; d.await(t); pause = min(2*pause, longPause) {
		r.say("going on after a restart")
		out := d.research(r, ask)
		d.release()
		if !errors.Is(out.err, marchwarden.CodeUnavailable) || waited >= unavailableLimit {
			r.settle(out)
			return
		}
		r.say(waitingText + ": " + out.err.Error())
		if !sleep(r.ctx, pause) {
			r.settle(outcome{err: context.Cause(r.ctx)})
			return
		}
		t = d.join(r)
		waited += pause
	}
}

// sleep reports whether ctx lasted that long.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// take takes a run over if no process has it and it can be resumed: it is working then, followed if another process
// has it, or ended. disk is held.
func (r *Run) take() stage {
	if r.over() {
		return ended
	}
	err := r.takeLock()
	locked := errors.Is(err, durable.ErrLocked)
	if err != nil && !locked {
		r.desk.cfg.Log.Error("the lock of a run could not be taken", "run", r.id.String(), "error", err)
		return followed
	}
	rec, err := r.desk.records.read(r.id)
	switch {
	case err == nil && rec.over():
		r.endedElsewhere(rec)
		return ended
	case locked:
		return followed
	case err != nil: // it was removed or damaged: there is nothing to resume
		r.settleHeld(outcome{err: marchwarden.Wrap(err, marchwarden.CodeUnavailable, "resume run %s", r.id)})
		return ended
	}
	stop := rec.Status == Cancelled || r.desk.records.toStop(r.id)
	r.mu.Lock()
	message := r.rec.Message
	r.rec = rec
	r.rec.Message = message
	r.recorded, r.stage = true, working
	if stop {
		r.stage, r.rec.Message = stopping, "cancelled"
	} else if rec.Kept {
		r.heedStopSign()
	}
	r.mu.Unlock()
	switch {
	case stop:
		r.settleHeld(outcome{err: errCancelled})
		return ended
	case !rec.Kept:
		r.settleHeld(outcome{err: errCutOff})
		return ended
	}
	return working
}

// catchUp looks at the record of a run that another process has: it may have ended.
func (r *Run) catchUp() {
	r.mu.Lock()
	here := r.stage >= working
	r.mu.Unlock()
	if here {
		return
	}
	rec, err := r.desk.records.read(r.id)
	if err != nil || !rec.over() {
		return // as it was known; who follows it finds out why
	}
	r.disk.Lock()
	defer r.disk.Unlock()
	if !r.over() {
		r.endedElsewhere(rec)
	}
}

// endedElsewhere ends the run as its record says; disk is held.
func (r *Run) endedElsewhere(rec record) {
	r.desk.records.heeded(r.id)
	r.dropLock()
	r.mu.Lock()
	r.rec, r.recorded = rec, true
	r.close(outcome{err: rec.failure()})
	r.mu.Unlock()
	r.desk.retire(r)
}

// Close stops what runs and waits for it, for the grace or until ctx ends. What ends in that time
// gives its callers what it has. A kept run stays un-ended in its record, so that Recover resumes
// it in the next process; other calls have ended. Runs whose research does not return are given up:
// that is CodeTimeout. Closing again waits again.
func (d *Desk) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	var all []*Run
	for _, r := range d.runs {
		all = append(all, r)
	}
	d.mu.Unlock()
	slices.SortFunc(all, func(a, b *Run) int { return strings.Compare(a.id.String(), b.id.String()) })
	for _, r := range all {
		r.shutDown()
	}
	quiet := make(chan struct{})
	go func() {
		d.group.Wait()
		close(quiet)
	}()
	grace := time.NewTimer(d.cfg.Grace)
	defer grace.Stop()
	select {
	case <-quiet:
		return nil
	case <-grace.C:
	case <-ctx.Done():
	}
	late := d.Running()
	if late == 0 {
		<-quiet
		return nil
	}
	for _, r := range all {
		r.giveUp()
	}
	return marchwarden.Errorf(marchwarden.CodeTimeout, "%d research calls did not end within %v after they were stopped", late, d.cfg.Grace)
}

// shutDown stops the run because the process ends.
func (r *Run) shutDown() {
	r.halt(ErrShutdown)
	r.mu.Lock()
	unattended := r.stage == left
	r.mu.Unlock()
	if unattended {
		r.settle(outcome{err: ErrShutdown})
	}
}
