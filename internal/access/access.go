// Package access says who asks and what they may do. It turns a bearer token into a principal: by a
// file of named tokens, of which only hashes are kept, by one token from the environment, or as the
// resource server of an OAuth 2.1 issuer. It owns the names of the scopes, the tokens file and the
// keys of the issuer. It opens no port and reads no request: that is the door's. No token and no
// part of one is ever in an error, a log line or a file.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The scopes. Their names are the same in the tokens file and in tokens of an issuer.
const (
	ScopeResearch = "research" // call the tool, cancel what one began
	ScopeRead     = "read"     // read resources and the state of tasks
)

// Scopes are all scopes, in their order. The slice is the caller's.
func Scopes() []string { return []string{ScopeResearch, ScopeRead} }

// CheckScopes puts scopes into their order, each once. CodeInvalid for none, or one that does not exist.
func CheckScopes(scopes []string) ([]string, error) {
	for _, s := range scopes {
		if !slices.Contains(Scopes(), s) {
			return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "scope",
				Message: fmt.Sprintf("must be of %s, not %.40q", strings.Join(Scopes(), ", "), s)}
		}
	}
	if len(scopes) == 0 {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "scope", Message: "must name at least one of " + strings.Join(Scopes(), ", ")}
	}
	return ours(scopes), nil
}

// ours are the scopes that exist among names, in their order, each once.
func ours(names []string) []string {
	return slices.DeleteFunc(Scopes(), func(s string) bool { return !slices.Contains(names, s) })
}

// Principal is who asks, known by its ID. The zero Principal may do nothing and owns nothing.
type Principal struct {
	ID     string   // "local", "anonymous", "token:NAME", "oauth:ISSUER#SUBJECT"; "" is no principal
	Scopes []string // ScopeResearch, ScopeRead
	// MaxCostDay is what its calls of a day (UTC) may cost together, in US dollars; 0 is no cap.
	MaxCostDay float64
}

const (
	localID     = "local"
	anonymousID = "anonymous"
	tokenPrefix = "token:"
	oauthPrefix = "oauth:"
)

// May reports whether p has a scope. The zero Principal has none.
func (p Principal) May(scope string) bool {
	return p.ID != "" && slices.Contains(p.Scopes, scope)
}

// SeesAll reports whether p sees what others made, which only Local does.
func (p Principal) SeesAll() bool { return p.ID == localID }

// Local is the user who started the process, such as over stdio: all scopes, and sees all runs.
func Local() Principal { return Principal{ID: localID, Scopes: Scopes()} }

// Anonymous is any caller of an open loopback port: all scopes, and sees what such callers made.
func Anonymous() Principal { return Principal{ID: anonymousID, Scopes: Scopes()} }

type principalKey struct{}

// With returns a context that says who asks.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From is the principal of a context; without With it is the zero one.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// Authenticator turns a bearer token into a principal. A refusal is CodeDenied, and also ErrScope if
// the token is good and grants nothing here; CodeUnavailable says that it could not be checked. The
// message is for the server's log and never holds a part of the token. All are safe for concurrent use.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// ErrScope says that a token is good and has no scope of ours: 403 rather than 401.
var ErrScope = errors.New("it grants no scope of this server")

// Why a token is refused. What a parser of tokens says may quote them.
var (
	errUnknown = errors.New("it is not known here")
	errExpired = errors.New("it has expired")
)

func refuse(cause error) error {
	return marchwarden.Wrap(cause, marchwarden.CodeDenied, "the token is refused")
}

const maxTokenBytes = 16 << 10

// ErrNoToken says that others can reach an address, and that there is no token for them.
var ErrNoToken = errors.New("there is no token")

// Open is who is accepted at an address: callers with a token of the file, those that are added
// later too, and those that others accept. At an address that only this machine can reach, nil
// says that there is no token and that every caller is accepted; elsewhere that is ErrNoToken.
// The other errors are those of OpenTokens.
func Open(file string, now func() time.Time, local bool, others ...Authenticator) (Authenticator, error) {
	named, err := OpenTokens(file, now)
	switch {
	case err != nil:
		return nil, err
	case len(named.entries) > 0 || len(others) > 0:
		return chain(append(others, named)), nil
	case local:
		return nil, nil
	}
	return nil, ErrNoToken
}

// chain asks authenticators in turn and takes the first that accepts. If none does, the error is of
// the first that knew the token, or could not tell.
type chain []Authenticator

func (c chain) Authenticate(ctx context.Context, token string) (Principal, error) {
	best := refuse(errUnknown)
	for _, a := range c {
		p, err := a.Authenticate(ctx, token)
		if err == nil {
			return p, nil
		}
		if errors.Is(best, errUnknown) {
			best = err
		}
	}
	return Principal{}, best
}

// digest is what is kept of a token. A token of ours is 256 random bits, which cannot be found by
// trying: the hash may be fast. It is tagged and framed, so that it is of no other use.
func digestOf(token string) string {
	h := sha256.New()
	for _, part := range []string{"marchwarden/access token/1", token} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// minFixed is the least length of a token that this program did not make.
const minFixed = 16

// Fixed accepts one token, such as one of the environment, as "token:NAME" with all scopes. CodeInvalid
// if the name is none, or the token has less than 16 characters or such as a header cannot carry.
func Fixed(name, token string) (Authenticator, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if len(token) < minFixed || len(token) > maxTokenBytes {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the token %s must have %d to %d characters, not %d", name, minFixed, maxTokenBytes, len(token))
	}
	// These are the characters that RFC 6750 gives a token.
	if strings.Trim(strings.TrimRight(token, "="), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") != "" || strings.HasPrefix(token, "=") {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "the token " + name + " has a character that a bearer token cannot have",
			Hint: "use letters, digits and - . _ ~ + / only, with no space or newline at the end"}
	}
	return &fixed{id: tokenPrefix + name, sum: digestOf(token)}, nil
}

type fixed struct {
	id  string
	sum string
}

func (f *fixed) Authenticate(_ context.Context, token string) (Principal, error) {
	if subtle.ConstantTimeCompare([]byte(f.sum), []byte(digestOf(token))) != 1 {
		return Principal{}, refuse(errUnknown)
	}
	return Principal{ID: f.id, Scopes: Scopes()}, nil
}

// ServerURL reads the http or https address of a server, without a user, a query or a fragment.
func ServerURL(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

// Metadata tells clients where to get a token for a server, as RFC 9728 says: the document, and its
// address for a WWW-Authenticate header. resource is the server's address as clients know it, such as
// https://research.example.org/mcp, issuer makes its tokens, and name is for people. CodeInvalid if
// resource is none.
func Metadata(resource, issuer, name string) (document []byte, at string, err error) {
	u, ok := ServerURL(resource)
	if !ok {
		return nil, "", &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "resource", Message: "must be an http or https address without a query, a fragment or a user"}
	}
	path := u.Path
	if path == "/" {
		path = ""
	}
	document, err = json.Marshal(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{resource, []string{issuer}, Scopes(), []string{"header"}, name})
	to := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/oauth-protected-resource" + path}
	return document, to.String(), marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the metadata")
}
