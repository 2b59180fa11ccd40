package render

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

// helperVariable makes the test binary a program that renders the address in it, for tests that kill it.
const helperVariable = "MARCHWARDEN_RENDER_HELPER"

func TestMain(m *testing.M) {
	if what := os.Getenv(helperVariable); what != "" {
		renderAsHelper(what)
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

// renderAsHelper is that program.
func renderAsHelper(what string) {
	parts := strings.Split(what, "\n")
	g := &gate{allow: []string{parts[1]}}
	_, err := New(Config{Chromium: parts[0], Dial: g.dial, TempDir: parts[2], Timeout: time.Minute}).Render(context.Background(), "http://"+parts[1])
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// TestKilledParentLeavesNoBrowser kills a process in the middle of a page in the one way that gives it no chance to clear up.
func TestKilledParentLeavesNoBrowser(t *testing.T) {
	path := browser(t)
	srv, _ := page(t, `<!doctype html><p>busy<script>for (;;) {}</script>`)
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
	cmd.Env = append(os.Environ(), helperVariable+"="+path+"\n"+srv.Listener.Addr().String()+"\n"+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	renderers := func() (n int) {
		for _, l := range leftovers(t, dir) {
			if strings.Contains(l, "/cmdline") {
				n++
			}
		}
		return n
	}
	for i := 0; renderers() < 2; i++ {
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
	for i := 0; renderers() > 0; i++ {
		if i == 250 {
			t.Fatalf("left behind: %q", leftovers(t, dir))
		}
		time.Sleep(20 * time.Millisecond)
	}
}
