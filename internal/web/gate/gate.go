// Package gate stands in front of the web pages. It owns who gets in and that a change was
// meant: the names the server may be called by, the headers of every answer, the link that
// works once, the cookie, tokens of principals, and the proof that a form is one of ours. It
// knows no page but by a function that makes one, and nothing of what is behind it, which sees
// who asks (access.From) and neither cookie nor token.
//
//	headers → Host → Origin → session → who → was it meant? → page
//
// Without an authenticator there is one user, who started the program and comes by Link. With
// one there is a team: each member signs in with a token of their own, which is checked again at
// every request, so that revoking it ends the session.
package gate

import (
	"context"
	"crypto/cipher"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/door"
)

// Config says who may come in. Now and Key must be set; every zero value besides has the
// meaning named at it.
type Config struct {
	Now func() time.Time
	// Key seals the sessions: KeySize bytes that outlive the process, so that a page does, too.
	// Its holder can make a session. See OpenKey.
	Key []byte
	// Auth says whose a token is; nil: there is access.Local() alone, who comes by Link.
	Auth access.Authenticator
	// Hosts are the names, with or without port, that requests may be for, besides loopback
	// and the address the connection came to. Without port, any port will do.
	Hosts []string
	// Secure says that browsers come by TLS, be it that of a proxy.
	Secure bool
	// Public are the beginnings of paths that need no sign-in to GET: the style sheet and the
	// script of the page that asks for a token. What serves them is not told who asks.
	Public []string
	// Page makes the page that says who is asked for, or why not; nil: it is plain text. Programs
	// that do not ask for HTML get text in any case.
	Page        func(View) ([]byte, error)
	MaxBody     int64         // bytes of a request; 0 is 1 MiB
	BodyTimeout time.Duration // for a form to come; 0 is 30 s
	Recheck     time.Duration // how often a request that lasts is asked again who it is of; 0 is 10 s
	Log         *slog.Logger  // nil: nothing is logged
}

// The paths of the gate itself.
const (
	inPath  = "/in"
	outPath = "/out"
)

// Gate is made by New. It is safe for concurrent use.
type Gate struct {
	cfg    Config
	policy *door.Policy
	keeper *door.Keeper // of the team's tokens, or of links
	links  *links       // nil in a team
	ended  *ended

	cookie string // its name
	seal   cipher.AEAD
	forms  []byte // the key of what forms carry
}

// New checks a configuration. What is wrong with it is CodeInvalid with the field's name.
func New(cfg Config) (*Gate, error) {
	switch {
	case cfg.Now == nil:
		return nil, invalid("now", "must be set")
	case len(cfg.Key) != KeySize:
		return nil, invalid("key", "must have %d bytes, not %d", KeySize, len(cfg.Key))
	case cfg.MaxBody < 0 || cfg.BodyTimeout < 0 || cfg.Recheck < 0:
		return nil, invalid("limits", "must not be negative")
	}
	for _, p := range cfg.Public {
		if !strings.HasPrefix(p, "/") || p == "/" {
			return nil, invalid("public", "%q is not the beginning of some paths, such as /static/", p)
		}
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 1 << 20
	}
	if cfg.BodyTimeout == 0 {
		cfg.BodyTimeout = 30 * time.Second
	}
	if cfg.Recheck == 0 {
		cfg.Recheck = 10 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	policy, err := door.NewPolicy(cfg.Hosts, nil)
	if err != nil {
		return nil, err
	}
	g := &Gate{cfg: cfg, policy: policy, ended: newEnded(cfg.Now)}
	auth := cfg.Auth
	if auth == nil {
		g.links = newLinks(cfg.Now)
		auth = g.links
	}
	g.keeper = door.NewKeeper(auth, cfg.Now, cfg.Log)
	if err := g.deriveKeys(); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "make the keys of the gate")
	}
	return g, nil
}

func invalid(field, format string, args ...any) error {
	e := marchwarden.Errorf(marchwarden.CodeInvalid, format, args...)
	e.Field = field
	return e
}

// team reports whether people come with tokens of their own.
func (g *Gate) team() bool { return g.links == nil }

// Wrap is a handler behind the gate. It gets GET and HEAD of public paths from every client, and
// everything else from those who are in, with the principal in the context. What is not GET,
// HEAD or OPTIONS has proved that it was meant; a form is parsed then. The context ends when
// the session does. Cache-Control is no-store unless the handler says otherwise.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secureHeaders(w.Header())
		if !g.policy.Host(r) {
			g.refuse(w, r, http.StatusForbidden, "the request is for a host that this server is not known by", "name it among the allowed hosts, or use localhost")
			return
		}
		if why := g.foreign(r); why != "" {
			g.refuse(w, r, http.StatusForbidden, why, "open the page itself and do it there")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, g.cfg.MaxBody)
		switch {
		case r.URL.Path == inPath:
			g.in(w, r)
		case r.URL.Path == outPath:
			g.out(w, r)
		case g.public(r):
			next.ServeHTTP(w, inside(r, r.Context()))
		default:
			g.pass(w, r, next)
		}
	})
}

// foreign says why a request may not come from where it does; "" if it may.
//
// The base is that of the door, by which a page of another site gets nothing. Here people
// follow links from elsewhere, too, which a browser tells apart from what a page loads: a
// navigation of a whole window, by GET, without an Origin.
func (g *Gate) foreign(r *http.Request) string {
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && len(r.Header.Values("Origin")) == 0 &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return ""
	}
	return g.policy.Origin(r)
}

// public reports whether what is asked for needs no sign-in. A path that means another one does:
// its handler may take it for that one.
func (g *Gate) public(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	at := r.URL.Path
	if clean := path.Clean(at); clean != at && clean+"/" != at {
		return false
	}
	for _, p := range g.cfg.Public {
		if strings.HasPrefix(at, p) {
			return true
		}
	}
	return false
}

// pass lets those who are in through to what is behind the gate.
func (g *Gate) pass(w http.ResponseWriter, r *http.Request, next http.Handler) {
	s, p, err := g.enter(r)
	if err != nil {
		g.turnAway(w, r, s, err)
		return
	}
	if changes(r.Method) {
		if err := g.meant(w, r, s); err != nil {
			g.notMeant(w, r, s, err)
			return
		}
	}
	ctx, cancel := context.WithCancel(access.With(context.WithValue(r.Context(), sessionKey{}, s), p))
	defer cancel()
	watch := time.AfterFunc(g.cfg.Recheck, func() {
		g.watch(ctx, r, s)
		cancel()
	})
	defer watch.Stop()
	next.ServeHTTP(w, inside(r, ctx))
}

// watch returns when a session has ended, or the request of it: a stream of events may last
// for hours, and must not outlive the right to see it. When that is unknown it continues.
func (g *Gate) watch(ctx context.Context, r *http.Request, s *session) {
	every := time.NewTicker(g.cfg.Recheck)
	defer every.Stop()
	for ctx.Err() == nil {
		if _, err := g.who(r, s); errors.Is(err, marchwarden.CodeDenied) {
			return
		}
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
}

// changes reports whether a method may change something. One that is not known may.
func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// inside is a request as it is seen behind the gate: without what proves who asks.
func inside(r *http.Request, ctx context.Context) *http.Request {
	in := r.Clone(ctx)
	for _, secret := range []string{"Authorization", "Proxy-Authorization", "Cookie", formHeader} {
		in.Header.Del(secret)
	}
	in.Form.Del(formField)
	in.PostForm.Del(formField)
	return in
}

type sessionKey struct{}

// Token is what forms of this session carry as "csrf", and scripts as the header
// X-CSRF-Token. It is "" for a request that did not come through the gate, or for a public
// path. Who knows it and the cookie can make changes: it belongs in forms alone.
func (g *Gate) Token(r *http.Request) string {
	s, _ := r.Context().Value(sessionKey{}).(*session)
	if s == nil {
		return ""
	}
	return g.formToken(s)
}
