package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// counted is a transport that notes the requests it is given, and may refuse them.
type counted struct {
	http.RoundTripper
	refuse func(ctx context.Context) error
	asked  *atomic.Int32
}

func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	c.asked.Add(1)
	if c.refuse != nil {
		return nil, c.refuse(req.Context())
	}
	return c.RoundTripper.RoundTrip(req)
}

// TestEveryRequestIsShared: robots.txt, pages, redirects, repetitions and probes are all
// requests that others have to know of.
func TestEveryRequestIsShared(t *testing.T) {
	var mu sync.Mutex
	sent := 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch sent++; r.URL.Path {
		case "/from":
			http.Redirect(w, r, "/to", http.StatusFound)
		case "/busy":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/often":
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			fmt.Fprint(w, "a page")
		}
	})
	var asked atomic.Int32
	f := newFetcher(t, func(c *Config) {
		c.Through = func(base http.RoundTripper) http.RoundTripper { return counted{base, nil, &asked} }
	})
	for path, code := range map[string]marchwarden.Code{"/from": "", "/busy": marchwarden.CodeUnavailable, "/often": marchwarden.CodeRateLimited} {
		if _, err := f.Fetch(t.Context(), server.URL+path); marchwarden.CodeOf(err) != code {
			t.Errorf("%s: %v", path, err)
		}
	}
	const robots = 1
	if got := int(asked.Load()); got != sent+robots || sent != 4 {
		t.Errorf("%d went through, %d requests came besides robots.txt", got, sent)
	}
}

func TestShareRefuses(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	for _, tt := range []struct {
		name   string
		refuse func(ctx context.Context) error
		want   marchwarden.Code
	}{
		{"no engine", func(context.Context) error {
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "no engine")
		}, marchwarden.CodeUnavailable},
		{"later", func(context.Context) error {
			return marchwarden.Errorf(marchwarden.CodeRateLimited, "come back tomorrow")
		}, marchwarden.CodeRateLimited},
		{"no time", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, marchwarden.CodeTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFetcher(t, func(c *Config) {
				c.Timeout = 50 * time.Millisecond
				c.Through = func(base http.RoundTripper) http.RoundTripper { return counted{base, tt.refuse, new(atomic.Int32)} }
			})
			if _, err := f.Fetch(t.Context(), server.URL+"/page"); marchwarden.CodeOf(err) != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}
