package pool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// Whoever is not in the network any more, or whose turn did not come in time, was not
// asked: that costs nothing.
func TestWhoIsNotThereWasNotAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		h.research = hangs
		p := configured(t, Config{Seats: []Seat{h.seat("files")}, Parallel: 1})
		if err := ask(p, "gone"); !errors.Is(err, dispatch.ErrNotAsked) || marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("one who is not there: %v", err)
		}
		within := func(d time.Duration) error {
			ctx, done := context.WithTimeout(t.Context(), d)
			defer done()
			_, err := p.Dispatch(ctx, "files", marchwarden.Request{Question: "why?"}, nil)
			return err
		}
		asked := make(chan error)
		go func() { asked <- within(time.Hour) }()
		synctest.Wait()
		if err := within(time.Minute); !errors.Is(err, dispatch.ErrNotAsked) {
			t.Errorf("one whose turn did not come: %v", err)
		}
		if err := within(-time.Minute); !errors.Is(err, dispatch.ErrNotAsked) {
			t.Errorf("one whom nobody waits for: %v", err)
		}
		if err := <-asked; err == nil || errors.Is(err, dispatch.ErrNotAsked) {
			t.Errorf("one who was at work: %v", err)
		}
	})
}
