package searchtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Client is an HTTP client that dials loopback addresses only, so that no test
// reaches the world. Its connections are closed with the test.
func Client(t testing.TB) *http.Client {
	var d net.Dialer
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return nil, fmt.Errorf("a test dialled %s", addr)
		}
		return d.DialContext(ctx, network, addr)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// Serve runs a service on loopback until the test ends and returns its address.
func Serve(t testing.TB, h http.HandlerFunc) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// URL is where the web has the document of this name: Markdown at docs.example,
// all else at notes.example. A filter for NotesHost tells them apart.
func URL(name string) string {
	if strings.HasSuffix(name, ".md") {
		return "http://docs.example/" + name
	}
	return "http://" + NotesHost + "/" + name
}

// NotesHost is the host of the documents that are no Markdown.
const NotesHost = "notes.example"

// OnNotesHost reports whether a locator is at NotesHost.
func OnNotesHost(locator string) bool { return strings.HasPrefix(locator, "http://"+NotesHost+"/") }

// Match is the search of a naive service: the names of the documents that hold a
// word of the query, those with the most first, ties by name. Words match by
// their beginnings, so "soil" finds "soils".
func Match(docs map[string]string, query string) []string {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	}
	score := map[string]int{}
	for name, text := range docs {
		held := words(text)
		for _, w := range words(query) {
			if w == "and" || w == "site" || w == "example" || w == "notes" {
				continue
			}
			if slices.ContainsFunc(held, func(h string) bool { return strings.HasPrefix(h, w) }) {
				score[name]++
			}
		}
	}
	names := slices.Collect(maps.Keys(score))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	return names
}

var tag = regexp.MustCompile(`<[/!?]?[A-Za-z][^<>]*>`)

// CheckWeb holds the hits of a web engine against what every one of them
// promises for the query.
func CheckWeb(t testing.TB, hits []search.Hit, q search.Query) {
	t.Helper()
	if len(hits) > q.Limit {
		t.Errorf("%d hits, limit %d", len(hits), q.Limit)
	}
	seen := map[string]bool{}
	for i, h := range hits {
		u, err := url.Parse(h.Locator)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Fragment != "" || seen[h.Locator] || !q.Filter.Allows(u.Hostname()) {
			t.Errorf("hit %d: locator %q", i, h.Locator)
		}
		seen[h.Locator] = true
		for _, s := range []string{h.Title, h.Snippet} {
			if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.TrimSpace(s) != s || tag.MatchString(s) {
				t.Errorf("hit %d: %q is not plain text on one line", i, s)
			}
		}
		if !(h.Score > 0) || i > 0 && h.Score > hits[i-1].Score {
			t.Errorf("hit %d scores %v", i, h.Score)
		}
		if d := h.Published; d != "" && (len(d) != 10 || q.Since != "" && d < q.Since || q.Until != "" && d > q.Until) {
			t.Errorf("hit %d: published %q", i, d)
		}
	}
}
