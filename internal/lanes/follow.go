package lanes

// This part watches a run that is being written, by whichever process: it reads
// what is new in its trace and in those of its rihlas, and gives the run as lanes. It
// owns where it has read to, and nothing else: what is in a trace is package trace's
// affair, and what is made of it package lanes'. It writes nothing, and nobody who
// writes a trace waits for it.

import (
	"context"
	"errors"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Records are where traces are kept. A trace that is not there is CodeNotFound.
type Records interface {
	// Raw opens the lines of a trace as they are; the caller closes. If it can seek,
	// nothing is read twice.
	Raw(id marchwarden.TraceID) (io.ReadCloser, error)
	// Size says how long a trace is, and whether nobody writes it any more.
	Size(ctx context.Context, id marchwarden.TraceID) (bytes int64, ended bool, err error)
}

// Run is a run that is followed. It is not safe for concurrent use.
type Run struct {
	records Records
	blobs   blob.Store
	id      marchwarden.TraceID

	fold    *Fold
	own     tail
	rihlas  map[int]*rihla
	order   []int // numbers of rihlas, as they were named
	reports []report
	board   *Board // the last
	over    bool
	empty   bool // nobody wrote it, and nothing was in it
}

// rihla is a rihla whose run may be kept here.
type rihla struct {
	id   marchwarden.TraceID
	back bool // it has reported
	tail tail
}

// report is what was reported and is not read yet: by a rihla, or, with number 0, by the
// run itself.
type report struct {
	number int
	rihla  *trace.RihlaComplete
	result blob.Ref
}

// Follow makes a follower, which reads nothing yet.
func Follow(records Records, blobs blob.Store, id marchwarden.TraceID) *Run {
	r := &Run{records: records, blobs: blobs, id: id}
	r.anew()
	return r
}

func (r *Run) anew() {
	r.fold, r.own, r.rihlas, r.order, r.reports = NewFold(), tail{id: r.id}, map[int]*rihla{}, nil, nil
}

// Read reads what is new. It reports whether anything changed since the last time, and
// whether it is over: the run has its result, or nobody writes its trace. Whoever goes on
// reading sees a run that goes on. With an error the board is the last one, nil if there
// was none; a trace that cannot be read on, or is gone, is over.
//
// A rihla whose trace is not here, cannot be read or is none of a rihla has no states of
// its own, and that is no error.
func (r *Run) Read(ctx context.Context) (board *Board, changed, over bool, err error) {
	steps, ended, err := r.own.next(ctx, r.records)
	if errors.Is(err, errShrunk) { // it is another file
		r.anew()
		changed = true
		steps, ended, err = r.own.next(ctx, r.records)
	}
	for _, s := range steps {
		r.take(s)
	}
	broken := err != nil && marchwarden.CodeOf(err) != marchwarden.CodeUnavailable && ctx.Err() == nil
	if err != nil && len(steps) == 0 && !changed {
		return r.board, false, broken, err
	}
	// Between its making and its lock a trace is empty, and nobody seems to write it.
	idle := ended && (r.own.tail.Lines() > 0 || r.empty)
	r.empty = ended
	over = idle || r.fold.Ended() || broken
	changed = changed || len(steps) > 0 || over != r.over || r.board == nil
	if r.readRihlas(ctx) {
		changed = true
	}
	if r.readReports(ctx) {
		changed = true
	}
	if changed {
		r.board = r.fold.Board()
		if over {
			r.board.Cut()
		}
	}
	r.over = over
	return r.board, changed, over, err
}

// take takes a step of the run's own trace.
func (r *Run) take(s trace.Step) {
	r.fold.Step(s)
	switch s := s.(type) {
	case *trace.Rihla:
		r.name(s.Number, s.TraceID)
		if rh := r.rihlas[s.Number]; rh != nil {
			rh.back = false
		}
	case *trace.RihlaUnderWay:
		r.name(s.Number, s.TraceID)
	case *trace.RihlaComplete:
		r.name(s.Number, s.TraceID)
		if rh := r.rihlas[s.Number]; rh != nil {
			rh.back = true
		}
		r.reports = append(r.reports, report{number: s.Number, rihla: s})
	case *trace.Complete:
		r.reports = append(r.reports, report{result: s.Result})
	}
}

// mostRihlas is how many traces are read for one run.
const mostRihlas = 1000

// name says which run a rihla is.
func (r *Run) name(number int, id marchwarden.TraceID) {
	if number < 1 || !id.Valid() || id == r.id {
		return
	}
	rh := r.rihlas[number]
	switch {
	case rh == nil && len(r.rihlas) < mostRihlas:
		r.rihlas[number], r.order = &rihla{id: id, tail: tail{id: id}}, append(r.order, number)
	case rh != nil && rh.id != id:
		rh.id, rh.tail = id, tail{id: id}
	}
}

// readRihlas reads what is new of the rihlas, and reports whether there was anything.
func (r *Run) readRihlas(ctx context.Context) (changed bool) {
	for _, number := range r.order {
		rh := r.rihlas[number]
		if rh.tail.shut || rh.back && rh.tail.complete && rh.tail.idle {
			continue // there is nothing to come
		}
		steps, _, err := rh.tail.next(ctx, r.records)
		if errors.Is(err, errShrunk) {
			rh.tail = tail{id: rh.id}
			steps, _, err = rh.tail.next(ctx, r.records)
		}
		if code := marchwarden.CodeOf(err); err != nil && code != marchwarden.CodeNotFound && code != marchwarden.CodeUnavailable && ctx.Err() == nil {
			rh.tail.shut = true // damaged: it ends here
		}
		for _, s := range steps {
			if start, ok := s.(*trace.Start); ok && !start.PartOf {
				rh.tail.shut = true // an investigation from elsewhere may name any run
				break
			}
			r.fold.RihlaStep(number, s)
			changed = true
		}
	}
	return changed
}

// readReports reads what was reported. One that cannot be read says nothing.
func (r *Run) readReports(ctx context.Context) (changed bool) {
	for len(r.reports) > 0 && ctx.Err() == nil {
		next := r.reports[0]
		res, err := r.load(ctx, next)
		if err != nil && ctx.Err() != nil {
			return changed // next time
		}
		r.reports = r.reports[1:]
		if err == nil && res != nil {
			r.fold.Report(next.number, res)
			changed = true
		}
	}
	return changed
}

func (r *Run) load(ctx context.Context, what report) (*marchwarden.Result, error) {
	if what.rihla != nil {
		return replay.Outcome[*marchwarden.Result](ctx, r.blobs, what.rihla)
	}
	stored, err := r.blobs.Get(ctx, what.result)
	if err != nil {
		return nil, err
	}
	return marchwarden.DecodeResult(stored)
}
