package chromium

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// browser finds the one browser that these tests run; without it they are skipped.
func browser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("render: skipped with -short")
	}
	path, ok := Find(os.Getenv("MARCHWARDEN_CHROMIUM"), exec.LookPath)
	if !ok {
		t.Skip("render: no chromium on this machine; install one, or set MARCHWARDEN_CHROMIUM")
	}
	return path
}

func TestFind(t *testing.T) {
	have := func(names ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if slices.Contains(names, name) {
				return "/bin/" + name, nil
			}
			return "", exec.ErrNotFound
		}
	}
	for _, c := range []struct {
		explicit string
		names    []string
		want     string
	}{
		{"", nil, ""}, {"", []string{"chrome"}, "/bin/chrome"}, {"", []string{"google-chrome", "chromium"}, "/bin/chromium"},
		{"mine", []string{"chromium", "mine"}, "/bin/mine"}, {"mine", []string{"chromium"}, ""},
	} {
		if got, ok := Find(c.explicit, have(c.names...)); got != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q %v", c, got, ok)
		}
	}
}

func TestPrint(t *testing.T) {
	chromium, temporary := browser(t), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	pdf, err := Print(t.Context(), chromium, `<!doctype html><title>A report</title><h1>Rye</h1><p>ripens</p><img src="`+srv.URL+`/x.png"><script>document.title="run"</script>`)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("%%EOF")) || len(pdf) < 1000 {
		t.Errorf("%d bytes begin %.20q", len(pdf), pdf)
	}
	if asked.Load() > 0 || bytes.Contains(pdf, []byte("(run)")) {
		t.Error("the page asked for something, or its script ran")
	}
	if _, err := Print(t.Context(), chromium+"-missing", "x"); err == nil {
		t.Error("a browser that is not there prints")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Print(gone, chromium, "x"); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("cancelled: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "marchwarden-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestEnvironment: the browser learns nothing of our environment, which may hold keys.
func TestEnvironment(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	t.Setenv("MARCHWARDEN_TEST_KEY", "secret")
	told := filepath.Join(t.TempDir(), "environment")
	script := filepath.Join(t.TempDir(), "browser")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nenv >"+told+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Print(t.Context(), script, "x"); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("a browser that prints nothing: %v", err)
	}
	env, err := os.ReadFile(told)
	if err != nil || !bytes.Contains(env, []byte("HOME=")) || bytes.Contains(env, []byte("secret")) {
		t.Errorf("the browser was told %q, %v", env, err)
	}
}
