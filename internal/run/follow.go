package run

import (
	"cmp"
	"context"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
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
	over = own.ended || lastEnd(own.steps) != nil || broken
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
func (r *Follower) result(ctx context.Context, s trace.Step) (res *marchwarden.Result) {
	var ref blob.Ref
	switch s := s.(type) {
	case *trace.RihlaComplete:
		ref = s.OutputID
	case *trace.Complete:
		ref = s.Result
	default:
		return nil
	}
	if res, known := r.results[ref]; known {
		return res
	}
	var err error
	if report, ok := s.(*trace.RihlaComplete); ok {
		res, err = replay.Outcome[*marchwarden.Result](ctx, r.blobs, report)
	} else {
		_, res, err = ResultOf(ctx, r.blobs, ref)
	}
	if err != nil {
		res = nil
	}
	if ctx.Err() == nil { // else it is read next time
		r.results[ref] = res
	}
	return res
}

// worker is one run as its own steps tell it.
type worker struct {
	Lane
	searching, reading int // under way
}

// prompts are what calls of a model are for; during any other a run is at what it was at before.
var prompts = map[string]State{
	"clarify": Planning, "investigate": Planning, "step": Planning, "write": Writing, "repair": Writing, "judge": Checking,
}

func (w *worker) step(s trace.Step) {
	switch s := s.(type) {
	case *trace.RihlaComplete:
		return // it comes while the investigator is at something else
	case *trace.Start:
		w.Researcher, w.Question = plaintext.Line(s.Researcher, maxLine), plaintext.Line(s.Request.Question, marchwarden.MaxQuestionChars)
		w.State = Planning
	case *trace.Resume:
		w.State, w.searching, w.reading = Planning, 0, 0
	case *trace.Arrival:
		w.State = Checking // it waited until then
	default:
		w.enter(s)
	}
	switch s.(type) {
	case *trace.Start, *trace.Iteration, *trace.SearchComplete, *trace.FetchComplete, *trace.ModelComplete, *trace.EmbedComplete,
		*trace.RihlaUnderWay, *trace.Checkpoint, *trace.Clarified, *trace.Unknown:
	default:
		w.Doing = plaintext.Line(s.Header().Decision, maxLine)
	}
}

// enter is what the run is at from a step on.
func (w *worker) enter(s trace.Step) {
	switch s := s.(type) {
	case *trace.Model:
		w.State = cmp.Or(prompts[s.Prompt], w.State)
	case *trace.Iteration, *trace.Message, *trace.Search, *trace.SearchComplete, *trace.Fetch, *trace.FetchComplete:
		w.gather(s)
	case *trace.Plan:
		w.State = Planning
	case *trace.Rihla:
		w.State = Waiting
	case *trace.SynthesisStart, *trace.SynthesisError:
		w.State = Writing
	case *trace.Evidence, *trace.Decision, *trace.SynthesisComplete, *trace.BudgetExhausted:
		w.State = Checking
	case *trace.Verify:
		w.State, w.Citations = Checking, max(0, s.Citations)
	case *trace.Complete:
		w.State, w.Citations = Done, max(0, s.Citations)
	}
}

// gather takes the steps of searching and reading, which may go on side by side: then it reads.
func (w *worker) gather(s trace.Step) {
	switch s := s.(type) {
	case *trace.Search:
		w.searching++
	case *trace.SearchComplete:
		w.searching = max(0, w.searching-1)
	case *trace.Fetch:
		w.reading++
	case *trace.FetchComplete:
		w.reading = max(0, w.reading-1)
		if s.ContentHash.Valid() {
			if w.Documents++; len(w.Read) < maxRead {
				w.Read = append(w.Read, plaintext.Line(s.URL, maxLine))
			}
		}
	}
	switch {
	case w.reading > 0:
		w.State = Reading
	case w.searching > 0:
		w.State = Searching
	default:
		w.State = Planning
	}
}
