package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// printingTo is an audit whose checks and words go to two writers.
func printingTo(out, said io.Writer) *Audit {
	return New(Config{
		Print: func(line string) error { _, err := fmt.Fprintln(out, line); return err },
		Note:  func(format string, args ...any) { fmt.Fprintf(said, format+"\n", args...) },
		Warn:  func(message string) { fmt.Fprintln(said, message) },
	})
}

// A run that another version made and that this one cannot make again says so, and is
// no failure; one of this version is.
func TestRerunsOfAnotherVersion(t *testing.T) {
	id, err := marchwarden.ParseTraceID("00000000-0000-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		version string
		failed  int
		want    string
	}{
		{"v0.0.1", 0, "- the rerun of " + id.String() + " cannot be made by this version, v2; the run was made by version v0.0.1\n"},
		{"v2", 1, "✗ the rerun of " + id.String() + ": lost"},
	} {
		start := &trace.Start{TraceID: id, Version: tt.version}
		var out bytes.Buffer
		v := printingTo(&out, &out)
		v.cfg.Version = "v2"
		v.cfg.Rerun = func(context.Context, *trace.Log, blob.Store) ([]byte, []byte, error) {
			return nil, nil, errors.New("lost")
		}
		v.reruns(t.Context(), &run.Run{ID: id, Start: start, Log: &trace.Log{Steps: []trace.Step{start, &trace.Complete{}}}}, blob.NewMem())
		if len(v.failed) != tt.failed || !strings.HasPrefix(out.String(), tt.want) {
			t.Errorf("version %s: %d failed\n%s", tt.version, len(v.failed), out.String())
		}
	}
}

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
	reg := NewRegistry(RegistryConfig{
		Pages: pages, HandleURL: office, Timeout: time.Second,
		Indexes: scholar.New(scholar.Config{CrossrefURL: office, OpenAlexURL: office, Timeout: time.Second}),
		ArXiv:   scholar.NewArxiv(scholar.ArxivConfig{BaseURL: office, Now: time.Now, Timeout: time.Second}),
	})
	citations := []marchwarden.Citation{
		{Source: "web", Locator: site.At("/here")}, {Source: "arxiv", Locator: "doi:10.1000/good"}, {Source: "web", Locator: site.At("/here")},
		{Source: "file", Locator: site.At("/secret")}, {Source: "database", Locator: "db:patients/7"}, {Source: "arxiv", Locator: "arxiv:2101.00007"},
	}
	check := func(citations []marchwarden.Citation) (string, string, *Audit) {
		var out, said bytes.Buffer
		v := printingTo(&out, &said)
		v.cfg.Registry = func() (*Registry, func() error, error) { return reg, func() error { return nil }, nil }
		if err := v.online(t.Context(), &marchwarden.Result{Citations: citations}); err != nil {
			t.Error(err)
		}
		return out.String(), said.String(), v
	}
	out, said, v := check(citations)
	for _, line := range []string{"✓ online [1][3] " + site.At("/here") + ": answered\n", "✓ online [2] doi:10.1000/good: registered\n", "✓ online [6] arxiv:2101.00007: registered\n", "3 locators asked about: 1 answered, 2 registered\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in:\n%s", line, out)
		}
	}
	if len(v.failed) != 0 || v.stood != 3 || !strings.Contains(said, "2 locators of files, databases") || strings.Count(said, "\n") > 1 || v.close(t.Context(), marchwarden.TraceID{}) != nil {
		t.Errorf("%+v\n%s", v, said)
	}
	citations = nil
	for _, loc := range []string{site.At("/gone"), "doi:10.1000/bad", "doi:10.1000/invented", "doi:10.1000/later", "http://10.0.0.1/\x1b[31m", "http://10.0.0.1/"} {
		citations = append(citations, marchwarden.Citation{Source: "web", Locator: loc})
	}
	out, said, v = check(citations)
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
	v := printingTo(&out, &out)
	reg := NewRegistry(RegistryConfig{Indexes: scholar.New(scholar.Config{}), ArXiv: scholar.NewArxiv(scholar.ArxivConfig{Now: time.Now})})
	v.cfg.Registry = func() (*Registry, func() error, error) { return reg, func() error { return nil }, nil }
	if err := v.online(ctx, &marchwarden.Result{Citations: []marchwarden.Citation{{Source: "web", Locator: "doi:10.1000/good"}}}); err != nil || out.Len() > 0 {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := v.close(ctx, marchwarden.TraceID{}); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("%v", err)
	}
}
