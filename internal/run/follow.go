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

// ReadBoard reads a run, also one that is being written, by whichever process: its trace and those
// of its rihlas. It writes nothing, and no writer of a trace waits for it. It reports whether the run
// is over: it has its result, or no process writes its trace, or that cannot be read on. With an
// error comes what stands before it, nil for nothing.
//
// A rihla whose trace is not here, cannot be read or is none of a rihla has no states of
// its own, and that is no error.
func ReadBoard(ctx context.Context, records Records, blobs blob.Store, id marchwarden.TraceID) (board *Board, over bool, err error) {
	steps, ended, err := stepsOf(ctx, records, id)
	broken := err != nil && marchwarden.CodeOf(err) != marchwarden.CodeUnavailable && ctx.Err() == nil
	if err != nil && (len(steps) == 0 || !broken) {
		return nil, broken, err
	}
	results := map[blob.Ref]*marchwarden.Result{} // that were read, nil for one that cannot be
	board = boardOf(steps, lookup{
		steps: func(part marchwarden.TraceID) []trace.Step {
			if part == id {
				return nil
			}
			return rihlaOf(ctx, records, part)
		},
		result: func(s trace.Step) *marchwarden.Result { return endedWith(ctx, blobs, s, results) },
	})
	if over = ended || lastEnd(steps) != nil || broken; over {
		board.cut()
	}
	return board, over, err
}

// stepsOf reads a trace, and reports whether no process writes it any more.
func stepsOf(ctx context.Context, records Records, id marchwarden.TraceID) (steps []trace.Step, ended bool, err error) {
	if _, ended, err = records.Size(ctx, id); err != nil { // first: what is written after that is seen next time
		return nil, false, err
	}
	f, err := records.Raw(id)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	log, err := trace.Read(f)
	return log.Steps, ended, err
}

// rihlaOf are the steps of the run of a rihla: an investigation from elsewhere may name any run.
func rihlaOf(ctx context.Context, records Records, id marchwarden.TraceID) []trace.Step {
	steps, _, _ := stepsOf(ctx, records, id)
	if len(steps) == 0 {
		return nil
	}
	if start, ok := steps[0].(*trace.Start); !ok || !start.PartOf {
		return nil
	}
	return steps
}

// endedWith is the result with which a step ended the run or a rihla; nil for none, and for one that cannot be read.
func endedWith(ctx context.Context, blobs blob.Store, s trace.Step, known map[blob.Ref]*marchwarden.Result) (res *marchwarden.Result) {
	var ref blob.Ref
	switch s := s.(type) {
	case *trace.RihlaComplete:
		ref = s.OutputID
	case *trace.Complete:
		ref = s.Result
	default:
		return nil
	}
	if res, there := known[ref]; there {
		return res
	}
	var err error
	if report, ok := s.(*trace.RihlaComplete); ok {
		res, err = replay.Outcome[*marchwarden.Result](ctx, blobs, report)
	} else {
		_, res, err = ResultOf(ctx, blobs, ref)
	}
	if err != nil {
		res = nil
	}
	known[ref] = res
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
