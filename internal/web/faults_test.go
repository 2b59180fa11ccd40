package web_test

import (
	"context"
	"fmt"
	"runtime"
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
		"does not open":      {&film{fails: known}, damaged},
		"fails":              {&film{err: known}, damaged},
		"fails, who knows":   {&film{err: fmt.Errorf("secret")}, hidden},
		"panics":             {&film{before: func(context.Context) { panic("secret") }}, hidden},
		"hangs and listens":  {&film{err: context.Canceled, before: func(ctx context.Context) { <-ctx.Done() }}, timeout},
		"takes its time":     {&film{picture: "one", before: func(context.Context) { time.Sleep(31 * time.Second) }}, timeout},
		"ends its goroutine": {&film{before: func(context.Context) { runtime.Goexit() }}, hidden},
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
				if clients, runs := th.hub.Count(); clients+runs != 0 {
					t.Errorf("left: %d clients, %d runs", clients, runs)
				}
				c.film.set(func() { c.film.picture, c.film.before, c.film.err, c.film.fails = "better", nil, nil, nil })
				again := th.watch("/1")
				pass(every)
				if again.seen() != "picture better" {
					t.Errorf("anew: %q", again.seen())
				}
			})
		})
	}
}

// A source that hangs whatever it is told is not opened again before it has returned:
// who comes back is told at once, and other runs are watched as ever.
func TestDeafSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		deaf, fine := &film{picture: "one"}, &film{picture: "fine"}
		th := newTheatre(t, web.StreamConfig{Look: 30 * time.Second, Open: func(ctx context.Context, run marchwarden.TraceID) (web.Source, error) {
			if run == id(1) {
				return deaf.open(ctx, run)
			}
			return fine.open(ctx, run)
		}})
		v := th.watch("/1")
		pass(every / 2)
		deaf.set(func() { deaf.picture, deaf.before = "two", func(context.Context) { <-wake } })
		pass(30 * time.Second)
		pass(time.Second)
		want := `picture one, oops {"code":"timeout","message":"looking at the run takes too long"}`
		if v.seen() != want || !v.ended() {
			t.Errorf("got %q", v.seen())
		}
		for range 5 {
			v, w := th.watch("/1"), th.watch("/2")
			pass(time.Second)
			if v.seen() != want || w.seen() != "picture fine" {
				t.Errorf("back: %q; another: %q", v.seen(), w.seen())
			}
		}
		if opened, looks := deaf.count(); opened != 1 || looks != 2 {
			t.Errorf("opened %d times, looked at %d times", opened, looks)
		}
		close(wake)
		pass(time.Second)
		deaf.set(func() { deaf.before = nil })
		v = th.watch("/1")
		pass(every)
		if v.seen() != "picture two" {
			t.Errorf("when it has returned: %q", v.seen())
		}
	})
}
