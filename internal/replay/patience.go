package replay

import (
	"context"
	"errors"
	"time"

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

// Left is what is left of a limit of the run: what was added, and without what it
// has worked already. A limit of zero is none, and stays so.
func Left(start *trace.Start, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	for _, e := range start.Extended {
		limit += e.Wall
	}
	return max(limit-start.Counted(start.Worked), time.Millisecond)
}

// Limited is ctx for at most d; a limit of zero is none. The caller ends it.
func Limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
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

// Fatal reports whether err says that a run cannot be recorded or replayed, which
// ends it. Any other failure is an outcome.
func Fatal(err error) bool { return errors.Is(err, ErrJournal) }
