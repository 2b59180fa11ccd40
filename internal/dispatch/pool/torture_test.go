package pool

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// engineDir is the variable that makes the test program a worker on an engine, to be
// killed.
const engineDir = "MARCHWARDEN_POOL_ENGINE"

// openOn opens an engine as a process of its own would.
func openOn(at, name string) (*Engine, error) {
	blobs, err := dir.Open(filepath.Join(at, "blobs"))
	if err != nil {
		return nil, err
	}
	return OpenEngine(EngineConfig{Dir: filepath.Join(at, "engine"), Blobs: blobs, Now: time.Now, Name: name})
}

// stepping is a handler that writes what is missing of ten lines, each of which names
// its writer.
func stepping(pause time.Duration) dispatch.Handler {
	return func(ctx context.Context, t dispatch.Task, l dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		had, err := l.Read(ctx)
		if err != nil {
			return nil, err
		}
		for n := strings.Count(string(had), "\n"); n < 10; n++ {
			if err := l.Append(ctx, fmt.Appendf(nil, "step %d of %s\n", n+1, t.ID)); err != nil {
				return nil, err
			}
			time.Sleep(pause)
		}
		return dispatchtest.Answer(t.ID, "Paris."), nil
	}
}

// victim works until it is killed.
func victim(at string) {
	e, err := openOn(at, fmt.Sprint("victim ", os.Getpid()))
	if err == nil {
		fmt.Println("works")
		err = e.Work(context.Background(), dispatch.Job{Queue: "web", Slots: 4}, stepping(5*time.Millisecond))
	}
	fmt.Fprintln(os.Stderr, err)
}

// TestKilledWorkers has processes killed without grace while they work on the same
// folder: every task ends once, with each of its steps once and in order.
func TestKilledWorkers(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	e, err := openOn(at, "client")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tasks := make([]dispatch.Task, 24)
	for i := range tasks {
		tasks[i] = dispatchtest.Task("web")
		if err := e.Submit(t.Context(), tasks[i]); err != nil {
			t.Fatal(err)
		}
	}
	kills := 4
	if os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "full" {
		kills = 40
	}
	for i := range kills {
		killed(t, at, time.Duration(20+40*(i%4))*time.Millisecond)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var worker sync.WaitGroup
	worker.Go(func() { _ = e.Work(ctx, dispatch.Job{Queue: "web", Slots: 8}, stepping(0)) })
	again := 0
	for _, task := range tasks {
		end := endOf(t, e, task)
		want := ""
		for n := range 10 {
			want += fmt.Sprintf("step %d of %s\n", n+1, task.ID)
		}
		got, err := e.Blobs().Get(t.Context(), end.Trace)
		if err != nil || string(got) != want || end.Status != dispatch.Done {
			t.Errorf("%+v: %q, %v", end, got, err)
		}
		if end.Attempt > 1 {
			again++
		}
	}
	if again == 0 {
		t.Error("nobody was killed while he worked")
	}
	stop()
	worker.Wait()
}

// killed starts a worker and kills it a while after it has begun.
func killed(t *testing.T, at string, after time.Duration) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), engineDir+"="+at)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Error("a worker did not start")
	}
	time.Sleep(after)
	_ = c.Process.Kill()
	_ = c.Wait()
}

// endOf waits for the end of a task.
func endOf(t *testing.T, e dispatch.Client, task dispatch.Task) *dispatch.End {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	for ev, err := range e.Watch(ctx, dispatch.Watching{Investigation: task.Investigation, Task: task.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == dispatch.Ended {
			return ev.End
		}
	}
	t.Fatalf("task %s did not end", task.ID)
	return nil
}

// TestCutAnywhere cuts the files of an engine off at every place where a power loss can
// leave them behind an acknowledged task: it opens, the task is known, and it ends once.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	e, err := openOn(at, "one")
	if err != nil {
		t.Fatal(err)
	}
	task := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	log, queue := e.path("log", task.ID, ".jsonl"), filepath.Join(at, "engine", "queue.jsonl")
	kept := map[string]int64{log: sizeOf(t, log), queue: sizeOf(t, queue)}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- e.Work(ctx, dispatch.Job{Queue: "web", Slots: 1}, stepping(0)) }()
	endOf(t, e, task)
	stop()
	<-over
	e.Close()
	whole := map[string][]byte{}
	for path := range kept {
		if whole[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	for cut := kept[log]; cut < int64(len(whole[log])); cut += 97 {
		for _, tail := range []string{"", "\x00\x00\x00", "\x00\n\x00\n"} {
			_ = os.WriteFile(log, append(whole[log][:cut:cut], tail...), 0o600)
			_ = os.WriteFile(queue, append(whole[queue][:kept[queue]:kept[queue]], tail...), 0o600)
			workOff(t, at, task)
		}
	}
	_ = os.WriteFile(log, append([]byte("x"), whole[log][1:]...), 0o600) // which no power loss does
	e, err = openOn(at, "two")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Look(t.Context(), task.ID); marchwarden.CodeOf(err) != marchwarden.CodeCorrupt {
		t.Errorf("a damaged log: %v", err)
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// workOff works on what is left of a task.
func workOff(t *testing.T, at string, task dispatch.Task) {
	t.Helper()
	e, err := openOn(at, "two")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if s, err := e.Look(t.Context(), task.ID); err != nil || s.Task.Queue != "web" {
		t.Fatalf("%+v, %v", s, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- e.Work(ctx, dispatch.Job{Queue: "web", Slots: 1}, stepping(0)) }()
	end := endOf(t, e, task)
	stop()
	<-over
	got, err := e.Blobs().Get(t.Context(), end.Trace)
	if err != nil || strings.Count(string(got), "\n") != 10 {
		t.Fatalf("%+v: %q, %v", end, got, err)
	}
}

// TestManyTasks has many tasks submitted and worked on by two engines, and says how
// long one takes.
func TestManyTasks(t *testing.T) {
	many := 300
	if os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "full" {
		many = 10_000
	}
	at := t.TempDir()
	var begun atomic.Int64
	handler := func(_ context.Context, t dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		begun.Add(1)
		return dispatchtest.Answer(t.ID, "Paris."), nil
	}
	var engines []*Engine
	var workers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for i := range 2 {
		e, err := openOn(at, fmt.Sprint("engine ", i))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		engines = append(engines, e)
		workers.Go(func() { _ = e.Work(ctx, dispatch.Job{Queue: "web", Slots: 8}, handler) })
	}
	began := time.Now()
	tasks := make([]dispatch.Task, many)
	for i := range tasks {
		tasks[i] = dispatchtest.Task("web")
		if err := engines[i%2].Submit(t.Context(), tasks[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, task := range tasks {
		if end := endOf(t, engines[i%2], task); end.Status != dispatch.Done {
			t.Errorf("%+v", end)
		}
	}
	t.Logf("%d tasks in %s, %s each", many, time.Since(began).Round(time.Millisecond), (time.Since(began) / time.Duration(many)).Round(time.Microsecond))
	stop()
	workers.Wait()
	if begun.Load() != int64(many) {
		t.Errorf("%d of %d were begun", begun.Load(), many)
	}
}
