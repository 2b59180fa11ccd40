//go:build unix

package main

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTwoGoOnAtOnce cuts a run off and lets several processes resume it at the same time: one does,
// the others give the same answer or say that another process has it; nothing is asked twice, and
// nothing is damaged.
func TestTwoGoOnAtOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const processes = 3
	r := newRack(t)
	k := killing{scenario: scenarioNamed("web"), untraceable: "not needed"}
	undisturbed := k.undisturbed(t, r)
	for round, raced := 0, 0; raced < tortureSize(1, 3, 50); round++ {
		if round == 200 {
			t.Fatalf("of %d runs, %d had begun when they were cut off", round, raced)
		}
		home := r.home(t)
		if _, err := r.spec(home, k.scenario.args...).run(undisturbed.took * time.Duration(4+round%5) / 10); err != nil {
			t.Fatal(err)
		}
		left := inspect(home)
		if len(left.runs) == 0 {
			continue // cut off before it began
		}
		raced++
		paid := r.paid()
		var mu sync.Mutex // guards answered
		answered := 0
		var wg sync.WaitGroup
		for range processes {
			wg.Go(func() {
				out, err := r.spec(home, "resume", "--json", left.runs[0].String()).run(0)
				essence, _, bad := r.essence(out.stdout)
				switch {
				case err != nil || out.code == 0 && bad != nil:
					t.Errorf("exit code %d, %v, %v: %s", out.code, err, bad, out.stderr)
				case out.code == 1 && strings.Contains(string(out.stderr), "is still going on"):
				case out.code != 0:
					t.Errorf("exit code %d: %s", out.code, out.stderr)
				case essence != undisturbed.essence:
					t.Errorf("another answer: %s", otherLine(undisturbed.essence, essence))
				default:
					mu.Lock()
					answered++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if answered == 0 {
			t.Error("nobody answered")
		}
		if over := r.paid().since(paid).beyond(undisturbed.bill.since(left.done)); len(over) > 0 {
			t.Errorf("asked again: %q", over)
		}
		if now := inspect(home); len(now.problems) > 0 || len(now.runs) != 1 {
			t.Errorf("%d runs, %q", len(now.runs), now.problems)
		}
	}
}
