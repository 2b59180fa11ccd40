package run

// This part watches a run that is being written, by whichever process: it reads
// what is new in its trace and in those of its rihlas, and gives the run as lanes. It
// writes nothing, and no writer of a trace waits for it.

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
	// Size says how long a trace is, and whether it is complete.
	Size(ctx context.Context, id marchwarden.TraceID) (bytes int64, ended bool, err error)
}

// Follower is a run that is followed. It is not safe for concurrent use.
type Follower struct {
	records Records
	blobs   blob.Store
	id      marchwarden.TraceID

	fold    *Fold
	own     tail
	rihlas  map[*journey]*tail // those whose runs may be kept here
	reports []trace.Step       // ends, of rihlas and of the run itself, whose results are not read yet
	board   *Board             // the last
	over    bool
	empty   bool // no process wrote it, and nothing was in it
}

// Follow makes a follower, which reads nothing yet.
func Follow(records Records, blobs blob.Store, id marchwarden.TraceID) *Follower {
	r := &Follower{records: records, blobs: blobs, id: id}
	r.anew()
	return r
}

func (r *Follower) anew() {
	r.fold, r.own, r.rihlas, r.reports = NewFold(), tail{id: r.id}, map[*journey]*tail{}, nil
}

// Read reads what is new. It reports whether anything changed since the last time, and
// whether it is over: the run has its result, or no process writes its trace. A process that goes on
// reading sees a run that goes on. With an error the board is the last one, nil if there
// was none; a trace that cannot be read on, or is gone, is over.
//
// A rihla whose trace is not here, cannot be read or is none of a rihla has no states of
// its own, and that is no error.
func (r *Follower) Read(ctx context.Context) (board *Board, changed, over bool, err error) {
	steps, ended, err := r.own.next(ctx, r.records)
	if errors.Is(err, errShrunk) { // it is another file
		r.anew()
		changed = true
		steps, ended, err = r.own.next(ctx, r.records)
	}
	for _, s := range steps {
		r.fold.Step(s)
		switch s.(type) {
		case *trace.RihlaComplete, *trace.Complete:
			r.reports = append(r.reports, s)
		}
	}
	broken := err != nil && marchwarden.CodeOf(err) != marchwarden.CodeUnavailable && ctx.Err() == nil
	if err != nil && len(steps) == 0 && !changed {
		return r.board, false, broken, err
	}
	// Between its making and its lock a trace is empty, and no process seems to write it.
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

func (r *Follower) readRihlas(ctx context.Context) (changed bool) {
	for _, j := range r.fold.journeys {
		if !j.id.Valid() || j.id == r.id {
			continue
		}
		t := r.rihlas[j]
		if t == nil || t.id != j.id {
			t = &tail{id: j.id}
			r.rihlas[j] = t
		}
		if t.shut || t.idle && !j.back.IsZero() && j.ended() {
			continue // there is nothing to come
		}
		steps, _, err := t.next(ctx, r.records)
		if errors.Is(err, errShrunk) {
			*t = tail{id: j.id}
			steps, _, err = t.next(ctx, r.records)
		}
		if code := marchwarden.CodeOf(err); err != nil && code != marchwarden.CodeNotFound && code != marchwarden.CodeUnavailable && ctx.Err() == nil {
			t.shut = true // damaged: it ends here
		}
		for _, s := range steps {
			if start, ok := s.(*trace.Start); ok && !start.PartOf {
				t.shut = true // an investigation from elsewhere may name any run
				break
			}
			r.fold.RihlaStep(j.number, s)
			changed = true
		}
	}
	return changed
}

func (r *Follower) readReports(ctx context.Context) (changed bool) {
	for len(r.reports) > 0 && ctx.Err() == nil {
		var number int
		var res *marchwarden.Result
		var err error
		switch s := r.reports[0].(type) {
		case *trace.RihlaComplete:
			number = s.Number
			res, err = replay.Outcome[*marchwarden.Result](ctx, r.blobs, s)
		case *trace.Complete:
			_, res, err = ResultOf(ctx, r.blobs, s.Result)
		}
		if err != nil && ctx.Err() != nil {
			return changed // next time
		}
		r.reports = r.reports[1:]
		if err == nil && res != nil {
			r.fold.Report(number, res)
			changed = true
		}
	}
	return changed
}

var errShrunk = errors.New("the trace is shorter than it was")

type tail struct {
	id   marchwarden.TraceID
	tail trace.Tail
	seen int64 // how long it was when it was read last, what is torn included
	idle bool  // no process wrote it when it was read last
	shut bool  // it is not read any more
}

// next gives the steps that are new, and whether no process writes the trace. It may give both steps and an error.
func (t *tail) next(ctx context.Context, records Records) (steps []trace.Step, ended bool, err error) {
	size, ended, err := records.Size(ctx, t.id)
	if err != nil {
		return nil, false, err
	}
	t.idle = ended
	switch {
	case size < t.tail.Offset():
		return nil, ended, errShrunk
	case size == t.seen:
		return nil, ended, nil
	}
	steps, err = t.read(records, size)
	if err == nil {
		t.seen = size
	}
	return steps, ended, err
}

// read reads on to where the trace ended when it was looked at.
func (t *tail) read(records Records, size int64) ([]trace.Step, error) {
	f, err := records.Raw(t.id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := skip(f, t.tail.Offset()); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", t.id)
	}
	return t.tail.Next(io.LimitReader(f, size-t.tail.Offset()))
}

func skip(f io.Reader, offset int64) error {
	if s, ok := f.(io.Seeker); ok {
		_, err := s.Seek(offset, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, f, offset)
	return err
}
