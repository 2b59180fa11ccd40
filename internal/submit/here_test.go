package submit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// home is a home folder for submissions, and what its researcher was asked.
type home struct {
	t   *testing.T
	dir string

	mu      sync.Mutex // guards what follows
	asked   []marchwarden.Request
	results map[marchwarden.TraceID]*marchwarden.Result
}

func newHome(t *testing.T) *home {
	return &home{t: t, dir: t.TempDir(), results: map[marchwarden.TraceID]*marchwarden.Result{}}
}

// Research answers, fails for "fail" and takes until its end for "wait".
func (h *home) Research(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	h.mu.Lock()
	h.asked = append(h.asked, req)
	h.mu.Unlock()
	id, _ := marchwarden.ChosenTraceID(ctx)
	switch req.Question {
	case "fail":
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "out of order", Hint: "mend it"}
	case "wait":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if req.Resume != "" {
		id, _ = marchwarden.ParseTraceID(req.Resume)
	}
	res := &marchwarden.Result{Answer: "It is so.", TraceID: id}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.results[id] = res
	return res, nil
}

// submit asks all questions as one process does, and returns the lines that are there then.
func (h *home) submit(ctx context.Context, out string, all []Question) (lines []Line, failed int, err error) {
	h.t.Helper()
	traces, err := trace.OpenDir(filepath.Join(h.dir, "traces"), time.Now)
	if err != nil {
		h.t.Fatal(err)
	}
	defer traces.Close()
	kept, err := runs.Open(runs.Config{Researcher: h, Dir: filepath.Join(h.dir, "runs"), Now: time.Now, Name: HereName, MaxRunning: 2,
		Recorded: func(_ context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.results[id], nil
		}})
	if err != nil {
		h.t.Fatal(err)
	}
	defer kept.Close(context.Background())
	path := filepath.Join(h.dir, out)
	results, err := OpenResults(path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer results.Close()
	here := &Here{Runs: kept, Traces: traces, Earlier: func(*marchwarden.Result) {}}
	s := Submission{Ask: here.Ask, Out: results, Window: 2, Count: func(Line) {}}
	err = s.Run(ctx, all)
	data, failure := os.ReadFile(path)
	if failure != nil {
		h.t.Fatal(failure)
	}
	for text := range bytes.Lines(data) {
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			h.t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines, results.FailedOf(all), err
}

func questions(t *testing.T, texts ...string) []Question {
	t.Helper()
	var all []Question
	for i, text := range texts {
		all = append(all, Question{Line: i + 1, Request: marchwarden.Request{Question: text}})
	}
	if err := NameTasks(all, dispatch.Task{Queue: "pi"}, nil); err != nil {
		t.Fatal(err)
	}
	return all
}

// A question that fails has a line with its error. Into another file, nothing is asked again.
func TestLines(t *testing.T) {
	h, all := newHome(t), questions(t, "Is it so?", "fail", "Is it so?")
	if all[0].Task == all[2].Task {
		t.Fatal("a line that is there twice is one task")
	}
	for _, out := range []string{"one.jsonl", "other.jsonl"} {
		lines, failed, err := h.submit(t.Context(), out, all)
		if err != nil || len(lines) != 3 || failed != 1 {
			t.Fatalf("%v: %d failed of %+v", err, failed, lines)
		}
		for _, l := range lines {
			if l.Line != 2 && (l.Status != dispatch.Done || !strings.Contains(string(l.Result), "It is so.")) {
				t.Errorf("%+v", l)
			}
			if l.Line == 2 && (l.Status != dispatch.Failed || l.Error == nil || *l.Error != Failure{marchwarden.CodeUnavailable, "out of order", "mend it"}) {
				t.Errorf("%+v", l)
			}
		}
	}
	if len(h.asked) != 3 {
		t.Errorf("asked %d times: %+v", len(h.asked), h.asked)
	}
}

// A submission that is interrupted has no line for what was under way, and the next resumes it.
func TestInterrupted(t *testing.T) {
	h, all := newHome(t), questions(t, "wait")
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		for asked := 0; asked == 0; time.Sleep(time.Millisecond) {
			h.mu.Lock()
			asked = len(h.asked)
			h.mu.Unlock()
		}
		stop(errors.New("interrupted"))
	}()
	if lines, _, err := h.submit(ctx, "out.jsonl", all); err != nil || len(lines) > 0 {
		t.Fatalf("%v: %+v", err, lines)
	}
	lines, _, err := h.submit(t.Context(), "out.jsonl", all)
	if err != nil || len(lines) != 1 || lines[0].Status != dispatch.Done || h.asked[1].Resume != all[0].Task.String() {
		t.Errorf("%v: %+v after %+v", err, lines, h.asked)
	}
}
