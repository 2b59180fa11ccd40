package runs_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// childDir is the variable that makes the test binary a server that is to be killed.
const childDir = "MARCHWARDEN_RUNS_TEST_CHILD"

// journal is a researcher whose runs take four steps, each of which is a line in the
// file of the run. One that is resumed goes on after its last line.
func journal(dir string, pause time.Duration) research {
	return func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		id := answer(ctx, req).TraceID
		path := filepath.Join(dir, id.String()+".trace")
		done, err := os.ReadFile(path)
		if req.Resume != "" && err != nil {
			return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no trace %s", id)
		}
		for n := strings.Count(string(done), "\n"); n < 4; n++ {
			f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(f, "step %d\n", n+1)
			f.Close()
			sink(marchwarden.Event{Message: fmt.Sprintf("step %d", n+1)})
			if n == 1 {
				time.Sleep(pause)
			}
		}
		done, err = os.ReadFile(path)
		return &marchwarden.Result{Answer: string(done), TraceID: id}, err
	}
}

// child begins a task, says its id and waits to be killed in the middle of it.
func child(dir string) int {
	d, err := runs.Open(runs.Config{Dir: filepath.Join(dir, "runs"), Researcher: journal(dir, time.Hour), Name: "web", Now: time.Now,
		NewID: func() marchwarden.TraceID { return idOf(os.Getpid()) }})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	r, err := d.Begin(as(alice), runs.Asked{Request: ask, Keep: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for r.State().Message != "step 2" {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(r.ID())
	select {}
}

// A task survives that its process is killed; while that process lives, another one
// leaves the task to it.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	id, bad := marchwarden.ParseTraceID(strings.TrimSpace(line))
	if err != nil || bad != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the child says %q, %v", line, err)
	}
	d := open(t, runs.Config{Dir: filepath.Join(dir, "runs"), Researcher: journal(dir, 0)})
	d.Recover()
	time.Sleep(100 * time.Millisecond)
	r := find(t, d, alice, id)
	if s := r.State(); s.Status != runs.Working || s.Message != "going on in another process" {
		t.Errorf("while the first lives: %+v", s)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	select {
	case <-r.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it does not go on")
	}
	res, err := r.Outcome()
	if err != nil || res.Answer != "step 1\nstep 2\nstep 3\nstep 4\n" || res.TraceID != id {
		t.Errorf("Outcome: %+v, %v", res, err)
	}
	status(t, r, runs.Completed)
	if _, err := d.Find(as(bob), id); err == nil {
		t.Error("somebody else finds it")
	}
}
