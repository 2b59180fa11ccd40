package limit

import (
	"context"
	"fmt"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// longestSlow is the longest pause that a provider gets; then a caller tries again.
	longestSlow = 10 * time.Minute
	// longestWait is how long a caller waits because a provider asked for it.
	longestWait = 30 * time.Second
)

// gate is shut while a provider accepts no calls.
type gate struct {
	clock Store // the shared clock alone is asked
	now   func() time.Time

	shut    sync.Mutex    // guards what follows
	slow    int64         // no call before this moment of the shared clock
	changed chan struct{} // closed when that moves
}

// look is the moment before which no call may be made, and what is closed when it moves.
func (g *gate) look() (int64, <-chan struct{}) {
	g.shut.Lock()
	defer g.shut.Unlock()
	return g.slow, g.changed
}

// slower shuts the gate until a time of this process's clock, and returns the moment on
// the shared one. It is false if the gate is shut for as long already.
func (g *gate) slower(until time.Time) (int64, bool) {
	d := min(until.Sub(g.now()), longestSlow)
	if d <= 0 {
		return 0, false
	}
	at := g.clock.Now().Add(d).UnixNano()
	return at, g.heard(at)
}

// heard shuts the gate until a moment of the shared clock. It is false if it is shut for
// as long already.
func (g *gate) heard(at int64) bool {
	at = min(at, g.clock.Now().Add(longestSlow).UnixNano())
	g.shut.Lock()
	defer g.shut.Unlock()
	if at <= g.slow {
		return false
	}
	g.slow = at
	close(g.changed)
	g.changed = make(chan struct{})
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
func (g *gate) pass(ctx context.Context, name string) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		slow, changed := g.look()
		now := g.clock.Now().UnixNano()
		if now >= slow {
			return nil
		}
		if err := later(name, slow, now); err != nil {
			return err
		}
		if err := sleep(ctx, slow-now, changed); err != nil {
			return err
		}
	}
}
