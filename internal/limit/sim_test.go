package limit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is some hosts with one limit, and a provider that notes when they come.
type world struct {
	rate    Rate
	hosts   int
	callers int // on each host
	skew    time.Duration
	latency time.Duration // of a store, at most
	way     time.Duration // to the provider, at most
	stalls  int           // of a host, in all
	faults  float64       // of exchanges with a store, done or not
	gives   float64       // of waits that are given up, and of uses that cost less
	weight  int           // of a use, at most
	lasts   time.Duration
	seed    uint64
	count   func(swap bool) // is told of every exchange with the store; nil: unused

	mu   sync.Mutex // guards what follows
	rng  *rand.Rand
	came []arrival
}

type arrival struct {
	at time.Time
	n  int
}

func (w *world) chance() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Float64()
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.chance() * float64(d)) }

// hostCell is a shared store as one host sees it: slow, faulty, and with a clock that is
// not quite right.
type hostCell struct {
	inner Store
	world *world
	skew  time.Duration

	mu      sync.Mutex // guards what follows
	stalled time.Time  // the host stands still until then
}

var errLost = errors.New("no answer")

func (c *hostCell) Load(ctx context.Context) ([]byte, uint64, error) {
	if err := sleep(ctx, int64(c.world.upTo(c.world.latency)), nil); err != nil {
		return nil, 0, err
	}
	if c.world.chance() < c.world.faults {
		return nil, 0, errLost
	}
	if c.world.count != nil {
		c.world.count(false)
	}
	return c.inner.Load(ctx)
}

func (c *hostCell) Swap(ctx context.Context, state []byte, rev uint64) error {
	if err := sleep(ctx, int64(c.world.upTo(c.world.latency/2)), nil); err != nil {
		return err
	}
	fault := c.world.chance()
	if fault < c.world.faults/2 {
		return errLost
	}
	if c.world.count != nil {
		c.world.count(true)
	}
	err := c.inner.Swap(ctx, state, rev)
	time.Sleep(c.world.upTo(c.world.latency / 2))
	if fault < c.world.faults && err == nil {
		return errLost // it was done, and the answer did not come
	}
	return err
}

// Now holds up every caller on a host that stands still: one that looks at the clock before it
// sends does so after it woke.
func (c *hostCell) Now() time.Time {
	c.mu.Lock()
	until := c.stalled
	c.mu.Unlock()
	time.Sleep(time.Until(until))
	return time.Now().Add(c.skew)
}

func (c *hostCell) stall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled = time.Now().Add(d)
}

// run lets the callers use as much as they get for a while.
func (w *world) run(t *testing.T) {
	w.rng = rand.New(rand.NewPCG(w.seed, 1))
	shared := Memory(time.Now)
	ctx, cancel := context.WithTimeout(t.Context(), w.lasts)
	defer cancel()
	var wg sync.WaitGroup
	for h := range w.hosts {
		skew := time.Duration((2*float64(h)/float64(max(1, w.hosts-1)) - 1) * float64(w.skew))
		store := &hostCell{inner: shared, world: w, skew: skew}
		l := New(Config{Name: "acme/requests", Rate: w.rate, Store: store, Now: time.Now})
		for range w.callers {
			wg.Go(func() { w.call(ctx, t, l) })
		}
		wg.Go(func() {
			for range w.stalls {
				if sleep(ctx, int64(w.upTo(w.lasts/2)), nil) != nil {
					return
				}
				store.stall(time.Duration(float64(2*time.Second) * w.chance()))
			}
		})
	}
	wg.Wait()
	time.Sleep(time.Minute) // the last exchanges end
	slices.SortFunc(w.came, func(a, b arrival) int { return a.at.Compare(b.at) })
}

func (w *world) call(ctx context.Context, t *testing.T, l *Limiter) {
	for ctx.Err() == nil {
		patient, cancel := context.WithCancel(ctx)
		if w.chance() < w.gives {
			patient, cancel = context.WithTimeout(ctx, w.upTo(time.Second))
		}
		n := 1 + int(w.upTo(time.Duration(w.weight)))
		settle, err := l.Take(patient, n)
		cancel()
		switch {
		case err == nil:
		case marchwarden.CodeOf(err) == marchwarden.CodeCanceled || marchwarden.CodeOf(err) == marchwarden.CodeUnavailable:
			continue
		default:
			t.Errorf("wait: %v", err)
			return
		}
		time.Sleep(w.upTo(w.way))
		used := n
		if w.chance() < w.gives && w.rate.Per != time.Second {
			used = int(w.upTo(time.Duration(n)))
		}
		w.mu.Lock()
		w.came = append(w.came, arrival{time.Now(), used})
		w.mu.Unlock()
		time.Sleep(w.upTo(w.way))
		settle(used)
	}
}

// most is the largest sum of uses in any window, wherever it begins.
func (w *world) most(per time.Duration) int {
	most, sum, first := 0, 0, 0
	for _, a := range w.came {
		sum += a.n
		for a.at.Sub(w.came[first].at) >= per {
			sum -= w.came[first].n
			first++
		}
		most = max(most, sum)
	}
	return most
}

func (w *world) total() (n int) {
	for _, a := range w.came {
		n += a.n
	}
	return n
}

// average is how many came a second, from the first to the last.
func (w *world) average() float64 {
	return float64(w.total()-1) / w.came[len(w.came)-1].at.Sub(w.came[0].at).Seconds()
}

// TestPacedUse: six hosts that want more than there is get more than nine tenths of it,
// and the provider never sees more than it allows.
func TestPacedUse(t *testing.T) {
	for _, n := range []float64{1, 2, 10, 50, 200} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{rate: Rate{N: n, Per: time.Second}, hosts: 6, callers: 12, skew: 5 * time.Millisecond, latency: 20 * time.Millisecond, way: 10 * time.Millisecond, lasts: 30 * time.Second}
			w.run(t)
			most, per := w.most(time.Second), w.average()
			t.Logf("%v/s: %d in the busiest second, %.1f/s on average", n, most, per)
			if float64(most) > n || per < 0.9*n || per > n {
				t.Errorf("%v/s: %d in the busiest second, %.1f/s on average", n, most, per)
			}
		})
	}
}

// TestPacedInvariant: whatever happens to hosts and stores, there is no second with more
// than the limit and a twentieth.
func TestPacedInvariant(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &world{
			rate:    Rate{N: float64(rapid.IntRange(1, 80).Draw(r, "n")), Per: time.Second},
			hosts:   rapid.IntRange(1, 12).Draw(r, "hosts"),
			callers: rapid.IntRange(1, 6).Draw(r, "callers"),
			skew:    rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond, 10 * time.Millisecond}).Draw(r, "skew"),
			latency: rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond, 80 * time.Millisecond, 400 * time.Millisecond}).Draw(r, "latency"),
			way:     rapid.SampledFrom([]time.Duration{0, 10 * time.Millisecond}).Draw(r, "way"),
			stalls:  rapid.IntRange(0, 3).Draw(r, "stalls"),
			faults:  rapid.SampledFrom([]float64{0, 0.05, 0.3}).Draw(r, "faults"),
			gives:   rapid.SampledFrom([]float64{0, 0.2}).Draw(r, "gives"),
			lasts:   6 * time.Second,
			seed:    rapid.Uint64().Draw(r, "seed"),
		}
		w.weight = rapid.IntRange(0, int(w.rate.N)-1).Draw(r, "weight") * rapid.IntRange(0, 1).Draw(r, "weighs")
		synctest.Test(t, w.run)
		if most := w.most(time.Second); float64(most) > 1.05*w.rate.N {
			r.Errorf("%d in one second, of %v", most, w.rate)
		}
		if w.total() == 0 && w.faults < 0.3 && w.stalls == 0 { // else the time may be too short
			r.Errorf("nobody came")
		}
	})
}

// TestWindowInvariant is the same for uses of different weights by the minute.
func TestWindowInvariant(t *testing.T) {
	datatest.FewChecks(t)
	rapid.Check(t, func(r *rapid.T) {
		w := &world{
			rate:    Rate{N: float64(rapid.IntRange(10, 5000).Draw(r, "n")), Per: time.Minute},
			hosts:   rapid.IntRange(1, 8).Draw(r, "hosts"),
			callers: rapid.IntRange(1, 4).Draw(r, "callers"),
			skew:    rapid.SampledFrom([]time.Duration{0, 200 * time.Millisecond}).Draw(r, "skew"),
			latency: rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond}).Draw(r, "latency"),
			way:     rapid.SampledFrom([]time.Duration{50 * time.Millisecond, 200 * time.Millisecond}).Draw(r, "way"),
			stalls:  rapid.IntRange(0, 2).Draw(r, "stalls"),
			faults:  rapid.SampledFrom([]float64{0, 0.05}).Draw(r, "faults"),
			gives:   rapid.SampledFrom([]float64{0, 0.3}).Draw(r, "gives"),
			lasts:   130 * time.Second,
			seed:    rapid.Uint64().Draw(r, "seed"),
		}
		w.weight = int(w.rate.N) / rapid.IntRange(1, 20).Draw(r, "part")
		synctest.Test(t, w.run)
		if most := w.most(time.Minute); float64(most) > w.rate.N {
			r.Errorf("%d in one minute, of %v", most, w.rate)
		}
	})
}

// TestWindowUse: with small uses, hardly anything of a window is left.
func TestWindowUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{rate: Rate{N: 6000, Per: time.Minute}, hosts: 6, callers: 8, latency: 10 * time.Millisecond, way: 10 * time.Millisecond, weight: 50, gives: 0.5, lasts: 5 * time.Minute}
		w.run(t)
		most, per := w.most(time.Minute), float64(w.total())/w.lasts.Minutes()
		t.Logf("%d in the busiest minute, %.0f/m on average", most, per)
		if float64(most) > w.rate.N || per < 0.9*w.rate.N {
			t.Errorf("%d in the busiest minute, %.0f/m on average", most, per)
		}
	})
}
