//go:build unix

package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// faults are the errors that a disk gives, and the calls that can have them.
var faults = []struct {
	name  string
	errno syscall.Errno
	hits  func(*sysCall) bool
}{
	{"ENOSPC", syscall.ENOSPC, func(c *sysCall) bool {
		return c.writes && c.name != "unlinkat" && c.name != "fchmod" && c.name != "fchmodat"
	}},
	{"EIO", syscall.EIO, func(c *sysCall) bool { return c.writes }},
	{"EROFS", syscall.EROFS, func(c *sysCall) bool {
		return c.writes && slices.Contains([]string{"openat", "mkdirat", "renameat", "renameat2", "unlinkat", "linkat", "fchmod", "fchmodat"}, c.name)
	}},
	{"EMFILE", syscall.EMFILE, func(c *sysCall) bool { // not settings: without them the answer could be about something else
		return c.name == "openat" && !strings.HasSuffix(c.path, "/config.yaml") && !strings.HasSuffix(c.path, "/library/folders")
	}},
}

// TestFaultAnywhere lets calls about files of the home fail, one alone or all from
// one on, at points spread evenly over a run. The answer is given all the same;
// either everything was kept or a warning says that it was not; and nothing that
// was kept is damaged.
func TestFaultAnywhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	racks := []*rack{newRack(t), newRack(t)}
	if why := canTrace(racks[0].program); why != "" {
		t.Skip("system calls cannot be made to fail here: ", why)
	}
	tests := []struct {
		scenario           string
		taste, sample, all int // of each error, both kinds together
	}{
		{"folder", 1, 4, everyPoint},
		{"web", 0, 3, 200},
		{"files", 0, 2, 100},
		{"investigation", 0, 2, 60},
		{"isolated", 0, 0, 60},
	}
	for _, tt := range tests {
		if n := tortureSize(tt.taste, tt.sample, tt.all); n > 0 {
			t.Run(tt.scenario, func(t *testing.T) { (&breaking{scenario: scenarioNamed(tt.scenario)}).points(t, racks, n) })
		}
	}
}

// breaking is one kind of faults.
type breaking struct {
	scenario scenario

	wrong complaints

	mu                      sync.Mutex // guards what follows
	tried, warned, complete int
}

// fault is one call, or all from it on, that fails.
type fault struct {
	kind int // of faults
	at   int
	on   bool // and all after it
}

func (f fault) String() string {
	how := "alone"
	if f.on {
		how = "and all after it"
	}
	return fmt.Sprintf("%s at call %d, %s", faults[f.kind].name, f.at, how)
}

// points tries n points for each error.
func (b *breaking) points(t *testing.T, racks []*rack, n int) {
	undisturbed, most := b.calm(t, racks[0])
	var cases []fault
	for kind := range faults {
		m := min(n, 2*most[kind])
		for j := range m {
			cases = append(cases, fault{kind, most[kind] * (2*j + 1) / (2 * m), j%2 == 1})
		}
	}
	if len(cases) == 0 {
		t.Fatal("no call can fail")
	}
	began := time.Now()
	var wg sync.WaitGroup
	for i, r := range racks {
		wg.Go(func() {
			for j := i; j < len(cases); j += len(racks) {
				b.try(t, r, undisturbed, cases[j])
			}
		})
	}
	wg.Wait()
	t.Logf("%d faults in %v: %d runs were kept whole all the same, %d warned", b.tried, time.Since(began).Round(time.Second/10), b.complete, b.warned)
	b.wrong.tell(t)
}

// calm is what an undisturbed run gives, and how many calls can fail.
func (b *breaking) calm(t *testing.T, r *rack) (string, []int) {
	home := r.home(t)
	defer os.RemoveAll(home)
	most := make([]int, len(faults))
	out, err := runTraced(r.spec(home, b.scenario.args...), func(c *sysCall) deed {
		for i, f := range faults {
			if !c.ends && c.below(home) && f.hits(c) && b.bearable(c) {
				most[i]++
			}
		}
		return goOn
	})
	if err != nil || out.code != 0 {
		t.Fatalf("exit code %d, %v: %s", out.code, err, out.stderr)
	}
	essence, _, err := r.essence(out.stdout)
	if err != nil {
		t.Fatal(err)
	}
	return essence, most
}

// bearable leaves out what cannot be made up for: an investigation that can no
// longer open what its researchers, which are other processes, have stored.
func (b *breaking) bearable(c *sysCall) bool { return c.writes || !b.scenario.investigation }

// try runs a scenario with a fault in it.
func (b *breaking) try(t *testing.T, r *rack, undisturbed string, f fault) {
	home := r.home(t)
	defer os.RemoveAll(home)
	seen, where := 0, ""
	out, err := runTraced(r.spec(home, b.scenario.args...), func(c *sysCall) deed {
		if c.ends || !c.below(home) || !faults[f.kind].hits(c) || !b.bearable(c) {
			return goOn
		}
		seen++
		if seen == f.at+1 {
			where = c.name + " " + nameless(strings.TrimPrefix(c.path, home))
		}
		if seen == f.at+1 || f.on && seen > f.at {
			return deed{fail: faults[f.kind].errno}
		}
		return goOn
	})
	if where == "" && err == nil {
		return // a run with fewer calls
	}
	complain := func(format string, args ...any) {
		what := fmt.Sprintf("%s at %s: ", faults[f.kind].name, where) + fmt.Sprintf(format, args...)
		b.wrong.add(what, fmt.Sprintf("%v, %v: exit code %d\n%s", f, err, out.code, out.stderr))
	}
	b.mu.Lock()
	b.tried++
	b.mu.Unlock()
	essence, id, bad := r.essence(out.stdout)
	switch {
	case err != nil:
		complain("it hangs")
	case bad != nil:
		complain("no answer")
	case essence != undisturbed:
		complain("another answer: %s", otherLine(undisturbed, essence))
	case out.code != 0:
		complain("exit code %d with the answer", out.code)
	}
	if left := inspect(home); len(left.problems) > 0 {
		complain("damage: %s", nameless(left.problems[0]))
	}
	if bad != nil {
		return
	}
	warned := strings.Contains(string(out.stderr), "warning")
	verify, err := r.spec(home, "verify", id.String()).run(0)
	whole := err == nil && verify.code == 0
	b.mu.Lock()
	defer b.mu.Unlock()
	if warned {
		b.warned++
	}
	if whole {
		b.complete++
	}
	if !warned && !whole {
		complain("not everything was kept, and no warning")
	}
}

// otherLine is the first line that two texts do not share, in short.
func otherLine(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, plaintext.Clip(g[i], 100), plaintext.Clip(w[i], 100))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

var (
	hexName = regexp.MustCompile(`[0-9a-f]{8,}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{20,}(\.[0-9A-Za-z]+\.tmp)?`)
	shard   = regexp.MustCompile(`/sha256/[0-9a-f]{2}`)
)

// nameless takes out of a text what differs from run to run.
func nameless(s string) string {
	return shard.ReplaceAllString(hexName.ReplaceAllString(s, "…"), "/sha256/ab")
}
