package report

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/chromium"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// TestBrowser opens a page full of hostile texts in a real browser: it asks for
// nothing, runs nothing and has nothing to complain about.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short")
	}
	chromium, ok := chromium.Find(os.Getenv("MARCHWARDEN_CHROMIUM"), exec.LookPath)
	if !ok {
		t.Skip("no chromium on this machine; install one, or set MARCHWARDEN_CHROMIUM")
	}
	r := sample(t, func(s string) string { return s + " " + strings.Join(payloads, " ") })
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	var mu sync.Mutex
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		asked = append(asked, req.URL.Path)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if req.URL.Path == "/loud" { // shows that a complaint would be heard
			_, _ = w.Write([]byte(strings.Replace(page, "</body>", "<script>alert(1)</script></body>", 1)))
			return
		}
		_, _ = w.Write([]byte(page))
	}))
	defer srv.Close()
	dom, complaints := browse(t, chromium, srv.URL+"/")
	if len(complaints) > 0 {
		t.Errorf("the browser says: %q", complaints)
	}
	if !strings.Contains(dom, `id="excerpt-1"`) {
		t.Errorf("the browser shows %d bytes without the first excerpt", len(dom))
	}
	mu.Lock()
	if got := strings.Join(asked, " "); got != "/" && got != "/ /favicon.ico" {
		t.Errorf("the browser asked for %q", got)
	}
	mu.Unlock()
	if !datatest.Full() {
		return
	}
	if _, complaints := browse(t, chromium, srv.URL+"/loud"); len(complaints) == 0 {
		t.Error("a script that the policy forbids causes no complaint, so complaints are not heard")
	}
}

var console = regexp.MustCompile(`(?m)^.*CONSOLE.*$`)

func browse(t *testing.T, chromium, address string) (dom string, complaints []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	profile, err := os.MkdirTemp("", "report-browser")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(profile) // not t.TempDir: the browser's children may still write to it
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--enable-logging=stderr", "--user-data-dir="+profile, "--dump-dom", address)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("run the browser: %v\n%s", err, stderr.String())
	}
	return stdout.String(), console.FindAllString(stderr.String(), -1)
}
