package llm

import (
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	openAfter = 5                // failures in a row
	openFor   = 20 * time.Second // then no call is let through
)

// Breaker keeps callers from a provider that is down. After five failures in a row, of whatever models
// and runs, no call is let through for 20 s, then one: if it succeeds all are let through again, if it
// fails none is for another 20 s. Failures are those of the service: unreachable, overloaded, silent,
// broken off; neither a rate limit nor a call that its caller canceled. The zero Breaker is ready for
// use. It is safe for concurrent use and must not be copied. The breaker of failsafe-go is not used:
// it cannot give back the permit of a probe that was canceled.
type Breaker struct {
	mu       sync.Mutex // guards what follows
	failures int        // in a row
	until    time.Time  // when it may be tried again; zero while closed
	probing  bool       // the one call is under way
	turn     int        // counts openings and closings: what began before one says nothing after it
}

type health int

const (
	unknown health = iota
	up
	down
)

// healthOf reads a call's error. Anything but a fault of the service is an answer, such as that the key is bad.
func healthOf(err error) health {
	switch marchwarden.CodeOf(err) {
	case marchwarden.CodeUnavailable, marchwarden.CodeTimeout, marchwarden.CodeTruncated:
		return down
	case marchwarden.CodeCanceled, marchwarden.CodeRateLimited, marchwarden.CodeInternal:
		return unknown
	}
	return up
}

type permit struct {
	turn  int
	probe bool
}

// enter asks for leave to call a model. A refusal has CodeUnavailable and is not worth repeating soon.
func (b *Breaker) enter(id string, now time.Time) (permit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return permit{turn: b.turn}, nil
	}
	wait := b.until.Sub(now)
	if wait <= 0 && !b.probing {
		b.probing = true
		return permit{turn: b.turn, probe: true}, nil
	}
	provider, _, _ := strings.Cut(id, "/")
	state := "is being tried again now"
	if wait > 0 {
		state = "is left alone for " + wait.Round(time.Millisecond).String()
	}
	return permit{}, marchwarden.Wrap(shut{}, marchwarden.CodeUnavailable, "%s failed %d times in a row and %s", provider, b.failures, state)
}

func (b *Breaker) leave(p permit, seen health, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.turn != b.turn {
		return
	}
	if p.probe {
		b.probing = false
	}
	switch seen {
	case up:
		b.failures = 0
		if p.probe {
			b.until = time.Time{}
			b.turn++
		}
	case down:
		if b.failures++; b.failures >= openAfter {
			b.until = now.Add(openFor)
			b.turn++
		}
	}
}

// shut marks the error of an open breaker.
type shut struct{}

func (shut) Error() string { return "circuit breaker open" }

// Retryable is false: the next attempt would meet the same breaker.
func (shut) Retryable() bool { return false }
