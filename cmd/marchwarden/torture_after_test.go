//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
)

// TestPowerLostAfterwards lets the power fail when a command has said that it is
// done: what it brought is there, whole, and what it removed is gone.
func TestPowerLostAfterwards(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := newRack(t)
	if why := canTrace(r.program); why != "" {
		t.Skip(why)
	}
	do := func(home string, args ...string) {
		t.Helper()
		out, err := r.spec(home, args...).run(0)
		if err != nil || out.code != 0 {
			t.Fatalf("%q: exit code %d, %v: %s", args, out.code, err, out.stderr)
		}
	}
	// survivor is the home as it is after a power loss at the end of a command.
	survivor := func(home string, args ...string) (survived string, stdout []byte) {
		t.Helper()
		disk := newPlatter(home)
		out, err := runTraced(r.spec(home, args...), func(c *sysCall) deed { disk.watch(c); return goOn })
		if err != nil || out.code != 0 || len(disk.errs) > 0 {
			t.Fatalf("%q: exit code %d, %v, %v: %s", args, out.code, err, disk.errs, out.stderr)
		}
		if err := disk.restore(home + "-survived"); err != nil {
			t.Fatal(err)
		}
		return home + "-survived", out.stdout
	}
	bag := filepath.Join(r.dir, "run.mwz")
	home, answer := survivor(r.home(t), scenarioNamed("folder").args...)
	_, id, err := r.essence(answer)
	if err != nil {
		t.Fatal(err)
	}
	do(home, "verify", id.String())
	if entries, bad, err := ledger.Read(filepath.Join(home, ".marchwarden", "costs.jsonl")); len(entries) != 1 || len(bad) != 0 || err != nil {
		t.Errorf("the ledger has %d entries and %d bad lines, %v", len(entries), len(bad), err)
	}
	do(home, "export", "--out", bag, id.String())

	home, _ = survivor(r.home(t), "import", bag)
	do(home, "check")
	do(home, "verify", id.String())
	do(home, "replay", "--rerun", id.String())
	if out, err := r.spec(home, "resume", id.String()).run(0); err != nil || out.code != exitUsage {
		t.Errorf("an imported run goes on: exit code %d, %v: %s", out.code, err, out.stderr)
	}

	home, _ = survivor(home, "gc", "--run", id.String())
	do(home, "check")
	for _, left := range []string{".jsonl", ".imported"} {
		path := filepath.Join(home, ".marchwarden", "traces", id.String()+left)
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("it is back: %s", path)
		}
	}
}
