//go:build linux

package torture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// judge holds what there is in the end to what there should be.
func (f *faults) judge(list []errand) {
	f.t.Helper()
	var sum tally
	f.weigh(list, &sum)
	if n := f.done(); n != len(list) {
		f.t.Errorf("%d tasks have %d ends", len(list), n)
	}
	if sum.stall > slowest {
		f.t.Errorf("a task had to wait for %v", sum.stall)
	}
	for _, told := range f.told {
		f.t.Log(told)
	}
	f.t.Logf("%d tasks: %s", len(list), sum.String())
	var log kept
	f.driver.must("held", logStream, &log)
	f.t.Logf("%d messages and %d bytes in %s, %.1f and %.0f a task; RSS %d MB a hub, %d MB a worker", log.Messages, log.Bytes, logStream,
		float64(log.Messages)/float64(len(list)), float64(log.Bytes)/float64(len(list)), f.hubs[0].memory(), f.workers[0].memory())
}

// findings are what is found about tasks.
func (c *cluster) findings(list []errand) (found []finding) {
	c.t.Helper()
	c.driver.must("audit", list, &found)
	return found
}

// weigh judges tasks one by one.
func (f *faults) weigh(list []errand, sum *tally) {
	f.t.Helper()
	var paid bill
	f.provider.must("bill", nil, &paid)
	traces := calmFolder(f.t)
	for i, found := range f.findings(list) {
		sum.add(f.t, list[i], found, undisturbed(f.t, traces, list[i]), paid.Paid[list[i].ID])
	}
}

// tally is what came of many tasks.
type tally struct {
	taken, again, resumed, paid, twice, gaveUp int
	stall                                      time.Duration
	stalled                                    string
}

func (s *tally) String() string {
	return fmt.Sprintf("%d taken more than once (%d times in all), %d resumptions, %d calls paid for, %d of them again; longest time without an entry in a record %v (%s); %d gave a call up",
		s.again, s.taken, s.resumed, s.paid, s.twice, s.stall.Round(10*time.Millisecond), s.stalled, s.gaveUp)
}

// add judges one task.
func (s *tally) add(t testing.TB, e errand, f finding, calm calm, paid map[string]int) {
	t.Helper()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("task %s of plot %d: "+format, append([]any{e.ID, e.Plot}, args...)...)
	}
	if len(f.Problems) > 0 || f.Status != dispatch.Done || f.Ends != 1 || f.Done != 1 {
		wrong("%s with %d ends and %d copies of it: %q", f.Status, f.Ends, f.Done, f.Problems)
		return
	}
	lost := len(f.Claims) - 1 // attempts that came to nothing
	// What cut a run off twice is not tried a third time: that is another result.
	gaveUp := strings.Contains(f.Essence, "not tried again")
	if f.Essence != calm.essence && !(gaveUp && lost > 1) {
		wrong("another result than undisturbed:\n%s\n%s", f.Essence, calm.essence)
	}
	begun := 0 // attempts that found a record to resume, and were not the first
	for _, c := range f.Claims {
		if c.Lines > 0 {
			begun++
		}
	}
	if f.Resumed > begun {
		wrong("it was gone on with %d times, but taken up only %d times", f.Resumed, begun)
	}
	twice, model := 0, 0
	for _, key := range slices.Sorted(maps.Keys(paid)) {
		n := paid[key]
		switch {
		case calm.paid[key] == 0 && !gaveUp:
			wrong("%s was paid for, which nobody needs", key)
		case n > 1+lost:
			wrong("%s was paid for %d times in %d attempts", key, n, lost+1)
		}
		twice += n - 1
		if strings.HasPrefix(key, "model ") {
			model += n - 1
		}
	}
	for key := range calm.paid {
		if paid[key] == 0 && !gaveUp {
			wrong("%s was never paid for", key)
		}
	}
	if model > lost {
		wrong("%d model calls were paid for again, and %d attempts were lost", model, lost)
	}
	if twice > f.Retried {
		wrong("%d calls were paid for again, and the record marks %d as tried again", twice, f.Retried)
	}
	if want := calm.lines + f.Resumed + f.Retried; !gaveUp && f.Lines != want {
		wrong("%d lines, want %d: those of an undisturbed run, %d resumptions and %d begun again", f.Lines, want, f.Resumed, f.Retried)
	}
	s.count(f, lost, len(paid)+twice, twice, gaveUp)
}

func (s *tally) count(f finding, lost, paid, twice int, gaveUp bool) {
	if lost > 0 {
		s.again++
	}
	if gaveUp {
		s.gaveUp++
	}
	s.taken += len(f.Claims)
	s.resumed += f.Resumed
	s.paid += paid
	s.twice += twice
	if f.Stall > s.stall {
		s.stall, s.stalled = f.Stall, f.Stalled
	}
}
