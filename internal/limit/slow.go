package limit

import (
	"context"
	"fmt"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// longestSlow is the longest pause that a provider gets; then a caller tries again.
	longestSlow = 10 * time.Minute
	// longestWait is how long a caller waits because a provider asked for it.
	longestWait = 30 * time.Second
)

// look is the moment before which no call may be made, and what is closed when it moves.
func (l *Limiter) look() (int64, <-chan struct{}) {
	l.shut.Lock()
	defer l.shut.Unlock()
	return l.slow, l.changed
}

// heard lets no call be made before a moment of the shared clock. It is false if none may for as
// long already.
func (l *Limiter) heard(at int64) bool {
	at = min(at, l.cfg.Store.Now().Add(longestSlow).UnixNano())
	l.shut.Lock()
	defer l.shut.Unlock()
	if at <= l.slow {
		return false
	}
	l.slow = at
	close(l.changed)
	l.changed = make(chan struct{})
	return true
}

// laterError says that a provider accepts no calls for longer than a caller waits.
type laterError struct {
	error
	after time.Duration
}

// RetryAfter is when to come back, as the faults of models say it.
func (e *laterError) RetryAfter() (time.Duration, bool) { return e.after, true }

// Unwrap exposes the code.
func (e *laterError) Unwrap() error { return e.error }

// later is the error of those who would have to wait too long, or nil.
func later(name string, slow, now int64) error {
	after := time.Duration(slow - now)
	if after <= longestWait {
		return nil
	}
	return &laterError{after: after, error: &marchwarden.Error{Code: marchwarden.CodeRateLimited,
		Message: fmt.Sprintf("%s: the provider accepts no calls for another %v", name, after.Round(time.Second)),
		Hint:    "try again after " + time.Unix(0, slow).UTC().Format(time.RFC3339)}}
}

// sleep waits for nanoseconds, until ctx ends and then fails, or until something changes.
func sleep(ctx context.Context, nanoseconds int64, changed <-chan struct{}) error {
	timer := time.NewTimer(time.Duration(nanoseconds))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// pass waits while the provider accepts no calls.
func (l *Limiter) pass(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		slow, changed := l.look()
		now := l.cfg.Store.Now().UnixNano()
		if now >= slow {
			return nil
		}
		if err := later(l.cfg.Name, slow, now); err != nil {
			return err
		}
		if err := sleep(ctx, slow-now, changed); err != nil {
			return err
		}
	}
}
