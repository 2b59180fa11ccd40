package httpdoor

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	sessionLife = 30 * 24 * time.Hour
	visitLife   = 12 * time.Hour // of a page that asks for a token
	maxCookie   = 4000           // bytes of a value; browsers drop cookies over 4096 with name
	maxCookies  = 4              // of our name that are looked at
	maxToken    = 2800           // bytes of a token, so that its cookie is kept
	maxEnded    = 10_000
	formField   = "csrf"
	formHeader  = "X-Csrf-Token"
)

// kind is what a session is good for. It is part of what is sealed: the cookie of the one
// local user, who sees everything, is nothing to a team with the same key.
type kind byte

const (
	visitor kind = 1 // not signed in: it ties the form for a token to the browser it was sent to
	local   kind = 2 // access.Local()
	member  kind = 3 // the owner of the token
)

// session is what a cookie says. Nothing of it is kept here, so it outlives the process.
//
// The value of a cookie is base64url of a nonce and the AES-256-GCM of
//
//	kind (1 byte) | end (8 bytes, Unix seconds) | id (16 random bytes) | token
//
// It is sealed and not only signed: a cookie that is copied from a browser's files is no token
// for the programs' door.
type session struct {
	kind  kind
	end   time.Time
	id    [16]byte
	token string // of a member
}

const fixedBytes = 1 + 8 + 16

// deriveKeys makes a key for each purpose, and the name of the cookie: cookies are not told apart by
// ports, and two servers on one machine must not end each other's sessions.
func (g *SignIn) deriveKeys() error {
	sealing, err := hkdf.Key(sha256.New, g.cfg.Key, nil, "marchwarden/gate session/1", 32)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(sealing)
	if err != nil {
		return err
	}
	if g.seal, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return err
	}
	if g.forms, err = hkdf.Key(sha256.New, g.cfg.Key, nil, "marchwarden/gate form/1", 32); err != nil {
		return err
	}
	name, err := hkdf.Key(sha256.New, g.cfg.Key, nil, "marchwarden/gate name/1", 4)
	g.cookie = "marchwarden-" + hex.EncodeToString(name)
	if g.cfg.Secure {
		g.cookie = "__Host-" + g.cookie
	}
	return err
}

// begin is a new session, with an id that was never used.
func (g *SignIn) begin(k kind, life time.Duration, token string) *session {
	s := &session{kind: k, end: g.cfg.Now().Add(life).Truncate(time.Second), token: token}
	_, _ = rand.Read(s.id[:]) // it never fails: the program ends if there is nothing random
	return s
}

func (g *SignIn) encode(s *session) string {
	text := append(make([]byte, 0, fixedBytes+len(s.token)), byte(s.kind))
	text = binary.BigEndian.AppendUint64(text, uint64(s.end.Unix()))
	text = append(text, s.id[:]...)
	text = append(text, s.token...)
	return base64.RawURLEncoding.EncodeToString(g.seal.Seal(nil, nil, text, nil))
}

// decode is the session of a value that encode made, be it over or not.
func (g *SignIn) decode(value string) (*session, bool) {
	if len(value) > maxCookie {
		return nil, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil || base64.RawURLEncoding.EncodeToString(sealed) != value { // newlines are passed over
		return nil, false
	}
	text, err := g.seal.Open(nil, nil, sealed, nil)
	if err != nil || len(text) < fixedBytes {
		return nil, false
	}
	s := &session{kind: kind(text[0]), end: time.Unix(int64(binary.BigEndian.Uint64(text[1:])), 0), token: string(text[fixedBytes:])}
	copy(s.id[:], text[9:])
	return s, true
}

// name is that of the cookie for a kind of session. A visit has one of its own: a browser that
// follows a link from another site holds back the cookie of a session, which the page that we
// then answer with must not replace.
func (g *SignIn) name(k kind) string {
	if k == visitor {
		return g.cookie + "-visit"
	}
	return g.cookie
}

// first is the first session that lasts among the cookies for a kind, or nil. There may be several:
// another server on this machine may have set one of the same name.
func (g *SignIn) first(r *http.Request, k kind) *session {
	cookies := r.CookiesNamed(g.name(k))
	for _, c := range cookies[:min(len(cookies), maxCookies)] {
		if s, ok := g.decode(c.Value); ok && g.lasts(s) && (s.kind == visitor) == (k == visitor) {
			return s
		}
	}
	return nil
}

func (g *SignIn) lasts(s *session) bool {
	return g.cfg.Now().Before(s.end) && !g.ended.has(s.id)
}

// set gives the browser a session. That of a visitor is forgotten with the window.
func (g *SignIn) set(w http.ResponseWriter, s *session) {
	age := int(sessionLife / time.Second)
	if s.kind == visitor {
		age = 0
	}
	g.setCookie(w, s.kind, g.encode(s), age)
}

func (g *SignIn) unset(w http.ResponseWriter, k kind) { g.setCookie(w, k, "", -1) }

func (g *SignIn) setCookie(w http.ResponseWriter, k kind, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: g.name(k), Value: value, MaxAge: age, Path: "/", HttpOnly: true, Secure: g.cfg.Secure, SameSite: http.SameSiteStrictMode})
}

var (
	errNotSignedIn = marchwarden.Errorf(marchwarden.CodeDenied, "you are not signed in")
	errScope       = marchwarden.Wrap(access.ErrScope, marchwarden.CodeDenied, "the token may not read")
)

// enter is the session of a request, nil if it is surely no user's, and who it is of.
func (g *SignIn) enter(r *http.Request) (*session, access.Principal, error) {
	s := g.first(r, local)
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
	case s.kind == local && !g.team():
		return access.Local(), nil
	case s.kind == member && g.team():
		return g.owner(r, s.token)
	}
	return access.Principal{}, errNotSignedIn
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

// formToken proves that a form was made for a session, for as long as that lasts.
func (g *SignIn) formToken(s *session) string {
	h := hmac.New(sha256.New, g.forms)
	h.Write(s.id[:]) // always 16 bytes
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

var errNotMeant = errors.New("the form is not one of this session")

// meant is nil if a request carries what a page of one of these sessions, which may be nil, was given:
// as a header, or as a field of a form, which is parsed. A token in the address does not count.
func (g *SignIn) meant(w http.ResponseWriter, r *http.Request, sessions ...*session) (err error) {
	sessions = slices.DeleteFunc(sessions, func(s *session) bool { return s == nil })
	if len(sessions) == 0 {
		return errNotMeant
	}
	if mediaType(r.Header.Get("Content-Type")) == "application/x-www-form-urlencoded" {
		if inTime(g.cfg.BodyTimeout, http.NewResponseController(w).SetReadDeadline, func() { err = r.ParseForm() }) {
			err = errTooSlow
		}
		if err != nil {
			return err
		}
	}
	given := r.Header.Get(formHeader)
	if given == "" {
		given = r.PostForm.Get(formField)
	}
	for _, s := range sessions {
		if hmac.Equal([]byte(given), []byte(g.formToken(s))) {
			return nil
		}
	}
	return errNotMeant
}

// KeySize is how many bytes a key has.
const KeySize = 32

const (
	keyKind    = "key of the web pages"
	maxKeyFile = 2*KeySize + 2
)

// OpenKey is the key that is kept in a file, as hex digits, made from random if there is none; several
// processes get the same. CodeDenied if others can get at the file, CodeCorrupt if it holds no key.
// Removing the file ends all sessions when the server starts again.
func OpenKey(path string, random io.Reader) ([]byte, error) {
	text, err := durable.ReadPrivate(path, keyKind, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = durable.EditPrivate(path, keyKind, maxKeyFile, func(old []byte, exists bool) ([]byte, error) {
			if text = old; exists { // another process was first
				return text, nil
			}
			key := make([]byte, KeySize)
			if _, err := io.ReadFull(random, key); err != nil {
				return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the %s: read random bytes", keyKind)
			}
			text = append(hex.AppendEncode(nil, key), '\n')
			return text, nil
		})
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != KeySize { // the error may quote it
		return nil, &marchwarden.Error{Code: marchwarden.CodeCorrupt, Message: "the " + keyKind + " " + path + " is none", Hint: "remove the file: another is made, and browsers sign in again"}
	}
	return key, nil
}
