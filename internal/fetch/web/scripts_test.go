package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/render"
)

// realRenderer is a browser.
type realRenderer struct{ *render.Renderer }

func (r realRenderer) Render(ctx context.Context, address string) ([]byte, string, error) {
	page, err := r.Renderer.Render(ctx, address)
	return page.HTML, page.URL, err
}

// TestScriptsThatGoToAnotherSite has a page send a real browser to another host:
// what is there is that host's, under its address and its robots.txt.
func TestScriptsThatGoToAnotherSite(t *testing.T) {
	if testing.Short() {
		t.Skip("web: skipped with -short")
	}
	chromium, ok := render.Find(os.Getenv("MARCHWARDEN_CHROMIUM"), exec.LookPath)
	if !ok {
		t.Skip("web: no chromium on this machine; install one, or set MARCHWARDEN_CHROMIUM")
	}
	there := listen(t, "127.0.0.2:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /closed\n")
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, article)
	}))
	here := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><title>App</title><div id="root"></div><script>location.href = '%s%s'</script>`, there.URL, r.URL.Path)
	})
	f := newFetcher(t, func(c *Config) {
		c.Timeout = time.Minute
		c.Renderer = realRenderer{render.New(render.Config{Chromium: chromium, Timeout: 5 * time.Minute, Dial: c.Guard.DialContext, TempDir: t.TempDir()})}
	})

	page, err := f.Fetch(t.Context(), here.URL+"/open")
	if err != nil {
		t.Fatal(err)
	}
	if page.Locator != here.URL+"/open" || page.URL != there.URL+"/open" || page.Origin != "127.0.0.2" || !strings.Contains(textOf(t, f, page), "alkaline") {
		t.Errorf("locator %q, url %q, origin %q, text %q", page.Locator, page.URL, page.Origin, textOf(t, f, page))
	}

	page, err = f.Fetch(t.Context(), here.URL+"/closed")
	wantCode(t, "closed", err, marchwarden.CodeDenied)
	if page.URL != "" || err != nil && !strings.Contains(err.Error(), "robots.txt of "+there.Listener.Addr().String()) {
		t.Errorf("url %q, err %v", page.URL, err)
	}
}
