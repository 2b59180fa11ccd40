//go:build linux

package torture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// slowest is how long a cluster may take to get over what happened to it.
const slowest = 90 * time.Second

// TestChaos does everything to a cluster of three hubs and six workers that a bad day
// does, while it works: a worker and the hub that leads are killed while another worker
// is cut off without a word, the next hub that leads is cut off while a worker is frozen,
// and at last everything loses its power at once. Nothing is lost and nothing comes twice;
// nothing is paid for twice but what was under way; and every record is whole.
func TestChaos(t *testing.T) {
	if !longer() {
		t.Skip("set MARCHWARDEN_TEST_CLUSTER=1")
	}
	t.Parallel()
	c := newCluster(t, plan{hubs: 3, workers: 6, slots: size(2, 4), lease: size(4*time.Second, 15*time.Second), latency: size(150*time.Millisecond, 400*time.Millisecond)})
	list := errands(1, size(60, 1000))
	c.startAll(c.workers)
	c.driver.must("submit", list, nil)
	f := &faults{cluster: c, tasks: len(list)}
	all := [][]func() fault{{f.killWorker, f.killLeader, f.cutWorker}, {f.cutLeader, f.freezeWorker}, {f.killEverything}}
	if full() {
		all = [][]func() fault{{f.killWorker}, {f.killLeader}, {f.cutWorker}, {f.cutLeader}, {f.freezeWorker}, {f.killHub, f.killWorker}, {f.killEverything}}
	}
	for i, kinds := range all {
		c.until((i+1)*len(list)/(len(all)+2), 3*time.Minute)
		f.befall(kinds...)
	}
	c.until(len(list), 4*time.Minute)
	f.judge(list)
}

// TestChaosAtRandom does a few things at random moments, again and again.
func TestChaosAtRandom(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("MARCHWARDEN_TEST_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("MARCHWARDEN_TEST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 8))
	c := newCluster(t, plan{hubs: size(1, 3), workers: 4, slots: 2, lease: size(2*time.Second, 4*time.Second), latency: 100 * time.Millisecond})
	list := errands(1, size(40, 600))
	c.startAll(c.workers)
	c.driver.must("submit", list, nil)
	f := &faults{cluster: c, tasks: len(list), random: random}
	kinds := []func() fault{f.killWorker, f.killWorker, f.killHub, f.cutWorker, f.freezeWorker, f.killEverything}
	if len(c.hubs) > 1 {
		kinds = append(kinds, f.killLeader, f.cutLeader)
	}
	for range size(3, 60) {
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		if c.done() >= len(list) {
			break
		}
		f.befall(kinds[random.IntN(len(kinds))])
	}
	c.until(len(list), 4*time.Minute)
	f.judge(list)
}

// faults are what is done to a cluster, and what it made of that.
type faults struct {
	*cluster
	random *rand.Rand // nil picks in turn
	turn   int
	tasks  int
	told   []string
}

// fault is one thing that happens, and is over when do returns.
type fault struct {
	what string
	do   func() error
}

func (f *faults) any(list []*machine) *machine {
	f.turn++
	if f.random != nil {
		return list[f.random.IntN(len(list))]
	}
	return list[f.turn%len(list)]
}

func (f *faults) how() cut {
	if f.random != nil && f.random.IntN(3) == 0 {
		return unplugged
	}
	return silent
}

// befall lets things happen at once, and measures the longest time without a payment,
// from then until work goes on.
func (f *faults) befall(kinds ...func() fault) {
	f.t.Helper()
	var before, after bill
	var what []string
	var g errgroup.Group
	var all []fault
	for _, kind := range kinds {
		all = append(all, kind())
		what = append(what, all[len(all)-1].what)
	}
	f.provider.must("begin", nil, nil)
	began := time.Now()
	for _, one := range all {
		g.Go(one.do)
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	f.provider.must("sum", nil, &before)
	for limit := time.Now().Add(2 * slowest); after.All <= before.All; time.Sleep(50 * time.Millisecond) {
		f.provider.must("sum", nil, &after)
		if f.done() >= f.tasks {
			break
		}
		if time.Now().After(limit) {
			f.t.Fatalf("%q: nothing goes on", what)
		}
	}
	f.told = append(f.told, fmt.Sprintf("%s, %s to %s: %v without a paid call", strings.Join(what, " and "), began.UTC().Format(clock), time.Now().UTC().Format(clock), after.Gap.Round(10*time.Millisecond)))
	if after.Gap > slowest {
		f.t.Errorf("%q: nothing was paid for %v", what, after.Gap)
	}
}

func (f *faults) killWorker() fault {
	w := f.any(f.workers)
	return fault{"kill -9 of " + w.host.name, func() error { return w.restart(0) }}
}

func (f *faults) killLeader() fault {
	h := f.leader()
	return fault{"kill -9 of " + h.host.name + ", which leads", func() error { return h.restart(2 * time.Second) }}
}

func (f *faults) killHub() fault {
	h := f.any(f.hubs)
	return fault{"kill -9 of " + h.host.name, func() error { return h.restart(0) }}
}

func (f *faults) cutWorker() fault {
	w, how := f.any(f.workers), f.how()
	return fault{w.host.name + " cut off, " + string(how), func() error { return w.without(how, f.lease*3/2) }}
}

func (f *faults) cutLeader() fault {
	h, how := f.leader(), f.how()
	return fault{h.host.name + ", which leads, cut off, " + string(how), func() error { return h.without(how, size(6*time.Second, 8*time.Second)) }}
}

func (f *faults) freezeWorker() fault {
	w := f.any(f.workers)
	return fault{w.host.name + " frozen past its lease", func() error {
		err := w.stop()
		time.Sleep(f.lease * 3 / 2)
		return errors.Join(err, w.resume())
	}}
}

func (f *faults) killEverything() fault {
	return fault{"kill -9 of all hubs and workers", func() error {
		for _, m := range append(slices.Clone(f.hubs), f.workers...) {
			m.kill()
		}
		time.Sleep(time.Second)
		return errors.Join(begin(f.hubs), begin(f.workers))
	}}
}
