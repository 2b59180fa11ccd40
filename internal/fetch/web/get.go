package web

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

const (
	// maxRetryAfter is the longest wait that a server can ask for and get.
	maxRetryAfter = 5 * time.Second
	// slurpBytes is what is read of an unwanted body.
	slurpBytes   = 32 << 10
	maxRedirects = 5
)

// answer is what a server said in the end. Raw is set for status 200 only.
type answer struct {
	url    *url.URL
	status int
	header http.Header
	raw    []byte
}

// get asks for u, following redirects. Waiting for the first turn at a host does
// not count against the page's time, everything after it does.
func (f *Fetcher) get(parent context.Context, u *url.URL) (answer, error) {
	at, err := f.hosts.enter(parent, u.Hostname())
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(parent, f.cfg.Timeout)
	defer cancel()
	got, err := f.follow(ctx, at, u)
	var code marchwarden.Code
	if err != nil && ctx.Err() != nil && parent.Err() == nil && !errors.As(err, &code) {
		err = marchwarden.Wrap(err, marchwarden.CodeTimeout, "no complete page within %v", f.cfg.Timeout)
	}
	return got, err
}

// follow goes from redirect to redirect. The turn at one host is given up before the
// next is asked for, or two redirects in opposite directions could wait for each other.
func (f *Fetcher) follow(ctx context.Context, at *host, u *url.URL) (answer, error) {
	visited := make(map[string]bool)
	for {
		got, err := f.hop(ctx, at, u)
		if err != nil || !redirects(got.status) {
			return got, err
		}
		visited[u.String()] = true
		if u, err = target(got); err != nil {
			return answer{}, err
		}
		switch {
		case !fetch.Allowed(ctx, u.Hostname()):
			return answer{}, marchwarden.Errorf(marchwarden.CodeDenied, "it redirects to %s, which is outside the source filter", u.Hostname())
		case visited[u.String()]:
			return answer{}, marchwarden.Errorf(marchwarden.CodeUnavailable, "it redirects in a circle")
		case len(visited) > maxRedirects:
			return answer{}, marchwarden.Errorf(marchwarden.CodeUnavailable, "more than %d redirects", maxRedirects)
		}
		if at, err = f.hosts.enter(ctx, u.Hostname()); err != nil {
			return answer{}, err
		}
	}
}

// hop asks for one address, and ends the turn at its host. Every hop is a fetch like the first: same
// checks, robots.txt of the host it leads to.
func (f *Fetcher) hop(ctx context.Context, at *host, u *url.URL) (got answer, err error) {
	defer at.leave()
	if err := f.cfg.Guard.CheckURL(u); err != nil {
		return got, err
	}
	if err = f.robots.check(ctx, u); err == nil {
		got, err = f.try(ctx, at, u)
	}
	if err == nil {
		err = statusError(got)
	}
	return got, err
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// target reads where a redirect leads. Only what is an address to every reader
// is followed. The error does not name the rest: the server wrote it, and errors
// end up in results.
func target(got answer) (*url.URL, error) {
	to := strings.TrimSpace(got.header.Get("Location"))
	if to != "" && !strings.ContainsAny(to, "\\\t\r\n") {
		if next, err := got.url.Parse(to); err == nil {
			if loc, ok := locator.Followable(next.String()); ok {
				return url.Parse(loc)
			}
		}
	}
	return nil, marchwarden.Errorf(marchwarden.CodeDenied, "a redirect of %s is refused: it leads to no http or https address that is safe to follow", got.url.Hostname())
}

// try sends a request, and once more when the first attempt met a passing
// fault.
func (f *Fetcher) try(ctx context.Context, at *host, u *url.URL) (answer, error) {
	for attempt := 0; ; attempt++ {
		if err := at.wait(ctx); err != nil {
			return answer{}, err
		}
		got, err := f.send(ctx, u, body{limit: f.cfg.MaxBody})
		wait, again := f.passing(got, err)
		if attempt > 0 || !again || ctx.Err() != nil {
			return got, err
		}
		if err := httpapi.Sleep(ctx, wait); err != nil {
			return answer{}, err
		}
	}
}

// passing tells faults that may be over in a moment, and when to ask again.
func (f *Fetcher) passing(got answer, err error) (time.Duration, bool) {
	if err != nil {
		for _, fault := range []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
			if errors.Is(err, fault) {
				return f.backoff, true
			}
		}
		return 0, false
	}
	wait, named := httpapi.RetryAfter(got.header, f.cfg.Now())
	switch got.status {
	case http.StatusTooManyRequests:
		return wait, named && wait <= maxRetryAfter
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return max(wait, f.backoff), wait <= maxRetryAfter
	}
	return 0, false
}

// send sends one GET and reads the body of a page. There is no cookie, no
// credential, no Referer and no tag of an earlier answer: nothing tells a server
// that two runs are of one visitor.
func (f *Fetcher) send(ctx context.Context, u *url.URL, b body) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	req.Header = http.Header{
		"User-Agent":      {f.cfg.UserAgent},
		"Accept":          {"text/html,application/xhtml+xml,application/pdf,text/plain;q=0.9,application/json;q=0.9,application/xml;q=0.9,*/*;q=0.5"},
		"Accept-Language": {"en,*;q=0.5"},
		"Accept-Encoding": {"gzip"},
	}
	resp, err := f.transport.RoundTrip(req)
	if err != nil {
		return answer{}, fmt.Errorf("request: %w", err)
	}
	defer resp.Body.Close()
	got := answer{url: u, status: resp.StatusCode, header: resp.Header}
	for _, values := range got.header {
		for i, v := range values {
			values[i] = string(f.cfg.Clean([]byte(v)))
		}
	}
	if resp.StatusCode == http.StatusNonAuthoritativeInfo { // a page that a proxy changed on the way
		got.status = http.StatusOK
	}
	if got.status != http.StatusOK {
		// Read to its end, a short body leaves the connection free for the next
		// request; how it ends does not matter.
		_, _ = io.CopyN(io.Discard, resp.Body, slurpBytes)
		return got, nil
	}
	if got.raw, err = b.read(resp); err != nil {
		return answer{}, fmt.Errorf("read body: %w", err)
	}
	got.raw = f.cfg.Clean(got.raw)
	return got, nil
}

// statusError says what a status means that is neither success nor a redirect.
func statusError(got answer) error {
	code := marchwarden.CodeUnavailable
	if got.status == http.StatusOK || redirects(got.status) {
		return nil
	}
	switch got.status {
	case http.StatusNotFound, http.StatusGone:
		code = marchwarden.CodeNotFound
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		code = marchwarden.CodeDenied
	case http.StatusTooManyRequests:
		code = marchwarden.CodeRateLimited
	}
	return marchwarden.Errorf(code, "%s answered %d %s", got.url.Hostname(), got.status, strings.ToLower(http.StatusText(got.status)))
}

var errTooLarge = errors.New("over the limit")

// body says how much of a body is read.
type body struct {
	limit int64 // bytes, counted after decompression; as many are read from the wire at most
	cut   bool  // a longer body is cut, not refused
}

// read reads a body and undoes its compression. A body that is shorter than
// announced, or whose compression breaks off, is CodeTruncated.
func (b body) read(resp *http.Response) ([]byte, error) {
	raw, err := b.decoded(resp)
	switch {
	case b.cut && errors.Is(err, errTooLarge):
		return raw, nil
	case errors.Is(err, errTooLarge):
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the page is larger than the limit of %d bytes", b.limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, marchwarden.Wrap(err, marchwarden.CodeTruncated, "the page broke off before its end")
	}
	return raw, err
}

func (b body) decoded(resp *http.Response) ([]byte, error) {
	// Limiting the wire, too, ends streams that decompress to nothing for ever.
	r := httpapi.Limit(resp.Body, b.limit, errTooLarge)
	switch coding := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ", ")); coding {
	case "", "identity":
		if resp.ContentLength > b.limit && !b.cut {
			return nil, errTooLarge
		}
	case "gzip", "x-gzip":
		zr, err := gzip.NewReader(r)
		if errors.Is(err, io.EOF) { // no body at all
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		r = httpapi.Limit(zr, b.limit, errTooLarge)
	default:
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "content encoding %.40q is not one that was asked for", coding)
	}
	return io.ReadAll(r)
}
