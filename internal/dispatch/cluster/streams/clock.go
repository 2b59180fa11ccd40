package streams

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// setEvery is how often the clock is compared with the hub's while limits are in use.
	setEvery = 10 * time.Second
	// rightFor is how long the clock is trusted when no hub can be asked.
	rightFor = 5 * time.Minute
)

// clock is the hub's clock as well as it is known here: this process's, which does not
// jump, and how much that is behind.
type clock struct {
	now    func() time.Time
	start  time.Time
	behind atomic.Int64 // in nanoseconds

	mu    sync.Mutex    // guards what follows, and is held by the one who asks the hub
	since time.Duration // when it was set, since start
	right bool          // it was compared at least once
}

func newClock(now func() time.Time) *clock { return &clock{now: now, start: now()} }

// passed is how long the clock has run.
func (c *clock) passed() time.Duration { return c.now().Sub(c.start) }

// Now is the time at the hub.
func (c *clock) Now() time.Time {
	return c.start.Round(0).Add(c.passed() + time.Duration(c.behind.Load()))
}

// set compares the clock with the hub's, if that was not done for a while. It fails if it
// was never done, or not for long, and cannot be done now.
func (c *clock) set(ctx context.Context, ask func(context.Context) (time.Time, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.passed()
	if c.right && asked-c.since < setEvery {
		return nil
	}
	at, err := ask(ctx)
	if err != nil {
		if c.right && asked-c.since < rightFor {
			return nil
		}
		return err
	}
	c.since, c.right = c.passed(), true
	half := (c.since - asked) / 2
	behind := at.Sub(c.start.Round(0)) - asked - half
	// What may be right already stays: hosts whose clocks agree are not driven apart.
	if (behind - time.Duration(c.behind.Load())).Abs() > half {
		c.behind.Store(int64(behind))
	}
	return nil
}
