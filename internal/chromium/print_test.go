package chromium

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// browser finds the one browser that these tests run; without it they are skipped.
func browser(t *testing.T) string {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("render: skipped with -short")
	}
	path, ok := Find(os.Getenv("MARCHWARDEN_CHROMIUM"), exec.LookPath)
	if !ok {
		t.Skip("render: no chromium on this machine; install one, or set MARCHWARDEN_CHROMIUM")
	}
	return path
}

// leftovers lists live processes whose command line names the profile folder, and what is left in it.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, files...)
	cmdlines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range cmdlines {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), dir) { // a process that ended has none
			found = append(found, name+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
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
	chromium := browser(t)
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
}
