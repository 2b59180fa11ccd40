package httpdoor

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	sessionLife = 30 * 24 * time.Hour
	maxSessions = 20_000  // that are kept; of the earlier half, some
	maxForm     = 1 << 20 // bytes of a form
	formField   = "csrf"
	formHeader  = "X-Csrf-Token"
)

// session is a browser that is signed in. The
// token of a member never reaches the browser, so that a cookie that is copied from a browser's
// files is no token for the programs' door.
type session struct {
	id    string // 130 random bits, the value of the cookie
	form  string // which forms carry
	end   time.Time
	token string // of a member of a team
}

// begin signs the browser in, with an id that was never used.
func (g *SignIn) begin(w http.ResponseWriter, r *http.Request, token string) {
	id := rand.Text()
	s := &session{id: id, form: formOf(id), end: g.cfg.Now().Add(sessionLife), token: token}
	g.sessions.get(s.id, func() *session { return s })
	g.keep(s.id, s.end)
	g.setCookie(w, r, s.id, int(sessionLife/time.Second))
}

func (g *SignIn) end(s *session) {
	g.sessions.take(s.id)
	g.keep(s.id, time.Time{})
}

// cookie is the name of the cookie. Browsers keep one for all ports of a host, on which several
// servers may listen: the port is part of it.
func (g *SignIn) cookie(r *http.Request) string {
	name := "marchwarden"
	if h, ok := splitHost(r.Host); ok && h.port != "" {
		name += "-" + h.port
	}
	if g.cfg.Secure {
		name = "__Host-" + name
	}
	return name
}

// setCookie gives the browser a cookie; it comes with links on other sites, too, and with nothing
// else from there.
func (g *SignIn) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: g.cookie(r), Value: value, MaxAge: age, Path: "/", HttpOnly: true, Secure: g.cfg.Secure, SameSite: http.SameSiteLaxMode})
}

// find is the first session that lasts among the cookies, or nil. There may be several: another
// server on this machine may have set one of the same name.
func (g *SignIn) find(r *http.Request) *session {
	for _, c := range r.CookiesNamed(g.cookie(r)) {
		if s, ok := g.sessions.look(c.Value); ok && g.lasts(s) {
			return s
		}
		if s := g.remembered(c.Value); s != nil {
			return s
		}
	}
	return nil
}

func (g *SignIn) lasts(s *session) bool {
	_, kept := g.sessions.look(s.id)
	return kept && g.cfg.Now().Before(s.end)
}

var (
	errNotSignedIn = marchwarden.Errorf(marchwarden.CodeDenied, "you are not signed in")
	errScope       = marchwarden.Wrap(access.ErrScope, marchwarden.CodeDenied, "the token may not read")
)

// enter is the session of a request, nil if it is surely no user's, and who it is of.
func (g *SignIn) enter(r *http.Request) (*session, access.Principal, error) {
	s := g.find(r)
	if s == nil {
		return nil, access.Principal{}, errNotSignedIn
	}
	p, err := g.who(r, s)
	if errors.Is(err, marchwarden.CodeDenied) {
		return nil, access.Principal{}, err
	}
	return s, p, err
}

// who is the present user of a session. CodeDenied if it has none any more.
func (g *SignIn) who(r *http.Request, s *session) (access.Principal, error) {
	switch {
	case !g.lasts(s):
		return access.Principal{}, errNotSignedIn
	case g.team():
		return g.owner(r, s.token)
	}
	return access.Local(), nil
}

// owner is whom a token is of, if they may read.
func (g *SignIn) owner(r *http.Request, token string) (access.Principal, error) {
	p, err := g.keeper.who(r, token)
	if err == nil && !p.May(access.ScopeRead) {
		err = errScope
	}
	if err != nil {
		return access.Principal{}, err
	}
	return p, nil
}

// What is wrong with a form.
var (
	errForm     = errors.New("the form cannot be taken")
	errNotMeant = fmt.Errorf("%w: it is not one of this session", errForm)
)

// meant is nil if a request carries what a page of the session was given: as a header, or as a
// field of a form, which is parsed. A token in the address does not count.
func (g *SignIn) meant(w http.ResponseWriter, r *http.Request, s *session) error {
	if err := g.parse(w, r); err != nil {
		return err
	}
	given := cmp.Or(r.Header.Get(formHeader), r.PostForm.Get(formField))
	if subtle.ConstantTimeCompare([]byte(given), []byte(s.form)) != 1 {
		return errNotMeant
	}
	return nil
}

// parse reads the form of a request that has one.
func (g *SignIn) parse(w http.ResponseWriter, r *http.Request) (err error) {
	if isForm(r) && inTime(g.cfg.BodyTimeout, http.NewResponseController(w).SetReadDeadline, func() { err = r.ParseForm() }) {
		err = errTooSlow
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errForm, err)
	}
	return err
}

func isForm(r *http.Request) bool {
	return mediaType(r.Header.Get("Content-Type")) == "application/x-www-form-urlencoded"
}

// The file of sessions holds those of the local user, so that an open page works on after a
// restart: the hash of each id, and when it ends. Members of a team sign in again.
const (
	keptWhat  = "sessions of the page"
	keptBytes = 1 << 20
	mostKept  = 1000
)

func keptName(id string) string {
	sum := sha256.Sum256([]byte("marchwarden session\x00" + id))
	return hex.EncodeToString(sum[:])
}

// formOf is what the forms of a session carry. It follows from the id alone.
func formOf(id string) string {
	sum := sha256.Sum256([]byte("marchwarden form\x00" + id))
	return hex.EncodeToString(sum[:])
}

// keep writes a session into the file, or takes it out if end is zero. A file that cannot be
// written costs nothing but a new link after a restart.
func (g *SignIn) keep(id string, end time.Time) {
	if g.cfg.Kept == "" || g.team() {
		return
	}
	now := g.cfg.Now()
	err := durable.EditPrivate(g.cfg.Kept, keptWhat, keptBytes, func(old []byte, _ bool) ([]byte, error) {
		kept := map[string]time.Time{}
		_ = json.Unmarshal(old, &kept) // what cannot be read is made anew
		maps.DeleteFunc(kept, func(_ string, end time.Time) bool { return now.After(end) || len(kept) >= mostKept })
		if delete(kept, keptName(id)); !end.IsZero() {
			kept[keptName(id)] = end
		}
		return json.Marshal(kept)
	})
	if err != nil {
		g.cfg.Log.Warn("browsers are forgotten when this program ends", "error", err)
	}
}

// remembered is a session of an earlier process, or nil.
func (g *SignIn) remembered(id string) *session {
	if g.cfg.Kept == "" || g.team() || id == "" {
		return nil
	}
	text, err := durable.ReadPrivate(g.cfg.Kept, keptWhat, keptBytes)
	kept := map[string]time.Time{}
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return nil
	}
	end, ok := kept[keptName(id)]
	if !ok || !g.cfg.Now().Before(end) {
		return nil
	}
	return g.sessions.get(id, func() *session { return &session{id: id, form: formOf(id), end: end} })
}
