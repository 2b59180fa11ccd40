// Package web fetches pages over HTTP: it asks robots.txt, waits for its turn at
// a host, follows redirects, bounds and decodes what comes, has the text
// extracted, and stores both.
//
// It does not decide which addresses the network may be asked for (package
// guard, at dial time), nor which pages a run may read (the loop's provenance
// gate), and it does not extract text itself (package extract). What a server
// sends is taken as hostile: every size, every wait and every hop has a limit.
package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

// maxLinks bounds Page.Links.
const maxLinks = 200

// Extractor reads the text of a document, given the Content-Type it came with;
// *extract.Extractor is one.
type Extractor interface {
	ExtractAs(ctx context.Context, name, contentType string, raw []byte) (extract.Document, error)
}

// Config holds what a Fetcher works with. Store, Extract, Guard and Now are
// required; every other zero value stands for its default.
type Config struct {
	Store   blob.Store
	Extract Extractor
	Guard   *guard.Guard
	Now     func() time.Time

	// UserAgent is sent with every request; its first word, without what follows
	// a slash, is the name that robots.txt knows. Default "marchwarden".
	UserAgent string
	// Clean has every page and what its server says of it before anything is made of
	// them; nil leaves them as they came.
	Clean func([]byte) []byte
	// Through wraps the transport of every request, robots.txt included: for limits that
	// several fetchers share. nil leaves it as it is.
	Through func(http.RoundTripper) http.RoundTripper

	MaxBody int64         // largest body, after decompression; default 16 MiB
	Timeout time.Duration // longest time for a page, from its first turn at the host; default 30 s
	PerHost int           // requests to a host at the same time; default 2
	Pace    time.Duration // least time between requests to a host; default 200 ms, negative = none
}

// Fetcher fetches pages of the web. It is safe for concurrent use.
type Fetcher struct {
	cfg       Config
	transport http.RoundTripper
	robots    *robots
	hosts     *hosts
	backoff   time.Duration // before a request is repeated, when the server names no time
}

// New makes a Fetcher; it opens nothing. The caller closes it after the last
// Fetch, and keeps and closes what is in cfg.
func New(cfg Config) *Fetcher {
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "marchwarden")
	cfg.MaxBody, cfg.PerHost = cmp.Or(cfg.MaxBody, 16<<20), cmp.Or(cfg.PerHost, 2)
	cfg.Timeout, cfg.Pace = cmp.Or(cfg.Timeout, 30*time.Second), cmp.Or(cfg.Pace, 200*time.Millisecond)
	f := &Fetcher{
		cfg: cfg, transport: cfg.Guard.Transport(), hosts: newHosts(cfg.PerHost, cfg.Pace),
		backoff: 500 * time.Millisecond,
	}
	if cfg.Through != nil {
		f.transport = cfg.Through(f.transport)
	}
	if cfg.Clean == nil {
		f.cfg.Clean = func(raw []byte) []byte { return raw }
	}
	f.robots = newRobots(cfg.UserAgent, cfg.Now, f.getRobots)
	return f
}

// Close ends work in the background and closes idle connections. Closing twice is harmless.
func (f *Fetcher) Close() error {
	f.robots.close()
	(&http.Client{Transport: f.transport}).CloseIdleConnections()
	return nil
}

// Fetch gets, stores and extracts the page at loc, which must be written as
// locator.Canonical writes it. Redirects are followed, from https to http too:
// Page.URL says where the page came from in the end.
//
// Its errors carry one of these codes: CodeDenied for what robots.txt, the guard
// or the server refuses, and for locators that are not canonical; CodeNotFound;
// CodeRateLimited; CodeTimeout; CodeTruncated for a body that broke off;
// CodeCanceled when ctx ended; CodeInternal for a bug here that a robots.txt has
// found; CodeUnavailable for all else, a body over the limit and a page that only
// scripts could fill included. There is no half page.
func (f *Fetcher) Fetch(ctx context.Context, loc string) (page fetch.Page, err error) {
	got, err := f.getAt(ctx, loc)
	if err == nil {
		page, err = f.take(ctx, loc, got)
	}
	if err != nil {
		err = &marchwarden.Error{Code: fetch.CodeOf(ctx, err), Message: fmt.Sprintf("fetch %.300q", loc), Err: err}
	}
	return page, err
}

// getAt is get for an address as a caller wrote it.
func (f *Fetcher) getAt(ctx context.Context, loc string) (answer, error) {
	if canonical, ok := locator.Canonical(loc); !ok || canonical != loc {
		return answer{}, marchwarden.Errorf(marchwarden.CodeDenied, "not a canonical http or https address")
	}
	u, err := url.Parse(loc)
	if err != nil {
		return answer{}, marchwarden.Wrap(err, marchwarden.CodeDenied, "not an address")
	}
	return f.get(ctx, u)
}

// take makes a page of what a server sent, and stores it.
func (f *Fetcher) take(ctx context.Context, loc string, got answer) (fetch.Page, error) {
	doc, err := f.cfg.Extract.ExtractAs(ctx, got.url.String(), got.header.Get("Content-Type"), got.raw)
	if err != nil {
		// The extractor's own time limit is a fault of this page.
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "extract text")
	}
	if needsScripts(got.raw, doc) {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeUnavailable, "the page needs JavaScript to show its text")
	}
	final, ok := locator.Canonical(got.url.String())
	if !ok {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeDenied, "it ended at an address that is refused")
	}
	page := fetch.Page{
		Locator: loc, URL: final, Source: "web", Title: fetch.Title(got.url.Host+got.url.Path, doc), Author: doc.Author, Published: doc.Published,
		Origin: origin(got.url.Hostname()), MediaType: doc.MediaType, Extractor: doc.Extractor, Links: canonicalLinks(doc.Links, loc, final),
		FetchedAt: f.cfg.Now().UTC(), NonText: doc.NonText || doc.Text == "",
	}
	return fetch.Keep(context.WithoutCancel(ctx), f.cfg.Store, page, got.raw, doc.Text)
}

// origin names who is behind a host: the registered part of the name, so that a site's hosts count
// as one source. The address that a page declares for itself does not count: a page can declare
// anything.
func origin(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	if name, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return name
	}
	return strings.TrimPrefix(host, "www.")
}

// canonicalLinks keeps the links that could be fetched, without those to the
// page itself.
func canonicalLinks(links []string, self ...string) []string {
	seen := make(map[string]bool)
	for _, loc := range self {
		seen[loc] = true
	}
	var kept []string
	for _, link := range links {
		loc, ok := locator.Canonical(link)
		if !ok || seen[loc] {
			continue
		}
		seen[loc] = true
		if kept = append(kept, loc); len(kept) == maxLinks {
			break
		}
	}
	return kept
}

// fewCharacters is the length of text in bytes below which a page may be an empty frame.
const fewCharacters = 250

var (
	scriptTag = []byte("<script")
	noScript  = regexp.MustCompile(`(?s)<noscript.*?(?:javascript|</noscript)`)
	// appRoot finds the element that script frameworks fill, in lower-case HTML.
	appRoot = regexp.MustCompile(`<app-root|\s(ng-app|ng-version|data-reactroot|id\s*=\s*["']?(root|app|main-app|__next|__nuxt|___gatsby|svelte|q-app|react-root|ember-app|application)["'\s>/])`)
)

// needsScripts tells a page whose text is made in the browser: it says nothing, or nothing but
// that it needs scripts, has some, and a sign that they were to make more.
func needsScripts(raw []byte, doc extract.Document) bool {
	says := len(doc.Text) >= fewCharacters || !strings.Contains(strings.ToLower(doc.Text), "javascript")
	if doc.MediaType != "text/html" || doc.Text != "" && says {
		return false
	}
	raw = bytes.ToLower(raw[:min(len(raw), 1<<20)])
	return bytes.Contains(raw, scriptTag) && (doc.Text == "" || appRoot.Match(raw) ||
		slices.ContainsFunc(noScript.FindAll(raw, -1), func(m []byte) bool { return bytes.HasSuffix(m, []byte("javascript")) })) // the sentence for browsers without scripts
}
