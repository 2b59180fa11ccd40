package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
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
	at, err := f.probe(ctx, loc)
	if err != nil {
		return "", &marchwarden.Error{Code: codeOf(ctx, err), Message: fmt.Sprintf("ask for %.300q", loc), Err: err}
	}
	return at, nil
}

func (f *Fetcher) probe(parent context.Context, loc string) (string, error) {
	if canonical, ok := locator.Canonical(loc); !ok || canonical != loc {
		return "", marchwarden.Errorf(marchwarden.CodeDenied, "not a canonical http or https address")
	}
	u, err := url.Parse(loc)
	if err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeDenied, "not an address")
	}
	turn, err := f.hosts.enter(parent, u.Hostname())
	if err != nil {
		return "", err
	}
	defer func() { turn.leave() }()
	ctx, cancel := context.WithTimeout(parent, f.cfg.Timeout)
	defer cancel()
	visited := make(map[string]bool)
	for {
		got, err := f.knock(ctx, turn, u)
		if err != nil {
			return "", err
		}
		if !redirects(got.status) {
			return u.String(), thereError(got)
		}
		visited[u.String()] = true
		if u, err = target(got); err != nil {
			return "", err
		}
		switch {
		case !fetch.Allowed(ctx, u.Hostname()):
			return "", marchwarden.Errorf(marchwarden.CodeDenied, "it redirects to %s, which is outside the source filter", u.Hostname())
		case visited[u.String()]:
			return "", marchwarden.Errorf(marchwarden.CodeUnavailable, "it redirects in a circle")
		case len(visited) > f.cfg.MaxRedirects:
			return "", marchwarden.Errorf(marchwarden.CodeUnavailable, "more than %d redirects", f.cfg.MaxRedirects)
		}
		turn.leave()
		if turn, err = f.hosts.enter(ctx, u.Hostname()); err != nil {
			return "", err
		}
	}
}

// knock asks for one address with HEAD, and with GET where HEAD does not settle it:
// many servers refuse HEAD, or say to it that a page is missing which they have.
func (f *Fetcher) knock(ctx context.Context, turn *turn, u *url.URL) (answer, error) {
	if err := f.cfg.Guard.CheckURL(u); err != nil {
		return answer{}, err
	}
	delay, err := f.robots.check(ctx, u)
	if err != nil {
		return answer{}, err
	}
	if err := turn.pace(ctx, delay); err != nil {
		return answer{}, err
	}
	got, err := f.peek(ctx, http.MethodHead, u)
	var refused marchwarden.Code
	switch {
	case err != nil && (errors.As(err, &refused) || ctx.Err() != nil):
		return answer{}, err // by the guard, or there is no time left
	case err == nil && (thereError(got) == nil || redirects(got.status) || got.status == http.StatusTooManyRequests):
		return got, nil
	}
	if err := turn.pace(ctx, delay); err != nil {
		return answer{}, err
	}
	return f.peek(ctx, http.MethodGet, u)
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
