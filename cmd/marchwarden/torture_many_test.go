//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// workerHome and workerTask tell a test process that it is one of many; the task
// is its number and how much it shall do.
const (
	workerHome = "MARCHWARDEN_TEST_WORKER_HOME"
	workerTask = "MARCHWARDEN_TEST_WORKER_TASK"
)

// TestManyProcesses has eight processes work on one home, each with a thousand
// operations in the torture form: blobs (half of them the same as the others'),
// lines of a trace and of the ledger, while others ask. Nothing is torn or lost.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const processes, asks = 8, 3
	each := tortureSize(200, 1000, 1000)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newRack(t)
	home := r.home(t)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.Command(self, "-test.run=^TestOneOfManyProcesses$", "-test.v")
			cmd.Env = append(os.Environ(), workerHome+"="+home, fmt.Sprintf("%s=%d/%d", workerTask, i, each))
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.ECHILD) { // a tracer on the same thread has waited for it; its output tells
				err = nil
			}
			if err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Go(func() {
		for range asks {
			if out, err := r.spec(home, scenarios[0].args...).run(0); err != nil || out.code != 0 {
				t.Errorf("ask: exit code %d, %v: %s", out.code, err, out.stderr)
			}
		}
	})
	wg.Wait()
	t.Logf("%d processes with %d operations each, and %d questions, in %v", processes, each, asks, time.Since(began).Round(time.Second/10))

	left := inspect(home)
	if len(left.problems) > 0 {
		t.Errorf("%q", left.problems)
	}
	lines := each / 5
	if want := processes*lines + asks; left.ledger != want {
		t.Errorf("%d lines in the ledger, want %d", left.ledger, want)
	}
	if want := processes + asks; len(left.runs) != want {
		t.Errorf("%d traces, want %d", len(left.runs), want)
	}
	kept := filepath.Join(home, ".marchwarden")
	blobs, err := dir.Open(filepath.Join(kept, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	traces, err := trace.OpenDir(filepath.Join(kept, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	whole := 0
	for _, id := range left.runs {
		log, err := traces.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		if start, err := log.Start(); err == nil && start.Researcher == "worker" {
			if len(log.Steps) != 2*lines+1 || log.Torn > 0 {
				t.Errorf("trace %s has %d lines and %d bytes of another, want %d", id, len(log.Steps), log.Torn, 2*lines+1)
			}
			whole++
		}
	}
	if whole != processes {
		t.Errorf("%d traces of workers, want %d", whole, processes)
	}
	for i := range processes {
		for n := range each - 3*lines {
			want := workerBlob(i, n)
			ref, err := blobs.Put(context.Background(), want) // what is there is not written again
			if err != nil {
				t.Fatal(err)
			}
			if got, err := blobs.Get(context.Background(), ref); err != nil || string(got) != string(want) {
				t.Errorf("blob %d of process %d: %v", n, i, err)
			}
		}
	}
	if again := inspect(home); again.blobs != left.blobs {
		t.Errorf("%d blobs were lost", again.blobs-left.blobs)
	}
}

// workerBlob is the n-th blob of a worker; every second one is common to all.
func workerBlob(worker, n int) []byte {
	if n%2 == 0 {
		worker = -1
	}
	return fmt.Appendf(nil, "blob %d of worker %d: %s", n, worker, strings.Repeat("words and words ", n%40))
}

// TestOneOfManyProcesses is a process of TestManyProcesses.
func TestOneOfManyProcesses(t *testing.T) {
	number, count, ok := strings.Cut(os.Getenv(workerTask), "/")
	if !ok {
		t.Skip("is part of TestManyProcesses")
	}
	i, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	each, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(os.Getenv(workerHome), ".marchwarden")
	blobs, err := dir.Open(filepath.Join(kept, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	traces, err := trace.OpenDir(filepath.Join(kept, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	id := serve.NewTraceID()
	w, err := traces.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Append(&trace.Start{Format: trace.Format, TraceID: id, Researcher: "worker", StartedAt: time.Now(), Request: marchwarden.Request{Question: "many"}}); err != nil {
		t.Fatal(err)
	}
	book := filepath.Join(kept, "costs.jsonl")
	stored := 0
	for n := range each {
		switch n % 5 {
		case 0:
			err = ledger.Append(book, ledger.Entry{Time: time.Now(), TraceID: id, Researcher: "worker", Question: strings.Repeat("many words ", n%20), Outcome: ledger.Answered})
		case 1, 2:
			err = w.Append(&trace.Message{Head: trace.Head{Decision: strings.Repeat("a decision ", n%300)}, Iteration: n})
		default:
			_, err = blobs.Put(context.Background(), workerBlob(i, stored))
			stored++
		}
		if err != nil {
			t.Fatalf("operation %d: %v", n, err)
		}
	}
}
