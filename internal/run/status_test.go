package run_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// A run is running while somebody writes it, whatever its lines say, and what it was
// before and after that follows from them.
func TestStatusFollowsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.open()
	r := past{question: "What is peat?", answer: "Peat is soil.", confidence: 0.5}
	expect := func(when string, want run.State, resumable, partial bool) {
		t.Helper()
		e := one(t, h, idOf(1))
		if e.Status != want || e.Resumable != resumable || e.Partial != partial {
			t.Errorf("%s: %+v", when, e.Standing)
		}
		if g := run.Look(w.traces, idOf(1)); !cmp.Equal(g.Standing, e.Standing) {
			t.Errorf("%s: Look says %+v", when, g.Standing)
		}
		found, _ := find(t, h, run.Query{Status: []run.State{want}})
		if !cmp.Equal(found, []int{1}) {
			t.Errorf("%s: %v is %s", when, found, want)
		}
	}
	out, err := w.traces.Create(idOf(1))
	if err != nil {
		t.Fatal(err)
	}
	expect("before its first line", run.Running, false, false)
	w.put(out, r.start(1))
	expect("begun", run.Running, false, false)
	out.Close()
	expect("cut off", run.Interrupted, true, false)
	out, _, err = w.traces.Append(idOf(1))
	if err != nil {
		t.Fatal(err)
	}
	expect("about to go on", run.Running, false, false)
	w.put(out, &trace.Resume{})
	stopped := r
	stopped.stopped = true
	w.end(out, 1, stopped)
	expect("ended and not let go of", run.Running, false, false)
	out.Close()
	expect("stopped", run.Interrupted, true, true)
	out, _, err = w.traces.Append(idOf(1))
	if err != nil {
		t.Fatal(err)
	}
	w.put(out, &trace.Resume{Extension: &trace.Extension{Tokens: 500}})
	expect("going on past its end", run.Running, false, false)
	if e := one(t, h, idOf(1)); e.Answer != "Peat is soil." {
		t.Errorf("while it goes on: %+v", e)
	}
	w.end(out, 1, r)
	out.Close()
	expect("complete", run.Complete, false, false)
}

// A run that ends while others are looked at is not called cut off.
func TestEndsWhileListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := past{question: "What is peat?", answer: "Soil."}
	out, err := w.traces.Create(idOf(90))
	if err != nil {
		t.Fatal(err)
	}
	w.put(out, r.start(90))
	if err := os.Chtimes(w.file(idOf(90)), noon, noon); err != nil {
		t.Fatal(err)
	}
	w.overwrite(w.add(r), "") // its file is newer, so that it is looked at before
	entries, _, err := w.open().Find(context.Background(), run.Query{}, func(id marchwarden.TraceID) bool {
		if id == idOf(1) {
			w.end(out, 90, r)
			out.Close()
		}
		return true
	})
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if e.ID == idOf(90) && (e.Status != run.Complete || e.Answer != "Soil.") {
			t.Errorf("%+v", e)
		}
	}
}

func TestStanding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := func(id marchwarden.TraceID) marchwarden.TraceID {
		if err := os.WriteFile(filepath.Join(w.path, id.String()+trace.ForeignSuffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return id
	}
	w.add(past{question: "complete"})
	w.add(past{question: "cut off", cut: true})
	w.add(past{question: "stopped", stopped: true})
	w.add(past{question: "planned", plan: true})
	w.add(past{question: "planned, cut off", plan: true, cut: true})
	w.add(past{question: "rihla, cut off", rihla: true, cut: true})
	foreign(w.add(past{question: "imported"}))
	foreign(w.add(past{question: "imported, stopped", stopped: true}))
	w.overwrite(w.add(past{}), "")
	w.overwrite(w.add(past{}), "no JSON at all\nnot here either\n")
	w.overwrite(w.add(past{}), `{"step":1,"action":"iteration_start","timestamp":"2026-05-01T12:00:00Z","decision":""}`+"\n")
	w.overwrite(w.add(past{}), `{"step":1,"action":"start","timestamp":"2026-05-01T12:00:00Z","decision":"","format":99}`+"\n")
	h := w.open()
	for n, want := range []run.Standing{
		{Status: run.Complete}, {Status: run.Interrupted, Resumable: true}, {Status: run.Interrupted, Resumable: true, Partial: true},
		{Status: run.Planned}, {Status: run.Interrupted, Resumable: true}, {Status: run.Interrupted},
		{Status: run.Complete, Imported: true}, {Status: run.Interrupted, Partial: true, Imported: true},
		{Status: run.Damaged, Problem: "no run was begun in it"}, {Status: run.Damaged, Problem: "trace line 1"},
		{Status: run.Damaged, Problem: "the trace does not begin with a start step"}, {Status: run.Damaged, Problem: "the trace has format 99"},
	} {
		for range 2 { // cold and remembered
			g := run.Look(w.traces, idOf(n+1))
			e := g
			if !g.Rihla { // which is not listed
				e = one(t, h, idOf(n+1))
			}
			if !strings.Contains(e.Problem, want.Problem) || want.Problem == "" && e.Problem != "" || g.Problem != e.Problem {
				t.Errorf("%d: problem %q, %q", n+1, e.Problem, g.Problem)
			}
			same := want
			same.Problem = e.Problem
			if e.Standing != same || g.Standing != same {
				t.Errorf("%d: %+v and %+v, want %+v", n+1, e.Standing, g.Standing, want)
			}
		}
	}
	if _, total := find(t, h, run.Query{}); total != 11 {
		t.Errorf("%d runs are listed", total)
	}
}

// A result that is missing or damaged leaves its run in the list, and is looked for
// again after a while.
func TestResultUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	whole := w.blobs.Store
	w.add(past{question: "What is peat?", answer: "Soil of moss.", citations: 2, confidence: 0.5, model: priced, in: 1000, out: 100})
	w.blobs.Store = blob.NewMem()
	h := w.open()
	e := one(t, h, idOf(1))
	if e.Status != run.Complete || !strings.Contains(e.Problem, "result cannot be read") || e.Citations != 2 || *e.Confidence != 0.5 {
		t.Errorf("%+v", e)
	}
	if got, _ := find(t, h, run.Query{Words: "moss"}); got != nil {
		t.Errorf("words of a result that is not there: %v", got)
	}
	if got, _ := find(t, h, run.Query{Words: "peat"}); !cmp.Equal(got, []int{1}) {
		t.Errorf("words of its question: %v", got)
	}
	w.blobs.Store = whole
	w.now = w.now.Add(2 * time.Minute)
	if e := one(t, h, idOf(1)); e.Problem != "" || e.Answer != "Soil of moss." {
		t.Errorf("when it is back: %+v", e)
	}
}

// vanishing is a store that removes a trace when a result is read.
type vanishing struct {
	blob.Store
	remove func()
}

func (v vanishing) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	v.remove()
	return v.Store.Get(ctx, ref)
}

func TestRemovedWhileListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 400 {
		w.runs++
		data, err := os.ReadFile(w.file(idOf(1)))
		if err != nil {
			w.runs = 0
			w.add(past{question: "What is peat?", answer: "Soil."})
			continue
		}
		w.overwrite(idOf(w.runs), string(data))
	}
	open := w.add(past{question: "cut off", cut: true})
	h := w.open()
	w.blobs.Store = vanishing{w.blobs.Store, func() {
		for n := 300; n <= 400; n++ {
			_ = os.Remove(w.file(idOf(n))) // also by another reader
		}
	}}
	_, total := find(t, h, run.Query{})
	if total > 401 || total < 300 {
		t.Errorf("%d runs while they are removed", total)
	}
	if _, total := find(t, h, run.Query{}); total != 300 {
		t.Errorf("%d runs afterwards", total)
	}
	// One that may go on is looked at once more.
	entries, total, err := h.Find(context.Background(), run.Query{}, func(marchwarden.TraceID) bool {
		_ = os.Remove(w.file(open))
		return true
	})
	if err != nil || total > 300 || len(entries) != total {
		t.Errorf("%d runs, %v", total, err)
	}
	if err := os.RemoveAll(w.path); err != nil {
		t.Fatal(err)
	}
	if _, total, err := h.Find(context.Background(), run.Query{}, nil); total != 0 {
		t.Errorf("%d runs in a folder that is gone, %v", total, err)
	}
}
