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
// A run that was cut off goes on the same way: what the record knows comes from it,
// and where it ends the run is live again. A run that had ended goes past its end
// in a further part, with what it was given for that.
//
// The package owns no policy: what to search and what to do about a failure are
// the loop's.
package replay

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	// Note records a decision, once: not in a rerun, and not when a run that goes on
	// comes by what it had noted.
	Note(s trace.Step) error
	// Live passes progress on to those that watch.
	Live(ev marchwarden.Event)
	// Past says that the run is past its n-th end. From there on it sees the clock
	// anew, and what was cut short may be tried again.
	Past(n int)
	// Lose says that the record is no longer whole, because of err: nothing more is
	// written to it, so that what is there can be resumed.
	Lose(err error)
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
	// Tries is how often it is tried when its run is cut off during it. Zero means twice.
	Tries int
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
	GivenUp bool             `json:"given_up,omitempty"`
}

// ErrGivenUp is in the chain of the error of an effect that was under way too often when
// its run was cut off, and is not tried any more.
var ErrGivenUp = errors.New("given up")

// givenUp is such an error. It has the words of its cause alone, as they are recorded.
type givenUp struct{ error }

func (givenUp) Is(target error) bool { return target == ErrGivenUp }

func (g givenUp) Unwrap() error { return g.error }

// Key is the identity of an effect: a hash over its kind and input, each framed
// by its length under a tag of its own, so that no two effects share one.
func Key(kind trace.Action, input []byte) trace.ActionID {
	var framed []byte
	for _, part := range []string{"marchwarden/action/v1", string(kind), string(input)} {
		framed = append(binary.BigEndian.AppendUint64(framed, uint64(len(part))), part...)
	}
	return trace.ActionID{Ref: blob.Of(framed)}
}

// outcomeOf reads a stored outcome back, in a live run too: it sees what its rerun sees.
func outcomeOf(ctx context.Context, blobs blob.Store, ref blob.Ref) ([]byte, error) {
	stored, err := blobs.Get(ctx, ref)
	if err != nil {
		return nil, journalError(marchwarden.CodeCorrupt, err, "read a recorded outcome")
	}
	var o outcome
	if err := json.Unmarshal(stored, &o); err != nil {
		return nil, journalError(marchwarden.CodeCorrupt, err, "read recorded outcome %s", ref)
	}
	if o.Error == nil {
		return o.OK, nil
	}
	failed := &marchwarden.Error{Code: o.Error.Code, Message: o.Error.Message, Hint: o.Error.Hint}
	if o.Error.GivenUp {
		return o.OK, givenUp{failed}
	}
	return o.OK, failed
}

// Outcome reads what a recorded step got. A failed effect is its error, beside
// what it gave all the same.
func Outcome[T any](ctx context.Context, blobs blob.Store, step trace.Recorded) (v T, err error) {
	out, err := outcomeOf(ctx, blobs, step.Record().OutputID)
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

// Patience is how long a run may take: the limit it was made with, or less if its
// caller will not wait as long; zero is no limit. It is read once, at the start, and
// recorded there, so that a run plans for it instead of being cut off by it.
func Patience(ctx context.Context, limit time.Duration, started time.Time) time.Duration {
	end, ok := ctx.Deadline()
	if left := end.Sub(started); ok && (limit <= 0 || left < limit) {
		return max(left, time.Millisecond)
	}
	return limit
}

// Worked is how long a run has worked, as its record shows it: no less than at any
// moment that it has seen, although the clock may have been set back after that.
func Worked(ctx context.Context, log *trace.Log, blobs blob.Store) (time.Duration, error) {
	worked := log.Worked()
	for _, s := range log.Steps {
		switch s.(type) {
		case *trace.Checkpoint, *trace.Arrival:
			m, err := Outcome[Moment](ctx, blobs, s.(trace.Recorded))
			if err != nil {
				return 0, err
			}
			worked = max(worked, m.Elapsed)
		}
	}
	return worked, nil
}

// Left is what is left of a limit of the run: what was added, and without what it
// has worked already. A limit of zero is none, and stays so.
func Left(start *trace.Start, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return max(start.Remains(limit, start.Worked), time.Millisecond)
}

// Limited is ctx for at most d; a limit of zero is none. The caller ends it.
func Limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// Shield returns a context that hides the end of ctx, and its deadline: only effects see those,
// because what an effect does about them is recorded. Code that runs between effects under a
// shielded context cannot decide by the caller's patience, which a rerun does not have.
func Shield(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), shielded{}, ctx)
}

// shielded is the key of the context that Shield hides.
type shielded struct{}

// Fatal reports whether err says that a run cannot be recorded or replayed, which
// ends it. Any other failure is an outcome.
func Fatal(err error) bool { return errors.Is(err, ErrJournal) }

// CheckBlobs reads every blob that a trace names and fails on the first that is
// damaged or missing, naming it and the step that needs it.
func CheckBlobs(ctx context.Context, log *trace.Log, blobs blob.Store) error {
	for s, ref := range log.Refs() {
		if _, err := blobs.Get(ctx, ref); err != nil {
			return fmt.Errorf("step %d (%s): %w", s.Header().Step, s.Header().Action, err)
		}
	}
	return nil
}

// Difference shows where two results in JSON differ first: the recorded one and the one
// of a rerun.
func Difference(want, got []byte) string {
	const before, shown = 40, 80
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	near := func(s []byte) string {
		return strings.ToValidUTF8(string(s[min(len(s), max(0, at-before)):min(len(s), at+shown)]), "")
	}
	return fmt.Sprintf("first difference at byte %d of %d: …%s… was recorded, …%s… came out", at, len(want), near(want), near(got))
}
