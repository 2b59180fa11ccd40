package web

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// maxHosts is how many hosts are remembered before those at rest are forgotten.
const maxHosts = 1024

// hosts keeps us polite: so many requests to a host at a time, and so long
// between them.
type hosts struct {
	perHost int
	pace    time.Duration

	mu     sync.Mutex
	byName map[string]*host
}

// host is where turns are taken. The requests of a turn go one after the other.
type host struct {
	name    string
	slots   chan struct{}
	limiter *rate.Limiter
}

func newHosts(perHost int, pace time.Duration) *hosts {
	return &hosts{perHost: perHost, pace: pace, byName: make(map[string]*host)}
}

// enter waits for a turn at a host, which the caller ends with leave. An error is ctx's.
func (h *hosts) enter(ctx context.Context, name string) (*host, error) {
	at := h.of(name)
	select {
	case at.slots <- struct{}{}:
		return at, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// leave ends a turn.
func (h *host) leave() { <-h.slots }

// of is the host of a name. Hosts at rest are forgotten when there are too many.
func (h *hosts) of(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName[name] == nil {
		if len(h.byName) >= maxHosts {
			maps.DeleteFunc(h.byName, func(_ string, host *host) bool { return len(host.slots) == 0 && host.limiter.Tokens() >= 1 })
		}
		h.byName[name] = &host{name: name, slots: make(chan struct{}, h.perHost), limiter: rate.NewLimiter(rate.Every(h.pace), 1)}
	}
	return h.byName[name]
}

// wait returns when the next request may be sent.
func (h *host) wait(ctx context.Context) error {
	return marchwarden.Wrap(h.limiter.Wait(ctx), marchwarden.CodeTimeout, "wait for the next request to %s", h.name)
}
