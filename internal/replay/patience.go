package replay

import (
	"context"
	"errors"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

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

func unshield(ctx context.Context) context.Context {
	if hidden, ok := ctx.Value(shielded{}).(context.Context); ok {
		return hidden
	}
	return ctx
}

// Fatal reports whether err says that a run cannot be recorded or replayed, which
// ends it. Any other failure is an outcome.
func Fatal(err error) bool { return errors.Is(err, ErrJournal) }
