package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// fakeShare counts, and may refuse.
type fakeShare struct {
	refuse func(ctx context.Context, host string) error

	mu    sync.Mutex // guards what follows
	asked map[string]int
	slow  []time.Duration // after noon
}

type hostShare struct {
	*fakeShare
	host string
}

func (h hostShare) Take(ctx context.Context, n int) (func(sent int), error) {
	if h.refuse != nil {
		return nil, h.refuse(ctx, h.host)
	}
	return func(sent int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked[h.host] += min(sent, n)
	}, nil
}

func (h hostShare) Slow(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slow = append(h.slow, until.Sub(noon))
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
	shared := &fakeShare{asked: map[string]int{}}
	f := newFetcher(t, func(c *Config) { c.Share = func(host string) Share { return hostShare{shared, host} } })
	for path, code := range map[string]marchwarden.Code{"/from": "", "/busy": marchwarden.CodeUnavailable, "/often": marchwarden.CodeRateLimited} {
		if _, err := f.Fetch(t.Context(), server.URL+path); marchwarden.CodeOf(err) != code {
			t.Errorf("%s: %v", path, err)
		}
	}
	const robots = 1
	if got := shared.asked["127.0.0.1"]; got != sent+robots || sent != 4 || len(shared.asked) != 1 {
		t.Errorf("%v waited for, %d requests came besides robots.txt", shared.asked, sent)
	}
	want := map[time.Duration]bool{2 * time.Minute: true, time.Second: true}
	for _, d := range shared.slow {
		if !want[d] {
			t.Errorf("slow for %v", d)
		}
		delete(want, d)
	}
	if len(want) > 0 {
		t.Errorf("others were not told of %v", want)
	}
}

func TestShareRefuses(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	for _, tt := range []struct {
		name   string
		refuse func(ctx context.Context, host string) error
		want   marchwarden.Code
	}{
		{"no engine", func(context.Context, string) error {
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "no engine")
		}, marchwarden.CodeUnavailable},
		{"later", func(context.Context, string) error {
			return marchwarden.Errorf(marchwarden.CodeRateLimited, "come back tomorrow")
		}, marchwarden.CodeRateLimited},
		{"no time", func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "wait")
		}, marchwarden.CodeTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shared := &fakeShare{asked: map[string]int{}, refuse: tt.refuse}
			f := newFetcher(t, func(c *Config) {
				c.Timeout = 50 * time.Millisecond
				c.Share = func(host string) Share { return hostShare{shared, host} }
			})
			if _, err := f.Fetch(t.Context(), server.URL+"/page"); marchwarden.CodeOf(err) != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}
