package runs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

const (
	// stopSignEvery is how often a run that has a record looks whether another process wants it
	// stopped.
	stopSignEvery = 2 * time.Second

	maxFailureChars = 2000
)

// research asks the researcher. A run that is to go on and has no trace, because it was
// cut off before the first line, is begun as it was asked for.
func (d *Desk) research(r *Run, ask marchwarden.Request) outcome {
	first := marchwarden.WithTraceID(r.ctx, r.id)
	if ask.Resume == "" {
		return d.guarded(first, ask, r.note)
	}
	out := d.guarded(r.ctx, ask, r.note)
	if asked := r.snapshot().Request; errors.Is(out.err, marchwarden.CodeNotFound) && asked.Resume == "" && r.ctx.Err() == nil {
		return d.guarded(first, asked, r.note)
	}
	return out
}

// guarded turns a panic of the researcher into an error; its stack goes to the log and
// nowhere else.
func (d *Desk) guarded(ctx context.Context, ask marchwarden.Request, sink marchwarden.Sink) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			d.cfg.Log.Error("researcher panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			out = outcome{err: marchwarden.Errorf(marchwarden.CodeInternal, "the researcher panicked")}
		}
	}()
	res, err := d.cfg.Researcher.Research(ctx, ask, sink)
	if res == nil && err == nil {
		err = marchwarden.Errorf(marchwarden.CodeInternal, "the researcher returned neither a result nor an error")
	}
	if err != nil {
		res = nil
	}
	return outcome{res, err}
}

// inscribe takes the lock of a run that begins and writes its record, if it is to have
// one. The error is goingOn or errUnrecorded, and then it has none.
func (r *Run) inscribe() (err error) {
	r.disk.Lock()
	defer r.disk.Unlock()
	r.mu.Lock()
	rec, wanted := r.rec, r.recorded
	r.mu.Unlock()
	if wanted {
		if err = r.takeLock(); err == nil {
			r.desk.records.heeded(r.id) // what was wished of an earlier going on
			err = r.desk.records.write(rec)
		}
		if errors.Is(err, durable.ErrLocked) {
			err = goingOn(r.id)
		} else if err != nil {
			err = r.desk.unrecorded(r.id, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = wanted && err == nil
	r.heedStopSign()
	return err
}

// takeLock takes the lock of the run; disk is held.
func (r *Run) takeLock() (err error) {
	if r.hold == nil {
		r.hold, err = r.desk.records.lock(r.id)
	}
	return err
}

// dropLock gives it back; disk is held.
func (r *Run) dropLock() {
	r.desk.records.unlock(r.id, r.hold)
	r.hold = nil
}

// heedStopSign looks for the wish of another process that the run be stopped, from now on.
func (r *Run) heedStopSign() {
	if r.desk.cfg.Dir == "" {
		return
	}
	go HeedStop(r.ctx, r.desk.cfg.Dir, r.id, r.Cancel)
}

// HeedStop calls stop once when another program has asked, in the folder of the records,
// that a run be stopped. It looks until ctx ends.
func HeedStop(ctx context.Context, dir string, id marchwarden.TraceID, stop func()) {
	s := &shelf{dir: dir}
	for sleep(ctx, stopSignEvery) {
		if s.toStop(id) {
			stop()
			s.heeded(id)
			return
		}
	}
}

// settle ends the run with what its research gave. The research has returned.
func (r *Run) settle(out outcome) {
	r.disk.Lock()
	defer r.disk.Unlock()
	r.settleHeld(out)
}

// giveUp ends a run for its callers whose research does not return before the process ends.
// Its record stays as it is: the next process finds it cut off.
func (r *Run) giveUp() {
	r.disk.Lock()
	defer r.disk.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage != ended {
		r.desk.cfg.Log.Error("research did not end after it was stopped", "run", r.id.String(), "grace", r.desk.cfg.Grace)
		r.close(outcome{err: errGivenUp})
	}
}

// settleHeld is settle; disk is held.
func (r *Run) settleHeld(out outcome) {
	r.mu.Lock()
	if r.stage == ended { // it was given up
		r.mu.Unlock()
		r.dropLock()
		return
	}
	if out.err != nil {
		out.err = failure(out.err)
	}
	rec := r.final(out)
	// A kept run that the end of the process stops has not ended.
	write := r.stage >= working && r.recorded && rec.over()
	r.mu.Unlock()

	if write {
		if err := r.desk.records.write(rec); err != nil {
			r.desk.cfg.Log.Error("the end of a run was not recorded", "run", r.id.String(), "error", err)
		}
		r.desk.records.heeded(r.id)
	}
	r.dropLock() // before a caller that has the result resumes the run

	r.mu.Lock()
	r.rec = rec
	r.close(out)
	r.mu.Unlock()
	r.desk.retire(r)
}

// close tells all visitors that the run has ended; mu is held.
func (r *Run) close(out outcome) {
	r.stage, r.res, r.err = ended, out.res, out.err
	r.endedAt = r.desk.cfg.Now()
	r.visits = nil
	close(r.done)
	r.halt(nil)
}

// final is the record of the run with its end in it; mu is held.
func (r *Run) final(out outcome) record {
	r.touch()
	rec := r.rec
	if rec.Kept && r.stage != stopping && context.Cause(r.ctx) == ErrShutdown {
		rec.Message = waitingText
		return rec
	}
	rec.Ended = r.desk.cfg.Now()
	rec.Failure = nil
	switch {
	case r.stage == stopping:
		rec.Status = Cancelled
	case out.err != nil:
		rec.Status = Failed
		rec.Message = message(out.err.Error())
	default:
		rec.Status = Completed
	}
	if out.err != nil {
		var e *marchwarden.Error
		errors.As(out.err, &e)
		rec.Failure = &failed{Code: e.Code, Field: e.Field, Message: e.Message, Hint: e.Hint}
	}
	if out.res != nil {
		rec.Traces, rec.Evidence = shown(rec, out.res)
	}
	return rec
}

// shown are the traces and documents that the owner of a result may see, besides those that an
// earlier result of the run had.
func shown(rec record, res *marchwarden.Result) (traces []marchwarden.TraceID, evidence []string) {
	traces = slices.Clone(rec.Traces)
	add := func(id marchwarden.TraceID) {
		if id.Valid() && id != rec.ID && len(traces) < maxTraces && !slices.Contains(traces, id) {
			traces = append(traces, id)
		}
	}
	add(res.TraceID) // a researcher may choose its own
	for _, rihla := range res.Rihlas {
		add(rihla.TraceID)
	}
	evidence = slices.Clone(rec.Evidence)
	for _, c := range res.Citations {
		if isHash(c.ContentHash) {
			evidence = append(evidence, c.ContentHash)
		}
	}
	slices.Sort(evidence)
	evidence = slices.Compact(evidence)
	return traces, evidence[:min(len(evidence), maxEvidence)]
}

// failure is an error as a record can tell it: a code and words, without its causes.
func failure(err error) *marchwarden.Error {
	f := &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: err.Error(), Hint: marchwarden.HintOf(err)}
	var e *marchwarden.Error
	if errors.As(err, &e) && e.Field != "" {
		if rest, ok := strings.CutPrefix(f.Message, e.Field+": "); ok {
			f.Field, f.Message = e.Field, rest
		}
	}
	f.Message = plaintext.Clip(f.Message, maxFailureChars)
	return f
}

// retire lets go of a run that has ended, in a while. Its record stays.
func (d *Desk) retire(r *Run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs[r.id] == r && !slices.Contains(d.ended, r) {
		d.ended = append(d.ended, r)
	}
	d.sweep()
}

// sweep lets go of runs that ended a while ago, or are too many; mu is held.
func (d *Desk) sweep() {
	for len(d.ended) > 0 {
		first := d.ended[0]
		if len(d.ended) <= maxEnded && d.cfg.Now().Sub(first.endedAt) < d.linger() {
			break
		}
		d.ended[0] = nil
		d.ended = d.ended[1:]
		if d.runs[first.id] == first {
			delete(d.runs, first.id)
		}
	}
}

func (d *Desk) linger() time.Duration {
	if d.cfg.Recorded == nil {
		return lingerUnstored
	}
	return linger
}
