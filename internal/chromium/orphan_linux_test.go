package chromium

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperVariable makes the test binary a program that starts the browser in it, for tests that kill it.
const helperVariable = "MARCHWARDEN_BROWSER_HELPER"

func TestMain(m *testing.M) {
	if what := os.Getenv(helperVariable); what != "" {
		browseAsHelper(what)
	}
	before := channels()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		// All servers of all tests are closed by now; the last connections to them go when both ends get round to it.
		for i := 0; code == 0 && channels() > before; i++ {
			if i == 50 {
				fmt.Fprintf(os.Stderr, "%d pipes and sockets are open, %d were before\n", channels(), before)
				code = 1
			}
			time.Sleep(20 * time.Millisecond)
		}
		os.Exit(code)
	}))
}

// channels counts the pipes and sockets that this process holds open.
func channels() (n int) {
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range files {
		if to, err := os.Readlink(name); err == nil && (strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "socket:")) {
			n++
		}
	}
	return n
}

// browseAsHelper is that program: it has a browser do nothing until the process is killed.
func browseAsHelper(what string) {
	path, dir, _ := strings.Cut(what, "\n")
	profile, scratch, err := MakeProfile(dir, preferences)
	if err == nil {
		err = Run(context.Background(), Program{Path: path, Args: Flags(profile), Env: Environment(profile, scratch)}, func(w *Wire) error {
			for range w.In() {
			}
			return w.Err()
		})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// TestKilledParentLeavesNoBrowser kills a process in the one way that gives it no chance to clear up.
func TestKilledParentLeavesNoBrowser(t *testing.T) {
	path := browser(t)
	dir, err := os.MkdirTemp("/tmp", "mwr") // short, so that all the browser writes is in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what a killed process could not clear up
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), helperVariable+"="+path+"\n"+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	processes := func() (n int) {
		for _, l := range leftovers(t, dir) {
			if strings.Contains(l, "/cmdline") {
				n++
			}
		}
		return n
	}
	for i := 0; processes() < 2; i++ {
		if i == 500 {
			t.Fatal("no browser came up")
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, l := range leftovers(t, dir) {
		name, _, isProcess := strings.Cut(l, "/cmdline ")
		if !isProcess {
			continue
		}
		if env, err := os.ReadFile(name + "/environ"); err == nil && strings.Contains(string(env), helperVariable) {
			t.Errorf("%s was given our environment", l)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for i := 0; processes() > 0; i++ {
		if i == 250 {
			t.Fatalf("left behind: %q", leftovers(t, dir))
		}
		time.Sleep(20 * time.Millisecond)
	}
}
