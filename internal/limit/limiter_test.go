package limit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// limited is a limiter on a store, by the clock of the bubble.
func limited(t *testing.T, text string, store Store) *Limiter {
	t.Helper()
	rules, err := ParseRules([]string{"acme " + text})
	if err != nil {
		t.Fatal(err)
	}
	one := rules.list[0]
	return New(Config{Name: Key(one.subject, one.measure), Rate: one.rate, Store: store, Now: time.Now})
}

// uses takes n and uses all of it.
func uses(ctx context.Context, l dispatch.Limiter, n int) error {
	settle, err := l.Take(ctx, n)
	if err == nil {
		settle(n)
	}
	return err
}

// waits is how long it takes until n may be used.
func waits(t *testing.T, l dispatch.Limiter, n int) time.Duration {
	t.Helper()
	began := time.Now()
	if err := uses(t.Context(), l, n); err != nil {
		t.Errorf("wait for %d: %v", n, err)
	}
	return time.Since(began)
}

func about(d, want time.Duration) bool { return d >= want && d < want+want/10+50*time.Millisecond }

// late is a store that takes a while to say that it did what it did.
type late struct {
	Store
	by atomic.Int64
}

func (l *late) Swap(ctx context.Context, state []byte, rev uint64) error {
	err := l.Store.Swap(ctx, state, rev)
	time.Sleep(time.Duration(l.by.Swap(0)))
	return err
}

// TestLateLeave: leave to use a window that comes long after it was written down is not
// used, or the next window would begin too early.
func TestLateLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := Memory(time.Now)
		slow := &late{Store: shared}
		slow.by.Store(int64(4 * time.Second))
		waits(t, limited(t, "tokens 100/m", slow), 100)
		if d := waits(t, limited(t, "tokens 100/m", shared), 100); d < time.Minute {
			t.Errorf("the next window began after %v", d)
		}
	})
}

func TestDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limited(t, "money 10/day", Memory(time.Now))
		take := func(n int) func(int) {
			t.Helper()
			settle, err := l.Take(t.Context(), n*Millionths)
			if err != nil {
				t.Fatalf("take $%d: %v", n, err)
			}
			return settle
		}
		first, second := take(6), take(4)
		// What is set aside may come back, so it is waited for.
		time.AfterFunc(5*time.Second, func() { first(1 * Millionths) })
		began := time.Now()
		third := take(5)
		if d := time.Since(began); d < 5*time.Second || d > 7*time.Second {
			t.Errorf("it waited for %v", d)
		}
		second(4 * Millionths)
		third(5 * Millionths)
		time.Sleep(time.Second)
		began = time.Now()
		_, err := l.Take(t.Context(), Millionths)
		want := "acme/money: of $10/day, $10 are used today, and this may take $1"
		if fmt.Sprint(err) != want || marchwarden.CodeOf(err) != marchwarden.CodeExhausted || time.Since(began) > 100*time.Millisecond {
			t.Errorf("%v after %v, want %s", err, time.Since(began), want)
		}
		tomorrow := began.UTC().Truncate(Day).Add(Day)
		if hint := marchwarden.HintOf(err); !strings.Contains(hint, tomorrow.Format(time.RFC3339)) {
			t.Errorf("hint %q", hint)
		}
		time.Sleep(time.Until(tomorrow))
		gone := take(8)
		// It is not settled: a quarter of an hour later it is spent.
		time.Sleep(20 * time.Minute)
		if _, err := l.Take(t.Context(), 3*Millionths); marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
			t.Errorf("after a crash: %v", err)
		}
		gone(3 * Millionths) // it was only late
		time.Sleep(time.Second)
		take(7)
	})
}

// TestSettle: what was not used is given back once, whatever else was used before it.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limited(t, "tokens 1000/m", Memory(time.Now))
		waits(t, l, 1000)
		time.Sleep(2 * time.Minute)
		settle, err := l.Take(t.Context(), 900)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, func() { settle(400) })
		if d := waits(t, l, 600); d < 3*time.Second || d > 5*time.Second {
			t.Errorf("what was given back came after %v", d)
		}
		if d := waits(t, l, 900); d < time.Minute || d > 67*time.Second {
			t.Errorf("the window passed after %v", d)
		}
		settle(0) // a second word does not count
		synctest.Wait()
		if d := waits(t, l, 500); d < time.Minute || d > 67*time.Second {
			t.Errorf("a full window after %v", d)
		}
	})
}

func TestTooMuch(t *testing.T) {
	for text, n := range map[string]int{"requests 5/s": 6, "tokens 1000/m": 1001, "money 1/day": Millionths + 1} {
		l := limited(t, text, Memory(time.Now))
		err := uses(t.Context(), l, n)
		if marchwarden.CodeOf(err) != marchwarden.CodeExhausted || !strings.Contains(err.Error(), "ever allows") || !strings.Contains(err.Error(), l.cfg.Name) {
			t.Errorf("%d of %s: %v", n, text, err)
		}
	}
}

// TestCanceled: who gives up has used nothing, and what it had goes to others.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := Memory(time.Now)
		l, other := limited(t, "requests 1/s", store), limited(t, "requests 1/s", store)
		waits(t, l, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := uses(ctx, l, 1); marchwarden.CodeOf(err) != marchwarden.CodeCanceled || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if waits(t, other, 1); !about(time.Since(began), 1060*time.Millisecond) {
			t.Errorf("the slot came to the other after %v", time.Since(began))
		}
		done, stop := context.WithCancel(t.Context())
		stop()
		if err := uses(done, l, 1); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
			t.Errorf("%v", err)
		}
	})
}

// broken is a store that can be out of reach.
type broken struct {
	Store
	out atomic.Bool
}

func (b *broken) Load(ctx context.Context) ([]byte, uint64, error) {
	if b.out.Load() {
		return nil, 0, errLost
	}
	return b.Store.Load(ctx)
}

func (b *broken) Swap(ctx context.Context, state []byte, rev uint64) error {
	if b.out.Load() {
		return errLost
	}
	return b.Store.Swap(ctx, state, rev)
}

// TestUnreachable: without the store no call is let through, every caller is told, and it continues
// when the store is back.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &broken{Store: Memory(time.Now)}
		l := limited(t, "requests 50/s", store)
		waits(t, l, 1)
		store.out.Store(true)
		began := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				err := uses(t.Context(), l, 1)
				var fault interface{ Retryable() bool }
				if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !errors.Is(err, errLost) || !errors.As(err, &fault) || fault.Retryable() {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(began); d < patience || d > 2*patience {
			t.Errorf("it took %v", d)
		}
		time.AfterFunc(time.Second, func() { store.out.Store(false) })
		if d := waits(t, l, 1); d > 2*time.Second {
			t.Errorf("%v after it was back", d)
		}
	})
}

// TestWrongState: what cannot be read is said, and times that a wrong clock wrote do no
// lasting harm.
func TestWrongState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for state, want := range map[string]marchwarden.Code{"{": marchwarden.CodeCorrupt, `{"v":99}`: marchwarden.CodeUnsupported} {
			l := limited(t, "requests 5/s", &memory{now: time.Now, state: []byte(state), rev: 3})
			if err := uses(t.Context(), l, 1); marchwarden.CodeOf(err) != want {
				t.Errorf("%s: %v", state, err)
			}
		}
		year := time.Now().AddDate(1, 0, 0)
		for text, s := range map[string]state{
			"requests 5/s": {Next: year.UnixNano()},
			"tokens 50/m":  {Width: int64(time.Second), At: year.Unix(), Used: []int64{40}},
			"money 1/day":  {Day: year.Format(time.DateOnly), Spent: Millionths},
		} {
			if d := waits(t, limited(t, text, &memory{now: time.Now, state: s.encode(), rev: 3}), 5); d > 70*time.Second {
				t.Errorf("%s: %v", text, d)
			}
		}
	})
}

func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules, err := ParseRules([]string{"acme requests 5/s", "host:* requests 1/s"})
		if err != nil {
			t.Fatal(err)
		}
		stores := map[string]Store{}
		var mu sync.Mutex
		store := func(key string) Store {
			mu.Lock()
			defer mu.Unlock()
			if stores[key] == nil {
				stores[key] = Memory(time.Now)
			}
			return stores[key]
		}
		there := &Set{Rules: rules, Now: time.Now, Store: store}
		here := &Set{Rules: rules, Now: time.Now, Store: store}
		if here.Limit("a") != here.Limit("a") || !here.Limit("acme/requests").Limited() || here.Limit("other/requests").Limited() {
			t.Error("limits are not what they should be")
		}
		// Hosts do not wait for each other, but each for itself.
		if waits(t, here.Limit("host:one/requests"), 1)+waits(t, here.Limit("host:two/requests"), 1) != 0 || waits(t, there.Limit("host:one/requests"), 1) == 0 {
			t.Error("hosts are mixed up")
		}
		// A provider that has a limit is left alone by all; another by who was told.
		for key, others := range map[string]time.Duration{"other/requests": 0, "host:one/requests": 3 * time.Second} {
			here.Limit(key).Slow(time.Now().Add(3 * time.Second))
			synctest.Wait()
			if d := waits(t, there.Limit(key), 1); !about(d, others) {
				t.Errorf("%s: others waited for %v", key, d)
			}
			if d := waits(t, here.Limit(key), 1) + others; d < 3*time.Second {
				t.Errorf("%s: it waited for %v", key, d)
			}
		}
	})
}

// TestSetForgets: limiters at rest are forgotten, whatever the rate, and those that hold a caller
// back are not.
func TestSetForgets(t *testing.T) {
	for _, rate := range []string{"1/s", "100/m", "100/h", "100/day", ""} {
		synctest.Test(t, func(t *testing.T) {
			var rules Rules
			if rate != "" {
				var err error
				if rules, err = ParseRules([]string{"host:* requests " + rate}); err != nil {
					t.Fatal(err)
				}
			}
			s := &Set{Rules: rules, Now: time.Now, Store: func(string) Store { return Memory(time.Now) }}
			for i := range mostKept {
				waits(t, s.Limit(fmt.Sprintf("host:%d/requests", i)), 1)
			}
			s.Limit("host:0/requests").Slow(time.Now().Add(longestSlow))
			time.Sleep(time.Minute)
			s.forget()
			if len(s.byKey) != 1 || s.byKey["host:0/requests"] == nil {
				t.Errorf("%q: %d are remembered", rate, len(s.byKey))
			}
			time.Sleep(longestSlow)
			if s.forget(); len(s.byKey) != 0 {
				t.Errorf("%q: %d are remembered for good", rate, len(s.byKey))
			}
		})
	}
}

// TestManyHosts counts what 200 hosts that all want the same cost the store.
func TestManyHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{rate: Rate{N: 50, Per: time.Second}, hosts: 200, callers: 2, latency: 10 * time.Millisecond, lasts: 8 * time.Second}
		var loads, swaps atomic.Int64
		w.count = func(swap bool) {
			if swap {
				swaps.Add(1)
			} else {
				loads.Add(1)
			}
		}
		w.run(t)
		per := w.average()
		t.Logf("%d in the busiest second, %.1f/s; %.0f loads and %.0f swaps a second", w.most(time.Second), per, float64(loads.Load())/w.lasts.Seconds(), float64(swaps.Load())/w.lasts.Seconds())
		if w.most(time.Second) > 50 || per < 45 || float64(loads.Load()+swaps.Load()) > w.lasts.Seconds()*2000 {
			t.Errorf("%d in the busiest second, %.1f/s", w.most(time.Second), per)
		}
	})
}
