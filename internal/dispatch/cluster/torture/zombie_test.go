//go:build linux

package torture

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// A worker that is frozen past its lease and wakes again writes nothing: neither while
// another works on its task, nor when that has finished, nor if its clock does not tell
// it that it was away, so that it goes on as if nothing had been.
func TestZombie(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		late bool // it wakes when the other has finished
		dull bool // its clock stands still
		more bool // not among the everyday tests
	}{
		{"while another works", false, false, false},
		{"after the end", true, false, true},
		{"without a clock", false, true, true},
		{"without a clock, after the end", true, true, false},
	}
	for _, tt := range tests {
		if tt.more && !longer() {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, plan{hubs: 1, workers: 2, slots: 1, lease: 2 * time.Second, latency: 500 * time.Millisecond})
			zombie, other := c.workers[0], c.workers[1]
			s := zombie.settings.(joining)
			s.Dull = tt.dull
			zombie.settings = s
			zombie.start()
			list := errands(1, 1)
			c.driver.must("submit", list, nil)
			c.taken(list[0], zombie.host.name)
			c.paid(2) // in the middle of its research
			if err := zombie.stop(); err != nil {
				t.Fatal(err)
			}
			other.start()
			if tt.late {
				c.until(1, time.Minute)
			} else {
				c.taken(list[0], other.host.name)
			}
			before := c.findings(list)[0]
			if err := zombie.resume(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * c.lease) // for whatever it may do
			c.until(1, time.Minute)
			after := c.findings(list)[0]
			if tt.late && asJSON(before) != asJSON(after) {
				t.Errorf("the journal has changed after its end: %s", cmp.Diff(asJSON(before), asJSON(after)))
			}
			if len(after.Claims) != 2 || after.Worker != other.host.name {
				t.Errorf("it was taken by %+v, and ended by %s", after.Claims, after.Worker)
			}
			var sum tally
			f := faults{cluster: c}
			f.weigh(list, &sum)
			if t.Logf("%s", sum.String()); sum.again != 1 {
				t.Error("the lease did not pass on")
			}
		})
	}
}

// A worker that is told to end hands back what it has, and another resumes it at once, not when a
// lease is over.
func TestDrain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plan{hubs: 1, workers: 2, slots: 1, lease: 30 * time.Second, latency: 500 * time.Millisecond, drain: 200 * time.Millisecond})
	old, other := c.workers[0], c.workers[1]
	old.start()
	list := errands(1, 1)
	c.driver.must("submit", list, nil)
	c.taken(list[0], old.host.name)
	c.paid(2)
	other.start()
	if !old.leave(c.lease / 2) {
		t.Fatal("it does not end")
	}
	c.until(1, time.Minute)
	var sum tally
	(&faults{cluster: c}).weigh(list, &sum)
	if t.Logf("%s", sum.String()); sum.again != 1 || sum.stall > c.lease/2 {
		t.Errorf("it was not handed back: taken up %d times, after %v", sum.again, sum.stall)
	}
}

// taken waits until a worker has a task.
func (c *cluster) taken(e errand, by string) {
	c.t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var s dispatch.State
		err := c.driver.ask("look", []errand{e}, &s)
		if err == nil && s.Worker == by {
			return
		}
		if time.Now().After(limit) {
			c.t.Fatalf("%s has not taken the task: %+v, %v", by, s, err)
		}
	}
}

// paid waits until so many calls are paid for.
func (c *cluster) paid(n int) {
	c.t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var b bill
		if c.provider.must("sum", nil, &b); b.All >= n {
			return
		}
		if time.Now().After(limit) {
			c.t.Fatalf("%d calls are paid for, not %d", b.All, n)
		}
	}
}

// Two hubs on one folder would lose what each has acknowledged: the second is refused,
// and the first goes on. When it is killed, the folder is free.
func TestTwoHubsOnOneStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plan{hubs: 1, workers: 1, slots: 1, lease: 2 * time.Second})
	first := c.hubs[0]
	second := &machine{host: c.host("second"), role: "hub"}
	s := first.settings.(serving)
	s.Name, s.Listen = "", second.ip+":4222"
	second.settings = s
	err := begin([]*machine{second})
	if err == nil {
		t.Fatal("a second hub runs on the folder of the first")
	}
	if !strings.Contains(err.Error(), s.Store) && !strings.Contains(err.Error(), "another") {
		t.Errorf("nobody understands why: %v", err)
	}
	list := errands(1, 3)
	c.startAll(c.workers)
	c.driver.must("submit", list, nil)
	c.until(len(list), time.Minute)
	if err := first.restart(0); err != nil {
		t.Fatal(err)
	}
	var sum tally
	(&faults{cluster: c}).weigh(list, &sum)
}
