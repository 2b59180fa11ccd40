package researcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/pdf"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// world is the scholarly internet on one loopback server: arXiv's API and web site,
// the three indexes, and a publisher.
type paperWorld struct {
	*httptest.Server
	papers []string          // inner XML of the entries, found by every search of arXiv
	pages  map[string]string // by path, of the web sites; HTML unless it begins with "%PDF"
	works  map[string]string // by path, of the indexes
	found  []string          // results of a search of OpenAlex
	fail   map[string]int    // status by the first part of a path: "api", "cr", "oa", "s2"
	slow   string            // a path that is never answered

	patience time.Duration // of the fetcher; 0 is its default

	mu       sync.Mutex // guards requests
	requests []string
}

func newPaperWorld(t testing.TB) *paperWorld {
	w := &paperWorld{pages: map[string]string{}, works: map[string]string{}, fail: map[string]int{}}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.Close)
	return w
}

func (w *paperWorld) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

func (w *paperWorld) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.requests = append(w.requests, r.URL.Path)
	w.mu.Unlock()
	part, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if status := w.fail[part]; status != 0 {
		rw.Header().Set("Retry-After", "3600")
		rw.WriteHeader(status)
		return
	}
	switch {
	case r.URL.Path == w.slow:
		<-r.Context().Done()
	case r.URL.Path == "/api/query":
		io.WriteString(rw, w.feed(r.FormValue("id_list")))
	case r.URL.Path == "/oa/works":
		fmt.Fprintf(rw, `{"meta": {}, "results": [%s]}`, strings.Join(w.found, ","))
	case w.works[r.URL.Path] != "":
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, w.works[r.URL.Path])
	case w.pages[r.URL.Path] != "":
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		if strings.HasPrefix(w.pages[r.URL.Path], "%PDF") {
			rw.Header().Set("Content-Type", "application/pdf")
		}
		io.WriteString(rw, w.pages[r.URL.Path])
	default:
		http.NotFound(rw, r)
	}
}

// feed answers with the entries that a list of ids names, or with all.
func (w *paperWorld) feed(list string) string {
	var b strings.Builder
	b.WriteString(`<?xml version='1.0' encoding='UTF-8'?><feed xmlns:arxiv="http://arxiv.org/schemas/atom" xmlns="http://www.w3.org/2005/Atom"><title>arXiv Query</title>`)
	for _, e := range w.papers {
		if list == "" || slices.ContainsFunc(strings.Split(list, ","), func(id string) bool { return strings.Contains(e, "/abs/"+strings.TrimRight(id, "v")) }) {
			b.WriteString("<entry>" + e + "</entry>")
		}
	}
	return b.String() + "</feed>"
}

func entry(id, title, summary, more string) string {
	return "<id>http://arxiv.org/abs/" + id + "</id><title>" + title + "</title><summary>" + summary + "</summary><published>2017-06-12T00:00:00Z</published><updated>2023-08-02T00:00:00Z</updated>" +
		"<author><name>Ada Example</name></author><author><name>Ben Example</name></author><arxiv:primary_category term=\"cs.CL\"/>" + more
}

// article is an HTML page of some length.
func paperPage(title string, paragraphs ...string) string {
	return "<!doctype html><html lang=en><head><title>" + title + "</title></head><body><article><h1>" + title + "</h1><p>" + strings.Join(paragraphs, "</p>\n<p>") + "</p></article></body></html>"
}

// filler is prose that says nothing in particular.
var filler = strings.Repeat("The remaining sections describe the setting of the study in the usual detail and order. ", 25)

// paperLab is the researcher with every part real; only the far ends are ours.
type paperLab struct {
	marchwarden.Researcher
	papers *researcher.Papers
	world  *paperWorld
	traces *trace.Dir
	blobs  blob.Store
}

func newPaperLab(t testing.TB, w *paperWorld) *paperLab {
	t.Helper()
	dir := t.TempDir()
	traces, err := trace.OpenDir(filepath.Join(dir, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	blobs := blob.NewMem()
	x := extract.New(extract.Config{PDF: pdf.New(pdf.Config{CacheDir: datatest.PDFCache(t)})})
	web := webfetch.New(webfetch.Config{Store: blobs, Extract: x, Guard: guard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), Now: time.Now, PerHost: 16, Pace: -1})
	t.Cleanup(func() { _, _, _ = web.Close(), x.Close(), traces.Close() })
	api := scholar.NewArxiv(scholar.ArxivConfig{BaseURL: w.URL, Now: time.Now, Pace: time.Nanosecond, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	indexes := scholar.New(scholar.Config{CrossrefURL: w.URL + "/cr", OpenAlexURL: w.URL + "/oa", SemanticScholarURL: w.URL + "/s2"})
	l := &paperLab{world: w, traces: traces, blobs: blobs}
	l.papers = researcher.NewPapers(researcher.PapersConfig{Store: blobs, API: api, Scholar: indexes, Web: web, Site: w.URL, Patience: w.patience, Now: time.Now})
	l.Researcher = researcher.NewArxiv(researcher.ArxivConfig{
		Lab:    researcher.Lab{Traces: traces, Blobs: blobs, Version: "test", Now: time.Now, NewID: newID},
		Engine: researcher.Together(api, indexes), Fetcher: l.papers,
	})
	return l
}

// ask researches and holds the result against what is promised of every result.
func (l *paperLab) ask(t testing.TB, req marchwarden.Request) *marchwarden.Result {
	t.Helper()
	res, err := l.Research(t.Context(), req, nil)
	if err != nil {
		t.Fatalf("no result: %v", err)
	}
	if report, err := verify.Check(t.Context(), l.blobs, res); err != nil || !report.OK() {
		t.Errorf("not grounded: %v %v", report, err)
	}
	log, err := l.traces.Load(res.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range verify.CheckFetched(log, res) {
		if f.Problem != "" {
			t.Errorf("a citation that was not fetched: %+v", f)
		}
	}
	before := len(l.world.asked())
	again, err := researcher.Again(t.Context(), log, l.blobs, nil)
	if err != nil || !again.Same() {
		t.Errorf("not replayable: %v\n want %s\n  got %s", err, again.Want, again.Got)
	}
	if after := len(l.world.asked()); after != before {
		t.Errorf("the rerun made %d requests", after-before)
	}
	return res
}

// read fetches a paper and gives its page and text.
func (l *paperLab) read(t testing.TB, loc string) (text string, page pageOf) {
	t.Helper()
	p, err := l.papers.Fetch(t.Context(), loc)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.blobs.Get(t.Context(), p.Text)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := l.blobs.Get(t.Context(), p.Raw)
	if err != nil || len(raw) != p.RawBytes || len(b) != p.TextBytes || !json.Valid(raw) {
		t.Errorf("%v, %d and %d bytes: %+v", err, len(raw), len(b), p)
	}
	return string(b), pageOf{p.Title, p.Author, p.Published, p.Origin, p.URL, p.Standing, p.Links}
}

// pageOf is what a test looks at in a page.
type pageOf struct {
	Title, Author, Published, Origin, URL string
	Standing                              marchwarden.Authority
	Links                                 []string
}
