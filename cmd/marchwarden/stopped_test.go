package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// runHere is a command line in this process, with these settings and no others.
func runHere(ctx context.Context, env map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, said bytes.Buffer
	a := system()
	a.stdin, a.stdout, a.Stderr, a.Dir = strings.NewReader(""), &out, &said, env["MARCHWARDEN_HOME"]
	a.Env = lookup(env)
	a.Environ = func() []string { return nil }
	a.UserHome = func() (string, error) { return env["MARCHWARDEN_HOME"], nil }
	code = command(ctx, a, args)
	return code, out.String(), said.String()
}

// Ctrl-C in the middle of an export leaves no file, and is told as that whatever the
// work that it ended made of it.
func TestStoppedExport(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	path := filepath.Join(t.TempDir(), "answer.mwz")
	err := stopped(ctx, "nothing was written", settings.WriteOut(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "begun"); err != nil {
			return err
		}
		return fmt.Errorf("get a blob: %w", ctx.Err())
	}))
	if marchwarden.CodeOf(err) != marchwarden.CodeCanceled || err.Error() != "nothing was written: interrupted" {
		t.Errorf("%s: %v", marchwarden.CodeOf(err), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Ctrl-C in the middle of a check: what was found out is shown, in plain words, and
// part of a check is not kept.
func TestStoppedChecks(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	site := filepath.Join(home, "site")
	page := func(what string) string {
		return "<!doctype html><html><head><title>The " + what + "</title></head><body><article><h1>The " + what + "</h1><p>The " + what + " of Port Ellery was built by the engineer Maud Ostrander in 1887.</p></article></body></html>"
	}
	write(t, filepath.Join(site, "lamp.html"), page("lamp"))
	write(t, filepath.Join(site, "mole.html"), page("mole"))
	var asked atomic.Int64 // pages, since the last check began
	var stop atomic.Pointer[context.CancelCauseFunc]
	pages := folderSite(site)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cancel := stop.Load(); cancel != nil && (r.URL.Path == "/lamp" || r.URL.Path == "/mole") && asked.Add(1) > 1 {
			time.Sleep(time.Second) // the first one is done with by then
			(*cancel)(errInterrupted)
			<-r.Context().Done()
			return
		}
		pages(w, r)
	}))
	defer server.Close()
	env := map[string]string{"SEARXNG_URL": server.URL + "/searx", "MARCHWARDEN_FETCH_ALLOW": "127.0.0.0/8", "MARCHWARDEN_SEARCH": "searxng", "MARCHWARDEN_HOME": filepath.Join(home, "kept")}
	if code, out, said := runHere(t.Context(), env, "ask", "-q", "--researcher", "web", "Who built the lamp and who built the mole of Port Ellery?"); code != exitOK || !strings.Contains(out, "[2]") {
		t.Fatalf("exit %d\n%s%s", code, out, said)
	}
	for _, tt := range []struct {
		command []string
		wants   []string
	}{
		{[]string{"drift", "last"}, []string{": 2 sources (1 unchanged, 1 unchecked); no passage is known to be lost\n", "\nunchanged  http", "\nunchecked  http", "the check was stopped before\n", "] present\n", "] unknown\n"}},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		asked.Store(0)
		stop.Store(&cancel)
		code, out, said := runHere(ctx, env, tt.command...)
		for _, want := range tt.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %q in:\n%s", tt.command, want, out)
			}
		}
		if code != exitInterrupted || !strings.HasSuffix(said, "marchwarden: error: the check is not complete: interrupted\n") {
			t.Errorf("%q: exit %d\n%s", tt.command, code, said)
		}
		cancel(nil)
	}
	if kept, err := os.ReadDir(filepath.Join(env["MARCHWARDEN_HOME"], "drift")); err == nil {
		t.Errorf("part of a check is kept: %v", kept)
	}
}
