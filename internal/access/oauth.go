package access

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// leeway is how far the clocks of an issuer and ours may be apart.
const leeway = 30 * time.Second

// maxSubject bounds the subject of a token in characters, as OpenID Connect does.
const maxSubject = 255

// algorithms have a public key: with a shared secret, a checker of tokens could make one.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// OAuthConfig says whose tokens are accepted, and for what.
type OAuthConfig struct {
	// Issuer is the authorization server, exactly as its tokens and its metadata name it: https unless
	// its host is loopback, without a query or fragment.
	Issuer string
	// Audience must be among those of a token, exactly: this server's address as clients know it, so that
	// a token for another server is none for this one.
	Audience string
	// HTTP fetches metadata and keys. Redirects to other hosts are never followed.
	HTTP *http.Client
	Now  func() time.Time
	// Log gets a line when keys are fetched or cannot be; nil drops them.
	Log *slog.Logger
}

// OAuth accepts the access tokens (JWT, RFC 9068) of one issuer, as "oauth:ISSUER#SUBJECT". It fetches
// the issuer's keys when they are first needed and again after an hour, which no caller waits for; they
// are good for a day when the issuer cannot be reached.
type OAuth struct {
	parser    *jwt.Parser
	validator *jwt.Validator
	keys      *keyring
}

// NewOAuth checks a configuration. It fetches nothing. CodeInvalid names the field that is wrong.
func NewOAuth(c OAuthConfig) (*OAuth, error) {
	wrong := func(field, message string) (*OAuth, error) {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: message}
	}
	issuer, err := checkURL(c.Issuer)
	switch {
	case err != nil:
		return wrong("issuer", err.Error())
	case issuer.RawQuery != "" || issuer.ForceQuery:
		return wrong("issuer", "must have no query")
	case c.Audience == "":
		return wrong("audience", "must be the address of this server, as tokens name it")
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(algorithms), jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(c.Now), jwt.WithStrictDecoding(),
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return &OAuth{parser: jwt.NewParser(options...), validator: jwt.NewValidator(options...), keys: &keyring{OAuthConfig: c, at: issuer}}, nil
}

// Why a token of an issuer is refused, beside errExpired and ErrScope.
var (
	errMalformed = errors.New("it is no signed JSON web token of a kind that is accepted")
	errEarly     = errors.New("it is not valid yet")
	errAudience  = errors.New("it is for another audience")
	errIssuer    = errors.New("it is of another issuer")
	errClaim     = errors.New("a claim that it must have is missing or malformed")
	errSignature = errors.New("its signature is not by a key of the issuer")
)

// Authenticate accepts a token whose signature, issuer, audience, times, subject and scopes are as they
// must be. What cannot be good is refused before any key is fetched. CodeUnavailable if there are no
// keys to check it by.
func (o *OAuth) Authenticate(ctx context.Context, token string) (Principal, error) {
	if parts := strings.Split(token, "."); len(token) > maxTokenBytes || len(parts) != 3 || slices.Contains(parts, "") {
		return Principal{}, refuse(errUnknown)
	}
	claims, stale, err := o.verify(ctx, token, false)
	if stale {
		claims, _, err = o.verify(ctx, token, true)
	}
	if err != nil {
		return Principal{}, err
	}
	scopes := ours(granted(claims))
	if len(scopes) == 0 {
		return Principal{}, refuse(ErrScope)
	}
	subject, _ := claims["sub"].(string)
	return Principal{ID: oauthPrefix + o.keys.Issuer + "#" + subject, Scopes: scopes}, nil
}

// verify checks all of a token but its scopes, by newer keys if it is told to, and says whether newer keys
// might make it good. The error is never what the parser says, which may quote the token.
func (o *OAuth) verify(ctx context.Context, token string, newer bool) (claims jwt.MapClaims, stale bool, err error) {
	// A map has claims by their exact names; a struct would take "SUB" for "sub".
	claims = jwt.MapClaims{}
	var reason error
	anonymous := false // it does not say which key it is signed by
	_, err = o.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if reason = o.inspect(t.Header, claims); reason != nil {
			return nil, reason
		}
		set, err := o.keys.get(ctx, newer)
		if set == nil {
			reason = err
			return nil, err
		}
		kid, named := t.Header["kid"].(string)
		anonymous = !named
		known, fitting := anonymous, jwt.VerificationKeySet{}
		for _, k := range set {
			its := anonymous || k.id == kid
			if known = known || its; its && (k.algorithm == "" || k.algorithm == t.Method.Alg()) {
				fitting.Keys = append(fitting.Keys, k.public)
			}
		}
		if !known {
			stale = true
			if reason = err; err == nil { // else it may be by a key that could not be fetched
				reason = refuse(errSignature)
			}
			return nil, reason
		}
		return fitting, nil
	})
	switch {
	case err == nil:
		return claims, false, nil
	case reason != nil:
		return nil, stale, reason
	}
	return nil, anonymous && errors.Is(err, jwt.ErrTokenSignatureInvalid), refuse(reasonOf(err))
}

// inspect checks what can be checked without a key, so that bad tokens do not make us fetch keys.
func (o *OAuth) inspect(header map[string]any, claims jwt.MapClaims) error {
	typ, _ := header["typ"].(string)
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	_, critical := header["crit"] // an extension that we do not know and must not ignore
	_, named := header["kid"].(string)
	if _, has := header["kid"]; has != named || critical || typ != "at+jwt" && typ != "jwt" {
		return refuse(errMalformed)
	}
	if err := o.validator.Validate(claims); err != nil {
		return refuse(reasonOf(err))
	}
	if subject, _ := claims["sub"].(string); !isSubject(subject) {
		return refuse(errClaim)
	}
	return nil
}

func isSubject(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxSubject &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError })
}

func reasonOf(err error) error {
	for _, r := range []struct{ theirs, ours error }{
		{jwt.ErrTokenInvalidIssuer, errIssuer},
		{jwt.ErrTokenInvalidAudience, errAudience},
		{jwt.ErrTokenExpired, errExpired},
		{jwt.ErrTokenNotValidYet, errEarly},
		{jwt.ErrTokenRequiredClaimMissing, errClaim},
		{jwt.ErrInvalidType, errClaim},
		{jwt.ErrTokenSignatureInvalid, errSignature},
	} {
		if errors.Is(err, r.theirs) {
			return r.ours
		}
	}
	return errMalformed
}

// granted are the scopes of a token: "scope", one text with spaces, or else "scp", a text or a list.
func granted(claims jwt.MapClaims) []string {
	claim, ok := claims["scope"]
	if !ok {
		claim = claims["scp"]
	}
	var names []string
	if list, _ := claim.([]any); !ok { // RFC 8693 has no list for "scope"
		for _, name := range list {
			text, _ := name.(string)
			names = append(names, text)
		}
	}
	text, _ := claim.(string)
	return append(names, strings.Split(text, " ")...)
}
