package runs

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Status is where a run stands.
type Status string

// The statuses. A run that was stopped for good is Cancelled, whatever it found.
const (
	Working   Status = "working"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// State is what can be told of a run at any time.
type State struct {
	Question string // as it was first asked
	Status   Status
	Message  string             // for people: one line of at most 200 characters
	Event    *marchwarden.Event // the last that this process has heard; nil for none
	Created  time.Time          // when the run was first begun
	Updated  time.Time          // of the last change or message; it never goes back
	// MaxOutput is how many tokens of its result the caller takes; 0 is any.
	MaxOutput int
	// Kept is for how long after Created the run can be asked for, at least; if it has
	// not ended, longer.
	Kept time.Duration
}

const maxMessageChars = 200

// message is a text as a state carries it.
func message(s string) string { return plaintext.Line(s, maxMessageChars-1) }

// Run is one run of research. It is safe for concurrent use.
type Run struct {
	desk *Desk
	id   marchwarden.TraceID
	ctx  context.Context // of the research
	halt context.CancelCauseFunc
	done chan struct{}

	// disk serialises what is done to the files of the run; it is taken before mu, and
	// before the desk's.
	disk sync.Mutex
	hold *os.File // the lock, or nil

	mu       sync.Mutex
	stage    stage
	rec      record // what the record says, or would say
	recorded bool   // a record belongs on the disk
	res      *marchwarden.Result
	err      error
	visits   []*Visit // that have not ended
	last     *marchwarden.Event
	draft    string // that the run's own model is writing
	endedAt  time.Time
}

// stage is what this process does about a run.
type stage int

const (
	left     stage = iota // nothing, until Recover or a caller wants it
	followed              // it waits for another process that has the run, and takes over when that is gone
	working               // it executes the run, and writes its record
	stopping              // the same, and the run was stopped for good
	ended                 // done is closed
)

// outcome is what Research returned.
type outcome struct {
	res *marchwarden.Result
	err error
}

var (
	errCancelled = marchwarden.Errorf(marchwarden.CodeCanceled, "the run was cancelled")
	errGivenUp   = marchwarden.Errorf(marchwarden.CodeCanceled, "the run was stopped and did not end in time")
	errCutOff    = &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the run was cut off when its process ended", Hint: "call research with resume set to its id to continue it"}
)

// goingOn says that a run cannot be had now.
func goingOn(id marchwarden.TraceID) error {
	return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("run %s is still going on", id), Hint: "wait for it to end, or call without constraints to wait with it"}
}

// newRun makes a run that this process executes. Its research has the owner as its principal,
// whichever caller asks.
func (d *Desk) newRun(ctx context.Context, rec record) *Run {
	owner := access.Principal{ID: rec.Owner, Scopes: slices.Clone(rec.Scopes), MaxCostDay: rec.MaxCostDay}
	work, halt := context.WithCancelCause(WithChoice(access.With(context.WithoutCancel(ctx), owner), rec.Choice))
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel := context.WithDeadline(work, deadline)
		stop := halt
		work, halt = limited, func(cause error) { stop(cause); cancel() }
	}
	return &Run{desk: d, id: rec.ID, ctx: work, halt: halt, done: make(chan struct{}), rec: rec, stage: working}
}

type choiceKey struct{}

// WithChoice says with which choice a run is asked.
func WithChoice(ctx context.Context, choice *marchwarden.Choice) context.Context {
	return context.WithValue(ctx, choiceKey{}, choice)
}

// ChoiceOf is the choice that a run was asked with; nil if there was none.
func ChoiceOf(ctx context.Context) *marchwarden.Choice {
	choice, _ := ctx.Value(choiceKey{}).(*marchwarden.Choice)
	return choice
}

// past is a run that ended before, as its record tells it.
func (d *Desk) past(rec record) *Run {
	r := d.newRun(context.Background(), rec)
	r.recorded = true
	r.close(outcome{err: rec.failure()})
	return r
}

// ID is the id of the run and of its trace.
func (r *Run) ID() marchwarden.TraceID { return r.id }

// Done is closed when the run has ended, or when the desk was closed: then a kept run goes on
// after a restart.
func (r *Run) Done() <-chan struct{} { return r.done }

// Stopping is closed when the run was stopped, its deadline has passed, or it has ended. Its research may ignore that.
func (r *Run) Stopping() <-chan struct{} { return r.ctx.Done() }

// State is where the run stands now.
func (r *Run) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{Question: r.rec.Request.Question, Status: r.rec.Status, Message: r.rec.Message, Created: r.rec.Created, Updated: r.rec.Updated, Event: r.last, Kept: r.desk.cfg.Retention}
	if c := r.rec.Request.Constraints; c != nil && c.MaxOutputTokens != nil {
		s.MaxOutput = *c.MaxOutputTokens
	}
	if r.desk.cfg.Dir == "" {
		s.Kept = r.desk.linger()
	}
	return s
}

// Outcome is what the run gave: a result or an error, never both and never neither. A
// run that was stopped may have given a result. It is to be asked for after Done; before
// that it is CodeUnavailable. The result of a run that ended in an earlier process comes
// from Config.Recorded and is CodeNotFound if it is not known there. The error of a run
// is a *marchwarden.Error, and the same one after a restart. The result is shared: it
// must not be changed.
func (r *Run) Outcome() (*marchwarden.Result, error) {
	select {
	case <-r.done:
	default:
		return nil, goingOn(r.id)
	}
	r.mu.Lock()
	res, err, status := r.res, r.err, r.rec.Status
	r.mu.Unlock()
	if res != nil || (err != nil && status != Cancelled) {
		return res, err
	}
	if r.desk.cfg.Recorded != nil {
		stored, failure := r.desk.cfg.Recorded(context.WithoutCancel(r.ctx), r.id)
		switch {
		case failure == nil && stored != nil:
			r.mu.Lock()
			r.res, r.err = stored, nil
			r.mu.Unlock()
			return stored, nil
		case failure != nil && err == nil:
			return nil, failure
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "the result of run %s is not known any more", r.id)
}

// Kept reports whether the run goes on after its caller went, and after a restart.
func (r *Run) Kept() bool { return r.snapshot().Kept }

// Keep hands the run over: from now on it is kept as a task is. When it returns nil this
// is durable, as far as the desk has a folder. An error is CodeUnavailable, and the run
// is what it was.
func (r *Run) Keep() error {
	r.disk.Lock()
	defer r.disk.Unlock()
	r.mu.Lock()
	rec, at := r.rec, r.stage
	r.mu.Unlock()
	switch {
	case rec.Kept:
		return nil
	case at < working:
		return goingOn(r.id)
	}
	if at != ended {
		if err := r.takeLock(); err != nil {
			return r.desk.unrecorded(r.id, err)
		}
	}
	rec.Kept = true
	if err := r.desk.records.write(rec); err != nil {
		return r.desk.unrecorded(r.id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec.Kept, r.recorded = true, true
	return nil
}

// Cancel stops the run for good, also a kept one. Its status is Cancelled from now on,
// which for a kept run is durable when Cancel returns; Done follows when its research
// has ended. A run that goes on in another process is stopped
// there within seconds. Cancelling what has ended does nothing.
func (r *Run) Cancel() { r.cancelIf(func() bool { return true }) }

// cancelIf cancels the run if a condition holds, which is asked with mu held.
func (r *Run) cancelIf(condition func() bool) {
	r.disk.Lock()
	defer r.disk.Unlock()
	r.mu.Lock()
	if !condition() || r.stage >= stopping {
		r.mu.Unlock()
		return
	}
	if r.stage < working {
		r.mu.Unlock()
		r.cancelElsewhere()
		return
	}
	r.stage = stopping
	r.rec.Status, r.rec.Message = Cancelled, "cancelled"
	r.touch()
	rec := r.rec
	r.mu.Unlock()
	r.halt(errCancelled)
	if rec.Kept {
		if err := r.desk.records.write(rec); err != nil {
			r.desk.cfg.Log.Error("a run was cancelled, and its record does not say so yet", "run", r.id.String(), "error", err)
		}
	}
}

// Stop has a run stopped that another program of this home works on: a server, or a
// command that heeds it (HeedStop). CodeNotFound if the caller may not see the run.
func (d *Desk) Stop(ctx context.Context, id marchwarden.TraceID) error {
	if !d.Owns(ctx, id) {
		return unknown(id.String())
	}
	if d.cfg.Dir == "" {
		return marchwarden.Errorf(marchwarden.CodeUnsupported, "this server keeps no records, by which it could reach other programs")
	}
	return marchwarden.Wrap(d.records.askToStop(id), marchwarden.CodeUnavailable, "stop run %s", id)
}

// cancelElsewhere stops a run for good that waits to go on, or goes on in another
// process; disk is held.
func (r *Run) cancelElsewhere() {
	if err := r.desk.records.askToStop(r.id); err != nil {
		r.desk.cfg.Log.Error("a run could not be cancelled", "run", r.id.String(), "error", err)
		return
	}
	if r.take() != followed {
		return // it had ended, or has now
	}
	r.mu.Lock()
	r.rec.Status, r.rec.Message = Cancelled, "cancelled"
	r.touch()
	r.close(outcome{err: errCancelled})
	r.mu.Unlock()
	r.desk.retire(r)
}

// attach is a visit of a caller that resumes the run while it is under way.
func (r *Run) attach(asked Asked) (*Visit, error) {
	if asked.Request.Constraints != nil {
		return nil, goingOn(r.id)
	}
	if asked.Keep {
		if err := r.Keep(); err != nil {
			return nil, err
		}
	}
	r.GoOn() // in a process that does not recover by itself, this one is wanted now
	if v := r.visit(asked.Sink, true); v != nil {
		return v, nil
	}
	return nil, goingOn(r.id)
}

// over reports whether the run has ended.
func (r *Run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stage == ended
}

// visibleTo reports whether a principal may see the run.
func (r *Run) visibleTo(who access.Principal) bool {
	return who.SeesAll() || r.snapshot().Owner == who.ID
}

// snapshot is what the record says, or would say, now.
func (r *Run) snapshot() record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rec
}

// touch moves the time of the last change; mu is held.
func (r *Run) touch() {
	if now := r.desk.cfg.Now(); now.After(r.rec.Updated) {
		r.rec.Updated = now
	}
}

// say is the message of the run from now on.
func (r *Run) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage < stopping {
		r.rec.Message = message(text)
		r.touch()
	}
}
