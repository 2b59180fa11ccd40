//go:build unix

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tortureSize is how much of a torture is done: a taste in the everyday run of the
// tests, a sample where MARCHWARDEN_TEST_FULL is 1, all where it is torture.
func tortureSize(taste, sample, all int) int {
	switch os.Getenv("MARCHWARDEN_TEST_FULL") {
	case "torture":
		return all
	case "":
		return taste
	}
	return sample
}

// everyPoint asks for all points that there are.
const everyPoint = 1 << 30

// TestKillAnywhere ends researches by SIGKILL, at system calls spread evenly over
// a run or, where nothing can be traced, at moments. Whatever the moment: nothing
// that was acknowledged is lost, nothing is damaged, and resuming gives the answer of an
// undisturbed run and asks for nothing a second time that had come.
func TestKillAnywhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	tests := []struct {
		scenario           string
		how                way
		taste, sample, all int
	}{
		{"folder", killed, 2, 5, everyPoint},
		{"web", killed, 2, 8, everyPoint},
		{"web", killedSometime, 1, 2, 200},
		{"web", powerLost, 1, 4, 600},
		{"web", killedTwice, 0, 3, 300},
		{"files", killed, 0, 4, 600},
		{"folder", powerLost, 0, 2, 400},
		{"investigation", killed, 0, 4, 300},
		{"isolated", killedAlone, 0, 2, 200},
		{"investigation", killedTwice, 0, 2, 150},
		{"investigation", powerLost, 0, 2, 150},
		{"isolated", killed, 0, 2, 200},
	}
	racks := []*rack{newRack(t), newRack(t)}
	untraceable := canTrace(racks[0].program)
	undisturbed := map[string]calm{}
	for _, tt := range tests {
		n := tortureSize(tt.taste, tt.sample, tt.all)
		if n == 0 {
			continue
		}
		t.Run(tt.scenario+", "+string(tt.how), func(t *testing.T) {
			k := killing{scenario: scenarioNamed(tt.scenario), how: tt.how, untraceable: untraceable}
			if _, known := undisturbed[tt.scenario]; !known {
				undisturbed[tt.scenario] = k.undisturbed(t, racks[0])
			}
			k.calm = undisturbed[tt.scenario]
			k.points(t, racks, n)
		})
	}
}

// way is how a run ends.
type way string

const (
	killed         way = "killed"           // with all that it started, at a system call
	killedAlone    way = "one process"      // the process that makes the system call
	killedSometime way = "killed sometime"  // at a moment, whatever it does
	killedTwice    way = "killed twice"     // the second time when it has been resumed
	powerLost      way = "the power failed" // and all is lost that was not synced
)

// killing is one kind of ends.
type killing struct {
	scenario    scenario
	how         way
	untraceable string // why; "" where system calls can be seen
	calm        calm
	wrong       complaints

	mu                                                           sync.Mutex // guards what follows
	ended, late, unbegun, resumed, retried, gaveUp, cut, checked int
}

func (k *killing) count(n *int, by int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	*n += by
	return *n
}

// complaints gathers what is wrong, so that what is wrong often is told once. It
// is safe for concurrent use.
type complaints struct {
	mu   sync.Mutex // guards what follows
	seen map[string][]string
}

// add notes that something is wrong, with an example.
func (c *complaints) add(what, example string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string][]string{}
	}
	c.seen[what] = append(c.seen[what], example)
}

// tell fails the test if anything is wrong.
func (c *complaints) tell(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(c.seen)) {
		t.Errorf("%d times: %s\nsuch as: %s", len(c.seen[what]), what, c.seen[what][0])
	}
}

// calm is an undisturbed run.
type calm struct {
	essence string
	bill    bill
	points  int
	took    time.Duration
}

// isPoint says whether a run may be killed at this moment: before each call about
// a file of the home or a connection, and after each that changes a file.
func isPoint(c *sysCall, home string) bool {
	return (c.below(home) || strings.HasPrefix(c.path, "socket:")) && (!c.ends || c.writes)
}

// undisturbed lets the scenario run through, twice where its calls can be counted.
func (k *killing) undisturbed(t *testing.T, r *rack) calm {
	home := r.home(t)
	defer os.RemoveAll(home)
	before, began := r.paid(), time.Now()
	var found calm
	out, err := r.spec(home, k.scenario.args...).run(0)
	found.took = time.Since(began)
	if err != nil || out.code != 0 {
		t.Fatalf("exit code %d, %v: %s", out.code, err, out.stderr)
	}
	found.bill = r.paid().since(before)
	if found.essence, _, err = r.essence(out.stdout); err != nil {
		t.Fatal(err)
	}
	if left := inspect(home); len(left.problems) > 0 {
		t.Fatalf("an undisturbed run left %q", left.problems)
	}
	if k.untraceable != "" {
		return found
	}
	home = r.home(t)
	defer os.RemoveAll(home)
	if _, err := runTraced(r.spec(home, k.scenario.args...), func(c *sysCall) deed {
		if isPoint(c, home) {
			found.points++
		}
		return goOn
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// points kills at n points, or at all that there are.
func (k *killing) points(t *testing.T, racks []*rack, n int) {
	byMoment := k.how == killedSometime || k.untraceable != ""
	if byMoment && k.how != killedSometime && k.how != killed {
		t.Skip("nothing can be traced here: ", k.untraceable)
	}
	most, how := k.calm.points, fmt.Sprintf("at system calls, of %d", k.calm.points)
	if byMoment {
		most, how = 1000, "at moments "+k.untraceable
	}
	if n = min(n, most); n == 0 {
		t.Fatal("there is no point to kill at")
	}
	began := time.Now()
	var wg sync.WaitGroup
	for i, r := range racks {
		wg.Go(func() {
			for j := i; j < n; j += len(racks) {
				home := r.home(t)
				if at := most * (2*j + 1) / (2 * n); byMoment {
					k.atMoment(r, home, float64(at)/float64(most))
				} else {
					k.atCall(r, home, at)
				}
				_ = os.RemoveAll(home) // its folder is the test's and goes with it
			}
		})
	}
	wg.Wait()
	t.Logf("%d kills %s, in %v: %d ended before it, %d had not begun, %d were gone on with, %d steps tried again, %d times given up, %d half lines", k.ended, how,
		time.Since(began).Round(time.Second/10), k.late, k.unbegun, k.resumed, k.retried, k.gaveUp, k.cut)
	k.wrong.tell(t)
}

// atCall kills a run at its point number at.
func (k *killing) atCall(r *rack, home string, at int) {
	const never = "never"
	m := aftermath{home: home, point: at, at: never, before: r.paid(), acknowledged: map[string][]byte{}}
	disk := newPlatter(home)
	seen := 0
	var err error
	m.out, err = runTraced(r.spec(home, k.scenario.args...), func(c *sysCall) deed {
		if m.at != never {
			return goOn // others go on for a moment
		}
		if c.ends && c.name == "fsync" && c.ret == 0 && strings.HasSuffix(c.path, ".jsonl") {
			m.acknowledged[strings.TrimPrefix(c.path, home)], _ = os.ReadFile(c.path) // what cannot be read is found below
		}
		if k.how == powerLost {
			disk.watch(c)
		}
		if !isPoint(c, home) {
			return goOn
		}
		if seen++; seen != at+1 {
			return goOn
		}
		m.at = fmt.Sprintf("point %d, %s %s (ends: %v)", at, c.name, strings.TrimPrefix(c.path, home), c.ends)
		return deed{killAll: k.how != killedAlone, killThis: k.how == killedAlone}
	})
	if k.how == powerLost && m.at != never && err == nil {
		m.home += "-survived"
		err = disk.restore(m.home)
		defer os.RemoveAll(m.home)
	}
	if err != nil {
		k.wrong.add(err.Error(), m.at)
		return
	}
	k.after(r, m)
}

// atMoment kills a run after a part of the time that it takes.
func (k *killing) atMoment(r *rack, home string, part float64) {
	m := aftermath{home: home, at: fmt.Sprintf("%.2f of the time", part), before: r.paid()}
	var err error
	if m.out, err = r.spec(home, k.scenario.args...).run(time.Duration(part * float64(k.calm.took))); err != nil {
		k.wrong.add(err.Error(), m.at)
		return
	}
	k.after(r, m)
}

// aftermath is what there is after a kill.
type aftermath struct {
	home         string
	point        int
	at           string
	out          runOutcome
	before       bill
	acknowledged map[string][]byte // by file
}

// after checks what a kill left behind, resumes it and checks again.
func (k *killing) after(r *rack, m aftermath) {
	fail := func(what, format string, args ...any) {
		k.wrong.add(what, "killed at "+m.at+": "+fmt.Sprintf(format, args...))
	}
	k.count(&k.ended, 1)
	left := inspect(m.home)
	for _, problem := range left.problems {
		fail("damage: "+nameless(problem), "%s", problem)
	}
	k.intact(fail, m)
	if m.out.code >= 0 { // it ended before that, or others went on without the one
		k.count(&k.late, 1)
		if _, _, err := r.essence(m.out.stdout); err != nil || m.out.code != 0 {
			fail("it did not answer", "exit code %d, %v: %s", m.out.code, err, m.out.stderr)
		}
		return
	}
	if len(left.runs) == 0 {
		k.count(&k.unbegun, 1)
		k.goOn(r, m, left, k.scenario.args, fail)
		return
	}
	k.count(&k.resumed, 1)
	resume := []string{"resume", "--json", left.runs[0].String()}
	if k.how == killedTwice {
		left = k.again(r, &m, resume, fail)
	}
	k.goOn(r, m, left, resume, fail)
}

// again resumes a run and kills that, too.
func (k *killing) again(r *rack, m *aftermath, resume []string, fail func(what, format string, args ...any)) remains {
	seen, second := 0, ""
	out, err := runTraced(r.spec(m.home, resume...), func(c *sysCall) deed {
		if second != "" || !isPoint(c, m.home) {
			return goOn
		}
		if seen++; seen != m.point*7%(k.calm.points/2)+1 { // some other point; a run that goes on has fewer
			return goOn
		}
		second = fmt.Sprintf(", and at %s %s (ends: %v)", c.name, strings.TrimPrefix(c.path, m.home), c.ends)
		return deed{killAll: true}
	})
	if m.at += second; err != nil || second == "" && out.code != 0 {
		fail("resume fails", "exit code %d, %v: %s", out.code, err, out.stderr)
	}
	left := inspect(m.home)
	for _, problem := range left.problems {
		fail("damage by the second kill: "+nameless(problem), "%s", problem)
	}
	return left
}

// goOn runs a command that must give the answer that the run would have given.
func (k *killing) goOn(r *rack, m aftermath, left remains, args []string, fail func(what, format string, args ...any)) {
	paid := r.paid()
	out, err := r.spec(m.home, args...).run(0)
	essence, id, bad := r.essence(out.stdout)
	if err != nil || out.code != 0 || bad != nil {
		fail(args[0]+" gives no answer", "exit code %d, %v, %v: %s", out.code, err, bad, out.stderr)
		return
	}
	asked, now := r.paid().since(paid), inspect(m.home)
	if k.how == killedTwice && bytes.Contains(out.stdout, []byte("is not tried again")) {
		// What was under way both times is given up, and the answer says so. The run then
		// goes another way; nothing that it had asked may be on it, but for what was open.
		k.count(&k.gaveUp, 1)
		delete(asked, "model") // of which only the number is known
		if again := asked.common(paid.since(m.before)); again > left.open {
			fail(args[0]+" asks again for what had come, after it gave up", "%d requests, %d were open", again, left.open)
		}
	} else {
		if essence != k.calm.essence {
			fail(args[0]+" gives another answer", "(-undisturbed +resumed):\n%s", cmp.Diff(k.calm.essence, essence))
		}
		if over := asked.beyond(k.calm.bill.since(left.done)); len(over) > 0 {
			fail(args[0]+" asks again for what had come", "%q", over)
		}
		if again := r.paid().since(m.before).above(k.calm.bill); len(left.runs) > 0 && again > now.retried {
			fail("asks again without saying so", "%d requests, %d steps say so", again, now.retried)
		}
	}
	k.intact(fail, m)
	for _, problem := range now.problems {
		fail("damage after "+args[0]+": "+nameless(problem), "%s", problem)
	}
	if len(left.runs) > 0 && (id != left.runs[0] || len(now.runs) != len(left.runs)) {
		fail(args[0]+" makes another run", "%s", id)
	}
	if now.ledger != 1 {
		fail(fmt.Sprintf("%d lines in the ledger after %s", now.ledger, args[0]), "%s", id)
	}
	if k.count(&k.retried, now.retried); k.count(&k.checked, 1)%4 != 1 {
		return // the rest takes as long as all before
	}
	for _, args := range [][]string{{"verify", id.String()}, {"replay", "--rerun", id.String()}} {
		if out, err := r.spec(m.home, args...).run(0); err != nil || out.code != 0 {
			fail(args[0]+" fails after going on", "exit code %d, %v: %s%s", out.code, err, out.stdout, out.stderr)
		}
	}
}

// intact checks that every line that was written to the end is where it was.
func (k *killing) intact(fail func(what, format string, args ...any), m aftermath) {
	for path, want := range m.acknowledged {
		got, err := os.ReadFile(filepath.Join(m.home, path))
		if err != nil || !bytes.HasPrefix(got, want) {
			fail("acknowledged lines are lost: "+nameless(path), "%v", err)
		}
		if len(got) > 0 && got[len(got)-1] != '\n' {
			k.count(&k.cut, 1)
		}
	}
}
