package streams

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// hub is a clock that is ahead of ours, and answers after a while.
type hub struct {
	ahead       time.Duration
	there, back time.Duration // the way, which is half of the error
	err         error
	asked       int
}

func (h *hub) ask(context.Context) (time.Time, error) {
	h.asked++
	time.Sleep(h.there)
	at := time.Now().Add(h.ahead)
	time.Sleep(h.back)
	return at, h.err
}

func (h *hub) wrong(c *clock) time.Duration { return c.Now().Sub(time.Now().Add(h.ahead)) }

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hub{ahead: 90 * time.Second, there: time.Millisecond, back: 3 * time.Millisecond}
		c := newClock(time.Now)
		set := func() {
			t.Helper()
			if err := c.set(t.Context(), h.ask); err != nil {
				t.Fatal(err)
			}
		}
		set()
		if d := h.wrong(c); d.Abs() > 3*time.Millisecond || h.asked != 1 {
			t.Errorf("wrong by %v after %d questions", d, h.asked)
		}
		set() // it was just done
		if h.asked != 1 {
			t.Errorf("%d questions", h.asked)
		}
		h.ahead -= 100 * time.Millisecond
		time.Sleep(setEvery)
		set()
		if d := h.wrong(c); d.Abs() > 3*time.Millisecond {
			t.Errorf("wrong by %v after a small change", d)
		}
		time.Sleep(setEvery)
		// Another hub leads, whose clock is quite another.
		h.ahead += time.Hour
		set()
		if d := h.wrong(c); d.Abs() > 3*time.Millisecond {
			t.Errorf("wrong by %v after an hour's jump", d)
		}
		// A slow answer says little, and changes nothing.
		h.there, h.back = 0, time.Second
		time.Sleep(setEvery)
		set()
		if d := h.wrong(c); d.Abs() > 3*time.Millisecond {
			t.Errorf("wrong by %v after a slow answer", d)
		}
		h.err = errors.New("no hub")
		time.Sleep(setEvery)
		set()
		time.Sleep(rightFor)
		if err := c.set(t.Context(), h.ask); !errors.Is(err, h.err) {
			t.Errorf("it is still trusted: %v", err)
		}
	})
}

// TestClocksThatAgree: hosts with good clocks are not driven apart by slow answers.
func TestClocksThatAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hub{there: 40 * time.Millisecond}
		c := newClock(time.Now)
		if err := c.set(t.Context(), h.ask); err != nil || h.wrong(c) != 0 {
			t.Errorf("%v, wrong by %v", err, h.wrong(c))
		}
	})
}

func TestClockNeverSet(t *testing.T) {
	h := &hub{err: errors.New("no hub")}
	if err := newClock(time.Now).set(t.Context(), h.ask); !errors.Is(err, h.err) {
		t.Errorf("%v", err)
	}
}
