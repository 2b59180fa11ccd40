package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// The whole way, as a user goes it: a page that answers, and one that went away.
func TestVerifyOnline(t *testing.T) {
	program, home := asMarchwarden(t), t.TempDir()
	var gone, broken atomic.Bool
	const title, text = "The lamp of Port Ellery", "The harbour lamp of Port Ellery was first lit in 1887 by the keeper Quillon Varga."
	site := webtest.New(t, map[string]webtest.Page{"/lamp": {Title: title, Text: text, Serve: func(w http.ResponseWriter, r *http.Request) {
		switch {
		case gone.Load():
			w.WriteHeader(http.StatusGone)
		case broken.Load():
			w.WriteHeader(http.StatusInternalServerError)
		default:
			fmt.Fprintf(w, "<!doctype html><html lang=en><head><title>%s</title></head><body><article><h1>%s</h1><p>%s</p></article></body></html>", title, title, text)
		}
	}}})
	site.Finds(func(string) []string { return []string{"/lamp"} })
	marchwardenCmd := func(args ...string) (string, int) {
		cmd := exec.Command(program, args...)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+filepath.Dir(program), "MARCHWARDEN_FETCH_ALLOW=127.0.0.0/8", "SEARXNG_URL="+site.SearchURL(), "MARCHWARDEN_SEARCH=searxng",
			"ARXIV_URL=http://127.0.0.1:1", "CROSSREF_URL=http://127.0.0.1:1", "OPENALEX_URL=http://127.0.0.1:1", "SEMANTIC_SCHOLAR_URL=http://127.0.0.1:1", "DOI_URL=http://127.0.0.1:1", "WIKIPEDIA_URL=http://127.0.0.1:1")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := marchwardenCmd("ask", "-q", "--researcher", "web", "When was the harbour lamp of Port Ellery first lit?"); code != 0 || !strings.Contains(out, "1887") {
		t.Fatalf("exit %d\n%s", code, out)
	}
	for _, tt := range []struct {
		name  string
		set   func()
		code  int
		wants []string
	}{
		{"there", func() {}, 0, []string{"✓ online [1] " + site.At("/lamp") + ": answered", "1 locator asked about: 1 answered", "everything stands"}},
		{"broken", func() { broken.Store(true) }, 0, []string{"? online [1] " + site.At("/lamp") + ": unchecked", "1 locator could not be checked", "everything stands"}},
		{"gone", func() { gone.Store(true) }, 1, []string{"✗ online [1] " + site.At("/lamp") + ": gone", "1 of "}},
	} {
		tt.set()
		out, code := marchwardenCmd("verify", "--online", "last")
		for _, want := range tt.wants {
			if code != tt.code || !strings.Contains(out, want) {
				t.Errorf("%s: exit %d, want %d; no %q in:\n%s", tt.name, code, tt.code, want, out)
			}
		}
	}
	if out, code := marchwardenCmd("verify", "last"); code != 0 || strings.Contains(out, "online") {
		t.Errorf("offline: exit %d\n%s", code, out)
	}
}
