package web

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

var _ fetch.Refetcher = (*Fetcher)(nil)

// library is a server whose one page changes when version does.
type library struct {
	version      atomic.Int32
	sent, spared atomic.Int32
	header       func(http.Header, string)
}

func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tag := fmt.Sprintf(`"v%d"`, l.version.Load())
	l.header(w.Header(), tag)
	modified := w.Header().Get("Last-Modified")
	if r.Header.Get("If-None-Match") == tag || modified != "" && r.Header.Get("If-Modified-Since") == modified {
		l.spared.Add(1)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	l.sent.Add(1)
	w.Header().Set("Content-Type", "text/plain; charset=windows-1251")
	fmt.Fprintf(w, "\xcf\xee\xf7\xe2\xe0 \xe7\xe4\xe5\xf1\xfc \xf9\xe5\xeb\xee\xf7\xed\xe0\xff, %d", l.version.Load())
}

func withTag(h http.Header, tag string) { h.Set("ETag", tag) }

func newLibrary(t *testing.T, header func(http.Header, string)) (*library, string) {
	t.Helper()
	l := &library{header: header}
	return l, serve(t, l.ServeHTTP).URL
}

// TestPagesRememberValidators: what the server gave with the page, and only that.
func TestPagesRememberValidators(t *testing.T) {
	for name, tc := range map[string]struct {
		header   func(http.Header, string)
		etag     string
		modified string
	}{
		"tag":      {withTag, `"v0"`, ""},
		"date":     {func(h http.Header, _ string) { h.Set("Last-Modified", "Sun, 15 Nov 2026 10:00:00 GMT") }, "", "Sun, 15 Nov 2026 10:00:00 GMT"},
		"none":     {func(http.Header, string) {}, "", ""},
		"no-store": {func(h http.Header, tag string) { h.Set("ETag", tag); h.Set("Cache-Control", "no-store") }, "", ""},
	} {
		_, server := newLibrary(t, tc.header)
		page, err := newFetcher(t, nil).Fetch(t.Context(), server+"/soil")
		if err != nil {
			t.Fatal(err)
		}
		if page.ETag != tc.etag || page.LastModified != tc.modified {
			t.Errorf("%s: validators %q and %q, want %q and %q", name, page.ETag, page.LastModified, tc.etag, tc.modified)
		}
	}
}

// TestRefetchAsksTheServer: with the validators of the page.
func TestRefetchAsksTheServer(t *testing.T) {
	l, server := newLibrary(t, withTag)
	now := noon
	f := newFetcher(t, func(c *Config) { c.Now = func() time.Time { return now } })
	was, err := f.Fetch(t.Context(), server+"/soil")
	if err != nil {
		t.Fatal(err)
	}
	refetch := func(what string, was fetch.Page, same bool, sent, spared int32) fetch.Page {
		t.Helper()
		page, unchanged, err := f.Refetch(t.Context(), was)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if unchanged != same || l.sent.Load() != sent || l.spared.Load() != spared {
			t.Errorf("%s: unchanged %v, sent %d times, spared %d; want %v, %d, %d", what, unchanged, l.sent.Load(), l.spared.Load(), same, sent, spared)
		}
		return page
	}
	now = noon.Add(time.Hour)
	if page := refetch("unchanged", was, true, 1, 1); page.Raw != was.Raw || !page.FetchedAt.Equal(now) || page.ETag != was.ETag {
		t.Errorf("the unchanged page is %+v", page)
	}
	bare := was
	bare.ETag = ""
	if page := refetch("no validators", bare, false, 2, 1); page.Raw != was.Raw {
		t.Errorf("the page is %+v", page)
	}
	l.version.Add(1)
	if page := refetch("changed", was, false, 3, 1); page.Raw == was.Raw || page.ETag != `"v1"` {
		t.Errorf("the changed page is %+v", page)
	}
	l.version.Store(0)
	now = noon.Add(validatorLife)
	refetch("validators that are too old to be sent", was, false, 4, 1)
	now = noon
	f.cfg.Store = blob.NewMem()
	refetch("the bytes are gone that need not be sent", was, false, 5, 1)
}

// TestRefetchKeepsValidatorsToTheirAddress: a redirect that leads elsewhere now gets
// a plain request, and so does the address that redirects.
func TestRefetchKeepsValidatorsToTheirAddress(t *testing.T) {
	to, asked := "/b", []string(nil)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		asked = append(asked, r.URL.Path+" "+r.Header.Get("If-None-Match"))
		if r.URL.Path == "/a" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("ETag", `"one"`)
		if r.Header.Get("If-None-Match") == `"one"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprintf(w, "Page %s tells of soil.", r.URL.Path)
	}).URL
	f := newFetcher(t, nil)
	was, err := f.Fetch(t.Context(), server+"/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, same, err := f.Refetch(t.Context(), was); err != nil || !same {
		t.Errorf("behind the same redirect: unchanged %v, %v", same, err)
	}
	to = "/c"
	page, same, err := f.Refetch(t.Context(), was)
	if err != nil || same || page.URL != server+"/c" {
		t.Errorf("behind another redirect: %s unchanged %v, %v", page.URL, same, err)
	}
	if want := []string{"/a ", "/b ", "/a ", `/b "one"`, "/a ", "/c "}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

// TestRefetchFailsAsFetch: same checks, same codes.
func TestRefetchFailsAsFetch(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = io.WriteString(w, "User-agent: *\nDisallow: /closed")
		default:
			http.Error(w, "no", http.StatusGone)
		}
	}).URL
	f := newFetcher(t, nil)
	for _, loc := range []string{server + "/closed", server + "/gone", "ftp://example.org/", "not an address"} {
		_, wantErr := f.Fetch(t.Context(), loc)
		_, _, err := f.Refetch(t.Context(), fetch.Page{Locator: loc})
		if err == nil || err.Error() != wantErr.Error() {
			t.Errorf("%s: %v, want %v", loc, err, wantErr)
		}
	}
}
