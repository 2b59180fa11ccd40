package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// sheet is a stream that can be looked at while it is written.
type sheet struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *sheet) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sheet) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// until waits for words.
func (s *sheet) until(t *testing.T, words string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(s.String(), words); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in %q", words, s)
		}
	}
}

// watcher is a process that follows a run.
type watcher struct {
	out, errs sheet
	code      chan int
	stop      context.CancelCauseFunc
}

func (w *watcher) ends(t *testing.T, want int) {
	t.Helper()
	select {
	case got := <-w.code:
		if got != want {
			t.Errorf("exit code %d, want %d: %s", got, want, &w.errs)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

// A run that another writes is followed step by step, in every form, until it ends; and an
// interrupt ends the follower alone.
func TestFollowARun(t *testing.T) {
	t.Parallel()
	a := world(t, map[string]string{settings.EnvOf(settings.Embed): settings.EmbedOff, "TERM": "xterm", "LANG": "en_GB.UTF-8"})
	a.Now, a.NewID, a.stdin, a.Environ = time.Now, serve.NewTraceID, strings.NewReader(""), os.Environ
	user, err := a.UserHome()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(user, ".marchwarden")
	if err := os.MkdirAll(filepath.Join(home, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	traces, err := trace.OpenDir(filepath.Join(home, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	id := serve.NewTraceID()
	w, err := traces.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	step := func(s trace.Step) {
		t.Helper()
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	follow := func(st term.Style, args ...string) *watcher {
		f := &watcher{code: make(chan int, 1)}
		own := *a
		own.stdout, own.Stderr, own.look = &f.out, &f.errs, func(io.Writer) term.Style { return st }
		var ctx context.Context
		ctx, f.stop = context.WithCancelCause(t.Context())
		go func() { f.code <- command(ctx, &own, append([]string{"replay", "--follow", id.String()}, args...)) }()
		return f
	}
	step(&trace.Start{Format: trace.Format, TraceID: id, Researcher: "pi", Request: marchwarden.Request{Question: "What?"}, Limits: marchwarden.Limits{TokenBudget: 5000}, StartedAt: time.Now()})
	plain, raw, terminal, leaving := follow(term.Style{}), follow(term.Style{}, "--raw"), follow(term.Style{Width: 40, Height: 20}), follow(term.Style{})
	for _, f := range []*watcher{plain, leaving, terminal} {
		f.out.until(t, " s  start")
	}
	raw.out.until(t, `"action":"start"`)

	step(&trace.Rihla{Number: 1, Researcher: "web", Question: "Who?"})
	for _, f := range []*watcher{plain, leaving} {
		f.out.until(t, " s  rihla ")
	}
	raw.out.until(t, `"action":"rihla"`)
	leaving.stop(errInterrupted)
	leaving.ends(t, exitInterrupted)
	if !strings.Contains(leaving.errs.String(), "stopped following; the run goes on") {
		t.Errorf("%s", &leaving.errs)
	}

	step(&trace.RihlaComplete{Head: trace.Head{Decision: "web reported 2 citations"}, Number: 1, Researcher: "web", Citations: 2})
	plain.out.until(t, " s  rihla_complete    web reported 2 citations\n")
	step(&trace.Complete{Head: trace.Head{Decision: "answered"}, Result: blob.Of([]byte("x")), TokensUsed: 1200})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*watcher{plain, raw, terminal} {
		f.ends(t, exitOK)
	}
	if !strings.HasSuffix(plain.out.String(), " s  complete          answered\n") || !strings.Contains(plain.errs.String(), "marchwarden show "+shortID(id)) {
		t.Errorf("%s%s", &plain.out, &plain.errs)
	}
	for line := range strings.Lines(terminal.out.String()) {
		if term.Width(strings.TrimSpace(line)) > 40 {
			t.Errorf("too wide: %s", line)
		}
	}
	written, err := os.ReadFile(filepath.Join(home, "traces", id.String()+".jsonl"))
	if err != nil || raw.out.String() != string(written) {
		t.Errorf("%v: %s", err, &raw.out)
	}
}

// Which pager, and that one which leaves early is no error.
func TestPager(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"MARCHWARDEN_PAGER": "most -s", "PAGER": "more"}, "most -s"}, {map[string]string{"PAGER": "more"}, "more"}, {map[string]string{"MARCHWARDEN_PAGER": " ", "PAGER": "more"}, "more"},
		{map[string]string{"PAGER": "cat", "LESS": "x"}, ""},
	} {
		if got := strings.Join(world(t, c.env).pager(true), " "); got != c.want {
			t.Errorf("%v: %q", c.env, got)
		}
	}
	if got := world(t, map[string]string{"PAGER": "more"}).pager(false); got != nil {
		t.Errorf("a pager that was not asked for: %q", got)
	}
	if got := world(t, map[string]string{"MARCHWARDEN_PAGER": "more"}).pager(false); len(got) != 1 {
		t.Errorf("a pager that its own variable names: %q", got)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "seen"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var errs bytes.Buffer
	for _, c := range []struct{ pager, want, said string }{
		{"head -c 5", strings.Repeat("x", 5), ""}, {"true", "", ""}, {"false", "", ""}, {"/nowhere/pager -x", strings.Repeat("x", 1<<20), "the pager /nowhere/pager cannot be run"},
	} {
		a := world(t, map[string]string{"PAGER": c.pager})
		a.stdout, a.Stderr, a.Environ, a.look = f, &errs, os.Environ, func(io.Writer) term.Style { return term.Style{Width: 80} }
		errs.Reset()
		if err := f.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if err := a.page(bytes.Repeat([]byte("x"), 1<<20), true); err != nil {
			t.Errorf("%s: %v", c.pager, err)
		}
		got, err := os.ReadFile(f.Name())
		if err != nil || string(got) != c.want || !strings.Contains(errs.String(), c.said) || c.said == "" && errs.Len() > 0 {
			t.Errorf("%s: %d bytes, %v, %s", c.pager, len(got), err, &errs)
		}
	}
}
