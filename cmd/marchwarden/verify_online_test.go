package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/registry"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	arxivapi "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/arxiv"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// papersOffice is Crossref, OpenAlex, arXiv and the handles of DOIs, with a paper
// that stands, one that was retracted and one on arXiv.
func papersOffice(t *testing.T) string {
	type answer struct {
		status int
		body   string
	}
	answers := map[string]answer{} // by path; a DOI in it may have its slash escaped
	say := func(path string, status int, body string) { answers[path] = answer{status, body} }
	say("/works/10.1000/good", 200, `{"message": {"DOI": "10.1000/good", "title": ["On soils"]}}`)
	say("/works/10.1000/bad", 200, `{"message": {"DOI": "10.1000/bad", "title": ["On clay"], "updated-by": [{"DOI": "10.1000/notice", "type": "retraction"}]}}`)
	say("/works/doi:10.1000/good", 200, `{"doi": "https://doi.org/10.1000/good"}`)
	say("/api/handles/10.1000/invented", 404, `{"responseCode": 100, "handle": "10.1000/invented"}`)
	say("/api/handles/10.1000/later", 500, `{"responseCode": 2, "handle": "10.1000/later"}`)
	say("/api/query", 200, `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2101.00007v3</id><title>The Lemming model</title></entry></feed>`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(said.status)
		_, _ = io.WriteString(w, said.body) // a client that went away is its own affair
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestLocators(t *testing.T) {
	site := webtest.New(t, map[string]webtest.Page{"/here": {Title: "Here", Text: "Here it is."}})
	office := papersOffice(t)
	pages := webfetch.New(webfetch.Config{Guard: guard.New(webtest.Loopback), Now: time.Now, Pace: -1})
	defer pages.Close()
	reg := registry.New(registry.Config{
		Pages: pages, HandleURL: office, Timeout: time.Second,
		Indexes: scholar.New(scholar.Config{CrossrefURL: office, OpenAlexURL: office, Timeout: time.Second}),
		ArXiv:   arxivapi.New(arxivapi.Config{BaseURL: office, Now: time.Now, Timeout: time.Second}),
	})
	citations := []marchwarden.Citation{
		{Source: "web", Locator: site.At("/here")}, {Source: "arxiv", Locator: "doi:10.1000/good"}, {Source: "web", Locator: site.At("/here")},
		{Source: "file", Locator: site.At("/secret")}, {Source: "database", Locator: "db:patients/7"}, {Source: "arxiv", Locator: "arxiv:2101.00007"},
	}
	public, left := publicLocators(citations)
	want := []cited{{site.At("/here"), "[1][3]"}, {"doi:10.1000/good", "[2]"}, {"arxiv:2101.00007", "[6]"}}
	if diff := cmp.Diff(want, public, cmp.AllowUnexported(cited{})); diff != "" || left != 2 {
		t.Errorf("%d left out (-want +got):\n%s", left, diff)
	}
	check := func(public []cited) (string, string, *verdicts) {
		var out, said bytes.Buffer
		v := &verdicts{a: &app{stdout: &out, Host: network.Host{Stderr: &said}}}
		v.locators(t.Context(), reg, public)
		return out.String(), said.String(), v
	}
	out, said, v := check(public)
	for _, line := range []string{"✓ online [1][3] " + site.At("/here") + ": answered\n", "✓ online [2] doi:10.1000/good: registered\n", "✓ online [6] arxiv:2101.00007: registered\n", "3 locators asked about: 1 answered, 2 registered\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in:\n%s", line, out)
		}
	}
	if len(v.failed) != 0 || v.stood != 3 || said != "" || v.close(t.Context(), marchwarden.TraceID{}) != nil {
		t.Errorf("%+v\n%s", v, said)
	}
	out, said, v = check([]cited{{site.At("/gone"), "[1]"}, {"doi:10.1000/bad", "[2]"}, {"doi:10.1000/invented", "[3]"}, {"doi:10.1000/later", "[4]"}, {"http://10.0.0.1/\x1b[31m", "[5]"}, {"http://10.0.0.1/", "[6]"}})
	for _, line := range []string{
		"✗ online [1] " + site.At("/gone") + ": gone (", "✗ online [2] doi:10.1000/bad: retracted (by notice 10.1000/notice)\n", "✗ online [3] doi:10.1000/invented: absent (doi.org has no such DOI)\n",
		"? online [4] doi:10.1000/later: unchecked (", "? online [6] http://10.0.0.1/: unchecked (", "6 locators asked about: 1 registered, 1 gone, 1 absent, 3 unchecked, 1 retracted\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in:\n%s", line, out)
		}
	}
	if len(v.failed) != 3 || v.stood != 0 || !strings.Contains(said, "3 locators could not be checked") || strings.Contains(out, "\x1b") {
		t.Errorf("%+v\n%s", v, said)
	}
	if err := v.close(t.Context(), marchwarden.TraceID{}); !errors.Is(err, marchwarden.CodeCorrupt) {
		t.Errorf("%v", err)
	}
	for _, path := range site.Requests() {
		if strings.Contains(path, "secret") {
			t.Errorf("the name of a file was sent: %s", path)
		}
	}
}

// A check that is stopped says nothing about what it has not asked.
func TestLocatorsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	v := &verdicts{a: &app{stdout: &out, Host: network.Host{Stderr: &out}}}
	v.locators(ctx, registry.New(registry.Config{Indexes: scholar.New(scholar.Config{}), ArXiv: arxivapi.New(arxivapi.Config{Now: time.Now})}), []cited{{"doi:10.1000/good", "[1]"}})
	if out.Len() > 0 {
		t.Errorf("%s", out.String())
	}
	if err := v.close(ctx, marchwarden.TraceID{}); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("%v", err)
	}
}

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
