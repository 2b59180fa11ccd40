package web

import (
	"bytes"
	"context"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// held is a researcher that writes the first lines of a trace when it may begin, and its
// result when it may end or is stopped.
type held struct {
	w          *world
	begin, end chan struct{}
	begun      chan struct{}
}

func newHeld(w *world) *held {
	h := &held{w, make(chan struct{}), make(chan struct{}), make(chan struct{})}
	w.asks = h.research
	return h
}

func (h *held) research(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	select {
	case <-h.begin:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	id, _ := marchwarden.ChosenTraceID(ctx)
	out, err := h.w.traces.Create(id)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	start := &trace.Start{Format: trace.Format, TraceID: id, Researcher: "files", Version: "test", StartedAt: time.Now(), Request: req, Limits: req.Limits()}
	for _, s := range []trace.Step{start, &trace.Iteration{Iteration: 1}, &trace.Search{}} {
		if err := out.Append(s); err != nil {
			return nil, err
		}
	}
	close(h.begun)
	done := &trace.Complete{}
	select {
	case <-h.end:
	case <-ctx.Done():
		done.Interrupted = true
	}
	res := &marchwarden.Result{TraceID: id, Answer: "Held back.", CostMetadata: marchwarden.CostMetadata{ModelID: "extractive/1"}}
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		return nil, err
	}
	if done.Result, err = h.w.blobs.Put(context.WithoutCancel(ctx), encoded); err != nil {
		return nil, err
	}
	return res, out.Append(done)
}

// A run is asked for on the page, begins, goes on, and ends; its page shows it at every
// step.
func TestARunFromItsBeginningToItsEnd(t *testing.T) {
	w := newWorld(t, nil)
	h := newHeld(w)
	b := w.local()
	status, to, text := b.post("/ask", url.Values{"question": {question}, "researcher": {"files"}})
	if status != 303 || !strings.HasPrefix(to, "/runs/") {
		t.Fatalf("%d %s %s", status, to, mainOf(text))
	}
	status, text = b.get(to)
	if status != 200 {
		t.Errorf("not begun: %d", status)
	}
	has(t, text, "The run begins", "Stop and keep what there is", `<article class="run" id="run">`, html.EscapeString(question)+"</h1>")
	lacks(t, text, "No question was kept")

	close(h.begin)
	<-h.begun
	status, text = b.get(to)
	if status != 200 {
		t.Errorf("it goes on: %d", status)
	}
	has(t, text, question, "searching", "Stop and keep what there is", "20,000")
	if _, text := b.get("/"); !strings.Contains(text, "At work now") {
		t.Error("it is not listed as running")
	}
	close(h.end)
	w.ended(mustID(t, to))
	status, text = b.get(to)
	if status != 200 {
		t.Errorf("it has ended: %d", status)
	}
	has(t, text, "Held back.", "Share")
	lacks(t, text, "Stop and keep")
}

func mustID(t *testing.T, path string) marchwarden.TraceID {
	t.Helper()
	id, err := marchwarden.ParseTraceID(strings.TrimPrefix(path, "/runs/"))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestCancel(t *testing.T) {
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t, nil)
		h := newHeld(w)
		b := w.local()
		_, to, _ := b.post("/ask", url.Values{"question": {question}, "researcher": {"files"}})
		close(h.begin)
		<-h.begun
		if status, back, text := b.post(to+"/cancel", nil); status != 303 || back != to+"?notice=canceled" {
			t.Fatalf("%d %s %s", status, back, mainOf(text))
		}
		_, text := b.get(to + "?notice=canceled")
		has(t, text, "The run was told to stop.", "Held back.", "stopped before its end")
		if status, back, _ := b.post(to+"/cancel", nil); status != 303 || back != to+"?notice=over" {
			t.Errorf("once more: %d %s", status, back)
		}
	})
	t.Run("not begun", func(t *testing.T) {
		w := newWorld(t, nil)
		newHeld(w)
		b := w.local()
		_, to, _ := b.post("/ask", url.Values{"question": {question}, "researcher": {"files"}})
		if status, _, _ := b.post(to+"/cancel", nil); status != 303 {
			t.Errorf("%d", status)
		}
		status, text := b.get(to + "?notice=canceled")
		if status != 409 {
			t.Errorf("%d", status)
		}
		has(t, text, "the run could not begin: ")
		if status, _, _ := b.post(to+"/cancel", nil); status != 303 {
			t.Errorf("once more: %d", status)
		}
	})
	t.Run("another's", func(t *testing.T) {
		w := newWorld(t, nil)
		id := idOf(1)
		writer := w.writes(id, question)
		heeding, done := context.WithCancel(t.Context())
		defer done()
		go runs.HeedStop(heeding, filepath.Join(w.home, "runs"), id, func() { _ = writer.Close() }) // as the other program does
		b := w.local()
		status, text := b.get(path(id, ""))
		if status != 200 {
			t.Errorf("%d", status)
		}
		has(t, text, question, "Stop and keep")
		if status, _, _ := b.post(path(id, "/cancel"), nil); status != 303 {
			t.Errorf("%d", status)
		}
		if busy, err := w.traces.Busy(id); busy || err != nil {
			t.Errorf("the other program goes on: %v", err)
		}
		if status, _, _ := b.post(path(idOf(2), "/cancel"), nil); status != 404 {
			t.Errorf("one that there is not: %d", status)
		}
	})
}

// A run that is resumed goes on for its page from that moment, before it has opened its trace
// again: a page that showed the old answer would never learn of the new one.
func TestResumedBeforeItsTraceIsOpen(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	id := w.run("", question)
	opens := make(chan struct{})
	w.asks = func(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		<-opens
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "no model")
	}
	w.begin(access.With(t.Context(), access.Local()), marchwarden.Request{Resume: id.String()})
	status, text := b.get(path(id, "?notice=resumed"))
	if status != 200 {
		t.Errorf("%d", status)
	}
	has(t, text, "The run goes on.", "Stop and keep what there is", `id="live"`)
	close(opens)
	w.ended(id)
	_, text = b.get(path(id, ""))
	lacks(t, text, "Stop and keep")
}

// What a run failed of before it had a trace is told, to its owner without the causes,
// which may name folders.
func TestARunThatNeverBegan(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status int
		shown  string
	}{
		{"unavailable", &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the index cannot be opened", Hint: "build it anew from /srv/secret/papers", Err: &fs.PathError{Op: "open", Path: "/srv/secret/index.db", Err: fs.ErrPermission}}, 503, "the index cannot be opened"},
		{"not found", marchwarden.Errorf(marchwarden.CodeNotFound, "there is no such model"), 503, "there is no such model"},
		{"refused", marchwarden.Errorf(marchwarden.CodeDenied, "no licence"), 403, "no licence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, people := newTeam(t, nil, map[string][]string{"ann": {access.ScopeResearch, access.ScopeRead}})
			w.asks = func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
				return nil, c.err
			}
			b := people["ann"]
			_, to, _ := b.post("/ask", url.Values{"question": {question}, "researcher": {"files"}})
			w.ended(mustID(t, to))
			status, text := b.get(to)
			if status != c.status {
				t.Errorf("%d", status)
			}
			has(t, text, "the run could not begin: "+c.shown)
			lacks(t, text, w.home, "secret")
		})
	}
}

// A run that was cut off shows how far it came; one of which not a line was written, and
// one whose lines are damaged, say so.
func TestARunWithoutAResult(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	cut := w.writes(idOf(1), question)
	w.put(cut, &trace.Iteration{Iteration: 1}, &trace.Search{})
	_ = cut.Close()
	status, text := b.get(path(idOf(1), ""))
	if status != 200 {
		t.Errorf("%d", status)
	}
	has(t, text, question, "cut off before it had an answer", path(idOf(1), "/resume"), path(idOf(1), "/delete"))
	lacks(t, text, path(idOf(1), "/export"), "the answer is what there was by then")
	for _, rest := range []string{"/panel?source=1", "/source/1", "/drift"} {
		if status, _ := b.get(path(idOf(1), rest)); status != 409 {
			t.Errorf("%s: %d", rest, status)
		}
	}
	if status, _, _ := b.post(path(idOf(1), "/drift"), nil); status != 409 {
		t.Errorf("a check of no sources: %d", status)
	}

	empty, err := w.traces.Create(idOf(2))
	if err != nil {
		t.Fatal(err)
	}
	_ = empty.Close()
	lost := w.writes(idOf(3), question)
	w.put(lost, &trace.Complete{Result: blob.Of([]byte("gone"))})
	_ = lost.Close()
	garbled := w.written(4, marchwarden.Result{Answer: "Garbled."})
	file := filepath.Join(w.traces.Path(), garbled.String()+".jsonl")
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(lines, []byte("Question"), []byte("Quastion"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, words := range map[int]string{2: "damaged", 3: "its result cannot be had", 4: "damaged"} {
		status, text = b.get(path(idOf(n), ""))
		if status != 200 {
			t.Errorf("%d: %d", n, status)
		}
		has(t, text, "The record of this run is damaged: ", words, path(idOf(n), "/delete"))
		lacks(t, text, "Being researched", w.home, path(idOf(n), "/export"), "Garbled.")
		if status, text = b.get(path(idOf(n), "/source/1")); status != 500 {
			t.Errorf("a source of %d: %d", n, status)
		}
		lacks(t, text, w.home)
		if status, _, _ := b.post(path(idOf(n), "/delete"), url.Values{"confirmed": {"yes"}}); status != 303 {
			t.Errorf("%d is not deleted: %d", n, status)
		}
	}
}

// A run that goes on is not what was kept of it before.
func TestAReportIsReadAnew(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	id := w.written(1, marchwarden.Result{Answer: "First answer."})
	_, text := b.get(path(id, ""))
	has(t, text, "First answer.")
	out, _, err := w.traces.Append(id)
	if err != nil {
		t.Fatal(err)
	}
	w.put(out, &trace.Resume{})
	status, text := b.get(path(id, ""))
	if status != 200 {
		t.Errorf("%d", status)
	}
	has(t, text, "Being researched")
	w.ends(out, &marchwarden.Result{TraceID: id, Answer: "Second answer.", CostMetadata: marchwarden.CostMetadata{ModelID: "extractive/1"}})
	_ = out.Close()
	_, text = b.get(path(id, ""))
	has(t, text, "Second answer.")
	lacks(t, text, "First answer.")
}

// A run that cannot be read just now keeps the page that follows it.
func TestARunThatCannotBeReadNow(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	w.writes(idOf(1), question)
	_ = w.traces.Close()
	resp, text := b.send("GET", path(idOf(1), ""), nil)
	if resp.StatusCode < 500 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	lacks(t, text, w.home)
}
