package httpdoor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// SignInConfig says who may come in. Now must be set.
type SignInConfig struct {
	Now func() time.Time
	// Auth says whose a token is; nil: there is access.Local() alone, who comes by Link.
	Auth access.Authenticator
	// Hosts are as in Config.
	Hosts []string
	// Secure says that browsers come by TLS, be it that of a proxy.
	Secure bool
	// Public are the beginnings of paths that need no sign-in to GET, such as /static/.
	Public      []string
	Page        func(SignInView) string // makes the page of a view, for browsers; nil: it is plain text
	MaxBody     int64                   // bytes of a request; 0 is 1 MiB, which a form has at most
	BodyTimeout time.Duration           // for a form to come; 0 is 30 s
	Recheck     time.Duration           // how often a request that lasts is asked again who it is of; 0 is 10 s
	Log         *slog.Logger            // nil: nothing is logged
	// Kept is the file that keeps the local user's sessions over a restart; "" keeps none.
	Kept string
}

// The paths of the sign-in itself.
const (
	inPath  = "/in"
	outPath = "/out"
)

// SignIn stands in front of the web pages. It is made by NewSignIn and safe for concurrent use.
//
// Without an authenticator there is one user, who started the program and comes by Link. With
// one there is a team: each member signs in with a token of their own, which is checked again at
// every request, so that revoking it ends the session.
type SignIn struct {
	cfg    SignInConfig
	policy *policy
	keeper *keeper // of the team's tokens, or of links
	links  *links  // nil in a team
	// sessions are those that were not signed out, by id.
	sessions *lru[*session]
}

// NewSignIn checks a configuration. What is wrong with it is CodeInvalid with the field's name.
func NewSignIn(cfg SignInConfig) (*SignIn, error) {
	cfg.MaxBody = cmp.Or(cfg.MaxBody, maxForm)
	cfg.BodyTimeout = cmp.Or(cfg.BodyTimeout, 30*time.Second)
	cfg.Recheck = cmp.Or(cfg.Recheck, 10*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	policy, err := newPolicy(cfg.Hosts, nil)
	if err != nil {
		return nil, err
	}
	g := &SignIn{cfg: cfg, policy: policy, sessions: newLRU[*session](maxSessions, nil)}
	auth := cfg.Auth
	if auth == nil {
		g.links = &links{cfg.Now, newLRU[time.Time](maxLinks, nil)}
		auth = g.links
	}
	g.keeper = newKeeper(auth, cfg.Now, cfg.Log, minCallersKept)
	return g, nil
}

func (g *SignIn) team() bool { return g.links == nil }

// Wrap is a handler behind the sign-in. It gets GET and HEAD of public paths from every client, and
// everything else from those who are in, with the principal in the context. What is not GET,
// HEAD or OPTIONS has proved that it was meant; a form is parsed then. The context ends when
// the session does. Cache-Control is no-store unless the handler says otherwise.
func (g *SignIn) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secureHeaders(w.Header())
		if !g.policy.knows(r) {
			g.refuse(w, r, http.StatusForbidden, wrongHost, wrongHostHint)
			return
		}
		if why := g.foreign(r); why != "" {
			g.refuse(w, r, http.StatusForbidden, why, "open the page itself and do it there")
			return
		}
		limit := g.cfg.MaxBody
		if isForm(r) {
			limit = min(limit, maxForm)
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		switch {
		case r.URL.Path == inPath:
			g.in(w, r)
		case r.URL.Path == outPath:
			g.out(w, r)
		case g.public(r):
			next.ServeHTTP(w, insidePage(r, r.Context()))
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
func (g *SignIn) foreign(r *http.Request) string {
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && len(r.Header.Values("Origin")) == 0 &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return ""
	}
	return g.policy.foreign(r, true)
}

// public reports whether what is asked for needs no sign-in. A path that is not clean does.
func (g *SignIn) public(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	at := r.URL.Path
	if clean := path.Clean(at); clean != at && clean+"/" != at {
		return false
	}
	return slices.ContainsFunc(g.cfg.Public, func(p string) bool { return strings.HasPrefix(at, p) })
}

func (g *SignIn) pass(w http.ResponseWriter, r *http.Request, next http.Handler) {
	s, p, ok := g.admit(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(access.With(context.WithValue(r.Context(), sessionKey{}, s), p))
	defer cancel()
	go func() { // a stream of events may last for hours, and must not outlive the right to see it
		defer cancel()
		every := time.NewTicker(g.cfg.Recheck)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			if _, err := g.who(r, s); errors.Is(err, marchwarden.CodeDenied) {
				return
			}
		}
	}()
	next.ServeHTTP(w, insidePage(r, ctx))
}

// admit is the session and the user of a request that may pass, and was meant if it changes
// something. Any other is answered.
func (g *SignIn) admit(w http.ResponseWriter, r *http.Request) (*session, access.Principal, bool) {
	s, p, err := g.enter(r)
	if err == nil && changes(r.Method) {
		err = g.meant(w, r, s)
	}
	if err != nil {
		g.turnAway(w, r, s, err)
	}
	return s, p, err == nil
}

// changes reports whether a method may change something. One that is not known may.
func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// insidePage is a request as the pages see it: without what proves who asks.
func insidePage(r *http.Request, ctx context.Context) *http.Request {
	in := withoutSecrets(r, ctx)
	in.Form.Del(formField)
	in.PostForm.Del(formField)
	return in
}

type sessionKey struct{}

// Token is what forms of this session carry as "csrf", and scripts as the header X-CSRF-Token; "" for
// a request without a session. It belongs in forms alone.
func (g *SignIn) Token(r *http.Request) string {
	s, _ := r.Context().Value(sessionKey{}).(*session)
	if s == nil {
		return ""
	}
	return s.form
}
