package web

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// maxCrawlDelay is the longest time between requests that a robots.txt can
	// ask for and get.
	maxCrawlDelay = 5 * time.Second
	// maxHosts is how many hosts are remembered before those at rest are
	// forgotten.
	maxHosts = 1024
)

// hosts keeps us polite: so many requests to a host at a time, and so long
// between them.
type hosts struct {
	perHost int
	pace    time.Duration

	mu     sync.Mutex
	byName map[string]*host
}

type host struct {
	slots   chan struct{}
	limiter *rate.Limiter
}

func newHosts(perHost int, pace time.Duration) *hosts {
	return &hosts{perHost: perHost, pace: pace, byName: make(map[string]*host)}
}

// turn is leave to send requests to a host, one after the other.
type turn struct {
	hosts *hosts
	name  string
	host  *host // nil when the turn is over
}

// enter waits for a turn at a host, which the caller ends with leave. On an
// error, which is ctx's, the turn may be left, too.
func (h *hosts) enter(ctx context.Context, name string) (*turn, error) {
	t := &turn{hosts: h, name: name}
	host := h.of(name)
	select {
	case host.slots <- struct{}{}:
		t.host = host
		return t, nil
	case <-ctx.Done():
		return t, ctx.Err()
	}
}

// of is the host of a name. Hosts at rest are forgotten when there are too many.
func (h *hosts) of(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName[name] == nil {
		if len(h.byName) >= maxHosts {
			maps.DeleteFunc(h.byName, func(_ string, host *host) bool { return len(host.slots) == 0 && host.limiter.Tokens() >= 1 })
		}
		h.byName[name] = &host{slots: make(chan struct{}, h.perHost), limiter: rate.NewLimiter(rate.Inf, 1)}
	}
	return h.byName[name]
}

// leave ends the turn. Leaving twice is harmless.
func (t *turn) leave() {
	if t.host != nil {
		<-t.host.slots
		t.host = nil
	}
}

// pace waits until the next request may be sent. The delay is what robots.txt
// asks for, or 0.
func (t *turn) pace(ctx context.Context, delay time.Duration) error {
	every := max(t.hosts.pace, min(delay, maxCrawlDelay))
	if every <= 0 {
		return ctx.Err()
	}
	t.host.limiter.SetLimit(rate.Every(every))
	if err := t.host.limiter.Wait(ctx); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeTimeout, "wait for the next request to %s, one every %v", t.name, every)
	}
	return nil
}
