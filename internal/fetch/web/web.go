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
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
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

func (c Config) withDefaults() Config {
	c.UserAgent = cmp.Or(c.UserAgent, "marchwarden")
	c.MaxBody, c.PerHost = cmp.Or(c.MaxBody, 16<<20), cmp.Or(c.PerHost, 2)
	c.Timeout, c.Pace = cmp.Or(c.Timeout, 30*time.Second), cmp.Or(c.Pace, 200*time.Millisecond)
	return c
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
	cfg = cfg.withDefaults()
	f := &Fetcher{
		cfg: cfg, transport: cfg.Guard.Transport(), hosts: newHosts(cfg.PerHost, cfg.Pace),
		backoff: 500 * time.Millisecond,
	}
	if cfg.Through != nil {
		f.transport = cfg.Through(f.transport)
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
	return page, coded(ctx, err, "fetch", loc)
}

// coded gives an error about a page its code.
func coded(ctx context.Context, err error, doing, loc string) error {
	if err == nil {
		return nil
	}
	return &marchwarden.Error{Code: codeOf(ctx, err), Message: fmt.Sprintf("%s %.300q", doing, loc), Err: err}
}

// codeOf classifies by what went wrong. The caller's own end comes first:
// whatever failed then failed because of it.
func codeOf(ctx context.Context, err error) marchwarden.Code {
	var code marchwarden.Code
	var netErr net.Error
	switch {
	case ctx.Err() != nil:
		return marchwarden.CodeCanceled
	case errors.As(err, &code):
		return code
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return marchwarden.CodeTimeout
	default:
		return marchwarden.CodeUnavailable
	}
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

// take makes a page of what a server sent.
func (f *Fetcher) take(ctx context.Context, loc string, got answer) (fetch.Page, error) {
	doc, err := f.extract(ctx, got)
	if err != nil {
		return fetch.Page{}, err
	}
	if needsScripts(got.raw, doc) && blank(doc) {
		return fetch.Page{}, errNeedsScripts
	}
	return f.keep(ctx, loc, got, doc)
}

func (f *Fetcher) extract(ctx context.Context, got answer) (extract.Document, error) {
	doc, err := f.cfg.Extract.ExtractAs(ctx, got.url.String(), got.header.Get("Content-Type"), got.raw)
	if err != nil {
		// The extractor's own time limit is a fault of this page.
		return extract.Document{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "extract text")
	}
	return doc, nil
}

// keep stores what was found and describes it.
func (f *Fetcher) keep(ctx context.Context, loc string, got answer, doc extract.Document) (fetch.Page, error) {
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
