// Package run is what a run left behind, read in one place: its own trace and those of
// the rihlas that it sent, folded into where it stands, what it spent, what it did and
// when, which documents it read, and its result, or what it has found so far. It begins and ends
// runs, resumes those that were cut off, finds past ones, and completes a question that follows
// them. What a run writes on its way is package replay's, and looking after all records is package record's.
package run

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Store is where records are kept. The caller closes what it passes in.
type Store struct {
	Traces *trace.Dir
	Blobs  blob.Store
}

// Run is one run with the rihlas that it sent.
type Run struct {
	ID    marchwarden.TraceID
	Start *trace.Start
	Log   *trace.Log
	// Rihlas are those whose traces are kept here, in the order in which they
	// reported; a stranger's is somewhere else.
	Rihlas []*Run
	// Before is the run that it follows, of one that was read with its conversation and if it is kept here.
	Before *Run
}

// Load reads a run and its rihlas. A rihla that is not kept here is left out; one
// that is and cannot be read is an error.
func (s Store) Load(id marchwarden.TraceID) (*Run, error) { return Load(id, s.Traces.Load) }

// Load reads a run and its rihlas with what loads a trace, or fails with CodeNotFound for
// one that is kept elsewhere.
func Load(id marchwarden.TraceID, trace func(marchwarden.TraceID) (*trace.Log, error)) (*Run, error) {
	return loader{trace, map[marchwarden.TraceID]*Run{}, false}.load(id)
}

// LoadTalk is Load with the runs that it follows, and their rihlas.
func LoadTalk(id marchwarden.TraceID, trace func(marchwarden.TraceID) (*trace.Log, error)) (*Run, error) {
	return loader{trace, map[marchwarden.TraceID]*Run{}, true}.load(id)
}

type loader struct {
	trace func(marchwarden.TraceID) (*trace.Log, error)
	read  map[marchwarden.TraceID]*Run // nil for one that is under way
	talk  bool                         // the runs that it follows are read, too
}

// load reads a run. One that is named a second time is the same; none is a part of itself.
func (l loader) load(id marchwarden.TraceID) (*Run, error) {
	log, err := l.trace(id)
	if err != nil {
		return nil, err
	}
	start, err := log.Start()
	if err != nil {
		return nil, err
	}
	run := &Run{ID: id, Start: start, Log: log}
	l.read[id] = nil // a run that names it now is below it
	for _, part := range FactsOf(log.Steps).Parts {
		rihla, err := l.other(part)
		if err != nil {
			return nil, err
		}
		if rihla != nil {
			run.Rihlas = append(run.Rihlas, rihla)
		}
	}
	if before, none := marchwarden.ParseTraceID(start.Request.Follow); none == nil && l.talk && !start.PartOf {
		if run.Before, err = l.other(before); err != nil {
			return nil, err
		}
	}
	l.read[id] = run
	return run, nil
}

// other reads a run that another names; nil for one that is not kept here, or under way.
func (l loader) other(id marchwarden.TraceID) (*Run, error) {
	if run, known := l.read[id]; known {
		return run, nil
	}
	run, err := l.load(id)
	if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
		return nil, nil
	}
	return run, err
}

// Facts are what its own trace tells.
func (r *Run) Facts() *Facts { return FactsOf(r.Log.Steps) }

// All is the run itself and its rihlas, and theirs, each once; then those of the run before it.
func (r *Run) All() []*Run {
	var all []*Run
	seen := map[marchwarden.TraceID]bool{}
	var add func(*Run)
	add = func(run *Run) {
		if seen[run.ID] {
			return
		}
		seen[run.ID] = true
		all = append(all, run)
		for _, part := range run.Rihlas {
			add(part)
		}
		if run.Before != nil {
			add(run.Before)
		}
	}
	add(r)
	return all
}

// Refs are the blobs that the run and its rihlas need, each once, in the order in
// which the traces name them.
func (r *Run) Refs() []blob.Ref {
	var refs []blob.Ref
	seen := map[blob.Ref]bool{}
	for _, run := range r.All() {
		for _, ref := range run.Log.Refs() {
			if !seen[ref] {
				seen[ref] = true
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// Result is the result as it left the process, undecoded and decoded; of a run that
// went on after it and was cut off, the one before that. A run that has none yet is
// CodeUnsupported. Whether it still stands is package verify's to
// say.
func (s Store) Result(ctx context.Context, r *Run) ([]byte, *marchwarden.Result, error) {
	done := r.Log.Latest()
	if done == nil {
		return nil, nil, &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: "run " + r.ID.String() + " has no result yet",
			Hint: "resume it: marchwarden resume " + r.ID.String()}
	}
	return ResultOf(ctx, s.Blobs, done.Result)
}

// ResultOf is a stored result, undecoded and decoded.
func ResultOf(ctx context.Context, blobs blob.Store, ref blob.Ref) ([]byte, *marchwarden.Result, error) {
	stored, err := blobs.Get(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	res, err := marchwarden.DecodeResult(stored)
	return stored, res, err
}

// Statuses are the states of whole runs, in the order in which people are told.
func Statuses() []State {
	return []State{Complete, Planned, Interrupted, Running, Damaged}
}

// Standing is where a run stands, and what can be done about it.
type Standing struct {
	Status    State  `json:"status"`              // one of Statuses
	Resumable bool   `json:"resumable,omitempty"` // it can be resumed
	Partial   bool   `json:"partial,omitempty"`   // there is a partial result
	Imported  bool   `json:"imported,omitempty"`
	Problem   string `json:"problem,omitempty"` // why it is damaged
}

// Look is the entry of one run as its trace tells it by itself: no stored document is
// looked at, and what was spent is not told. It has figures only from its end on. One
// that cannot be read is damaged, and says why.
func Look(d *trace.Dir, id marchwarden.TraceID) Entry {
	// First the lock and then the lines: a run that ends in between is held to be
	// running, not to be cut off.
	writing := busy(d, id)
	e, _, _ := look(d, id, func() (bool, error) { return d.Foreign(id) }, writing)
	return e
}

// look is the entry of a run that a process writes or not, with its trace. With the error it says that it is damaged.
func look(d *trace.Dir, id marchwarden.TraceID, imported func() (bool, error), writing bool) (Entry, *trace.Log, error) {
	log, err := skim(d, id)
	foreign := false
	if err == nil {
		foreign, err = imported()
	}
	e := Entry{ID: id, Standing: standingOf(log, err, foreign, writing)}
	if err != nil || len(log.Steps) == 0 {
		return e, log, err
	}
	start, err := log.Start()
	if err != nil {
		return e, log, err
	}
	e.Rihla, e.Began, e.Researcher, e.Question = start.PartOf, start.StartedAt, start.Researcher, start.Request.Question
	if done := log.Complete(); done != nil && e.Status != Planned {
		e.Citations, e.Confidence = done.Citations, &done.Confidence
	}
	return e, log, nil
}

// skim reads the steps from which the states of all runs are told.
func skim(d *trace.Dir, id marchwarden.TraceID) (*trace.Log, error) {
	return d.Skim(id, trace.ActionStart, trace.ActionResume, trace.ActionComplete, trace.ActionRihla, trace.ActionRihlaUnderWay, trace.ActionRihlaComplete)
}

// busy reports whether a process writes a trace. One that cannot be told is at rest.
func busy(d *trace.Dir, id marchwarden.TraceID) bool {
	busy, err := d.Busy(id)
	return err == nil && busy
}

// standingOf is where the run of a trace stands that a process writes or not; err is why the trace cannot be read.
func standingOf(log *trace.Log, err error, foreign, busy bool) Standing {
	at := Standing{Status: Damaged, Imported: foreign}
	var start *trace.Start
	if err == nil && len(log.Steps) > 0 {
		start, err = log.Start()
	}
	switch {
	case err != nil:
		at.Problem = err.Error()
		return at
	case busy:
		at.Status = Running
		return at
	case start == nil:
		at.Problem = "no run was begun in it"
		return at
	}
	done, own := log.Complete(), !foreign && !start.PartOf
	switch {
	case done == nil:
		at.Status, at.Resumable = Interrupted, own
	case done.Interrupted:
		at.Status, at.Resumable, at.Partial = Interrupted, own, true
	case start.Investigation != nil && start.Investigation.PlanOnly: // there is no answer that could have citations
		at.Status = Planned
	default:
		at.Status = Complete
	}
	return at
}
