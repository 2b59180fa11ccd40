//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealFaults runs researches on a disk that is really full, really read-only,
// or where files may not grow or be opened: in a mount of its own where the system
// allows one, and under the limits of the shell.
func TestRealFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := newRack(t)
	tests := []struct {
		name   string
		mounts bool
		setup  string // of $HOME and the process, in a shell; $0 is the program
	}{
		{"tmpfs of 64 KiB", true, `mount -t tmpfs -o size=64k,mode=700 none "$HOME"`},
		{"tmpfs of 12 files", true, `mount -t tmpfs -o nr_inodes=12,mode=700 none "$HOME"`},
		{"tmpfs that is full", true, `mount -t tmpfs -o size=4k,mode=700 none "$HOME" && head -c 4096 /dev/zero > "$HOME/stuff"`},
		{"read-only", true, `mount -t tmpfs -o mode=700 none "$HOME" && mount -o remount,ro "$HOME"`},
		{"read-only, with a past", true, `"$0" ask -q "What is iron chlorosis?" >/dev/null && mount --bind "$HOME" "$HOME" && mount -o remount,bind,ro "$HOME"`},
		{"home without permission", false, `chmod 500 "$HOME"`},
		{"files of at most 2 KiB", false, `ulimit -f 4`}, // of 512 bytes
		{"files of no size", false, `ulimit -f 0`},
		{"14 open files", false, `ulimit -n 14`},
		{"20 open files", false, `ulimit -n 20`},
	}
	for _, s := range []scenario{scenarioNamed("folder"), scenarioNamed("files")}[:tortureSize(1, 2, 2)] {
		out, err := r.spec(r.home(t), s.args...).run(0)
		if err != nil || out.code != 0 {
			t.Fatalf("exit code %d, %v: %s", out.code, err, out.stderr)
		}
		undisturbed, _, err := r.essence(out.stdout)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range tests {
			t.Run(s.name+" "+tt.name, func(t *testing.T) { r.onDisk(t, s, tt.setup, tt.mounts, undisturbed) })
		}
	}
}

// onDisk runs a scenario after a setup and checks the answer and what is kept.
func (r *rack) onDisk(t *testing.T, s scenario, setup string, mounts bool, undisturbed string) {
	bound := ""
	if strings.Contains(setup, "chmod") && os.Geteuid() == 0 { // whom permissions do not bind
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip(err)
		}
		bound = "setpriv --bounding-set=-dac_override "
	}
	home, copied := r.home(t), filepath.Join(t.TempDir(), "copy")
	// The subshell keeps the limits from the copy.
	script := `export HOME="$1"; shift; code=0; (` + setup + ` || exit 77; exec ` + bound + `"$0" "$@") || code=$?; cp -R "$HOME" "` + copied + `" 2>/dev/null; exit $code`
	spec := r.spec(home, append([]string{"-c", script, r.program, home}, s.args...)...)
	spec.program = "/bin/sh"
	if mounts {
		if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
			t.Skipf("no mounts of its own: %v: %s", err, out)
		}
		spec.args = append([]string{"-m", "/bin/sh"}, spec.args...)
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Skip(err)
		}
		spec.program = path
	}
	spec.env[0] += ":/usr/sbin:/usr/bin:/sbin:/bin"
	out, err := spec.run(0)
	if err != nil {
		t.Fatal(err)
	}
	if out.code == 77 {
		t.Skipf("the disk cannot be made: %s", out.stderr)
	}
	essence, id, err := r.essence(out.stdout)
	switch {
	case err != nil || out.code != 0:
		t.Errorf("exit code %d, %v: %s", out.code, err, out.stderr)
	case essence != undisturbed:
		t.Errorf("another answer: %s", otherLine(undisturbed, essence))
	}
	if !strings.Contains(string(out.stderr), "warning") {
		if verify, err := r.spec(copied, "verify", id.String()).run(0); err != nil || verify.code != 0 {
			t.Errorf("not everything was kept, and no warning: %s", out.stderr)
		}
	}
	if left := inspect(copied); len(left.problems) > 0 {
		t.Errorf("damage: %q", left.problems)
	}
}
