package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
)

// fullCluster says that the large forms of the tests are wanted.
func fullCluster() bool { return os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "full" }

// TestSubmitInterrupted runs a submission that is interrupted once and killed twice, and
// run again each time: there is exactly one result for every question, and the home folder is
// sound. The many are asked of a researcher that takes no time, which leaves more room
// for what is tested here; others search. In full, there are 10,000 of those.
func TestSubmitInterrupted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs for seconds")
	}
	for _, test := range []struct {
		name    string
		n, full int
		flags   []string
	}{
		{"many", 40, 300, []string{"--researcher", "lamps"}},
		{"searched", 12, 10_000, []string{"--researchers", "files", "--embedded"}},
	} {
		if fullCluster() {
			test.n = test.full
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSubmitted(t, test.n, test.flags)
			part := test.n / 4
			for i, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL, syscall.SIGKILL} {
				s.cutOff(signal, part*(i+1))
			}
			s.finish()
			s.check()
		})
	}
}

// submitted is a submission by processes that do not live long.
type submitted struct {
	t             *testing.T
	dir, out      string
	n             int
	program       string
	args, environ []string
}

func newSubmitted(t *testing.T, n int, flags []string) *submitted {
	dir := t.TempDir()
	s := &submitted{t: t, dir: dir, n: n, program: asMarchwarden(t), out: filepath.Join(dir, "questions.results.jsonl"),
		args: append([]string{"submit", "--file", "questions.jsonl", "--parallel", "4", "--window", "16", "--quiet"}, flags...)}
	third := filepath.Join(filepath.Dir(s.program), "thirdparty")
	program, err := os.Executable()
	if err == nil {
		err = os.Symlink(program, third)
	}
	if err != nil {
		t.Fatal(err)
	}
	var questions bytes.Buffer
	for i := range n {
		fmt.Fprintf(&questions, `{"question": "What grows in bed %d of a garden in Utah?", "depth": "shallow"}`+"\n", i/2) // each is there twice
	}
	home := filepath.Join(dir, "home")
	config := "researchers:\n  - name: lamps\n    scope: lamps of the harbour\n    command: [" + third + "]\n"
	for path, text := range map[string]string{filepath.Join(dir, "questions.jsonl"): questions.String(), filepath.Join(home, "config.yaml"): config} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.environ = []string{"HOME=" + dir, "MARCHWARDEN_HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "USER=tester"}
	return s
}

func (s *submitted) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	var said bytes.Buffer
	cmd := exec.Command(s.program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.environ, &said, &said
	return cmd, &said
}

// results counts the lines that are there.
func (s *submitted) results() int {
	data, err := os.ReadFile(s.out)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// cutOff runs it until so many results are there, and ends it then.
func (s *submitted) cutOff(signal syscall.Signal, at int) {
	cmd, said := s.command(s.args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state is looked at
		close(ended)
	}()
	patience := time.After(s.patience())
	for s.results() < at {
		select {
		case <-ended:
			s.t.Fatalf("it ended with %d of %d results: %s\n%s", s.results(), s.n, cmd.ProcessState, said)
		case <-patience:
			_ = cmd.Process.Signal(syscall.SIGQUIT) // it says where it is
			<-ended
			s.t.Fatalf("it hangs with %d of %d results:\n%s", s.results(), s.n, said)
		case <-time.After(time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
	<-ended
	if n := s.results(); n >= s.n {
		s.t.Logf("%v came too late: all %d results were there", signal, n)
		return
	}
	if code := cmd.ProcessState.ExitCode(); signal == syscall.SIGINT && code != exitInterrupted {
		s.t.Fatalf("exit code %d after Ctrl-C: %s", code, said)
	}
}

// patience is how long one run may take.
func (s *submitted) patience() time.Duration {
	return time.Minute + time.Duration(s.n)*200*time.Millisecond
}

// finish runs it to its end.
func (s *submitted) finish() {
	for range 2 { // the second has nothing to do
		cmd, said := s.command(s.args...)
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		late := time.AfterFunc(s.patience(), func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // it says where it is
		err := cmd.Wait()
		late.Stop()
		if err != nil {
			s.t.Fatalf("%v: with %d of %d results\n%s", err, s.results(), s.n, said)
		}
	}
}

// check holds the results, the records and the ledger to exactly one for each question.
func (s *submitted) check() {
	data, err := os.ReadFile(s.out)
	if err != nil {
		s.t.Fatal(err)
	}
	lines, ids := map[int]bool{}, map[string]bool{}
	for text := range strings.Lines(string(data)) {
		var l submit.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			s.t.Fatalf("%v: %s", err, text)
		}
		if lines[l.Line] || ids[l.ID] || l.Status != dispatch.Done || len(l.Result) == 0 {
			s.t.Errorf("line %d, id %s: there twice, or not done: %s %v", l.Line, l.ID, l.Status, l.Error)
		}
		lines[l.Line], ids[l.ID] = true, true
	}
	if len(lines) != s.n || len(ids) != s.n {
		s.t.Errorf("%d results with %d ids for %d questions", len(lines), len(ids), s.n)
	}
	cmd, said := s.command("check")
	if err := cmd.Run(); err != nil {
		s.t.Errorf("the home folder is not sound: %v\n%s", err, said)
	}
	cmd, said = s.command("traces", "--json", "--limit", "0")
	if err := cmd.Run(); err != nil || strings.Count(said.String(), `"status": "complete"`) != s.n {
		s.t.Errorf("%d of %d runs are complete: %v", strings.Count(said.String(), `"status": "complete"`), s.n, err)
	}
	ledger, err := os.ReadFile(filepath.Join(s.dir, "home", "costs.jsonl"))
	// One that was interrupted has a line for what it had cost by then.
	if got := bytes.Count(ledger, []byte("\n")) - bytes.Count(ledger, []byte(`"outcome":"interrupted"`)); err != nil || got != s.n {
		s.t.Errorf("%d lines in the ledger for %d questions: %v", got, s.n, err)
	}
}
