package web

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

func TestResume(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.local()
	for _, text := range []string{"0", "-5000", "999", "5000.0", "5,000", "ten", "0x2000", "99999999999999999999", "5000; rm"} {
		status, _, page := b.post(path(id, "/resume"), url.Values{"token_budget": {text}})
		if status != 400 {
			t.Errorf("%s: %d", text, status)
		}
		has(t, page, "token_budget: must be a whole number of at least 1000")
	}
	for text, want := range map[string]int{"": 0, " ": 0, "1000": 1000, " 25000 ": 25000} {
		w.actor.resumed = nil
		if status, to, _ := b.post(path(id, "/resume"), url.Values{"token_budget": {text}}); status != 303 || to != path(id, "?notice=resumed") || len(w.actor.resumed) != 1 || w.actor.resumed[0] != want {
			t.Errorf("%q: %d %s %v", text, status, to, w.actor.resumed)
		}
	}
}

func TestRerun(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.local()
	if status, to, _ := b.post(path(id, "/rerun"), nil); status != 303 || to != path(id, "?notice=same") {
		t.Errorf("%d %s", status, to)
	}
	w.tests.same = false
	if status, to, _ := b.post(path(id, "/rerun"), nil); status != 303 || to != path(id, "?notice=different") {
		t.Errorf("%d %s", status, to)
	}
	has(t, w.log.String(), "the answers differ")
}

// slow is a check that goes on until it may end.
type slow struct {
	begun, end chan struct{}
	stopped    chan struct{} // closed when it was told to stop
	once       sync.Once
	unless     sync.Once
	err        error
}

func (w *world) slowly(err error) *slow {
	s := &slow{begun: make(chan struct{}), end: make(chan struct{}), stopped: make(chan struct{}), err: err}
	w.tests.mu.Lock()
	defer w.tests.mu.Unlock()
	w.tests.drift = func(ctx context.Context, told func()) error {
		told()
		s.once.Do(func() { close(s.begun) })
		select {
		case <-s.end:
			return s.err
		case <-ctx.Done():
			s.unless.Do(func() { close(s.stopped) })
			return ctx.Err()
		}
	}
	return s
}

func (w *world) checked() int {
	w.tests.mu.Lock()
	defer w.tests.mu.Unlock()
	return w.tests.checks
}

// unchecked waits until no check of a run goes on.
func (w *world) unchecked(id marchwarden.TraceID) {
	w.t.Helper()
	for range 1000 {
		if _, going := w.server.checks.find(id.String(), false); !going {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatal("the check does not end")
}

func TestDrift(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.local()
	_, text := b.get(path(id, "/drift"))
	has(t, text, "since the run", "Check the sources again")
	s := w.slowly(nil)
	b.post("/nowhere", nil) // has the token
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if resp, _ := b.send("POST", path(id, "/drift"), url.Values{"csrf": {b.csrf}}); resp.StatusCode != 303 || resp.Header.Get("Location") != path(id, "/drift") {
				t.Errorf("%d %v", resp.StatusCode, resp.Header)
			}
		})
	}
	both.Wait() // and the requests are over: the check goes on
	<-s.begun
	resp, text := b.send("GET", path(id, "/drift"), nil)
	if resp.Header.Get("Refresh") != "2" {
		t.Errorf("%v", resp.Header)
	}
	has(t, text, "Checking now: 1 source done so far")
	lacks(t, text, "Check the sources again")
	close(s.end)
	w.unchecked(id)
	resp, text = b.send("GET", path(id, "/drift"), nil)
	if w.checked() != 1 || resp.Header.Get("Refresh") != "" {
		t.Errorf("%d checks, %v", w.checked(), resp.Header)
	}
	has(t, text, "1 of 1 sources is gone", "They grow alfalfa.", "clover", "404", "Check the sources again")
	_, text = b.get(path(id, "?source=1"))
	has(t, text, "Gone: this copy is what is left", "1 of 1 sources is gone")
	_, text = b.get(path(id, "/panel?source=1"))
	has(t, text, "Gone: this copy is what is left")
}

func TestACheckThatFails(t *testing.T) {
	w, people := newTeam(t, nil, map[string][]string{"ann": {access.ScopeResearch, access.ScopeRead}})
	id := w.run("ann", question)
	b := people["ann"]
	s := w.slowly(&marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the network is down", Err: errors.New("dial from /srv/secret/socket")})
	b.post(path(id, "/drift"), nil)
	<-s.begun
	close(s.end)
	w.unchecked(id)
	if resp, _ := b.send("HEAD", path(id, "/drift"), nil); resp.StatusCode != 200 { // tells nothing
		t.Errorf("%d", resp.StatusCode)
	}
	_, text := b.get(path(id, "/drift"))
	has(t, text, "The check failed: the network is down.")
	lacks(t, text, "secret")
	_, text = b.get(path(id, "/drift"))
	lacks(t, text, "The check failed")
	has(t, w.log.String(), "/srv/secret/socket")

	// One that panics has failed, and the server goes on.
	w.tests.mu.Lock()
	w.tests.drift = func(context.Context, func()) error { panic("a bug") }
	w.tests.mu.Unlock()
	b.post(path(id, "/drift"), nil)
	w.unchecked(id)
	_, text = b.get(path(id, "/drift"))
	has(t, text, "The check failed: ")
	lacks(t, text, "a bug")

	// One that failed without being told of does not keep another from beginning.
	b.post(path(id, "/drift"), nil)
	w.unchecked(id)
	again := w.slowly(nil)
	b.post(path(id, "/drift"), nil)
	<-again.begun
	close(again.end)
	w.unchecked(id)
}

func TestCloseWhileAChecksGoesOn(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	ids := []marchwarden.TraceID{w.written(1, marchwarden.Result{}), w.written(2, marchwarden.Result{}), w.written(3, marchwarden.Result{})}
	s := w.slowly(nil)
	for _, id := range ids {
		if status, _, text := b.post(path(id, "/drift"), nil); status != 303 {
			t.Fatalf("%d %s", status, mainOf(text))
		}
	}
	<-s.begun
	w.tests.mu.Lock()
	w.tests.drift = func(ctx context.Context, _ func()) error { <-ctx.Done(); return ctx.Err() }
	w.tests.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	if n := w.checked(); n > atOnce {
		t.Errorf("%d checks at once", n)
	}
	w.server.Close()
	w.server.Close() // twice is once
	n := w.checked()
	if status, _, _ := b.post(path(ids[0], "/drift"), nil); status != 303 || w.checked() != n {
		t.Errorf("after the end: %d, %d checks", status, w.checked())
	}
}

func TestExport(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.local()
	resp, text := b.send("GET", path(id, "/export/html"), nil)
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
	if resp.StatusCode != 200 || text != "# Report" || resp.Header.Get("Content-Length") != "8" || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" || err != nil ||
		kind != "attachment" || params["filename"] != "marchwarden-"+id.String()[:8]+".html" || resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %q %v", resp.StatusCode, text, resp.Header)
	}
	for _, format := range []string{"exe", "MD", "md%20", "%2e%2e%2fmd", "md%00"} {
		status, text := b.get(path(id, "/export/"+format))
		if status != 404 {
			t.Errorf("%s: %d", format, status)
		}
		has(t, text, "there is no such format")
	}
	w.tests.export = func(out io.Writer) error {
		_, _ = io.WriteString(out, strings.Repeat("half a file ", 100_000))
		return marchwarden.Errorf(marchwarden.CodeCorrupt, "a stored page is damaged")
	}
	resp, text = b.send("GET", path(id, "/export/md"), nil)
	if resp.StatusCode != 500 || resp.Header.Get("Content-Disposition") != "" || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	has(t, text, "a stored page is damaged")
	lacks(t, text, "half a file")
}

func TestDelete(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.local()
	_, text := b.get(path(id, "/delete"))
	has(t, text, "Delete this answer?", question, `name="confirmed" value="yes"`)
	for _, word := range []string{"", "no", "YES", "yes "} {
		if status, _, _ := b.post(path(id, "/delete"), url.Values{"confirmed": {word}}); status != 400 || len(w.actor.removed) > 0 {
			t.Errorf("%q: %d", word, status)
		}
	}
	if resp, _ := b.send("POST", path(id, "/delete?confirmed=yes"), url.Values{"csrf": {b.csrf}}); resp.StatusCode != 400 {
		t.Errorf("by the address: %d", resp.StatusCode)
	}
	s := w.slowly(nil)
	b.post(path(id, "/drift"), nil)
	<-s.begun
	status, to, _ := b.post(path(id, "/delete"), url.Values{"confirmed": {"yes"}})
	if status != 303 || to != "/history?notice=deleted" || len(w.actor.removed) != 1 {
		t.Fatalf("%d %s", status, to)
	}
	select {
	case <-s.stopped:
	default:
		t.Error("its sources are still fetched")
	}
	_, text = b.get(to)
	has(t, text, "The answer was deleted.")
	if ids := listed(text); len(ids) != 0 {
		t.Errorf("%v", ids)
	}
	for _, rest := range []string{"", "/panel?source=1", "/drift", "/source/1"} {
		if status, text := b.get(path(id, rest)); status != 404 {
			t.Errorf("%s of what is gone: %d %s", rest, status, mainOf(text))
		}
	}
}

// What was deleted is gone after a restart, too, though the desk remembers that it was
// asked for.
func TestDeletedBeforeARestart(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	if err := w.traces.Remove(id); err != nil {
		t.Fatal(err)
	}
	desk, err := runs.Open(runs.Config{Researcher: w.asks, Dir: filepath.Join(w.home, "runs"), Now: time.Now, Name: "ui",
		Recorded: func(context.Context, marchwarden.TraceID) (*marchwarden.Result, error) {
			_, err := w.traces.Load(id)
			return nil, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer desk.Close(context.Background())
	w.server.Runs = desk
	if status, text := w.local().get(path(id, "")); status != 404 {
		t.Errorf("%d %s", status, mainOf(text))
	}
}
