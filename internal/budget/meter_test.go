package budget_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
)

// op is one thing a goroutine does to a meter.
type op struct {
	kind string
	n    int
}

var kinds = []string{"reserve", "settle", "overrun", "hold", "take", "return", "iterate", "elapse"}

// worker does its operations and counts what happened to it.
type worker struct {
	m       *budget.Meter
	open    []*budget.Reservation
	sizes   []int
	taken   int
	used    int
	excess  int // used beyond what was reserved
	refused bool
}

const wall = time.Minute

func (w *worker) do(o op) {
	switch o.kind {
	case "reserve":
		r, err := w.m.Reserve(o.n)
		w.refused = w.refused || err != nil
		if err == nil {
			w.open, w.sizes = append(w.open, r), append(w.sizes, o.n)
		}
	case "settle", "overrun":
		if len(w.open) == 0 {
			return
		}
		used := min(o.n, w.sizes[0])
		if o.kind == "overrun" {
			used = w.sizes[0] + o.n
		}
		w.open[0].Settle(used)
		w.open[0].Settle(1 << 40) // a second time does nothing
		w.used, w.excess = w.used+used, w.excess+max(0, used-w.sizes[0])
		w.open, w.sizes = w.open[1:], w.sizes[1:]
	case "hold":
		w.m.Hold(o.n)
	case "take":
		got := w.m.TakeSources(o.n)
		w.refused = w.refused || got < o.n
		w.taken += got
	case "return":
		back := min(o.n, w.taken)
		w.m.ReturnSources(back)
		w.taken -= back
	case "iterate":
		_, err := w.m.Iterate()
		w.refused = w.refused || err != nil
	case "elapse":
		w.refused = w.m.Elapsed(time.Duration(o.n)*time.Second) != nil || w.refused
	}
}

// Whatever many goroutines do at once, every token that was used is counted, no cap is
// exceeded at any moment by more than calls used beyond what was reserved for them, and
// the meter says that something ran out only if something was refused or exceeded.
func TestNoCapIsEverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := marchwarden.Limits{
			MaxIterations: rapid.IntRange(1, 20).Draw(t, "iterations"),
			TokenBudget:   rapid.IntRange(1000, 6000).Draw(t, "tokens"),
			MaxSources:    rapid.IntRange(1, 20).Draw(t, "sources"),
		}
		plans := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
			k := rapid.SampledFrom(kinds).Draw(t, "kind")
			most := map[string]int{"take": 6, "return": 6, "elapse": 61, "iterate": 1}[k]
			if most == 0 {
				most = 1500
			}
			return op{k, rapid.IntRange(0, most).Draw(t, "n")}
		}), 0, 30), 1, 6).Draw(t, "plans")

		m := budget.New(limits, wall)
		check := func() {
			use := m.Usage()
			if use.Iterations > limits.MaxIterations || use.Sources > limits.MaxSources || use.Sources < 0 || m.Room() < 0 || m.Room() > limits.TokenBudget {
				t.Errorf("%+v with room for %d, under %+v", use, m.Room(), limits)
			}
		}
		workers := make([]*worker, len(plans))
		var running sync.WaitGroup
		for i, plan := range plans {
			w := &worker{m: m}
			workers[i] = w
			running.Go(func() {
				for _, o := range plan {
					w.do(o)
				}
			})
		}
		var done atomic.Bool
		var watching sync.WaitGroup
		watching.Go(func() {
			for !done.Load() {
				check()
			}
		})
		running.Wait()
		done.Store(true)
		watching.Wait()
		check()

		used, excess, taken, refused := 0, 0, 0, false
		for _, w := range workers {
			used, excess, taken, refused = used+w.used, excess+w.excess, taken+w.taken, refused || w.refused
		}
		use := m.Usage()
		over := used > limits.TokenBudget
		if use.Tokens != used || use.OverBudget != over || over && len(use.Exhausted) == 0 || used > limits.TokenBudget+excess {
			t.Errorf("%d tokens used, %d of them beyond what was reserved: %+v", used, excess, use)
		}
		if use.Sources != taken {
			t.Errorf("%d sources taken, %d counted", taken, use.Sources)
		}
		if refused && len(use.Exhausted) == 0 || len(use.Exhausted) > 0 && !refused && excess == 0 {
			t.Errorf("exhausted %q, refused %v, %d tokens beyond what was reserved", use.Exhausted, refused, excess)
		}
	})
}

func limits(tokens int) marchwarden.Limits {
	return marchwarden.Limits{MaxIterations: 2, TokenBudget: tokens, MaxSources: 3}
}

func reserve(t *testing.T, m *budget.Meter, n int) *budget.Reservation {
	t.Helper()
	r, err := m.Reserve(n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReserveAndSettle(t *testing.T) {
	m := budget.New(limits(1000), 0)
	a, b := reserve(t, m, 600), reserve(t, m, 400)
	if m.Room() != 0 || m.Usage().Tokens != 0 {
		t.Errorf("room %d, used %d: open reservations take room and are not use", m.Room(), m.Usage().Tokens)
	}
	_, err := m.Reserve(1)
	if marchwarden.CodeOf(err) != marchwarden.CodeExhausted || !strings.Contains(err.Error(), "1 tokens needed and 0 left of a budget of 1000") {
		t.Errorf("over the budget: %v", err)
	}
	a.Settle(100)
	a.Settle(600)
	b.Settle(-5)
	if m.Room() != 900 || m.Usage().Tokens != 100 {
		t.Errorf("room %d, used %d, want 900 and 100", m.Room(), m.Usage().Tokens)
	}
	if _, err := m.Reserve(-1); marchwarden.CodeOf(err) != marchwarden.CodeInternal {
		t.Errorf("a negative reservation: %v", err)
	}
	reserve(t, m, 0).Settle(0)
	reserve(t, m, 900).Settle(900)
	if use := m.Usage(); use.Tokens != 1000 || !slices.Equal(use.Exhausted, []string{"token budget of 1000"}) {
		t.Errorf("%+v", use)
	}
}

// A call that used more than it reserved is counted in full. Beyond the budget, or at
// the cost of what another call has reserved, that is exhaustion.
func TestUseBeyondTheReservation(t *testing.T) {
	m := budget.New(limits(1000), 0)
	m.Hold(300)
	a, b := reserve(t, m, 200), reserve(t, m, 300)
	a.Settle(450)
	if use := m.Usage(); use.Tokens != 450 || len(use.Exhausted) != 0 {
		t.Errorf("with room: %+v, want 450 counted", use)
	}
	b.Settle(900)
	if use := m.Usage(); use.Tokens != 1350 || !use.OverBudget || !slices.Equal(use.Exhausted, []string{"token budget of 1000 (the provider counted 350 more)"}) {
		t.Errorf("without: %+v, want all that was used and exhaustion", use)
	}

	m = budget.New(limits(1000), 0)
	a, b = reserve(t, m, 100), reserve(t, m, 800)
	a.Settle(500)
	if use := m.Usage(); use.Tokens != 500 || use.OverBudget || len(use.Exhausted) != 1 || m.Room() != 0 {
		t.Errorf("beside an open reservation: %+v, want 500", use)
	}
	b.Settle(800)
	if use := m.Usage(); use.Tokens != 1300 || !use.OverBudget {
		t.Errorf("with the other call: %+v", use)
	}

	m = budget.New(limits(1000), 0)
	a, b = reserve(t, m, 500), reserve(t, m, 500)
	if _, err := m.Reserve(1); err == nil {
		t.Error("more than the budget was set aside")
	}
	m.TakeSources(9)
	a.Settle(600)
	b.Settle(530)
	m.Exhaust("token budget of 1000") // known already
	if use := m.Usage(); !slices.Equal(use.Exhausted, []string{"token budget of 1000 (the provider counted 130 more)", "cap of 3 sources"}) {
		t.Errorf("two calls beyond the budget: %q", use.Exhausted)
	}
}

func TestHold(t *testing.T) {
	m := budget.New(limits(1000), 0)
	for _, c := range []struct{ hold, room int }{{400, 600}, {0, 1000}, {-7, 1000}, {500, 500}, {501, 500}, {9999, 500}} {
		if m.Hold(c.hold); m.Room() != c.room {
			t.Errorf("Hold(%d) leaves %d, want %d", c.hold, m.Room(), c.room)
		}
	}
	if _, err := m.Reserve(501); marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
		t.Errorf("held tokens were given out: %v", err)
	}
	m.Hold(0)
	reserve(t, m, 1000)
}

func TestIterationsAndSources(t *testing.T) {
	m := budget.New(limits(1000), 0)
	for want := 1; want <= 2; want++ {
		if n, err := m.Iterate(); n != want || err != nil {
			t.Errorf("Iterate = %d, %v, want %d", n, err, want)
		}
	}
	if n, err := m.Iterate(); n != 0 || marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
		t.Errorf("over the cap: %d, %v", n, err)
	}
	for _, c := range []struct{ ask, want int }{{-2, 0}, {0, 0}, {2, 2}, {2, 1}, {1, 0}} {
		if got := m.TakeSources(c.ask); got != c.want {
			t.Errorf("TakeSources(%d) = %d, want %d", c.ask, got, c.want)
		}
	}
	m.ReturnSources(-5)
	m.ReturnSources(1)
	if got := m.TakeSources(5); got != 1 {
		t.Errorf("after one was returned: %d", got)
	}
	m.ReturnSources(99)
	if use := m.Usage(); use.Sources != 0 || use.Iterations != 2 || !slices.Equal(use.Exhausted, []string{"cap of 2 iterations", "cap of 3 sources"}) {
		t.Errorf("%+v", use)
	}
}

func TestWallTimeAndOtherEnds(t *testing.T) {
	m := budget.New(limits(1000), time.Second)
	if err := m.Elapsed(999 * time.Millisecond); err != nil {
		t.Error(err)
	}
	if err := m.Elapsed(time.Second); marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
		t.Errorf("at the wall time: %v", err)
	}
	m.Exhaust("patience of the caller")
	m.Exhaust("patience of the caller")
	use := m.Usage()
	if !slices.Equal(use.Exhausted, []string{"wall time of 1s", "patience of the caller"}) {
		t.Errorf("%q", use.Exhausted)
	}
	use.Exhausted[0] = "changed"
	if m.Usage().Exhausted[0] == "changed" {
		t.Error("Usage shares its list")
	}
	if err := budget.New(limits(1000), 0).Elapsed(1000 * time.Hour); err != nil {
		t.Errorf("without a wall time: %v", err)
	}
}
