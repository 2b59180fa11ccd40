package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Probe finds out whether the page at loc, written as locator.Canonical writes it,
// is there, and returns the address at which it is after redirects. It asks for no
// more than the page's first bytes, stores nothing, sends no validator, and keeps to
// the guard, robots.txt and the pace as Fetch does. Of the Config it needs Guard and
// Now alone.
//
// Its errors have the codes of Fetch. CodeNotFound means that the server answered
// 404 or 410 to a GET, and nothing else: what cannot be reached, asked or read is
// some other code.
func (f *Fetcher) Probe(ctx context.Context, loc string) (string, error) {
	got, err := f.getAt(ctx, loc, f.knock)
	if err != nil {
		return "", coded(ctx, err, "ask for", loc)
	}
	return got.url.String(), nil
}

// knock asks for one address with HEAD, and with GET where HEAD does not settle it:
// many servers refuse HEAD, or say to it that a page is missing which they have.
func (f *Fetcher) knock(ctx context.Context, turn *turn, u *url.URL, delay time.Duration) (answer, error) {
	if err := turn.pace(ctx, delay); err != nil {
		return answer{}, err
	}
	got, err := f.peek(ctx, http.MethodHead, u)
	var refused marchwarden.Code
	switch {
	case err != nil && (errors.As(err, &refused) || ctx.Err() != nil):
		return answer{}, err // by the guard, or there is no time left
	case err == nil && (redirects(got.status) || got.status == http.StatusTooManyRequests || thereError(got) == nil):
		return got, thereError(got)
	}
	if err := turn.pace(ctx, delay); err != nil {
		return answer{}, err
	}
	if got, err = f.peek(ctx, http.MethodGet, u); err != nil {
		return answer{}, err
	}
	return got, thereError(got)
}

// peek sends one request and reads hardly anything of the answer.
func (f *Fetcher) peek(ctx context.Context, method string, u *url.URL) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	req.Header = http.Header{"User-Agent": {f.cfg.UserAgent}, "Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
	if method == http.MethodGet {
		req.Header.Set("Range", "bytes=0-1023")
	}
	resp, err := f.roundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	// A short body leaves the connection free; how it ends does not matter.
	_, _ = io.CopyN(io.Discard, resp.Body, slurpBytes)
	return answer{url: u, status: resp.StatusCode, header: resp.Header}, nil
}

// thereError says what a status means for whether there is a page. A range that
// cannot be had is of a page that is empty.
func thereError(got answer) error {
	if got.status >= 200 && got.status <= 299 || got.status == http.StatusRequestedRangeNotSatisfiable {
		return nil
	}
	return statusError(got)
}
