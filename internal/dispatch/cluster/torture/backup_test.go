//go:build linux

package torture

import (
	"os"
	"testing"
	"time"
)

// What docs/cluster.md says about backups: a folder that was copied while its hub stood
// still can be put back, and what was submitted after that may be submitted again.
func TestRestore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plan{hubs: size(1, 3), workers: 2, slots: 4, lease: 4 * time.Second, latency: 10 * time.Millisecond})
	c.startAll(c.workers)
	before, after := errands(1, 5), errands(100, 5)
	c.driver.must("submit", before, nil)
	c.until(len(before), time.Minute)
	for _, h := range c.hubs { // one after the other
		h.kill()
		if err := os.CopyFS(h.store()+".copy", os.DirFS(h.store())); err != nil {
			t.Fatal(err)
		}
		c.startAll([]*machine{h})
	}
	c.driver.must("submit", after, nil)
	c.until(len(before)+len(after), time.Minute)
	for _, h := range c.hubs {
		h.kill()
	}
	for _, h := range c.hubs {
		if err := os.RemoveAll(h.store()); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(h.store()+".copy", h.store()); err != nil {
			t.Fatal(err)
		}
	}
	c.startAll(c.hubs)
	c.until(len(before), time.Minute)
	c.driver.must("submit", append(before, after...), nil)
	c.until(len(before)+len(after), time.Minute)
	for _, f := range c.findings(append(before, after...)) {
		if len(f.Problems) > 0 || f.Done != 1 || f.Ends != 1 {
			t.Errorf("task %s has %d ends: %q", f.ID, f.Ends, f.Problems)
		}
	}
}

// A hub of three whose folder is lost is begun anew under its old name, gets everything
// from the other two, and is then as good as they are.
func TestLostFolder(t *testing.T) {
	if !longer() {
		t.Skip("set MARCHWARDEN_TEST_CLUSTER=1")
	}
	t.Parallel()
	c := newCluster(t, plan{hubs: 3, workers: 2, slots: 4, lease: 4 * time.Second, latency: 10 * time.Millisecond})
	c.startAll(c.workers)
	list := errands(1, 20)
	c.driver.must("submit", list, nil)
	c.until(len(list), time.Minute)
	lost := c.hubs[0]
	lost.kill()
	if err := os.RemoveAll(lost.store()); err != nil {
		t.Fatal(err)
	}
	c.startAll([]*machine{lost})
	time.Sleep(10 * time.Second) // to catch up, which is told by cluster status
	c.hubs[1].kill()
	more := errands(100, 20)
	c.driver.must("submit", more, nil)
	c.until(len(list)+len(more), 2*time.Minute)
	var sum tally
	(&faults{cluster: c}).weigh(append(list, more...), &sum)
}

// Hubs that are killed again and again while much is written have all that was there
// before, each time.
func TestHubsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plan{hubs: size(1, 3), workers: 2, slots: 16, lease: 4 * time.Second, idle: true})
	c.startAll(c.workers)
	var all []errand
	for round := range size(2, 12) {
		list := errands(1000*round, size(150, 1000))
		c.driver.must("submit", list, nil)
		c.until(len(all)+len(list)/2, 2*time.Minute)
		for _, h := range c.hubs {
			h.kill()
		}
		c.startAll(c.hubs)
		all = append(all, list...)
		c.until(len(all), 2*time.Minute)
		var missing []string
		if c.driver.must("missing", all, &missing); len(missing) > 0 {
			t.Fatalf("round %d: of %d ends %d are gone, such as that of %s", round, len(all), len(missing), missing[0])
		}
	}
}

// store is the folder of a hub.
func (m *machine) store() string { return m.settings.(serving).Store }
