// Package record is what a run left behind, taken as a whole: its own trace, the
// traces of the rihlas that it sent and that are kept in the same place, the blobs
// they need, the documents that were read and the result. It also looks after all
// of them together. What a run writes is package replay's, the files of the store
// are package blob's.
//
//	record.go     a run and its parts
//	documents.go  the documents that it read
//	home.go       all records of one place, and what their traces mention
//	check.go      what is damaged or missing, and who needs it
//	strays.go     what is in their folders and is no run, or no longer a whole one
//	repair.go     what can safely be done about it
//	family.go     which traces belong together
//	gc.go         removing old families, and blobs that nothing mentions
package record

import (
	"context"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
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
	read[id] = nil // under way: whoever names it now is below it
	for _, part := range Parts(log) {
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

// Parts are the traces of the rihlas that a log names, each once. Some may be kept
// somewhere else.
func Parts(log *trace.Log) []marchwarden.TraceID {
	start, err := log.Start()
	if err != nil || start.Investigation == nil {
		return nil
	}
	var ids []marchwarden.TraceID
	for _, s := range log.Steps {
		var id marchwarden.TraceID
		switch s := s.(type) {
		case *trace.Rihla:
			id = s.TraceID
		case *trace.RihlaUnderWay:
			id = s.TraceID
		case *trace.RihlaComplete:
			id = s.TraceID
		}
		if id.Valid() && id != start.TraceID && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Own are the reports that rihlas of this program gave, the first of each. Their traces are where that of
// the investigation is, but those that could not be recorded, which their reports say.
// A report that cannot be read says nothing.
func Own(ctx context.Context, log *trace.Log, blobs blob.Store) []*trace.RihlaComplete {
	began := map[marchwarden.TraceID]bool{}
	var own []*trace.RihlaComplete
	for _, s := range log.Steps {
		switch s := s.(type) {
		case *trace.Rihla: // only its own researchers get their ids from an investigation
			began[s.TraceID] = s.TraceID.Valid()
		case *trace.RihlaComplete:
			if !began[s.TraceID] {
				continue
			}
			began[s.TraceID] = false
			res, err := replay.Outcome[*marchwarden.Result](ctx, blobs, s)
			if err == nil && res != nil && !slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.HasPrefix(w, trace.Unrecorded) }) {
				own = append(own, s)
			}
		}
	}
	return own
}

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
	stored, err := s.Blobs.Get(ctx, done.Result)
	if err != nil {
		return nil, nil, err
	}
	res, err := marchwarden.DecodeResult(stored)
	return stored, res, err
}
