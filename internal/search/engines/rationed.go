package engines

// This part keeps search engines and hosts to what is allowed to all who use one together.
// It counts requests, not searches: one search may need several, and a client may repeat
// one. It goes around an HTTP client, below the journal, so that a rerun never waits.

import (
	"net/http"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// Transport is base, or Go's usual one if that is nil, with every request counted by the
// limit of its host, for which it waits within the time of the request. A service that
// refuses with 429, or with 503 and a time, is left alone by all. A request that the limit
// does not allow is not made, and its error is the limit's.
func Transport(share func(host string) dispatch.Limiter, now func() time.Time, base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	return &transport{share: share, now: now, base: base}
}

type transport struct {
	share func(host string) dispatch.Limiter
	now   func() time.Time
	base  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	share := t.share(req.URL.Hostname())
	settle, err := share.Take(req.Context(), 1)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as every RoundTripper has to
		}
		if ended := req.Context().Err(); ended != nil {
			err = ended // whose time it was, the caller knows
		}
		return nil, err
	}
	settle(1) // whatever comes of it
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	now := t.now()
	if wait, ok := httpapi.StayAway(resp, now); ok {
		share.Slow(now.Add(wait))
	}
	return resp, nil
}

// CloseIdleConnections closes those of the base.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
