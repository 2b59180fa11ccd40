package drift_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	fetchpdf "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/pdf"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

var (
	runID = must(marchwarden.ParseTraceID("0198c0de-0000-7000-8000-000000000001"))
	noon  = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// world is a record and the sites that it was made from.
type world struct {
	t     *testing.T
	store run.Store
	x     *extract.Extractor
	files []*fetch.Folder
	now   time.Time
	limit time.Duration // for a page
	old   string        // the text that the extractor of the run makes, if it is another
}

// rewritten fetches pages as an extractor of long ago read them.
type rewritten struct {
	fetch.Fetcher
	store blob.Store
	text  string
}

func (r rewritten) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	page, err := r.Fetcher.Fetch(ctx, locator)
	if err != nil {
		return page, err
	}
	page.Extractor, page.TextBytes = "html/0", len(r.text)
	page.Text, err = r.store.Put(ctx, []byte(r.text))
	return page, err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	traces, err := trace.OpenDir(filepath.Join(t.TempDir(), "traces"), func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: run.Store{Traces: traces, Blobs: blob.NewMem()}, x: extract.New(extract.Config{PDF: fetchpdf.New(fetchpdf.Config{CacheDir: datatest.PDFCache(t)})}), now: noon, limit: 5 * time.Second}
	t.Cleanup(func() { _, _ = traces.Close(), w.x.Close() })
	return w
}

// fetchers make what a run, or a check, fetches with.
func (w *world) fetchers(store blob.Store) map[string]fetch.Fetcher {
	now := func() time.Time { return w.now }
	pages := web.New(web.Config{Store: store, Extract: w.x, Guard: guard.New(webtest.Loopback), Now: now, Pace: -1, PerHost: 16, Timeout: w.limit, MaxBody: 1 << 20})
	w.t.Cleanup(func() { _ = pages.Close() })
	var web fetch.Fetcher = pages
	if w.old != "" {
		web = rewritten{pages, store, w.old}
	}
	return map[string]fetch.Fetcher{"web": web, "file": fetch.NewFiles(store, w.x, now, w.files...)}
}

// cite is an excerpt of a document.
type cite struct{ locator, excerpt string }

// run records a run that read the documents of the citations, and claims that each
// of them makes, beside those given.
func (w *world) run(filter string, cites []cite, claims ...marchwarden.Claim) *run.Run {
	w.t.Helper()
	ctx := w.t.Context()
	writer, err := w.store.Traces.Create(runID)
	if err != nil {
		w.t.Fatal(err)
	}
	req := marchwarden.Request{Question: "What is there?"}
	if filter != "" {
		req.Constraints = &marchwarden.Constraints{SourceFilter: filter}
	}
	start := &trace.Start{Format: trace.Format, TraceID: runID, Researcher: "web", Request: req, StartedAt: noon}
	if err := writer.Append(start); err != nil {
		w.t.Fatal(err)
	}
	rec := replay.Record(writer, w.store.Blobs, func() time.Duration { return 0 }, nil)
	res := &marchwarden.Result{TraceID: runID, Answer: "So it is.", Claims: claims}
	fetchers := w.fetchers(w.store.Blobs)
	for i, c := range cites {
		kind := "file"
		if strings.HasPrefix(c.locator, "http") {
			kind = "web"
		}
		page, err := replay.Fetcher(rec, fetchers[kind]).Fetch(ctx, c.locator)
		if err != nil {
			w.t.Fatal(err)
		}
		text, err := w.store.Blobs.Get(ctx, page.Text)
		if err != nil {
			w.t.Fatal(err)
		}
		span, ok := evidence.Locate(string(text), c.excerpt)
		if !ok {
			w.t.Fatalf("%s does not say %q but %q", c.locator, c.excerpt, text)
		}
		excerpt, used := evidence.Excerpt(string(text), span)
		res.Citations = append(res.Citations, marchwarden.Citation{Source: kind, Locator: c.locator, RawExcerpt: excerpt, ContentHash: page.Text.String(), Span: &used})
		if len(claims) == 0 {
			res.Claims = append(res.Claims, marchwarden.Claim{Text: c.excerpt, Citations: []int{i + 1}, Support: marchwarden.Supported})
		}
	}
	w.finish(writer, res)
	return w.load()
}

func (w *world) finish(writer *trace.Writer, res *marchwarden.Result) {
	w.t.Helper()
	data, err := marchwarden.EncodeResult(res)
	if err != nil {
		w.t.Fatal(err)
	}
	ref, err := w.store.Blobs.Put(w.t.Context(), data)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := writer.Append(&trace.Complete{Result: ref, Citations: len(res.Citations)}); err != nil {
		w.t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) load() *run.Run {
	w.t.Helper()
	run, err := w.store.Load(runID)
	if err != nil {
		w.t.Fatal(err)
	}
	return run
}

// config is that of a check an hour later.
func (w *world) config() drift.Config {
	w.now = noon.Add(time.Hour)
	scratch := blob.NewMem()
	return drift.Config{Store: w.store, Fetchers: w.fetchers(scratch), Fetched: scratch, Extract: w.x, Now: func() time.Time { return w.now }}
}

func (w *world) check(run *run.Run) drift.Report {
	w.t.Helper()
	rep, err := drift.Check(w.t.Context(), w.config(), run)
	if err != nil {
		w.t.Fatal(err)
	}
	return rep
}

// site is a host whose pages can be changed.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]http.HandlerFunc // by path; none is 404
	asked map[string]int              // guarded by mu, as pages is
}

func newSite(t *testing.T) *site {
	s := &site{pages: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		page := s.pages[r.URL.Path]
		s.asked[r.URL.Path]++
		s.mu.Unlock()
		if page == nil {
			http.NotFound(w, r)
			return
		}
		page(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) set(path string, page http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = page
}

func (s *site) requests(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// page is an HTML page of paragraphs.
func page(paragraphs ...string) http.HandlerFunc {
	return body("text/html; charset=utf-8", "<!doctype html><html><head><title>Harbours</title></head><body><article><h1>Harbours</h1><p>"+strings.Join(paragraphs, "</p><p>")+"</p></article></body></html>")
}

func body(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(content))
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusMovedPermanently) }
}

// silent answers nothing for long.
func silent(w http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(20 * time.Second):
	}
}

// pdf is a document of one page with a line of text each.
func pdf(lines ...string) string {
	var content bytes.Buffer
	fmt.Fprint(&content, "BT /F1 11 Tf 40 780 Td 16 TL\n")
	for _, line := range lines {
		fmt.Fprintf(&content, "(%s) Tj T*\n", line)
	}
	fmt.Fprint(&content, "ET\n")
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%sendstream", content.Len(), content.String()),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	} {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return out.String()
}

// endless stands in for a fetcher that is stopped.
type endless struct{ begun chan struct{} }

func (e endless) Fetch(ctx context.Context, _ string) (fetch.Page, error) {
	e.begun <- struct{}{}
	<-ctx.Done()
	return fetch.Page{}, ctx.Err()
}

// heard records a run that cites what a researcher reported, and how it was got.
func (w *world) heard(how string, c cite) *run.Run {
	w.t.Helper()
	ctx := w.t.Context()
	writer, err := w.store.Traces.Create(runID)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := writer.Append(&trace.Start{Format: trace.Format, TraceID: runID, Researcher: "pi", Request: marchwarden.Request{Question: "What is there?"}, StartedAt: noon}); err != nil {
		w.t.Fatal(err)
	}
	text, err := w.store.Blobs.Put(ctx, []byte(c.excerpt))
	if err != nil {
		w.t.Fatal(err)
	}
	citation := marchwarden.Citation{Source: "web", Locator: c.locator, RawExcerpt: c.excerpt, ContentHash: text.String(), Span: &marchwarden.Span{End: len(c.excerpt)}}
	rec := replay.Record(writer, w.store.Blobs, func() time.Duration { return 0 }, nil)
	if _, err := replay.Evidence(ctx, rec, "lamps", citation, func(context.Context) (replay.Held, error) { return replay.Held{Text: text, How: how}, nil }); err != nil {
		w.t.Fatal(err)
	}
	w.finish(writer, &marchwarden.Result{TraceID: runID, Answer: "So it is.", Citations: []marchwarden.Citation{citation}})
	return w.load()
}
