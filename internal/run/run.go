// Package run is what a run left behind, read in one place: its own trace and those of
// the rihlas that it sent, folded into where it stands, what it spent, what it was at
// and when, which documents it read, and its result, or what it has found so far. It
// reads, and never writes. What a run writes is package replay's, its end and its going
// on are package outcome's, and looking after all records is package record's.
//
//	run.go        a run and its parts
//	facts.go      what the steps of a trace tell, in one pass
//	spent.go      what a run and its rihlas used, and its price
//	documents.go  the documents that it read
//	sofar.go      its result, or what it has found so far
//	lanes.go      the Board: lanes on one time axis, and what is in them
//	fold.go       the steps of a run and of its rihlas
//	track.go      one run's steps as states and numbers
//	event.go      the same from events, for those who read no trace
//	board.go      a Board of what was folded
//	path.go       where time and tokens went, and what the end waited for
//	follow.go     a run that is being written
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
}

// Load reads a run and its rihlas. A rihla that is not kept here is left out; one
// that is and cannot be read is an error.
func (s Store) Load(id marchwarden.TraceID) (*Run, error) {
	return s.load(id, map[marchwarden.TraceID]*Run{})
}

// load reads a run that is not among those that were read. One that is named a second
// time is the same; one that names itself, or one above it, has no such part.
func (s Store) load(id marchwarden.TraceID, read map[marchwarden.TraceID]*Run) (*Run, error) {
	log, err := s.Traces.Load(id)
	if err != nil {
		return nil, err
	}
	start, err := log.Start()
	if err != nil {
		return nil, err
	}
	run := &Run{ID: id, Start: start, Log: log}
	read[id] = nil // under way: a run that names it now is below it
	for _, part := range FactsOf(log.Steps).Parts {
		rihla, known := read[part]
		if !known {
			rihla, err = s.load(part, read)
		}
		if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
			err = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		if rihla != nil {
			run.Rihlas = append(run.Rihlas, rihla)
		}
	}
	read[id] = run
	return run, nil
}

// Facts are what its own trace tells.
func (r *Run) Facts() *Facts { return FactsOf(r.Log.Steps) }

// All is the run itself and its rihlas, and theirs, each once.
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
		for _, s := range run.Log.Steps {
			for _, ref := range trace.Refs(s) {
				if !seen[ref] {
					seen[ref] = true
					refs = append(refs, ref)
				}
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
			Hint: "go on with it: marchwarden resume " + r.ID.String()}
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
