package httpdoor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

const (
	linkLife = 10 * time.Minute
	maxLinks = 32 // that wait to be used; the oldest makes room
)

// Link is an address below base that lets one browser in, once and for 10 minutes, as the local user:
// it belongs on that user's terminal alone. In a team it is that of the page that asks for a token.
func (g *SignIn) Link(base string) string {
	at := strings.TrimRight(base, "/") + inPath
	if g.team() {
		return at
	}
	return at + "?token=" + g.links.add()
}

// links are those that wait to be used, by the hash of their token.
type links struct {
	now     func() time.Time
	waiting *expiring[[sha256.Size]byte]
}

// add makes a token of 130 random bits.
func (l *links) add() string {
	token := rand.Text()
	l.waiting.add(sha256.Sum256([]byte(token)), l.now().Add(linkLife))
	return token
}

// Authenticate uses up the token of a link.
func (l *links) Authenticate(_ context.Context, token string) (access.Principal, error) {
	end, ok := l.waiting.take(sha256.Sum256([]byte(token)))
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
	g.set(w, g.begin(local, sessionLife, ""))
	g.cfg.Log.Info("signed in by a link", "address", r.RemoteAddr)
	seeOther(w, "/")
}

// byToken lets a member of the team in. The form must be one that this browser was sent, or another
// site could sign a user in as another and read what they ask.
func (g *SignIn) byToken(w http.ResponseWriter, r *http.Request) {
	s, _, _ := g.enter(r) // who it is does not matter: they sign in anew
	visit := g.first(r, visitor)
	if err := g.meant(w, r, s, visit); err != nil {
		g.notMeant(w, r, s, err)
		return
	}
	next := within(r.PostForm.Get("next"))
	token := strings.TrimSpace(r.PostForm.Get("token"))
	if token == "" || len(token) > maxToken {
		problem := "a token is needed"
		if token != "" {
			problem = "the token is too long for a browser to keep"
		}
		g.show(w, r, s, SignInView{Status: http.StatusBadRequest, Next: next, Problem: problem, Hint: "use one that marchwarden token made"})
		return
	}
	p, err := g.owner(r, token)
	if err != nil {
		v := g.explain(w, err)
		v.Next = next
		g.show(w, r, s, v)
		return
	}
	for _, old := range []*session{s, visit} {
		if old != nil {
			g.ended.add(old.id, old.end)
		}
	}
	g.unset(w, visitor)
	g.set(w, g.begin(member, sessionLife, token))
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
	g.ended.add(s.id, s.end)
	g.unset(w, s.kind)
	g.cfg.Log.Info("signed out", "principal", p.ID, "address", r.RemoteAddr)
	seeOther(w, inPath)
}

func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
