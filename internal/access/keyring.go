package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

const (
	freshFor     = time.Hour        // keys are fetched again when they are older
	goodFor      = 24 * time.Hour   // how old keys may get when they cannot be
	renewEvery   = time.Minute      // at most, when a token names an unknown key
	retryEvery   = 5 * time.Second  // at most, while there are no keys
	fetchTimeout = 10 * time.Second // for metadata and keys together
	maxDocument  = 512 << 10        // bytes of either
)

// keyring has the keys of an issuer. Of many callers who need them one fetches.
type keyring struct {
	OAuthConfig
	at *url.URL // the issuer, parsed

	mu      sync.Mutex // guards what follows
	keys    keys       // nil before the first
	fetched time.Time  // when the keys were
	tried   time.Time  // when fetching was last begun; zero if never
	err     error      // how that ended
	flight  chan struct{}
}

// get returns keys that may be an hour old, or a day while newer ones cannot be had, or waits for some.
// With newer it returns keys that were fetched now, unless that was tried in the last minute: then those
// there are, and why newer ones cannot be had.
func (r *keyring) get(ctx context.Context, newer bool) (keys, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	age := now.Sub(r.fetched)
	pause := renewEvery
	if age >= goodFor {
		r.keys = nil
	}
	if r.keys == nil {
		newer, pause = true, retryEvery
	}
	fresh := age >= 0 && age < freshFor // a clock that was set back is a reason to fetch, not to wait
	since := now.Sub(r.tried)
	tried := !r.tried.IsZero() && since >= 0 && since < pause
	if r.flight == nil && !tried && (newer || !fresh) {
		r.begin(ctx, now)
	}
	if !newer {
		return r.keys, nil
	}
	if flight := r.flight; flight != nil {
		r.mu.Unlock()
		var gone error
		select {
		case <-flight:
		case <-ctx.Done():
			gone = marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "wait for the keys of the issuer")
		}
		r.mu.Lock()
		if gone != nil {
			return nil, gone
		}
	}
	return r.keys, r.err
}

// begin fetches keys in the background, whatever becomes of the request that needs them; r.mu is held.
func (r *keyring) begin(ctx context.Context, now time.Time) {
	flight := make(chan struct{})
	r.flight, r.tried = flight, now
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	go func() {
		defer cancel()
		set, err := r.fetch(ctx)
		err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "fetch the keys of the issuer %s", r.Issuer)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err = err; err == nil {
			r.keys, r.fetched = set, now
			r.Log.Info("fetched the keys of the issuer", "issuer", r.Issuer, "keys", len(set))
		} else {
			r.Log.Warn("the keys of the issuer cannot be fetched", "issuer", r.Issuer, "error", err.Error())
		}
		r.flight = nil
		close(flight)
	}()
}

func (r *keyring) fetch(ctx context.Context) (keys, error) {
	at, err := r.discover(ctx)
	if err != nil {
		return nil, err
	}
	text, _, err := r.document(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("get the set of keys: %w", err)
	}
	return parseKeys(text)
}

// wellKnown are the addresses of an issuer's metadata: RFC 8414, then OpenID Connect in both ways.
func wellKnown(issuer *url.URL) []string {
	path := strings.TrimRight(issuer.EscapedPath(), "/")
	root := issuer.Scheme + "://" + issuer.Host
	all := []string{
		root + "/.well-known/oauth-authorization-server" + path,
		root + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		all = append(all, root+path+"/.well-known/openid-configuration")
	}
	return all
}

// discover asks the issuer's metadata where its keys are. Metadata of another issuer is an error.
func (r *keyring) discover(ctx context.Context) (string, error) {
	for _, at := range wellKnown(r.at) {
		text, status, err := r.document(ctx, at)
		switch {
		case status >= 400 && status < 500:
			continue
		case err != nil:
			return "", fmt.Errorf("get the metadata: %w", err)
		}
		var form struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		if err := json.Unmarshal(text, &form); err != nil {
			return "", errors.New("the metadata is no JSON object")
		}
		if form.Issuer != r.Issuer {
			return "", errors.New("the metadata is of another issuer")
		}
		u, err := checkURL(form.Keys)
		if err == nil && u.Scheme != "https" && !IsLoopback(r.at.Hostname()) {
			err = errors.New("must be https")
		}
		if err != nil {
			return "", fmt.Errorf("the metadata has no usable jwks_uri: %w", err)
		}
		return form.Keys, nil
	}
	return "", errors.New("the issuer has no metadata")
}

// document gets a small document, and the status of an answer that is none. The error has no code: what the issuer
// says of our request says nothing about a token.
func (r *keyring) document(ctx context.Context, at string) (text json.RawMessage, status int, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, 0, errors.New("its address is none")
	}
	issuer := httpapi.Service{Name: "the issuer", Base: u.Scheme + "://" + u.Host, HTTP: r.HTTP, MaxBytes: maxDocument, Timeout: fetchTimeout, NoRetry: true}
	if err := issuer.GetJSON(ctx, u.EscapedPath(), u.Query(), &text); err != nil {
		return nil, httpapi.Status(err), errors.New(err.Error())
	}
	return text, 0, nil
}

// checkURL reads an address that tokens depend on: its answers must not be changeable on the way.
func checkURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("must be an address that begins with https://")
	case u.Scheme != "https" && (u.Scheme != "http" || !IsLoopback(u.Hostname())):
		return nil, errors.New("must be https, unless the host is loopback")
	case u.User != nil:
		return nil, errors.New("must have no user or password")
	case strings.Contains(raw, "#"):
		return nil, errors.New("must have no fragment")
	}
	return u, nil
}

// IsLoopback reports whether a host, in lower case and without a port, always means this machine.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// keys are the public keys of an issuer at one time. They do not change.
type keys []key

type key struct {
	id, algorithm string // "" if it has none
	public        any
}

// How many keys an issuer may have, and how large one of RSA is.
const (
	maxKeys    = 64
	minRSABits = 2048
	maxRSABits = 8192
)

// parseKeys reads a set of keys (RFC 7517), of each just what a public key for signatures needs. Those that are not
// for signatures, of an unknown kind or too weak are passed over. Errors quote nothing of the set.
func parseKeys(text []byte) (keys, error) {
	var form struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, errors.New("the set of keys is none")
	}
	if len(form.Keys) > maxKeys {
		return nil, fmt.Errorf("the set has %d keys, over the limit of %d", len(form.Keys), maxKeys)
	}
	var good keys
	for _, raw := range form.Keys {
		k, ok := parseKey(raw)
		if ok && (k.id == "" || !slices.ContainsFunc(good, func(o key) bool { return o.id == k.id })) {
			good = append(good, k)
		}
	}
	if len(good) == 0 {
		return nil, errors.New("the set has no key that a token could be signed by")
	}
	return good, nil
}

// parseKey reads a public key for signatures that is strong enough.
func parseKey(raw []byte) (key, bool) {
	var f struct {
		KTY, KID, Use, Alg, Crv string
		X, Y, N, E              part
	}
	if json.Unmarshal(raw, &f) != nil || f.Use != "" && f.Use != "sig" || f.Alg != "" && !slices.Contains(algorithms, f.Alg) {
		return key{}, false
	}
	k := key{id: f.KID, algorithm: f.Alg}
	switch curve := curves[f.Crv]; {
	case f.KTY == "RSA":
		n, e := new(big.Int).SetBytes(f.N), new(big.Int).SetBytes(f.E)
		k.public = &rsa.PublicKey{N: n, E: int(e.Int64())}
		return k, n.BitLen() >= minRSABits && n.BitLen() <= maxRSABits && e.BitLen() < 32 && e.Bit(0) == 1 && e.BitLen() > 1
	case f.KTY == "EC" && curve != nil:
		size := (curve.Params().BitSize + 7) / 8
		if len(f.X) > size || len(f.Y) > size {
			return key{}, false
		}
		point := slices.Concat([]byte{4}, make([]byte, size-len(f.X)), f.X, make([]byte, size-len(f.Y)), f.Y) // some leave out zeros
		public, err := ecdsa.ParseUncompressedPublicKey(curve, point)
		k.public = public
		return k, err == nil
	case f.KTY == "OKP" && f.Crv == "Ed25519":
		k.public = ed25519.PublicKey(f.X)
		return k, len(f.X) == ed25519.PublicKeySize
	}
	return key{}, false // a shared secret, or a key for something else
}

var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

// part is a number of a key, as RFC 7515 writes bytes; some add the padding that it leaves out.
type part []byte

func (p *part) UnmarshalText(text []byte) (err error) {
	*p, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(string(text), "="))
	return err
}
