package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

const (
	validatorLife = 30 * 24 * time.Hour // how long a validator is used: it can be a visitor's number
	maxTagBytes   = 1 << 10             // of a validator; longer ones are not worth sending back
)

// condition is what a server is asked with whether a page changed.
type condition struct{ etag, modified string }

// validators are what can be asked with later, unless the server forbids to keep
// them.
func validators(header http.Header) (etag, modified string) {
	etag, modified = header.Get("ETag"), header.Get("Last-Modified")
	if forbidsStoring(header["Cache-Control"]) || !sendable(etag) || !sendable(modified) {
		return "", ""
	}
	return etag, modified
}

// sendable keeps out of a request header what would break it.
func sendable(s string) bool {
	return len(s) <= maxTagBytes && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

func forbidsStoring(control []string) bool {
	for _, line := range control {
		for directive := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(directive), "no-store") {
				return true
			}
		}
	}
	return false
}

// Refetch fetches the page at was.Locator again, asking the server with what it
// gave for was whether it changed. Its errors are those of Fetch. The validators go only
// to the address that gave them, and for 30 days at most; the bytes of was must be in the
// store to be asked for so.
func (f *Fetcher) Refetch(ctx context.Context, was fetch.Page) (now fetch.Page, same bool, err error) {
	age := f.cfg.Now().Sub(was.FetchedAt)
	_, missing := f.cfg.Store.Stat(ctx, was.Raw)
	usable := age >= 0 && age < validatorLife && sendable(was.ETag) && sendable(was.LastModified) && missing == nil
	got, err := f.getAt(ctx, was.Locator, f.page(func(u *url.URL) (c condition) {
		if at, ok := locator.Canonical(u.String()); ok && at == was.URL && usable {
			c = condition{was.ETag, was.LastModified}
		}
		return c
	}))
	if got.unchanged {
		was.FetchedAt = f.cfg.Now().UTC()
		return was, true, nil
	}
	if err == nil {
		now, err = f.take(ctx, was.Locator, got)
	}
	return now, false, coded(ctx, err, "fetch", was.Locator)
}
