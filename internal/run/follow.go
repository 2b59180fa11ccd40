package run

import (
	"context"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Records are where traces are kept. A trace that is not there is CodeNotFound.
type Records interface {
	// Raw opens the lines of a trace as they are; the caller closes.
	Raw(id marchwarden.TraceID) (io.ReadCloser, error)
	// Size says how long a trace is, and whether it is complete.
	Size(ctx context.Context, id marchwarden.TraceID) (bytes int64, ended bool, err error)
}

// Follower watches a run that is being written, by whichever process: it reads its trace and
// those of its rihlas when they have grown. It writes nothing, and no writer of a trace waits
// for it. It is not safe for concurrent use.
type Follower struct {
	records Records
	blobs   blob.Store
	id      marchwarden.TraceID

	traces  map[marchwarden.TraceID]*followed
	results map[blob.Ref]*marchwarden.Result // that were read, nil for one that cannot be
	board   *Board                           // the last
	over    bool
	empty   bool // no process wrote it, and nothing was in it
}

// followed is a trace as it was when it was read last.
type followed struct {
	size  int64
	log   *trace.Log
	steps []trace.Step // of the log
	err   error        // why it cannot be read on
	ended bool         // no process writes it
}

// Follow makes a follower, which reads nothing yet.
func Follow(records Records, blobs blob.Store, id marchwarden.TraceID) *Follower {
	return &Follower{records: records, blobs: blobs, id: id, traces: map[marchwarden.TraceID]*followed{}, results: map[blob.Ref]*marchwarden.Result{}}
}

// Read reads what is new. It reports whether anything changed since the last time, and
// whether it is over: the run has its result, or no process writes its trace. A process that goes on
// reading sees a run that goes on. With an error the board is the last one, nil if there
// was none; a trace that cannot be read on, or is gone, is over.
//
// A rihla whose trace is not here, cannot be read or is none of a rihla has no states of
// its own, and that is no error.
func (r *Follower) Read(ctx context.Context) (board *Board, changed, over bool, err error) {
	own, changed, err := r.read(ctx, r.id)
	broken := err != nil && marchwarden.CodeOf(err) != marchwarden.CodeUnavailable && ctx.Err() == nil
	if err != nil && !changed {
		return r.board, false, broken, err
	}
	// Between its making and its lock a trace is empty, and no process seems to write it.
	idle := own.ended && (len(own.steps) > 0 || r.empty)
	r.empty = own.ended
	over = idle || lastEnd(own.steps) != nil || broken
	for _, id := range FactsOf(own.steps).Parts {
		_, more, _ := r.read(ctx, id)
		changed = changed || more
	}
	if changed = changed || over != r.over || r.board == nil; changed {
		r.board = boardOf(own.steps, lookup{r.rihla, func(s trace.Step) *marchwarden.Result { return r.result(ctx, s) }})
		if over {
			r.board.cut()
		}
	}
	r.over = over
	return r.board, changed, over, err
}

// read reads what a trace has grown by, or again what does not follow on what was read, and
// reports whether there are other steps in it then.
func (r *Follower) read(ctx context.Context, id marchwarden.TraceID) (t *followed, changed bool, err error) {
	if t = r.traces[id]; t == nil {
		t = &followed{size: -1}
		r.traces[id] = t
	}
	size, ended, err := r.records.Size(ctx, id)
	if err != nil {
		return t, false, err
	}
	if t.ended = ended; size == t.size {
		return t, false, t.err
	}
	f, err := r.records.Raw(id)
	if err != nil {
		return t, false, err
	}
	defer f.Close()
	log, err := readOn(t, size, f)
	if marchwarden.CodeOf(err) == marchwarden.CodeUnavailable {
		return t, false, err
	}
	changed = len(log.Steps) != len(t.steps) || size < t.size // which is another file
	t.size, t.log, t.steps, t.err = size, log, log.Steps, err
	return t, changed, err
}

func readOn(t *followed, size int64, f io.ReadCloser) (*trace.Log, error) {
	if file, ok := f.(io.Seeker); ok && t.log != nil && t.err == nil && size > t.size {
		more := *t.log
		t.log = nil // its first step changes with what is read
		_, err := file.Seek(more.Good, io.SeekStart)
		if err == nil {
			err = more.ReadOn(f)
		}
		if err == nil {
			return &more, nil
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the trace")
		}
	}
	return trace.Read(f)
}

// rihla are the steps of the run of a rihla: an investigation from elsewhere may name any run.
func (r *Follower) rihla(id marchwarden.TraceID) []trace.Step {
	t := r.traces[id]
	if t == nil || id == r.id || len(t.steps) == 0 {
		return nil
	}
	if start, ok := t.steps[0].(*trace.Start); !ok || !start.PartOf {
		return nil
	}
	return t.steps
}

// result is that with which a step ended the run or a rihla; nil for none, and for one that cannot be read.
func (r *Follower) result(ctx context.Context, s trace.Step) *marchwarden.Result {
	var ref blob.Ref
	var read func() (*marchwarden.Result, error)
	switch s := s.(type) {
	case *trace.RihlaComplete:
		ref, read = s.OutputID, func() (*marchwarden.Result, error) { return replay.Outcome[*marchwarden.Result](ctx, r.blobs, s) }
	case *trace.Complete:
		ref, read = s.Result, func() (*marchwarden.Result, error) {
			_, res, err := ResultOf(ctx, r.blobs, s.Result)
			return res, err
		}
	default:
		return nil
	}
	if res, known := r.results[ref]; known {
		return res
	}
	res, err := read()
	if err != nil {
		res = nil
	}
	if ctx.Err() == nil { // else it is read next time
		r.results[ref] = res
	}
	return res
}
