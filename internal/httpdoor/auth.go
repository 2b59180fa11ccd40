package httpdoor

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// admit finds out who asks and whether they have a scope. If not, the request is answered.
func (d *Door) admit(w http.ResponseWriter, r *http.Request) (access.Principal, bool) {
	headers := r.Header.Values("Authorization")
	if len(headers) > 1 {
		d.refuse(w, "auth_malformed", http.StatusBadRequest, "the request has several Authorization headers", "send one")
		return access.Principal{}, false
	}
	if d.cfg.Auth == nil {
		return access.Anonymous(), true
	}
	token, given := bearer(headers)
	if !given {
		// The first request of a client that then asks for a token looks like this: it is no failure.
		if leave, ok := d.take(w, "addr "+remote(r)); ok {
			leave()
			d.challenge(w, r, "")
			d.refuse(w, "auth_missing", http.StatusUnauthorized, "a token is needed", "send it as Authorization: Bearer TOKEN")
		}
		return access.Principal{}, false
	}
	p, err := d.keeper.who(r, token)
	switch {
	case errors.Is(err, errGuessing):
		retryAfter(w, retryLater)
		d.refuse(w, "auth_rate", http.StatusTooManyRequests, "too many wrong tokens from this address", "wait, then use the right one")
	case errors.Is(err, access.ErrScope) || err == nil && !slices.ContainsFunc(access.Scopes(), p.May):
		d.challenge(w, r, "insufficient_scope")
		d.refuse(w, "scope", http.StatusForbidden, "the token lacks a scope for this", "it needs one of: "+strings.Join(access.Scopes(), ", "))
	case err == nil:
		return p, true
	case errors.Is(err, marchwarden.CodeDenied):
		d.challenge(w, r, "invalid_token")
		d.refuse(w, "auth_invalid", http.StatusUnauthorized, "the token is refused", "it may be wrong, expired or meant for another server")
	default:
		retryAfter(w, retryLater)
		d.refuse(w, "auth_unavailable", http.StatusServiceUnavailable, "tokens cannot be checked at the moment", "try again in a few seconds")
	}
	return access.Principal{}, false
}

// errGuessing says that an address has sent too many wrong tokens of late.
var errGuessing = errors.New("too many wrong tokens")

// keeper asks an authenticator whose a token is, and keeps callers from trying many.
type keeper struct {
	auth access.Authenticator
	now  func() time.Time
	log  *slog.Logger

	failures *lru[*rate.Limiter] // wrong tokens by address
	known    *lru[struct{}]      // hashes of tokens that were good, of no use outside this process
	seed     maphash.Seed
}

// newKeeper remembers the failures of so many addresses. The log gets a line for every refused token.
func newKeeper(auth access.Authenticator, now func() time.Time, log *slog.Logger, addresses int) *keeper {
	return &keeper{auth: auth, now: now, log: log, failures: newLRU[*rate.Limiter](addresses, nil), known: newLRU[struct{}](maxTokensKept, nil), seed: maphash.MakeSeed()}
}

// who asks the authenticator, unless the address has sent too many wrong tokens, which is errGuessing.
// Many callers may have one address: a token that was good before is looked at all the same, so that a
// caller who guesses cannot lock out those who work.
func (k *keeper) who(r *http.Request, token string) (access.Principal, error) {
	failures := k.failures.get(remote(r), func() *rate.Limiter { return rate.NewLimiter(failuresPerSec, failuresBurst) })
	seen := strconv.FormatUint(maphash.String(k.seed, token), 36)
	if _, known := k.known.look(seen); !known && failures.TokensAt(k.now()) < 1 {
		return access.Principal{}, errGuessing
	}
	ctx, cancel := context.WithTimeout(r.Context(), authTimeout)
	defer cancel()
	p, err := k.auth.Authenticate(ctx, token)
	if err == nil && p.ID == "" {
		err = marchwarden.Errorf(marchwarden.CodeDenied, "the token has no owner")
	}
	if err == nil {
		k.known.get(seen, func() struct{} { return struct{}{} })
		return p, nil
	}
	reason := strings.ReplaceAll(err.Error(), token, "[token]")
	switch {
	case errors.Is(err, marchwarden.CodeDenied) && !errors.Is(err, access.ErrScope):
		k.known.take(seen)
		failures.AllowN(k.now(), 1)
		k.log.Warn("a token is refused", "address", remote(r), "reason", reason)
	case r.Context().Err() == nil:
		k.log.Warn("a token cannot be checked or lacks a scope", "address", remote(r), "reason", reason)
	}
	return access.Principal{}, err
}

// bearer is the token of an Authorization header. Another scheme is no token.
func bearer(headers []string) (token string, given bool) {
	if len(headers) == 0 {
		return "", false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// challenge says in WWW-Authenticate what is missing and where a token is to be had.
func (d *Door) challenge(w http.ResponseWriter, r *http.Request, problem string) {
	metadata := d.cfg.MetadataURL
	if metadata == "" && d.cfg.Metadata != nil {
		metadata = schemeOf(r) + "://" + r.Host + metadataPath + Path
	}
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, name+`="`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)+`"`)
		}
	}
	add("error", problem)
	add("resource_metadata", metadata)
	add("scope", d.cfg.Scope)
	if len(params) == 0 {
		add("realm", "marchwarden")
	}
	w.Header().Set("WWW-Authenticate", "Bearer "+strings.Join(params, ", "))
}

// remote is the address of a caller, and with IPv6 its network.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	a = a.Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		return netip.PrefixFrom(a, 64).Masked().String()
	}
	return a.String()
}

// withoutSecrets is a copy of a request with another context and without what proves who asks.
func withoutSecrets(r *http.Request, ctx context.Context) *http.Request {
	in := r.Clone(ctx)
	for _, secret := range []string{"Authorization", "Proxy-Authorization", "Cookie", formHeader} {
		in.Header.Del(secret)
	}
	return in
}

// inside is the request that the MCP handler sees: with the principal and the body, without the token.
func inside(r *http.Request, p access.Principal, body []byte) *http.Request {
	in := withoutSecrets(r, access.With(r.Context(), p))
	if q := in.URL.Query(); q.Has("access_token") {
		q.Del("access_token")
		in.URL.RawQuery = q.Encode()
		in.RequestURI = in.URL.RequestURI()
	}
	in.Body, in.ContentLength, in.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return in
}
