package replay

import (
	"context"
	"errors"
	"time"
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

// Limited is ctx for at most d; a limit of zero is none. The caller ends it.
func Limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// Fatal reports whether err says that a run cannot be recorded or replayed, which
// ends it. Any other failure is an outcome.
func Fatal(err error) bool { return errors.Is(err, ErrJournal) }
