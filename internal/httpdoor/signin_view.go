package httpdoor

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// SignInView is what a page of the sign-in says. Next and Who come from outside and must be escaped.
type SignInView struct {
	Status  int    // of the answer
	Who     string // the ID of the signed-in user, "" for none; a form to leave is a POST of csrf to /out
	Form    bool   // ask for a token: a POST of csrf, token and next to /in
	CSRF    string // for these forms; "" if there is no session
	Next    string // a path of this server where one wanted to go; "" for none
	Problem string // what is wrong, lower case without full stop; "" if nothing is
	Hint    string // what to do about it, or ""
	// Elsewhere says that the request came by a link on another site, for which browsers hold back the
	// cookie: who is in need but follow a link to Next.
	Elsewhere bool
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
	if to := u.RequestURI(); !strings.HasPrefix(to, "//") {
		return to
	}
	return "/"
}

// turnAway answers a request that is not let in with a page that says how to get in.
func (g *SignIn) turnAway(w http.ResponseWriter, r *http.Request, s *session, err error) {
	v := g.explain(w, err)
	if v.Status == http.StatusUnauthorized && g.team() && errors.Is(err, errNotSignedIn) {
		v.Problem, v.Hint = "", "" // it is the first that every user sees, and the form says enough
	}
	if r.URL.Path != inPath && r.URL.Path != outPath && !changes(r.Method) {
		v.Next = within(r.URL.RequestURI())
	}
	g.show(w, r, s, v)
}

// explain is the answer to an error of enter, in words that tell no secret.
func (g *SignIn) explain(w http.ResponseWriter, err error) SignInView {
	const again = "run marchwarden ui, which prints a link that works once, for 10 minutes"
	switch {
	case errors.Is(err, errGuessing):
		retryAfter(w, retryLater)
		return SignInView{Status: http.StatusTooManyRequests, Problem: "too many wrong tokens from this address", Hint: "wait, then use the right one"}
	case errors.Is(err, access.ErrScope):
		return SignInView{Status: http.StatusForbidden, Problem: "the token lacks the scope " + access.ScopeRead, Hint: "ask for one that has it"}
	case !errors.Is(err, marchwarden.CodeDenied):
		retryAfter(w, retryLater)
		return SignInView{Status: http.StatusServiceUnavailable, Problem: "tokens cannot be checked at the moment", Hint: "try again in a few seconds"}
	case errors.Is(err, errNotSignedIn) && g.team():
		return SignInView{Status: http.StatusUnauthorized, Problem: "you are not signed in", Hint: "sign in with a token at " + inPath}
	case errors.Is(err, errNotSignedIn):
		return SignInView{Status: http.StatusUnauthorized, Problem: "this browser is not signed in", Hint: again}
	case g.team():
		return SignInView{Status: http.StatusUnauthorized, Problem: "the token is refused", Hint: "it may be wrong, expired or taken back"}
	}
	return SignInView{Status: http.StatusUnauthorized, Problem: "the link was used, is too old or is not one of this server", Hint: again}
}

// notMeant answers a change that carries nothing to say that it was meant, or that cannot be read.
func (g *SignIn) notMeant(w http.ResponseWriter, r *http.Request, s *session, err error) {
	v := SignInView{Status: http.StatusBadRequest, Problem: "the form cannot be read", Hint: "load the page again"}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		v.Status, v.Problem, v.Hint = http.StatusRequestEntityTooLarge, "the form is over the limit of this server of "+strconv.FormatInt(large.Limit, 10)+" bytes", ""
	case errors.Is(err, errTooSlow):
		w.Header().Set("Connection", "close")
		v.Status, v.Problem = http.StatusRequestTimeout, "the form did not come in time"
	case errors.Is(err, errNotMeant):
		v.Status, v.Problem = http.StatusForbidden, "the form is not of this session"
	}
	if r.URL.Path == inPath {
		v.Hint = "try again with this page; the browser must keep cookies"
		g.show(w, r, s, v)
		return
	}
	g.refuse(w, r, v.Status, v.Problem, v.Hint)
}

// refuse answers with one sentence and a way out, and tells nothing of any session.
func (g *SignIn) refuse(w http.ResponseWriter, r *http.Request, status int, problem, hint string) {
	g.write(w, r, SignInView{Status: status, Problem: problem, Hint: hint})
}

// show answers with a page that knows the session s. If there is none that is any good, the
// browser forgets the one it has, and in a team begins a visit, for the form.
func (g *SignIn) show(w http.ResponseWriter, r *http.Request, s *session, v SignInView) {
	sent := len(r.CookiesNamed(g.cookie)) > 0
	if s == nil && sent {
		g.unset(w, local)
	}
	if s == nil && g.team() {
		if s = g.first(r, visitor); s == nil && wantsPage(r) {
			s = g.begin(visitor, visitLife, "")
			g.set(w, s)
		}
	}
	if s != nil {
		v.CSRF = g.formToken(s)
	}
	v.Form = g.team() && s != nil
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		v.Elsewhere = !sent
	}
	if v.Elsewhere && v.Next == "" {
		v.Next = "/"
	}
	g.write(w, r, v)
}

// wantsPage reports whether a request is that of a window, not of a script, a picture or a program.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// write answers with a view. A caller that is gone has no use for it.
func (g *SignIn) write(w http.ResponseWriter, r *http.Request, v SignInView) {
	if g.cfg.Page != nil && wantsPage(r) {
		page, err := g.cfg.Page(v)
		if err == nil {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(v.Status)
			_, _ = w.Write(page)
			return
		}
		g.cfg.Log.Error("the page of the sign-in cannot be made", "error", err)
	}
	lines := []string{v.Problem, v.Hint}
	if v.Who != "" {
		lines = append(lines, "signed in")
	}
	said := strings.TrimSpace(strings.Join(lines, "\n"))
	if said == "" {
		v := g.explain(w, errNotSignedIn)
		said = v.Problem + "\n" + v.Hint
	}
	text(w, v.Status, said)
}
