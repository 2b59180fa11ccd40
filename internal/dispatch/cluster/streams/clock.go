package streams

import (
	"context"
	"sync"
	"time"
)

const (
	// setEvery is how often the clock is compared with the hub's while limits are in use.
	setEvery = 10 * time.Second
	// samples are how many times the hub is asked at first; the quickest answer counts.
	samples = 4
	// rightFor is how long the clock is trusted when no hub can be asked.
	rightFor = 5 * time.Minute
)

// clock is the hub's clock as well as it is known here: this process's, which does not
// jump, and how much that is behind.
type clock struct {
	now   func() time.Time
	start time.Time

	setting sync.Mutex // held by the one who asks the hub

	mu     sync.Mutex // guards what follows
	behind time.Duration
	since  time.Duration // when it was set, since start
	right  bool          // it was compared at least once
}

func newClock(now func() time.Time) *clock { return &clock{now: now, start: now()} }

// Now is the time at the hub.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.start.Round(0).Add(c.now().Sub(c.start) + c.behind)
}

// set compares the clock with the hub's, if that was not done for a while. It fails if it
// was never done, or not for long, and cannot be done now.
func (c *clock) set(ctx context.Context, ask func(context.Context) (time.Time, error)) error {
	c.setting.Lock()
	defer c.setting.Unlock()
	c.mu.Lock()
	age, first := c.now().Sub(c.start)-c.since, !c.right
	c.mu.Unlock()
	if !first && age < setEvery {
		return nil
	}
	tries := 1
	if first {
		tries = samples
	}
	var behind, slack time.Duration // by the quickest answer, and how far that may be off
	for i := range tries {
		asked := c.now().Sub(c.start)
		at, err := ask(ctx)
		if err != nil {
			if !first && age < rightFor {
				return nil
			}
			return err
		}
		if half := (c.now().Sub(c.start) - asked) / 2; i == 0 || half < slack {
			behind, slack = at.Sub(c.start.Round(0))-asked-half, half
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// What may be right already stays: hosts whose clocks agree are not driven apart.
	if (behind - c.behind).Abs() > slack {
		c.behind = behind
	}
	c.since, c.right = c.now().Sub(c.start), true
	return nil
}
