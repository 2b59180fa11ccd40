// Package replay is how a run reaches the world, and how it is run again.
//
// Every effect (a search, a fetch, a model call, a look at the clock) goes
// through a Journal. Its kind and input are hashed to an ActionID, its outcome is
// stored as a blob, and the pair is in the trace before the outcome is used. A
// journal made from a record answers the same effects from it: the same code on
// the same outcomes gives the same bytes, with no engine, fetcher or model there.
//
// Effects are keyed by content, not by position. An effect that failed is an
// outcome too: its code and sentence are recorded and come back as they were.
//
//	loop ──▶ Engine / Fetcher / Model (this package's decorators) ──▶ Journal.Do ──▶ record, or the real one + record
//
// The package owns no policy: what to search and what to do about a failure are
// the loop's.
package replay

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Journal is the only way out of a run. It is safe for concurrent use.
type Journal interface {
	// Do answers an effect: from the record when it is there, otherwise by run,
	// whose outcome is stored and appended to the trace before Do returns it. An
	// outcome is recorded even when ctx ended while run was at work. Equal effects
	// are run once; later ones get the first one's outcome. What run returns must be
	// JSON; Do returns the same value, not always the same bytes. The error is run's
	// own, reduced to its code, sentence and hint, or says that recording failed. An effect
	// may give a value and an error, such as what a failed call has cost.
	Do(ctx context.Context, e Effect, run func(context.Context) ([]byte, error)) ([]byte, error)
	// Note records a decision. In a rerun it does nothing.
	Note(s trace.Step) error
	// Live passes progress on to whoever watches.
	Live(ev marchwarden.Event)
}

// ErrJournal is in the chain of every error that says the record itself failed,
// as opposed to the effect it describes. Such an error ends a run.
var ErrJournal = errors.New("journal")

func journalError(code marchwarden.Code, err error, format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrJournal, &marchwarden.Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err})
}

// Effect describes one effect to a journal.
type Effect struct {
	Kind  trace.Action // of the completing step
	Input any          // everything the outcome depends on; hashed in its JSON form
	// Begin is appended before the effect runs; nil for none.
	Begin trace.Step
	// Done makes the step that completes the effect from its outcome. The journal
	// fills in the step's Effect.
	Done func(out []byte, err error) trace.Recorded
}

// outcome is the stored form of what an effect gave: a value, an error, or a
// value in spite of an error. Fields are only ever added.
type outcome struct {
	OK    json.RawMessage `json:"ok,omitempty"`
	Error *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    marchwarden.Code `json:"code"`
	Message string           `json:"message"`
	Hint    string           `json:"hint,omitempty"`
}

// Key is the identity of an effect: a hash over its kind and input, each framed
// by its length under a tag of its own, so that no two effects share one.
func Key(kind trace.Action, input []byte) trace.ActionID {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("marchwarden/action/v1"), []byte(kind), input} {
		frame(h, part)
	}
	return trace.ActionID{Ref: blob.MustParse(fmt.Sprintf("sha256:%x", h.Sum(nil)))}
}

func frame(h hash.Hash, part []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(part)))
	h.Write(n[:])
	h.Write(part)
}

// Recorder is the Journal. With a writer it records; without one it only
// answers from its record.
type Recorder struct {
	blobs blob.Store
	w     *trace.Writer        // nil in a rerun
	clock func() time.Duration // since the start of the run; nil in a rerun

	mu    sync.Mutex // guards calls
	calls map[trace.ActionID]*call

	sinkMu sync.Mutex // serialises sink, so that a slow one holds up progress only
	sink   marchwarden.Sink
}

// call is an effect that is known or under way; done is closed when it is known.
type call struct {
	done   chan struct{}
	output blob.Ref
	err    error // recording failed
}

var _ Journal = (*Recorder)(nil)

// Record makes a journal that runs effects and records them. clock says how much
// time has passed since the run began; sink may be nil.
func Record(w *trace.Writer, blobs blob.Store, clock func() time.Duration, sink marchwarden.Sink) *Recorder {
	return &Recorder{blobs: blobs, w: w, sink: sink, clock: clock, calls: map[trace.ActionID]*call{}}
}

// Rerun makes a journal that answers from a record and runs nothing. An effect
// that the record does not hold fails with CodeNotRecorded.
func Rerun(log *trace.Log, blobs blob.Store) *Recorder {
	r := &Recorder{blobs: blobs, calls: map[trace.ActionID]*call{}}
	for _, s := range log.Steps {
		if rec, ok := s.(trace.Recorded); ok {
			e := rec.Record()
			known := &call{done: make(chan struct{}), output: e.OutputID}
			close(known.done)
			r.calls[e.ActionID] = known
		}
	}
	return r
}

// Note records a decision.
func (r *Recorder) Note(s trace.Step) error {
	if r.w == nil {
		return nil
	}
	if err := r.w.Append(s); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

// Shield hides from whoever gets the context it returns when ctx ends, and its
// deadline: only effects see those, because what an effect does about them is
// recorded. Code that runs between effects under a shielded context cannot
// decide by the caller's patience, which a rerun does not have.
func Shield(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), shielded{}, ctx)
}

// shielded is the key of the context that Shield hides.
type shielded struct{}

func unshield(ctx context.Context) context.Context {
	if hidden, ok := ctx.Value(shielded{}).(context.Context); ok {
		return hidden
	}
	return ctx
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
	c, known := r.calls[id]
	if !known {
		if r.w == nil {
			r.mu.Unlock()
			return nil, journalError(marchwarden.CodeNotRecorded, nil, "the record holds no %s of %s", e.Kind, clip(input))
		}
		c = &call{done: make(chan struct{})}
		r.calls[id] = c
	}
	r.mu.Unlock()

	if !known {
		r.begin(ctx, c, id, e, run)
	}
	<-c.done
	if c.err != nil {
		return nil, c.err
	}
	return r.outcome(context.WithoutCancel(ctx), c.output)
}

// begin runs an effect that is not known yet and makes c known. Should run panic,
// those who wait for the same effect get an error instead of waiting for ever.
func (r *Recorder) begin(ctx context.Context, c *call, id trace.ActionID, e Effect, run func(context.Context) ([]byte, error)) {
	defer close(c.done)
	c.err = journalError(marchwarden.CodeInternal, nil, "%s panicked", e.Kind)
	c.output, c.err = r.runAndRecord(ctx, id, e, run)
}

func (r *Recorder) runAndRecord(ctx context.Context, id trace.ActionID, e Effect, run func(context.Context) ([]byte, error)) (blob.Ref, error) {
	if e.Begin != nil {
		if err := r.Note(e.Begin); err != nil {
			return blob.Ref{}, err
		}
	}
	began := r.clock()
	out, runErr := run(unshield(ctx))
	took := r.clock() - began

	o := outcome{OK: out}
	if runErr != nil {
		o.Error = &failure{Code: marchwarden.CodeOf(runErr), Message: runErr.Error(), Hint: marchwarden.HintOf(runErr)}
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
	*step.Record() = trace.Effect{ActionID: id, OutputID: ref, Error: marchwarden.CodeOf(runErr), ElapsedMS: float64(took.Microseconds()) / 1000}
	return ref, r.Note(step)
}

// outcome reads a stored outcome back. Live runs read it too, so that a run and
// its rerun see exactly the same.
func (r *Recorder) outcome(ctx context.Context, ref blob.Ref) ([]byte, error) {
	stored, err := r.blobs.Get(ctx, ref)
	if err != nil {
		return nil, journalError(marchwarden.CodeCorrupt, err, "read a recorded outcome")
	}
	var o outcome
	if err := json.Unmarshal(stored, &o); err != nil {
		return nil, journalError(marchwarden.CodeCorrupt, err, "read recorded outcome %s", ref)
	}
	if o.Error != nil {
		return o.OK, &marchwarden.Error{Code: o.Error.Code, Message: o.Error.Message, Hint: o.Error.Hint}
	}
	return o.OK, nil
}

// Outcome reads what a recorded step got. A failed effect is its error, beside
// what it gave all the same.
func Outcome[T any](ctx context.Context, blobs blob.Store, step trace.Recorded) (T, error) {
	var v T
	out, err := (&Recorder{blobs: blobs}).outcome(ctx, step.Record().OutputID)
	if len(out) == 0 {
		return v, err
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return v, journalError(marchwarden.CodeCorrupt, err, "read recorded outcome %s", step.Record().OutputID)
	}
	return v, err
}

func clip(b []byte) string {
	const most = 120
	if len(b) <= most {
		return string(b)
	}
	return strings.ToValidUTF8(string(b[:most]), "") + "…"
}
