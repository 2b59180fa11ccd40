package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jimsmart/grobotstxt"
	"golang.org/x/sync/singleflight"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
)

const (
	robotsBytes     = 500 << 10 // what is read of a robots.txt; RFC 9309 asks for as much
	robotsLife      = 24 * time.Hour
	robotsFaultLife = 5 * time.Minute // how long a server's own fault is remembered
	robotsTimeout   = 10 * time.Second
	robotsMemory    = 16 << 20 // of all that are remembered
	// robotsWork bounds the product of the length of an address and of all rules
	// with a wildcard, which is what matching can cost: about half a second.
	robotsWork = 1 << 25
)

// rules is what a host's robots.txt says.
type rules struct {
	text  string
	wild  int // bytes in lines with a wildcard
	fault int // the status when the server failed, which forbids all; else 0
	until time.Time
}

// robots fetches each host's robots.txt once a day and answers from it. One
// flight serves all who wait for it, and goes on when the first of them leaves.
type robots struct {
	token string
	now   func() time.Time
	get   func(ctx context.Context, u *url.URL) (answer, error)

	base    context.Context // of the flights
	close   context.CancelFunc
	flights singleflight.Group

	mu    sync.Mutex // guards what follows
	known map[string]rules
	size  int // bytes of text in known
}

func newRobots(userAgent string, now func() time.Time, get func(context.Context, *url.URL) (answer, error)) *robots {
	r := &robots{token: agent.FindString(userAgent), now: now, get: get, known: make(map[string]rules)}
	r.base, r.close = context.WithCancel(context.Background())
	return r
}

// agent is the name that the groups of a robots.txt are matched against, at the start of a User-Agent.
var agent = regexp.MustCompile(`^[A-Za-z_-]*`)

// check refuses, with CodeDenied, what robots.txt of u's host forbids. A
// robots.txt that is not there allows all; one that the server fails to give, or
// that cannot be reached, allows nothing.
func (r *robots) check(ctx context.Context, u *url.URL) error {
	rules, err := r.of(ctx, u)
	if err != nil {
		return fmt.Errorf("robots.txt of %s: %w", u.Host, err)
	}
	switch {
	case rules.fault != 0:
		return marchwarden.Errorf(marchwarden.CodeDenied, "robots.txt of %s answers %d, which forbids fetching until it is back", u.Host, rules.fault)
	case rules.wild*len(u.String()) > robotsWork:
		return marchwarden.Errorf(marchwarden.CodeDenied, "robots.txt of %s has too many wildcards for an address so long", u.Host)
	case !allows(rules.text, r.token, u.String()):
		return marchwarden.Errorf(marchwarden.CodeDenied, "robots.txt of %s refuses it", u.Host)
	}
	return nil
}

// allows asks the matcher. It reads untrusted text: should it panic, that
// costs this host's pages only.
func allows(text, token, address string) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return grobotstxt.AgentAllowed(text, token, address)
}

var percentEscape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// upperEscapes writes the escapes of a robots.txt as locators write them: in
// upper case (the matcher's own attempt at that spoils "%2f"), and none for
// letters, digits and "-._~".
func upperEscapes(text string) string {
	return percentEscape.ReplaceAllStringFunc(text, func(escape string) string {
		if plain, err := url.PathUnescape(escape); err == nil && url.QueryEscape(plain) == plain {
			return plain
		}
		return strings.ToUpper(escape)
	})
}

func (r *robots) of(ctx context.Context, u *url.URL) (rules, error) {
	origin := u.Scheme + "://" + u.Host
	r.mu.Lock()
	known, ok := r.known[origin]
	r.mu.Unlock()
	if ok && r.now().Before(known.until) {
		return known, nil
	}
	flight := r.flights.DoChan(origin, func() (any, error) {
		found, err := r.find(&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"})
		if err == nil {
			r.keep(origin, found)
		}
		return found, err
	})
	select {
	case got := <-flight:
		return got.Val.(rules), got.Err
	case <-ctx.Done():
		return rules{}, ctx.Err()
	}
}

// keep remembers what a robots.txt says, and nothing else if that is too much.
func (r *robots) keep(origin string, found rules) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size+len(found.text) > robotsMemory || len(r.known) >= maxHosts {
		clear(r.known)
		r.size = 0
	}
	r.size += len(found.text) - len(r.known[origin].text)
	r.known[origin] = found
}

// find fetches and reads a robots.txt. It is on a goroutine of its own and decodes
// untrusted bytes: a panic, which would end the process, is CodeInternal for
// those who wait.
func (r *robots) find(u *url.URL) (found rules, err error) {
	defer panics.Caught(&err, "reading it")
	if r.base.Err() != nil {
		return rules{}, marchwarden.Errorf(marchwarden.CodeCanceled, "the fetcher is closed")
	}
	ctx, cancel := context.WithTimeout(r.base, robotsTimeout)
	defer cancel()
	got, err := r.get(ctx, u)
	if err != nil {
		return rules{}, err
	}
	found = rules{until: r.now().Add(robotsLife)}
	switch {
	case got.status == http.StatusOK:
		found.text = upperEscapes(string(got.raw))
		for line := range strings.FieldsFuncSeq(found.text, func(r rune) bool { return r == '\n' || r == '\r' }) {
			if strings.Contains(line, "*") {
				found.wild += len(line)
			}
		}
	case got.status >= 500:
		found.fault, found.until = got.status, r.now().Add(robotsFaultLife)
	}
	return found, nil
}

// getRobots fetches a robots.txt. It is no page: it waits for no turn, needs no
// leave, and one that is too long is cut. Five redirects are followed, beyond
// which it counts as not there.
func (f *Fetcher) getRobots(ctx context.Context, u *url.URL) (answer, error) {
	for range maxRedirects + 1 {
		if err := f.cfg.Guard.CheckURL(u); err != nil {
			return answer{}, err
		}
		got, err := f.send(ctx, u, body{limit: robotsBytes, cut: true})
		if _, again := f.passing(got, err); again && err != nil && ctx.Err() == nil {
			got, err = f.send(ctx, u, body{limit: robotsBytes, cut: true})
		}
		if err != nil || !redirects(got.status) {
			return got, err
		}
		if u, err = target(got); err != nil {
			return answer{}, err
		}
	}
	return answer{url: u, status: http.StatusNotFound}, nil
}
