package engines

// This part keeps a search engine to what its provider allows all who use one
// engine together. It counts requests, not searches: one search may need several, and a
// client may repeat one. It goes around the engine and around its HTTP client, below the
// journal, so that a rerun never waits.

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// NewRationed returns an engine that waits for its share. share is the limit of the engine's
// requests, such as that of "tavily/requests"; open makes the engine with the client that
// it is given, which is client with every request counted.
//
// The wait for the first request of a search comes before the search, so that the time an
// engine allows its service does not run meanwhile; the wait for further ones is part of
// it. A service that refuses with 429, or with 503 and a time, is left alone by all. A
// search that the limit does not allow is not made, and its error has the code of the
// limit's.
func NewRationed(share dispatch.Limiter, now func() time.Time, client *http.Client, open func(*http.Client) search.Engine) search.Engine {
	counted := *client
	counted.Transport = Transport(func(string) dispatch.Limiter { return share }, now, client.Transport)
	return &rationed{Engine: open(&counted), share: share}
}

type rationed struct {
	search.Engine
	share dispatch.Limiter
}

// ticketKey is under which a context has leave for one request, an *atomic.Bool that says whether it was used.
type ticketKey struct{}

// Search implements search.Engine.
func (e *rationed) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	settle, err := e.share.Take(ctx, 1)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: e.Name() + ": it was not asked", Hint: marchwarden.HintOf(err), Err: err}
	}
	used := &atomic.Bool{}
	hits, err := e.Engine.Search(context.WithValue(ctx, ticketKey{}, used), q)
	if used.CompareAndSwap(false, true) { // there was nothing to ask for
		settle(0)
	} else {
		settle(1)
	}
	return hits, err
}

// Transport is base, or Go's usual one if that is nil, with every request counted by the
// limit of its host.
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
	if used, ok := req.Context().Value(ticketKey{}).(*atomic.Bool); !ok || !used.CompareAndSwap(false, true) {
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
	}
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
