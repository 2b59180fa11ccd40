// Package webtest is a small internet on loopback for the tests of what searches
// and reads the web: pages, and a search service that finds them and answers as a
// SearXNG instance does, and a scripted reasoner that does what a good language model
// would. It is for tests only; it needs no key and no network.
package webtest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
)

// Page is one page of the site.
type Page struct {
	Title string
	Text  string // paragraphs, apart by blank lines; made into HTML unless Raw is set
	Raw   string // the body as it is sent
	Type  string // content type of Raw; text/html when empty
	Links []string
	Delay time.Duration
	// Serve answers instead of the fields above.
	Serve http.HandlerFunc
}

// Site is pages and their search service. It is safe for concurrent use.
type Site struct {
	*httptest.Server
	pages map[string]Page

	mu       sync.Mutex // guards what follows
	requests []string
	queries  []string
	hits     func(query string) []string
	fail     func(w http.ResponseWriter) bool
}

// Loopback are the addresses that a guard must open for the site.
var Loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// New serves pages by their path, such as "/peas", until the test ends. The
// search service is below SearchURL.
func New(t testing.TB, pages map[string]Page) *Site {
	s := &Site{pages: pages}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// At is the address of a path.
func (s *Site) At(path string) string { return s.URL + path }

// SearchURL is the address of the search service.
func (s *Site) SearchURL() string { return s.URL + "/searx" }

// Requests are the paths of the pages asked for so far, queries included.
func (s *Site) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Queries are the searches so far.
func (s *Site) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}

// Finds sets what the search service finds, by path or whole address; nil finds
// the pages that share a word with the query.
func (s *Site) Finds(hits func(query string) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits = hits
}

// FailSearch lets f answer searches; it reports whether it did.
func (s *Site) FailSearch(f func(w http.ResponseWriter) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/searx") {
		s.search(w, r)
		return
	}
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.RequestURI())
	s.mu.Unlock()
	p, ok := s.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if p.Delay > 0 {
		select {
		case <-time.After(p.Delay):
		case <-r.Context().Done():
			return
		}
	}
	if p.Serve != nil {
		p.Serve(w, r)
		return
	}
	w.Header().Set("Content-Type", cmp.Or(p.Type, "text/html; charset=utf-8"))
	_, _ = w.Write([]byte(p.body())) // a client that went away is its own affair
}

// body is the page as it is sent.
func (p Page) body() string {
	if p.Raw != "" {
		return p.Raw
	}
	var b strings.Builder
	b.WriteString("<!doctype html><html lang=en><head><title>" + escape(p.Title) + "</title></head><body><article><h1>" + escape(p.Title) + "</h1>\n")
	for _, para := range strings.Split(p.Text, "\n\n") {
		b.WriteString("<p>" + escape(para) + "</p>\n")
	}
	for _, l := range p.Links {
		b.WriteString(`<p>See also <a href="` + escape(l) + `">` + escape(l) + "</a> for more about it.</p>\n")
	}
	b.WriteString("</article></body></html>")
	return b.String()
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

type result struct {
	URL     string  `json:"url"`
	Title   string  `json:"title"`
	Content string  `json:"content"`
	Engine  string  `json:"engine"`
	Score   float64 `json:"score"`
}

func (s *Site) search(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("q")
	s.mu.Lock()
	s.queries = append(s.queries, query)
	hits, fail := s.hits, s.fail
	s.mu.Unlock()
	if fail != nil && fail(w) {
		return
	}
	if hits == nil {
		hits = s.matching
	}
	out := struct {
		Query   string   `json:"query"`
		Results []result `json:"results"`
	}{Query: query, Results: []result{}}
	for i, path := range hits(query) {
		at := path
		if strings.HasPrefix(path, "/") {
			at = s.At(path)
		}
		p := s.pages[path]
		snippet := []rune(p.Text)
		out.Results = append(out.Results, result{URL: at, Title: cmp.Or(p.Title, path), Content: string(snippet[:min(len(snippet), 160)]), Engine: "test", Score: 10 / float64(i+1)})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // a client that went away is its own affair
}

// matching finds pages that share words with a query, most first.
func (s *Site) matching(query string) []string {
	asked := words(query)
	type found struct {
		path string
		n    int
	}
	var all []found
	for path, p := range s.pages {
		n := 0
		for w := range words(p.Title + " " + p.Text) {
			if asked[w] {
				n++
			}
		}
		if n > 0 {
			all = append(all, found{path, n})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.path, b.path)) })
	paths := make([]string, len(all))
	for i, f := range all {
		paths[i] = f.path
	}
	return paths
}

func words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 3 {
			set[w] = true
		}
	}
	return set
}
