//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
)

// TestClusterKilled is a cluster of the program itself, one hub and two workers, of which each is
// killed while they work, and so is the asking command: every question has exactly one result, and
// each is what one undisturbed process gives.
func TestClusterKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	n := 12
	if fullCluster() {
		n = 600
	}
	flags := []string{"--researchers", "files"}
	calm := newSubmitted(t, n, append([]string{"--embedded"}, flags...))
	calm.finish()
	address := datatest.FreeAddresses(t, 1)[0]
	s := newSubmitted(t, n, append([]string{"--engine", "nats://" + address, "--records"}, flags...))
	hub := s.serve("hub", "hub", "--listen", address, "--lease", "2s")
	worker := func(name string) *exec.Cmd {
		return s.serve(name, "worker", "--engine", "nats://"+address, "--name", name, "--slots", "4", "--pi-slots", "4", "--embedded")
	}
	one := worker("one")
	worker("two")
	s.cutOff(syscall.SIGKILL, n/6)
	s.during(
		at{n / 3, func() {
			kill9(one)
			worker("one")
		}},
		at{2 * n / 3, func() {
			kill9(hub)
			s.serve("hub", "hub", "--listen", address, "--lease", "2s")
		}})
	s.finish()
	s.check()
	want, got := calm.answers(), s.answers()
	for line, answer := range want {
		if got[line] != answer {
			t.Errorf("line %d: another answer than undisturbed: %q, want %q", line, got[line], answer)
		}
	}
}

// serve starts a server with a home of its own, and waits until it says that it is there.
func (s *submitted) serve(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(s.program, args...)
	cmd.Dir, cmd.Env = s.dir, append(s.environ, "MARCHWARDEN_HOME="+filepath.Join(s.dir, "home-"+name))
	said, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { kill9(cmd) })
	lines, there := bufio.NewScanner(said), make(chan bool, 1)
	go func() {
		for lines.Scan() {
			if text := lines.Text(); strings.Contains(text, "nats://") || strings.Contains(text, " serves ") {
				there <- true
				break
			}
		}
		_, _ = io.Copy(io.Discard, said)
		close(there)
	}()
	select {
	case ok := <-there:
		if !ok {
			s.t.Fatalf("%s ended: %v", name, cmd.Wait())
		}
	case <-time.After(time.Minute):
		s.t.Fatalf("%s says nothing", name)
	}
	return cmd
}

// kill9 ends a process as a power cut does.
func kill9(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // or it has ended
	_ = cmd.Wait()
}

// at is what is done when so many results are there.
type at struct {
	results int
	do      func()
}

// during runs a submission to its end while things happen.
func (s *submitted) during(all ...at) {
	s.t.Helper()
	cmd, said := s.command(s.args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for _, a := range all {
		for s.results() < a.results {
			select {
			case err := <-ended:
				s.t.Fatalf("it ended with %d of %d results: %v\n%s", s.results(), s.n, err, said)
			case <-time.After(5 * time.Millisecond):
			}
		}
		a.do()
	}
	select {
	case err := <-ended:
		if err != nil {
			s.t.Fatalf("%v: %s", err, said)
		}
	case <-time.After(5 * time.Minute):
		s.t.Fatalf("%d of %d results, and no more come", s.results(), s.n)
	}
}

// answers are what the results answer and cite, by line.
func (s *submitted) answers() map[int]string {
	s.t.Helper()
	data, err := os.ReadFile(s.out)
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[int]string{}
	for text := range strings.Lines(string(data)) {
		var l submit.Line
		var res marchwarden.Result
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			s.t.Fatal(err)
		}
		if err := json.Unmarshal(l.Result, &res); err != nil {
			s.t.Fatalf("line %d has no result: %v", l.Line, err)
		}
		out[l.Line] = res.Answer
		for _, c := range res.Citations {
			out[l.Line] += " " + c.ContentHash
		}
	}
	return out
}
