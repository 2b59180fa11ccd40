package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// newFetcher makes a fetcher that may reach loopback, with short waits.
func newFetcher(t testing.TB, change func(*Config)) *Fetcher {
	t.Helper()
	x := extract.New(extract.Config{})
	cfg := Config{
		Store: blob.NewMem(), Extract: x, Guard: guard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
		Now: func() time.Time { return noon }, Pace: -1, Timeout: 10 * time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	f := New(cfg)
	f.backoff = time.Millisecond
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), f.Close(), x.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// serve starts a server that has no robots.txt unless handle answers for it.
func serve(t testing.TB, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(noRobots(handle))
	t.Cleanup(server.Close)
	return server
}

func noRobots(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		handle(w, r)
	}
}

func wantCode(t testing.TB, what string, err error, want marchwarden.Code) {
	t.Helper()
	if got := marchwarden.CodeOf(err); got != want {
		t.Errorf("%s gave %v (%v), want %v", what, got, err, want)
	}
}

func textOf(t testing.TB, f *Fetcher, page fetch.Page) string {
	t.Helper()
	text, err := f.cfg.Store.Get(t.Context(), page.Text)
	if err != nil {
		t.Fatalf("text of %+v: %v", page, err)
	}
	return string(text)
}

const article = `<!doctype html><html lang="en"><head><title>On soils</title><meta name="author" content="A. Digger"><meta property="article:published_time" content="2024-05-06">
</head><body><article><h1>On soils</h1><p>Most soils of the valley are alkaline, and the water that runs through them carries salts down to the lake every spring.</p>
<p>Growers add <a href="/sulphur?utm_source=nav#top">sulphur</a>, <a href="https://Example.org:443/gypsum">gypsum</a> and <a href="mailto:a@example.org">ask</a>. See <a href="/sulphur">sulphur</a>.</p></article></body></html>`

func TestFetchStoresThePage(t *testing.T) {
	var request *http.Request
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/old":
			http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
			http.Redirect(w, r, "/soils?utm_source=redirect", http.StatusMovedPermanently)
		case "/soils":
			request = r
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, article)
		default:
			http.NotFound(w, r)
		}
	})
	f := newFetcher(t, nil)
	page, err := f.Fetch(t.Context(), server.URL+"/old")
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(t, f, page)
	if !strings.Contains(text, "Most soils of the valley are alkaline") {
		t.Errorf("text %q", text)
	}
	want := fetch.Page{
		Locator: server.URL + "/old", URL: server.URL + "/soils", Source: "web", Title: "On soils", Author: "A. Digger", Published: "2024-05-06", Origin: "127.0.0.1",
		Raw: blob.Of([]byte(article)), Text: blob.Of([]byte(text)), RawBytes: len(article), TextBytes: len(text), MediaType: "text/html", Extractor: page.Extractor,
		Links: []string{server.URL + "/sulphur", "https://example.org/gypsum"}, FetchedAt: noon,
	}
	if diff := cmp.Diff(want, page, cmp.Comparer(func(a, b blob.Ref) bool { return a == b })); diff != "" || page.Extractor == "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if raw, err := f.cfg.Store.Get(t.Context(), page.Raw); err != nil || string(raw) != article {
		t.Errorf("raw bytes %q, %v", raw, err)
	}
	for _, name := range []string{"Cookie", "Referer", "Authorization", "If-None-Match"} {
		if request.Header.Get(name) != "" {
			t.Errorf("request has %s: %q", name, request.Header.Get(name))
		}
	}
	if request.Method != http.MethodGet || request.Header.Get("Accept-Encoding") != "gzip" || request.Header.Get("User-Agent") != "marchwarden" {
		t.Errorf("request %s %v", request.Method, request.Header)
	}
	if request.URL.RawQuery != "utm_source=redirect" {
		t.Errorf("the redirect was followed to %q", request.URL)
	}
}

func TestOriginIsWhatWasRegistered(t *testing.T) {
	for host, want := range map[string]string{
		"www.example.org": "example.org", "a.b.example.co.uk": "example.co.uk", "someone.github.io": "someone.github.io", "localhost": "localhost", "www.localhost": "www.localhost",
		"127.0.0.1": "127.0.0.1", "2606:4700::1": "2606:4700::1", "co.uk": "co.uk",
	} {
		if got := origin(host); got != want {
			t.Errorf("origin(%q) = %q, want %q", host, got, want)
		}
	}
}

func TestOnlyCanonicalLocatorsAreFetched(t *testing.T) {
	f := newFetcher(t, nil)
	for _, loc := range []string{"", "/etc/passwd", "file:///etc/passwd", "embedded:soils.md", "http://127.0.0.1", "http://127.0.0.1:80/", "HTTP://127.0.0.1/", "http://127.0.0.1/#a",
		"http://127.0.0.1/?utm_source=a", "http://u@127.0.0.1/", "ftp://127.0.0.1/", "data:text/html,hello"} {
		_, err := f.Fetch(t.Context(), loc)
		wantCode(t, loc, err, marchwarden.CodeDenied)
	}
}

func TestStatusCodes(t *testing.T) {
	var asked atomic.Int32
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
			w.Header()["Date"] = nil // the fetcher's clock counts then
		}
		w.WriteHeader(status)
		if status == http.StatusOK {
			fmt.Fprint(w, "a page")
		}
	})
	f := newFetcher(t, nil)
	for _, test := range []struct {
		path  string
		code  marchwarden.Code
		asked int32
	}{
		{"/200", "", 1}, {"/203", "", 1},
		{"/404", marchwarden.CodeNotFound, 1}, {"/410", marchwarden.CodeNotFound, 1},
		{"/401", marchwarden.CodeDenied, 1}, {"/402", marchwarden.CodeDenied, 1}, {"/403", marchwarden.CodeDenied, 1}, {"/451", marchwarden.CodeDenied, 1},
		{"/429", marchwarden.CodeRateLimited, 1}, {"/429?after=0", marchwarden.CodeRateLimited, 2}, {"/429?after=6", marchwarden.CodeRateLimited, 1},
		{"/429?after=Sun,%2015%20Nov%202026%2012:00:00%20GMT", marchwarden.CodeRateLimited, 2}, {"/429?after=Sun,%2015%20Nov%202026%2013:00:00%20GMT", marchwarden.CodeRateLimited, 1},
		{"/500", marchwarden.CodeUnavailable, 1}, {"/502", marchwarden.CodeUnavailable, 2}, {"/503", marchwarden.CodeUnavailable, 2}, {"/504", marchwarden.CodeUnavailable, 2},
		{"/503?after=3600", marchwarden.CodeUnavailable, 1}, {"/503?after=-1", marchwarden.CodeUnavailable, 2},
		{"/204", marchwarden.CodeUnavailable, 1}, {"/206", marchwarden.CodeUnavailable, 1}, {"/304", marchwarden.CodeUnavailable, 1}, {"/400", marchwarden.CodeUnavailable, 1},
		{"/301", marchwarden.CodeDenied, 1}, // leads nowhere
	} {
		asked.Store(0)
		_, err := f.Fetch(t.Context(), server.URL+test.path)
		wantCode(t, test.path, err, test.code)
		if asked.Load() != test.asked {
			t.Errorf("%s: asked %d times, want %d", test.path, asked.Load(), test.asked)
		}
	}
}

func TestPassingFaultsAreTriedOnceMore(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"gateway": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"reset": func(w http.ResponseWriter) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		},
		"closed":   func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"cut body": func(w http.ResponseWriter) { w.Header().Set("Content-Length", "100"); fmt.Fprint(w, "half") },
	} {
		var asked atomic.Int32
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				fail(w)
				return
			}
			fmt.Fprint(w, "a page")
		})
		if _, err := newFetcher(t, nil).Fetch(t.Context(), server.URL+"/"); err != nil || asked.Load() != 2 {
			t.Errorf("%s: asked %d times, %v", name, asked.Load(), err)
		}
	}
}

func TestConnectionFaults(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half of it")
	})
	f := newFetcher(t, nil)
	_, err := f.Fetch(t.Context(), server.URL+"/")
	wantCode(t, "a body that broke off", err, marchwarden.CodeTruncated)

	gone := httptest.NewServer(nil)
	gone.Close()
	_, err = f.Fetch(t.Context(), gone.URL+"/")
	wantCode(t, "a server that is gone", err, marchwarden.CodeUnavailable)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Fetch(ctx, server.URL+"/")
	wantCode(t, "a cancelled fetch", err, marchwarden.CodeCanceled)
}

func TestCancelEndsAFetchAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		close(ended)
	})
	_, err := newFetcher(t, nil).Fetch(ctx, server.URL+"/")
	wantCode(t, "a cancelled fetch", err, marchwarden.CodeCanceled)
	<-ended // the server saw it
}

// press compresses with the coding that a server announces.
func press(t testing.TB, coding string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	switch coding {
	case "gzip", "x-gzip":
		w := gzip.NewWriter(&b)
		_, err := w.Write(content)
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	case "", "identity":
		b.Write(content)
	}
	return b.Bytes()
}

func TestContentEncodings(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/html")
		w.Header()["Content-Encoding"] = q["coding"]
		raw := []byte(article)
		for _, coding := range q["press"] {
			raw = press(t, coding, raw)
		}
		if q.Has("cut") {
			raw = raw[:len(raw)/2]
		}
		_, _ = w.Write(raw)
	})
	f := newFetcher(t, nil)
	for query, code := range map[string]marchwarden.Code{
		"coding=gzip&press=gzip": "", "coding=x-gzip&press=gzip": "", "coding=identity": "", "coding=GZIP&press=gzip": "",
		"coding=gzip&press=gzip&cut=1": marchwarden.CodeTruncated,
		"coding=deflate":               marchwarden.CodeUnavailable, "coding=gzip": marchwarden.CodeUnavailable, "coding=br": marchwarden.CodeUnavailable, "coding=zstd": marchwarden.CodeUnavailable,
		"coding=gzip,gzip&press=gzip&press=gzip": marchwarden.CodeUnavailable,
	} {
		page, err := f.Fetch(t.Context(), server.URL+"/?"+query)
		wantCode(t, query, err, code)
		if err == nil && page.Raw != blob.Of([]byte(article)) {
			t.Errorf("%s: other bytes were stored", query)
		}
	}
}

func TestContentTypes(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"
	for _, test := range []struct {
		path, contentType, content string
		mediaType, text            string // "" = no text
	}{
		{"/a", "text/html", article, "text/html", "alkaline"},
		{"/a", "application/octet-stream", article, "text/html", "alkaline"},
		{"/a", "", "just text", "text/plain", "just text"},
		{"/a.json", "application/json", `{"soil": "alkaline"}`, "application/json", "alkaline"},
		{"/feed", "application/rss+xml", `<?xml version="1.0"?><rss><channel><title>Soils</title><item><title>Alkaline</title></item></channel></rss>`, "application/xml", "Alkaline"},
		{"/a", "image/png", png, "image/png", ""},
		{"/a", "text/html", png, "image/png", ""},
		{"/a", "text/plain", "", "text/plain", ""},
		{"/latin", "text/html; charset=iso-8859-2", "<html><body><p>P\xf8\xedli\xb9 \xbelu\xbbou\xe8k\xfd k\xf9\xf2 \xfap\xecl \xef\xe1belsk\xe9 \xf3dy.</p></body></html>", "text/html", "Příliš žluťoučký kůň"},
		{"/latin.txt", "text/plain; charset=windows-1251", "\xcf\xee\xf7\xe2\xe0 \xe7\xe4\xe5\xf1\xfc \xf9\xe5\xeb\xee\xf7\xed\xe0\xff", "text/plain", "Почва здесь щелочная"},
	} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = []string{test.contentType}
			fmt.Fprint(w, test.content)
		})
		f := newFetcher(t, nil)
		page, err := f.Fetch(t.Context(), server.URL+test.path)
		if err != nil || page.MediaType != test.mediaType || page.NonText != (test.text == "") || page.Raw != blob.Of([]byte(test.content)) {
			t.Errorf("%s as %q: %+v, %v; want %s", test.path, test.contentType, page, err, test.mediaType)
			continue
		}
		if test.text == "" {
			if page.Text.Valid() || page.TextBytes != 0 {
				t.Errorf("%s as %q: text without text", test.path, test.contentType)
			}
		} else if text := textOf(t, f, page); !strings.Contains(text, test.text) {
			t.Errorf("%s as %q: text %q, want %q", test.path, test.contentType, text, test.text)
		}
	}
}

// listen starts a server at a loopback address of its own, which is another host
// to the fetcher.
func listen(t testing.TB, address string, handle http.Handler) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this system has one loopback address only: %v", err)
	}
	server := httptest.NewUnstartedServer(handle)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func TestPerHostConcurrency(t *testing.T) {
	type gauge struct{ now, most, all int }
	var mu sync.Mutex
	gauges := make(map[string]*gauge)
	total, most := 0, 0
	handle := noRobots(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		g := gauges[r.Host]
		if g == nil {
			g = new(gauge)
			gauges[r.Host] = g
		}
		g.now, g.all, total = g.now+1, g.all+1, total+1
		g.most, most = max(g.most, g.now), max(most, total)
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		g.now, total = g.now-1, total-1
		mu.Unlock()
		if r.URL.Query().Has("to") {
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
			return
		}
		fmt.Fprint(w, "a page")
	})
	one, two := listen(t, "127.0.0.1:0", handle), listen(t, "127.0.0.2:0", handle)
	f := newFetcher(t, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		for _, server := range []*httptest.Server{one, two} {
			other := two.URL
			if server == two {
				other = one.URL
			}
			// Redirects in both directions must not wait for each other.
			wg.Go(func() {
				if _, err := f.Fetch(t.Context(), fmt.Sprintf("%s/%d?to=%s/", server.URL, i, other)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for host, g := range gauges {
		if g.most != 2 || g.all != 16 {
			t.Errorf("%s: %d requests, %d at once, want 16 and 2", host, g.all, g.most)
		}
	}
	if most <= 2 {
		t.Errorf("two hosts had %d requests at once", most)
	}
}

func TestPace(t *testing.T) {
	const requests, pace = 5, 40 * time.Millisecond
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "a page") })
	f := newFetcher(t, func(c *Config) { c.Pace = pace })
	start := time.Now()
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			if _, err := f.Fetch(t.Context(), fmt.Sprintf("%s/%d", server.URL, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// A busy machine makes it longer, never shorter; a tenth is for timers.
	if got, want := time.Since(start), (requests-1)*pace*9/10; got < want {
		t.Errorf("%d requests within %v, want %v at least", requests, got, want)
	}
}

func TestTimeWaitedForATurnIsNotThePages(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(150 * time.Millisecond)
		fmt.Fprint(w, "a page")
	})
	f := newFetcher(t, func(c *Config) { c.Timeout, c.PerHost = time.Second, 1 })
	var wg sync.WaitGroup
	for i := range 8 { // 1.2 s one after the other
		wg.Go(func() {
			if _, err := f.Fetch(t.Context(), fmt.Sprintf("%s/%d", server.URL, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestHostsAreForgotten(t *testing.T) {
	h := newHosts(2, time.Hour)
	busy, err := h.enter(t.Context(), "busy")
	if err != nil {
		t.Fatal(err)
	}
	resting, err := h.enter(t.Context(), "asked a moment ago")
	if err != nil || resting.wait(t.Context()) != nil {
		t.Fatal(err)
	}
	resting.leave()
	for i := range 3 * maxHosts {
		turn, err := h.enter(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		turn.leave()
	}
	busy.leave()
	if len(h.byName) > maxHosts || h.byName["busy"] == nil || h.byName["asked a moment ago"] == nil {
		t.Errorf("%d hosts are remembered", len(h.byName))
	}
}

func TestPagesThatNeedScripts(t *testing.T) {
	const (
		empty = `<!doctype html><html><head><title>App</title><script src="a.js"></script></head><body><div id="root"></div></body></html>`
		some  = `<!doctype html><html><body><noscript>Please enable JavaScript.</noscript><p>Loading the soils of the valley, one moment.</p><script>go()</script></body></html>`
		asks  = `<!doctype html><html><body><noscript>You need to enable JavaScript to run this app.</noscript><div id=app></div><script src="a.js"></script></body></html>`
		plain = `<!doctype html><html><body><p>A short page, and that is all there is to say.</p><script>count()</script></body></html>`
	)
	for name, test := range map[string]struct {
		content string
		code    marchwarden.Code
		text    string
	}{
		"empty":   {empty, marchwarden.CodeUnavailable, ""},
		"asks":    {asks, marchwarden.CodeUnavailable, ""},
		"some":    {some, "", "one moment"},
		"plain":   {plain, "", "that is all"},
		"article": {article, "", "alkaline"},
	} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, test.content) })
		f := newFetcher(t, func(*Config) {})
		page, err := f.Fetch(t.Context(), server.URL+"/")
		wantCode(t, name, err, test.code)
		if err != nil {
			if test.code == marchwarden.CodeUnavailable && !strings.Contains(err.Error(), "JavaScript") {
				t.Errorf("%s: %v does not name the reason", name, err)
			}
			continue
		}
		text := textOf(t, f, page)
		raw, err := f.cfg.Store.Get(t.Context(), page.Raw)
		if err != nil || !strings.Contains(text, test.text) || !strings.Contains(string(raw), test.text) {
			t.Errorf("%s: text %q of %q, %v; want %q in both", name, text, raw, err, test.text)
		}
	}
}
