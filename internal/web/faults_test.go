package web_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

// Whatever a source does, its clients are told, the run may be watched anew, and nothing
// is told that is for the log.
func TestFaults(t *testing.T) {
	hidden := `oops {"code":"internal","message":"the run cannot be watched; the server's log says why"}`
	timeout := `oops {"code":"timeout","message":"looking at the run takes too long"}`
	known := &marchwarden.Error{Code: marchwarden.CodeCorrupt, Message: "the <trace> is damaged", Hint: "check it", Err: fmt.Errorf("/home/somebody")}
	damaged := `oops {"code":"corrupt","message":"the \u003ctrace\u003e is damaged","hint":"check it"}`
	for name, c := range map[string]struct {
		film *film
		want string
	}{
		"fails":             {&film{err: known}, damaged},
		"fails, who knows":  {&film{err: fmt.Errorf("secret")}, hidden},
		"panics":            {&film{before: func(context.Context) { panic("secret") }}, hidden},
		"hangs and listens": {&film{err: context.Canceled, before: func(ctx context.Context) { <-ctx.Done() }}, timeout},
		"takes its time":    {&film{picture: "one", before: func(context.Context) { time.Sleep(31 * time.Second) }}, timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := newTheatre(t, web.StreamConfig{Open: c.film.open, Look: 30 * time.Second})
				v := th.watch("/1")
				other := th.watch("/1")
				pass(time.Minute)
				if v.seen() != c.want || other.seen() != c.want || !v.ended() || v.err != nil {
					t.Errorf("got %q and %q, want %q; ended: %v, %v", v.seen(), other.seen(), c.want, v.ended(), v.err)
				}
				if left := th.hub.Count(); left != 0 {
					t.Errorf("left: %d clients", left)
				}
				c.film.set(func() { c.film.picture, c.film.before, c.film.err = "better", nil, nil })
				again := th.watch("/1")
				pass(every)
				if again.seen() != "picture better" {
					t.Errorf("anew: %q", again.seen())
				}
			})
		})
	}
}
