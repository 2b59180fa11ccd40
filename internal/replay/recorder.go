package replay

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// How often an effect is tried during which its run was cut off: it may be what cuts it
// off. What costs nothing is tried more often, and still given up before the task that it
// is part of (dispatch.MaxAttempts).
const (
	usualTries = 2
	freeTries  = 5
)

// Recorder is the Journal. Made by Record it runs effects and records them; made by
// Resume it does so where its record ends; made by Rerun it only answers.
//
// A record that cannot be written does not end a run: what is there by then stays
// whole, the run goes on without, and Lost says why.
type Recorder struct {
	blobs blob.Store
	live  bool                 // what the record does not hold is run
	clock func() time.Duration // since the start of the run; nil in a rerun

	mu    sync.Mutex // guards what follows
	calls map[trace.ActionID][]*call
	part  int                    // how many ends the run is past
	tries map[trace.ActionID]int // of effects that were begun and never finished
	gone  map[trace.ActionID]int // of these, those that the run had given up at an end, and at which
	noted map[string]int         // notes in the record that the run has not come by again
	w     *trace.Writer          // nil when nothing is written
	lost  error                  // why nothing is written any more

	sinkMu sync.Mutex // serialises sink, so that a slow one holds up progress only
	sink   marchwarden.Sink
}

// call is an effect that is known or under way; done is closed when it is known.
type call struct {
	part   int  // of the run, in which it was made
	bound  bool // to that part: it was cut short, or is a look at the clock
	done   chan struct{}
	output blob.Ref
	err    error // recording failed
}

var _ Journal = (*Recorder)(nil)

// Record makes a journal that runs effects and records them. clock says how much
// time the run has worked; sink may be nil. Without a writer nothing is written.
func Record(w *trace.Writer, blobs blob.Store, clock func() time.Duration, sink marchwarden.Sink) *Recorder {
	return &Recorder{blobs: blobs, live: true, w: w, sink: sink, clock: clock, calls: map[trace.ActionID][]*call{}}
}

// Rerun makes a journal that answers from a record and runs nothing. An effect
// that the record does not hold fails with CodeNotRecorded.
func Rerun(log *trace.Log, blobs blob.Store) *Recorder {
	r := &Recorder{blobs: blobs, calls: map[trace.ActionID][]*call{}}
	r.load(log)
	return r
}

// Resume makes a journal that answers from a record and continues it where it ends. The writer
// appends to that record.
func Resume(w *trace.Writer, log *trace.Log, blobs blob.Store, clock func() time.Duration, sink marchwarden.Sink) (*Recorder, error) {
	r := Record(w, blobs, clock, sink)
	r.load(log)
	r.noted, r.tries, r.gone = map[string]int{}, map[trace.ActionID]int{}, map[trace.ActionID]int{}
	var ending []string // what was noted of the way to an end, which no later one repeats
	part := 0           // a run that was cut off may have got more without an end
	for _, s := range log.Steps {
		switch s := s.(type) {
		case trace.Recorded:
			delete(r.tries, s.Record().ActionID)
		case trace.Beginning:
			r.tries[*s.Begins()]++
		case *trace.Complete:
			for id := range r.tries { // no caller waited for it any more
				r.gone[id] = part
			}
			clear(r.tries)
			for _, content := range ending {
				r.noted[content]--
			}
			ending = nil
		case *trace.Resume:
			if s.Extension != nil {
				part++
			}
		case *trace.Start: // is never noted twice
		default:
			content, err := trace.Content(s)
			if err != nil {
				return nil, journalError(marchwarden.CodeInternal, err, "read step %d", s.Header().Step)
			}
			r.noted[content]++
			switch s.(type) {
			case *trace.SynthesisStart, *trace.SynthesisComplete, *trace.SynthesisError, *trace.Verify, *trace.BudgetExhausted:
				ending = append(ending, content)
			}
		}
	}
	return r, nil
}

// load takes over the effects of a record, with the part that each was made in.
func (r *Recorder) load(log *trace.Log) {
	for _, s := range log.Steps {
		if s, ok := s.(trace.Recorded); ok {
			e := s.Record()
			known := &call{part: e.Part, bound: bound(s.Header().Action, e.Error), done: make(chan struct{}), output: e.OutputID}
			close(known.done)
			r.calls[e.ActionID] = append(r.calls[e.ActionID], known)
		}
	}
}

// bound reports whether an outcome holds for its own part of a run only.
func bound(kind trace.Action, failed marchwarden.Code) bool {
	return kind == trace.ActionCheckpoint || failed == marchwarden.CodeCanceled
}

// Past goes on to a further part.
func (r *Recorder) Past(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.part = n
}

// Within has an effect belong to a part of the run, for one that is begun beside the
// rest and may come to the journal when the run has gone past that.
func Within(ctx context.Context, part int) context.Context {
	return context.WithValue(ctx, within{}, part)
}

// within is the key of that part.
type within struct{}

// Lose gives the record up.
func (r *Recorder) Lose(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil {
		r.lost = err
	}
	r.w = nil
}

// Lost is why the record is not whole, or nil if it is.
func (r *Recorder) Lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Note records a decision.
func (r *Recorder) Note(s trace.Step) error {
	if !r.live {
		return nil
	}
	if r.noted == nil {
		r.write(s)
		return nil
	}
	if _, ok := s.(*trace.Start); ok {
		return nil // the record has one, and what has changed since is in its resume steps
	}
	content, err := trace.Content(s)
	if err != nil {
		return journalError(marchwarden.CodeInternal, err, "describe a step")
	}
	r.mu.Lock()
	known := r.noted[content] > 0
	if known {
		r.noted[content]--
	}
	r.mu.Unlock()
	if !known {
		r.write(s)
	}
	return nil
}

// write appends to the trace while there is one.
func (r *Recorder) write(s trace.Step) {
	r.mu.Lock()
	w := r.w
	r.mu.Unlock()
	if w == nil {
		return
	}
	if err := w.Append(s); err != nil {
		r.Lose(err)
	}
}

// Live passes progress on, one event at a time.
func (r *Recorder) Live(ev marchwarden.Event) {
	if r.sink == nil {
		return
	}
	r.sinkMu.Lock()
	defer r.sinkMu.Unlock()
	r.sink(ev)
}

// Do answers an effect.
func (r *Recorder) Do(ctx context.Context, e Effect, run func(context.Context) ([]byte, error)) ([]byte, error) {
	input, err := json.Marshal(e.Input)
	if err != nil {
		return nil, journalError(marchwarden.CodeInternal, err, "describe %s", e.Kind)
	}
	id := Key(e.Kind, input)
	r.mu.Lock()
	part := r.part
	if n, ok := ctx.Value(within{}).(int); ok {
		part = n
	}
	c := r.known(id, part)
	first := c == nil
	if first {
		if !r.live {
			r.mu.Unlock()
			return nil, journalError(marchwarden.CodeNotRecorded, nil, "the record holds no %s of %s", e.Kind, clip(input))
		}
		if end, gone := r.gone[id]; gone && part <= end {
			r.mu.Unlock()
			return nil, journalError(marchwarden.CodeNotRecorded, nil, "the run gave up waiting for the %s of %s", e.Kind, clip(input))
		}
		c = &call{part: part, bound: bound(e.Kind, ""), done: make(chan struct{})}
		r.calls[id] = append(r.calls[id], c)
	}
	r.mu.Unlock()

	if first {
		r.begin(ctx, c, id, e, run)
	}
	<-c.done
	if c.err != nil {
		return nil, c.err
	}
	return outcomeOf(context.WithoutCancel(ctx), r.blobs, c.output)
}

// known is what the run knows of an effect in a part of it, or nil.
func (r *Recorder) known(id trace.ActionID, part int) *call {
	for _, c := range slices.Backward(r.calls[id]) {
		if c.part == part || c.part < part && !c.bound {
			return c
		}
	}
	return nil
}

// begin runs an effect that is not known yet and makes c known. Should run panic,
// those who wait for the same effect get an error instead of waiting for ever.
func (r *Recorder) begin(ctx context.Context, c *call, id trace.ActionID, e Effect, run func(context.Context) ([]byte, error)) {
	defer close(c.done)
	c.err = journalError(marchwarden.CodeInternal, nil, "%s panicked", e.Kind)
	c.output, c.err = r.runAndRecord(ctx, c, id, e, run)
}

func (r *Recorder) runAndRecord(ctx context.Context, c *call, id trace.ActionID, e Effect, run func(context.Context) ([]byte, error)) (blob.Ref, error) {
	tries := r.tries[id] // written before the run, and only then
	maxTries := max(e.Tries, usualTries)
	if e.Begin != nil && tries < maxTries {
		if b, ok := e.Begin.(trace.Beginning); ok {
			*b.Begins() = id
		}
		r.write(e.Begin)
	}
	began := r.clock()
	var out []byte
	runErr := error(givenUp{marchwarden.Errorf(marchwarden.CodeUnavailable, "it was under way %d times when the run was cut off, and is not tried again", tries)})
	if tries < maxTries {
		seen := ctx
		if hidden, ok := ctx.Value(shielded{}).(context.Context); ok {
			seen = hidden
		}
		out, runErr = run(context.WithValue(seen, retried{}, tries > 0))
	}
	took := r.clock() - began

	o := outcome{OK: out}
	if runErr != nil {
		o.Error = &failure{Code: marchwarden.CodeOf(runErr), Message: runErr.Error(), Hint: marchwarden.HintOf(runErr), GivenUp: errors.Is(runErr, ErrGivenUp)}
	}
	stored, err := json.Marshal(o)
	if err != nil {
		return blob.Ref{}, journalError(marchwarden.CodeInternal, err, "store the outcome of %s", e.Kind)
	}
	// The record outlives the caller's patience: what is done is written down.
	ref, err := r.blobs.Put(context.WithoutCancel(ctx), stored)
	if err != nil {
		return blob.Ref{}, journalError(marchwarden.CodeUnavailable, err, "store the outcome of %s", e.Kind)
	}
	step := e.Done(out, runErr)
	*step.Record() = trace.Effect{ActionID: id, OutputID: ref, Error: marchwarden.CodeOf(runErr), ElapsedMS: float64(took.Microseconds()) / 1000, Retried: tries > 0, Part: c.part}
	r.mu.Lock()
	c.bound = bound(e.Kind, marchwarden.CodeOf(runErr))
	r.mu.Unlock()
	// A step is written when everything that it names is stored, or not at all.
	if err := blob.Settle(context.WithoutCancel(ctx), r.blobs, trace.Refs(step)...); err != nil {
		r.Lose(err)
	}
	r.write(step)
	return ref, nil
}

// retried is the key of whether an effect was under way before.
type retried struct{}

// Retried reports whether the effect that runs under ctx was under way once before,
// when its run was cut off.
func Retried(ctx context.Context) bool { return ctx.Value(retried{}) == true }
