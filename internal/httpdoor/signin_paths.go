package httpdoor

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

const (
	linkLife = 10 * time.Minute
	maxLinks = 64 // that wait to be used; the older half makes room
)

// Link is an address below base that lets one browser in, once and for 10 minutes, as the local user:
// it belongs on that user's terminal alone. In a team it is that of the page that asks for a token.
func (g *SignIn) Link(base string) string {
	at := strings.TrimRight(base, "/") + inPath
	if g.team() {
		return at
	}
	token := rand.Text() // 130 random bits
	sum := sha256.Sum256([]byte(token))
	g.links.waiting.get(string(sum[:]), func() time.Time { return g.cfg.Now().Add(linkLife) })
	return at + "?token=" + token
}

// links are those that wait to be used, by the hash of their token.
type links struct {
	now     func() time.Time
	waiting *lru[time.Time] // until when
}

// Authenticate uses up the token of a link.
func (l *links) Authenticate(_ context.Context, token string) (access.Principal, error) {
	sum := sha256.Sum256([]byte(token))
	end, ok := l.waiting.take(string(sum[:]))
	switch {
	case !ok:
		return access.Principal{}, marchwarden.Errorf(marchwarden.CodeDenied, "the link is not known, or was used")
	case !l.now().Before(end):
		return access.Principal{}, marchwarden.Errorf(marchwarden.CodeDenied, "the link is too old")
	}
	return access.Local(), nil
}

func (g *SignIn) in(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && !g.team() && r.URL.Query().Get("token") != "":
		g.byLink(w, r)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		s, p, err := g.enter(r)
		if err != nil && !errors.Is(err, marchwarden.CodeDenied) {
			g.turnAway(w, r, s, err)
			return
		}
		v := SignInView{Status: http.StatusOK, Who: p.ID}
		if err != nil && !g.team() {
			v.Hint = g.explain(w, err).Hint
		}
		g.show(w, r, s, v)
	case r.Method == http.MethodPost && g.team():
		g.byToken(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD")
		if g.team() {
			w.Header().Set("Allow", "GET, HEAD, POST")
		}
		g.refuse(w, r, http.StatusMethodNotAllowed, "this method is not for this path", "")
	}
}

// byLink lets the local user in. It is the one GET that changes something: it uses up the link,
// which only its holder can. What a browser or a chat loads in advance must not, so that the
// link still works when it is really opened.
func (g *SignIn) byLink(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Sec-Purpose")+r.Header.Get("Purpose"), "prefetch") {
		g.refuse(w, r, http.StatusForbidden, "the link is not to be loaded in advance", "open it")
		return
	}
	token := r.URL.Query().Get("token")
	if _, _, err := g.enter(r); err == nil {
		_, _ = g.links.Authenticate(r.Context(), token) // who is in needs it no more, good or not
		seeOther(w, "/")
		return
	}
	// A right link is let in however many wrong ones came from its address: on loopback all
	// programs of all users have the same one, and 130 bits cannot be guessed.
	if _, err := g.links.Authenticate(r.Context(), token); err != nil {
		if _, err = g.keeper.who(r, token); err != nil { // which counts and logs it
			g.turnAway(w, r, nil, err)
			return
		}
	}
	g.begin(w, r, "")
	g.cfg.Log.Info("signed in by a link", "address", r.RemoteAddr)
	seeOther(w, "/")
}

// byToken lets a member of the team in. That the form is of a page of ours was found by its origin,
// which browsers send with every form: another site could else sign a user in as another and read
// what they ask.
func (g *SignIn) byToken(w http.ResponseWriter, r *http.Request) {
	s, _, _ := g.enter(r) // who it is does not matter: they sign in anew
	if err := g.parse(w, r); err != nil {
		g.turnAway(w, r, s, err)
		return
	}
	next := within(r.PostForm.Get("next"))
	token := strings.TrimSpace(r.PostForm.Get("token"))
	if token == "" {
		g.show(w, r, s, SignInView{Status: http.StatusBadRequest, Next: next, Problem: "a token is needed", Hint: "use one that marchwarden token made"})
		return
	}
	p, err := g.owner(r, token)
	if err != nil {
		v := g.explain(w, err)
		v.Next = next
		g.show(w, r, s, v)
		return
	}
	if s != nil {
		g.end(s)
	}
	g.begin(w, r, token)
	g.cfg.Log.Info("signed in by a token", "principal", p.ID, "address", r.RemoteAddr)
	seeOther(w, next)
}

func (g *SignIn) out(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		g.refuse(w, r, http.StatusMethodNotAllowed, "signing out is a POST", "use the button")
		return
	}
	s, p, ok := g.admit(w, r)
	if !ok {
		return
	}
	g.end(s) // so that a copy of the cookie is of no use
	g.setCookie(w, r, "", -1)
	g.cfg.Log.Info("signed out", "principal", p.ID, "address", r.RemoteAddr)
	seeOther(w, inPath)
}

func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// SignInView is what a page of the sign-in says. Next and Who come from outside and must be escaped.
type SignInView struct {
	Status  int    // of the answer
	Who     string // the ID of the signed-in user, "" for none; a form to leave is a POST of csrf to /out
	Form    bool   // ask for a token: a POST of csrf, token and next to /in
	CSRF    string // for these forms; "" if there is no session
	Next    string // a path of this server where one wanted to go; "" for none
	Problem string // what is wrong, lower case without full stop; "" if nothing is
	Hint    string // what to do about it, or ""
}

const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const noFeatures = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()"

// secureHeaders are those of every answer.
//
// The referrer is same-origin and not no-referrer, which would make browsers send
// "Origin: null" with our own forms; other sites are told as little by either. There is no
// Strict-Transport-Security: it would hold for every port of the name, and the name may be
// localhost.
func secureHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", noFeatures)
	h.Set("Cache-Control", "no-store")
}

const maxNext = 2000 // bytes of a path that one is sent on to

// within is a path of this server, or "/" if s is anything that a browser might take for
// another: it passes over tabs and newlines, and takes a backslash for a slash.
func within(s string) string {
	if len(s) > maxNext || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '\\' }) {
		return "/"
	}
	u, err := url.Parse(s)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" {
		return "/"
	}
	if at := path.Clean(u.Path); at == inPath || at == outPath {
		return "/"
	}
	if to := u.RequestURI(); len(to) <= maxNext && !strings.HasPrefix(to, "//") {
		return to
	}
	return "/"
}

// turnAway answers a request that is not let in with a page that says how to get in, and one whose form
// is at fault with that alone.
func (g *SignIn) turnAway(w http.ResponseWriter, r *http.Request, s *session, err error) {
	v := g.explain(w, err)
	if errors.Is(err, errForm) && r.URL.Path != inPath {
		g.write(w, r, v)
		return
	}
	if r.URL.Path != inPath && r.URL.Path != outPath && !changes(r.Method) {
		v.Next = within(r.URL.RequestURI())
	}
	g.show(w, r, s, v)
}

// explain is the answer to an error of enter or meant, in words that tell no secret.
func (g *SignIn) explain(w http.ResponseWriter, err error) SignInView {
	const again = "run marchwarden ui, which prints a link that works once, for 10 minutes"
	const reload = "load the page again"
	large, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		return SignInView{Status: http.StatusRequestEntityTooLarge, Problem: "the form is over the limit of this server of " + strconv.FormatInt(large.Limit, 10) + " bytes"}
	case errors.Is(err, errTooSlow):
		w.Header().Set("Connection", "close")
		return SignInView{Status: http.StatusRequestTimeout, Problem: "the form did not come in time", Hint: reload}
	case errors.Is(err, errNotMeant):
		return SignInView{Status: http.StatusForbidden, Problem: "the form is not of this session", Hint: reload}
	case errors.Is(err, errForm):
		return SignInView{Status: http.StatusBadRequest, Problem: "the form cannot be read", Hint: reload}
	case errors.Is(err, errGuessing):
		retryAfter(w, retryLater)
		return SignInView{Status: http.StatusTooManyRequests, Problem: "too many wrong tokens from this address", Hint: "wait, then use the right one"}
	case errors.Is(err, access.ErrScope):
		return SignInView{Status: http.StatusForbidden, Problem: "the token lacks the scope " + access.ScopeRead, Hint: "ask for one that has it"}
	case !errors.Is(err, marchwarden.CodeDenied):
		retryAfter(w, retryLater)
		return SignInView{Status: http.StatusServiceUnavailable, Problem: "tokens cannot be checked at the moment", Hint: "try again in a few seconds"}
	case errors.Is(err, errNotSignedIn) && g.team(): // it is the first that every user sees, and the form says enough
		return SignInView{Status: http.StatusUnauthorized}
	case errors.Is(err, errNotSignedIn):
		return SignInView{Status: http.StatusUnauthorized, Problem: "this browser is not signed in", Hint: again}
	case g.team():
		return SignInView{Status: http.StatusUnauthorized, Problem: "the token is refused", Hint: "it may be wrong, expired or taken back"}
	}
	return SignInView{Status: http.StatusUnauthorized, Problem: "the link was used, is too old or is not one of this server", Hint: again}
}

// refuse answers with one sentence and a way out, and tells nothing of any session.
func (g *SignIn) refuse(w http.ResponseWriter, r *http.Request, status int, problem, hint string) {
	g.write(w, r, SignInView{Status: status, Problem: problem, Hint: hint})
}

// show answers with a page that knows the session s. If there is none that is any good, the
// browser forgets the one it has.
func (g *SignIn) show(w http.ResponseWriter, r *http.Request, s *session, v SignInView) {
	if s != nil {
		v.CSRF = s.form
	} else if len(r.CookiesNamed(g.cookie(r))) > 0 {
		g.setCookie(w, r, "", -1)
	}
	v.Form = g.team()
	g.write(w, r, v)
}

// write answers with a view, as a page if a window asks, not a script, a picture or a program. A caller
// that is gone has no use for it.
func (g *SignIn) write(w http.ResponseWriter, r *http.Request, v SignInView) {
	if g.cfg.Page != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(v.Status)
		_, _ = io.WriteString(w, g.cfg.Page(v))
		return
	}
	lines := []string{v.Problem, v.Hint}
	if v.Who != "" {
		lines = append(lines, "signed in")
	}
	said := strings.TrimSpace(strings.Join(lines, "\n"))
	text(w, v.Status, cmp.Or(said, "you are not signed in\nsign in with a token at "+inPath))
}
