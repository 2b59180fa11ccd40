//go:build linux

package torture

import (
	"slices"
	"testing"
	"time"
)

// TestScaling measures how much more two and four workers get done than one, at a
// provider that takes its time.
func TestScaling(t *testing.T) {
	const slots = 4
	rounds := size(1, 3)
	c := newCluster(t, plan{hubs: 1, workers: 4, slots: slots, lease: 15 * time.Second, latency: size(250*time.Millisecond, time.Second)})
	tell := size(0.4, 0.9) // a machine that does other things as well shares out its processors anew every moment
	var one float64        // tasks a second
	for i, n := range []int{1, 2, 4} {
		for _, w := range c.workers[:n] {
			if w.process == nil {
				w.start()
			}
		}
		had, list := c.done(), errands(1000*i, n*slots*rounds)
		began := time.Now()
		c.driver.must("submit", list, nil)
		c.until(had+len(list), 3*time.Minute)
		rate := float64(len(list)) / time.Since(began).Seconds()
		if n == 1 {
			one = rate
		}
		t.Logf("%d workers: %.2f tasks a second, %.2f times that of one", n, rate, rate/one)
		if rate < tell*one*float64(n) {
			t.Errorf("%d workers get %.2f times done what one does", n, rate/one)
		}
	}
}

// TestOverhead measures what the engine takes for a task, from handing it in to its
// result, when the task itself takes nothing: as a multiple of the one append to the
// disk that any engine needs, at the same hub and in the same moments.
func TestOverhead(t *testing.T) {
	c := newCluster(t, plan{hubs: 1, workers: 1, slots: 4, lease: 15 * time.Second, idle: true})
	c.startAll(c.workers)
	n := size(60, 1000)
	var took timing
	c.driver.must("time", make([]errand, n), &took)
	slices.Sort(took.Task)
	slices.Sort(took.Plain)
	at := func(of []time.Duration, share int) time.Duration {
		return of[len(of)*share/100].Round(10 * time.Microsecond)
	}
	ratio := float64(took.Task[n/2]) / float64(took.Plain[n/2])
	t.Logf("submit to result: p50 %v, p99 %v; one append: p50 %v, p99 %v; %.1f times", at(took.Task, 50), at(took.Task, 99), at(took.Plain, 50), at(took.Plain, 99), ratio)
	// On a machine that does other things besides, every one of the processes that a task passes
	// through waits for its turn; a pause that is slept somewhere still shows.
	most := float64(size(150, 30))
	if ratio > most {
		t.Errorf("a task takes %.1f times what an append takes, more than %.0f times", ratio, most)
	}
}
