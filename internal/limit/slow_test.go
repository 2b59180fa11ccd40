package limit

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// TestSlow: what ten say at once counts once, for all limiters of the store, and no bunch of calls
// comes afterwards.
func TestSlow(t *testing.T) {
	for _, text := range []string{"requests 20/s", "tokens 600/m", "requests 100/day"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := Memory(time.Now)
				var all []*Limiter
				for range 10 {
					all = append(all, limited(t, text, store))
				}
				waits(t, all[0], 1)
				began := time.Now()
				var wg sync.WaitGroup
				for _, l := range all {
					wg.Go(func() { l.Slow(began.Add(2 * time.Second)) })
				}
				wg.Wait()
				synctest.Wait()
				var first atomic.Int64
				for _, l := range all {
					wg.Go(func() {
						waits(t, l, 1)
						first.CompareAndSwap(0, int64(time.Since(began)))
					})
				}
				wg.Wait()
				if d := time.Duration(first.Load()); d < 2*time.Second || d > 2600*time.Millisecond {
					t.Errorf("the first came after %v", d)
				}
				if d := waits(t, all[3], 1); d > time.Second {
					t.Errorf("%v later", d)
				}
			})
		})
	}
}

// TestSlowReachesThoseWhoHaveSlots: leave that was given before means nothing any more.
func TestSlowReachesThoseWhoHaveSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limited(t, "requests 2/s", Memory(time.Now))
		waits(t, l, 1)
		began := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { l.Slow(time.Now().Add(3 * time.Second)) })
		if d := waits(t, l, 1); !about(d, 3100*time.Millisecond) {
			t.Errorf("it came after %v", d)
		}
		l.Slow(began) // the past says nothing
		if d := waits(t, l, 1); d > time.Second {
			t.Errorf("%v after that", d)
		}
	})
}

// TestSlowIsTheLatest: who asks for less does not shorten what another asked for.
func TestSlowIsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Name: "acme/requests", Rate: Rate{N: 5, Per: time.Second}, Store: Memory(time.Now), Now: time.Now})
		began := time.Now()
		for _, d := range []time.Duration{3, 1, 3, 2} {
			l.Slow(began.Add(d * time.Second))
		}
		if d := waits(t, l, 1); !about(d, 3*time.Second) {
			t.Errorf("it waited for %v", d)
		}
	})
}

func TestSlowForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := &Set{Store: func(string) Store { return Memory(time.Now) }, Now: time.Now}
		for _, l := range []dispatch.Limiter{limited(t, "requests 5/s", Memory(time.Now)), limited(t, "tokens 50/m", Memory(time.Now)), set.Limit("acme/requests")} {
			l.Slow(time.Now().Add(24 * time.Hour))
			began := time.Now()
			err := uses(t.Context(), l, 1)
			var later interface {
				RetryAfter() (time.Duration, bool)
			}
			if marchwarden.CodeOf(err) != marchwarden.CodeRateLimited || time.Since(began) > time.Second || !errors.As(err, &later) || marchwarden.HintOf(err) == "" {
				t.Fatalf("%v after %v", err, time.Since(began))
			}
			if after, ok := later.RetryAfter(); !ok || after > longestSlow || after < longestSlow-time.Second {
				t.Errorf("come back in %v", after)
			}
			time.Sleep(longestSlow)
			if err := uses(t.Context(), l, 1); err != nil { // a caller tries again
				t.Error(err)
			}
		}
	})
}
