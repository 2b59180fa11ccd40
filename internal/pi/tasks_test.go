package pi_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// works has an engine work on a queue until stop is called or the test ends.
func works(t *testing.T, e dispatch.Engine, queue string, h dispatch.Handler) {
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- e.Work(ctx, dispatch.Job{Queue: queue, Slots: 8}, h) }()
	t.Cleanup(func() {
		stop()
		<-over
	})
}

// investigates is the handler of a worker of investigators, whose members are asked by
// tasks of the same engine.
func investigates(e dispatch.Engine, members []dispatch.Member, m pi.Minds) dispatch.Handler {
	held := trace.NewHeld(func() time.Time { return crewTime })
	return submit.Serve(held, func(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		network := &submit.Dispatcher{Engine: e, Blobs: e.Blobs(), Investigation: t.Record, Asker: t.ID, Owner: t.Owner, Priority: t.Priority,
			Network: func() []dispatch.Member { return members }, Now: time.Now}
		return pi.New(pi.Config{Lab: researcher.Lab{Traces: held, Blobs: e.Blobs(), Version: "test", Now: func() time.Time { return crewTime }, NewID: dispatchtest.ID},
			Dispatcher: network, Minds: m}).Research(ctx, req, sink)
	})
}

// finished waits for the end of a task and gives its result, which is held to what every
// result keeps.
func finished(t *testing.T, e dispatch.Engine, task dispatch.Task) (*marchwarden.Result, *dispatch.End) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	for ev, err := range e.Watch(ctx, dispatch.Watching{Task: task.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != dispatch.Ended {
			continue
		}
		if ev.End.Status != dispatch.Done {
			t.Fatalf("it ended as %+v", ev.End)
		}
		stored, err := e.Blobs().Get(ctx, ev.End.Result)
		if err != nil {
			t.Fatal(err)
		}
		res, err := marchwarden.DecodeResult(stored)
		if err != nil {
			t.Fatal(err)
		}
		if report, err := verify.Check(ctx, e.Blobs(), res); err != nil || !report.OK() || len(res.Warnings) > 0 {
			t.Fatalf("the result does not stand: %s, %v, %v", report, err, res.Warnings)
		}
		return res, ev.End
	}
	t.Fatalf("task %s did not end", task.ID)
	return nil, nil
}

// exported puts the record of a task where local runs are.
func exported(t *testing.T, e dispatch.Engine, traces *trace.Dir, id marchwarden.TraceID, end *dispatch.End) *trace.Log {
	t.Helper()
	lines, err := e.Blobs().Get(t.Context(), end.Trace)
	if err == nil {
		err = os.WriteFile(filepath.Join(traces.Path(), id.String()+".jsonl"), lines, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	log, err := traces.Load(id)
	if err != nil || log.Complete() == nil {
		t.Fatalf("the record of %s: %v", id, err)
	}
	return log
}

// cutting are lines that are cut off when so many were written.
type cutting struct {
	dispatch.Lines
	cut func()

	mu   sync.Mutex // guards left
	left int
}

func (c *cutting) Append(ctx context.Context, line []byte) error {
	c.mu.Lock()
	c.left--
	now := c.left == 0
	c.mu.Unlock()
	if now {
		c.cut()
	}
	return c.Lines.Append(ctx, line)
}

// investigation is one that a crew works on by tasks; the worker that has it is lost
// when it has written so many lines, if it has, and another goes on.
func investigation(t *testing.T, r road, lines int) (res *marchwarden.Result, log *trace.Log, calls []string) {
	open, c := r.open(t), busy()
	client, one, two := open("client"), open("one"), open("two")
	for _, m := range c.members {
		works(t, client, m.Name, func(ctx context.Context, t dispatch.Task, _ dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
			res, err := c.Dispatch(ctx, t.Queue, t.Request, sink)
			if err != nil {
				return nil, err
			}
			return res, submit.Bring(ctx, client.Blobs(), c, t.Queue, res)
		})
	}
	m := minds()
	works(t, one, "pi", func(ctx context.Context, task dispatch.Task, l dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		return investigates(one, c.members, m)(ctx, task, &cutting{Lines: l, left: lines, cut: func() { _ = one.Close() }}, sink)
	})
	tokens, sources := 40000, 40
	task := dispatchtest.Task("pi")
	task.Request = marchwarden.Request{Question: crewQuestion, Constraints: &marchwarden.Constraints{TokenBudget: &tokens, MaxSources: &sources}}
	if err := client.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	for lines > 0 { // so that the one that is to be lost has it
		if s, err := client.Look(t.Context(), task.ID); err != nil || s.Attempts > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if lines > 0 {
		works(t, two, "pi", investigates(two, c.members, m))
	}
	res, end := finished(t, client, task)
	if lines > 0 && (end.Worker != "two" || end.Attempt < 2) {
		t.Errorf("cut after %d lines it ended as %+v", lines, end)
	}
	traces, err := trace.OpenDir(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	log = exported(t, client, traces, task.ID, end)
	want, got, err := pi.Again(t.Context(), log, client.Blobs(), m)
	if err != nil || !bytes.Equal(want, got) || blob.Of(want) != end.Result {
		t.Errorf("the rerun differs, or the record from the result: %v\n%s\n%s", err, want, got)
	}
	return res, log, saidOf(c.forget())
}

// told tells of the steps of a test that failed.
func told(t *testing.T, log *trace.Log) {
	if !t.Failed() {
		return
	}
	for _, s := range log.Steps {
		t.Logf("%d %s %s", s.Header().Step, s.Header().Action, s.Header().Decision)
		if r, ok := s.(*trace.Rihla); ok {
			t.Logf("rihla %d is %s", r.Number, r.TraceID)
		}
	}
}

// shapeOf is what of a result does not depend on the order of arrivals.
func shapeOf(res *marchwarden.Result) []string {
	var shape []string
	for _, c := range res.Citations {
		shape = append(shape, "cites "+c.Locator)
	}
	for _, r := range res.Rihlas {
		shape = append(shape, "sent "+r.Researcher+": "+r.Question)
	}
	slices.Sort(shape)
	return shape
}

// An investigation whose worker is lost after any line is taken up by another. It asks
// nobody twice, since what was asked goes on meanwhile, and its record runs again to the
// byte.
func TestALostInvestigationIsTakenUp(t *testing.T) {
	t.Parallel()
	whole, log, asked := investigation(t, overStream, 0)
	if len(whole.Rihlas) < 6 || len(slices.Compact(slices.Clone(asked))) != len(asked) {
		t.Fatalf("too little happens, or too often: %d rihlas, %v", len(whole.Rihlas), asked)
	}
	cuts := 2
	if roadsAsked == "full" {
		cuts = len(log.Steps) - 1
	}
	together(cuts, 3, func(i int) {
		line := 1 + (2*i+1)*(len(log.Steps)-2)/(2*cuts)
		t.Run(fmt.Sprint("line ", line), func(t *testing.T) {
			res, log, again := investigation(t, overStream, line)
			defer told(t, log)
			if diff := cmp.Diff(shapeOf(whole), shapeOf(res)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(asked, again); diff != "" {
				t.Errorf("asked (-whole +cut)\n%s", diff)
			}
		})
	})
}

// An investigation and its rihlas made by tasks are the same records as local ones: put
// in a home they are sound, and run again to the byte.
func TestRunsOfAnEngineAreRunsLikeAnyOther(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := overStream.open(t)("one")
	member := dispatch.Member{Name: researcher.FilesName, Scope: researcher.FilesScope, Trust: dispatch.Own}
	held := trace.NewHeld(time.Now)
	garden := filepath.Join(home, "garden")
	if err := os.MkdirAll(garden, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(garden, "peas.txt"), []byte("Peas like cool weather. Peas are sown in March.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := fetch.OpenFolder(garden)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	f := researcher.NewFiles(researcher.FilesConfig{Lab: researcher.Lab{Traces: held, Blobs: e.Blobs(), Version: "test", Now: time.Now, NewID: dispatchtest.ID, PartOf: true},
		Library: []*fetch.Folder{folder}, IndexPath: filepath.Join(home, "index"), Extractor: extract.New(extract.Config{})})
	defer f.Close()
	works(t, e, researcher.FilesName, submit.Serve(held, func(ctx context.Context, _ dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		return f.Research(ctx, req, sink)
	}))
	works(t, e, "pi", investigates(e, []dispatch.Member{member}, minds()))
	task := dispatchtest.Task("pi")
	task.Request = marchwarden.Request{Question: "When are peas sown?"}
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	res, end := finished(t, e, task)
	if len(res.Citations) == 0 {
		t.Fatalf("nothing was found: %+v", res)
	}
	brought(t, e, home, task.ID, end)
}

// brought puts an investigation of files alone into a home and checks all of it.
func brought(t *testing.T, e dispatch.Engine, home string, id marchwarden.TraceID, end *dispatch.End) {
	t.Helper()
	traces, err := trace.OpenDir(filepath.Join(home, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	blobs, err := dir.Open(filepath.Join(home, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	log := exported(t, e, traces, id, end)
	parts := run.FactsOf(log.Steps).Parts
	if len(parts) == 0 {
		t.Fatal("there are no rihlas")
	}
	logs, results := map[marchwarden.TraceID]*trace.Log{}, map[marchwarden.TraceID]blob.Ref{}
	for _, part := range parts {
		s, err := e.Look(t.Context(), part)
		if err != nil || s.End == nil {
			t.Fatalf("rihla %s: %+v, %v", part, s, err)
		}
		logs[part], results[part] = exported(t, e, traces, part, s.End), s.End.Result
	}
	whole, err := run.Store{Traces: traces, Blobs: e.Blobs()}.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range whole.Refs() {
		content, err := e.Blobs().Get(t.Context(), ref)
		if err == nil {
			_, err = blobs.Put(t.Context(), content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range parts {
		again, err := researcher.Again(t.Context(), logs[part], blobs, nil)
		if err != nil || !again.Same() || blob.Of(again.Want) != results[part] {
			t.Errorf("the rerun of %s differs: %v\n%s\n%s", part, err, again.Want, again.Got)
		}
	}
	want, got, err := pi.Again(t.Context(), log, blobs, minds())
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("the rerun differs: %v\n%s\n%s", err, want, got)
	}
	report, err := record.Home{Store: run.Store{Traces: traces, Blobs: blobs}, Shelf: blobs}.
		Check(t.Context(), record.CheckOptions{Now: time.Now()})
	if err != nil || len(report.Findings) > 0 || report.Traces != 1+len(parts) || report.Unsummed > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
