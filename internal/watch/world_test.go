package watch_test

import (
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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

const question = "What is known of the harbour?"

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func idOf(n int) marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-0000-7000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return id
}

// world is a site whose pages change, a home, and a runner whose answers are every sentence of
// every page, each a claim with its own excerpt.
type world struct {
	t *testing.T
	watch.Runner
	now     time.Time
	site    *httptest.Server
	mu      sync.Mutex
	pages   map[string][]string // sentences by path; none is 404
	down    map[string]bool     // paths that do not answer
	ids     int
	asked   []string                          // "ask 1", "resume 1"
	word    func(sentence string) string      // how the answer words a sentence
	hurt    func(ctx context.Context) error   // fails an answer
	papers  map[string]string                 // that were retracted
	told    []watch.Report                    // what Told heard
	notices []string                          // what Notify heard
	notify  func(program []string) error      // fails
	cites   func(url string) (locator string) // how a page is cited
}

func newWorld(t *testing.T) *world {
	traces, err := trace.OpenDir(filepath.Join(t.TempDir(), "traces"), func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _, _ = traces.Close(), x.Close() })
	w := &world{t: t, now: noon, pages: map[string][]string{}, down: map[string]bool{}, word: func(s string) string { return s }, cites: func(url string) string { return url }}
	w.site = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		text, ok := w.pages[r.URL.Path]
		switch {
		case w.down[r.URL.Path]:
			rw.WriteHeader(http.StatusServiceUnavailable)
		case !ok:
			http.NotFound(rw, r)
		default:
			fmt.Fprintf(rw, "<html><body><h1>Harbour</h1><p>%s</p></body></html>", strings.Join(text, "</p><p>"))
		}
	}))
	t.Cleanup(w.site.Close)
	fetcher := func(store blob.Store) fetch.Fetcher {
		pages := web.New(web.Config{Store: store, Extract: x, Guard: guard.New(webtest.Loopback), Now: func() time.Time { return w.now }, Pace: -1, PerHost: 16, Timeout: 5 * time.Second, MaxBody: 1 << 20})
		t.Cleanup(func() { _ = pages.Close() })
		return pages
	}
	store := run.Store{Traces: traces, Blobs: blob.NewMem()}
	w.Runner = watch.Runner{
		Book: watch.In(t.TempDir()), Store: store, Now: func() time.Time { return w.now },
		NewID: func() marchwarden.TraceID { w.ids++; return idOf(100 + w.ids) },
		Ask: func(ctx context.Context, q watch.Question, id marchwarden.TraceID, again bool) error {
			return w.answer(ctx, fetcher(store.Blobs), id, again)
		},
		Drift: func(ctx context.Context, _ watch.Question, id marchwarden.TraceID) (drift.Report, error) {
			past, err := store.Load(id)
			if err != nil {
				return drift.Report{}, err
			}
			scratch := blob.NewMem()
			return drift.Check(ctx, drift.Config{Store: store, Fetchers: map[string]fetch.Fetcher{"web": fetcher(scratch)}, Fetched: scratch, Extract: x, Now: func() time.Time { return w.now }, Retracted: w.retracted}, past)
		},
		Retracted: w.retracted,
		Notify: func(_ context.Context, program []string, report []byte) error {
			w.notices = append(w.notices, string(report))
			if w.notify != nil {
				return w.notify(program)
			}
			return nil
		},
		Told: func(_ watch.Question, r watch.Report) { w.told = append(w.told, r) },
	}
	return w
}

func (w *world) retracted(_ context.Context, locators []string) map[string]string {
	found := map[string]string{}
	for _, loc := range locators {
		if why, ok := w.papers[loc]; ok {
			found[loc] = why
		}
	}
	return found
}

// answer records a run that reads every page that there is.
func (w *world) answer(ctx context.Context, f fetch.Fetcher, id marchwarden.TraceID, again bool) error {
	verb := "ask "
	var writer *trace.Writer
	var err error
	if again {
		verb = "resume "
		writer, _, err = w.Store.Traces.Append(id)
	} else if writer, err = w.Store.Traces.Create(id); err == nil {
		err = writer.Append(&trace.Start{Format: trace.Format, TraceID: id, Researcher: "web", Request: marchwarden.Request{Question: question}, StartedAt: w.now, Choice: &marchwarden.Choice{}})
	}
	w.asked = append(w.asked, verb+id.String()[33:])
	if err != nil {
		return err
	}
	defer writer.Close()
	if w.hurt != nil {
		if err := w.hurt(ctx); err != nil {
			return err
		}
	}
	rec := replay.Record(writer, w.Store.Blobs, func() time.Duration { return 0 }, nil)
	res := &marchwarden.Result{TraceID: id}
	for _, path := range []string{"/a", "/b", "/c"} {
		page, err := replay.Fetcher(rec, f).Fetch(ctx, w.site.URL+path)
		if err != nil {
			continue
		}
		text, err := w.Store.Blobs.Get(ctx, page.Text)
		if err != nil {
			return err
		}
		for _, sentence := range w.pages[path] {
			span, ok := evidence.Locate(string(text), sentence)
			if !ok {
				return fmt.Errorf("%s does not say %q", path, sentence)
			}
			excerpt, used := evidence.Excerpt(string(text), span)
			res.Citations = append(res.Citations, marchwarden.Citation{Source: "web", Locator: w.cites(page.Locator), RawExcerpt: excerpt, ContentHash: page.Text.String(), Span: &used})
			res.Claims = append(res.Claims, marchwarden.Claim{Text: w.word(sentence), Citations: []int{len(res.Citations)}, Support: marchwarden.Supported})
		}
	}
	var said []string
	for i, c := range res.Claims {
		said = append(said, fmt.Sprintf("%s [%d]", c.Text, i+1))
	}
	res.Answer = strings.Join(said, "\n\n")
	data, err := marchwarden.EncodeResult(res)
	if err != nil {
		return err
	}
	ref, err := w.Store.Blobs.Put(ctx, data)
	if err != nil {
		return err
	}
	return writer.Append(&trace.Complete{Result: ref, Citations: len(res.Citations)})
}

// add watches the question.
func (w *world) add(n int, change func(*watch.Question)) {
	w.t.Helper()
	q := watch.Question{ID: idOf(n), Owner: "local", Request: marchwarden.Request{Question: question}, Choice: &marchwarden.Choice{}, Every: 24 * time.Hour, Added: w.now, Due: w.now}
	if change != nil {
		change(&q)
	}
	if err := w.Book.Add(q); err != nil {
		w.t.Fatal(err)
	}
}

// day runs what is due a day later and gives the report.
func (w *world) day() watch.Report {
	w.t.Helper()
	w.now = w.now.Add(24 * time.Hour)
	if err := w.Run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w.told[len(w.told)-1]
}

// states are the claims of a report, each as "state text", without those that stand.
func states(r watch.Report) (all []string) {
	for _, c := range r.Claims {
		all = append(all, string(c.State)+" "+c.Text)
	}
	return all
}
