package access

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const audience = "https://r.example.org/mcp"

// Keys take a while to make, so that all tests share them.
var (
	rsaKey  = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey   = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	edKey   = sync.OnceValue(newEd)
	edKey2  = sync.OnceValue(newEd)
	weakKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 1024)) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newEd() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk is the public half of a key as a set has it.
func jwk(kid string, key crypto.Signer) map[string]any {
	m := map[string]any{"kid": kid, "use": "sig"}
	switch k := key.Public().(type) {
	case *rsa.PublicKey:
		maps.Copy(m, map[string]any{"kty": "RSA", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())})
	case *ecdsa.PublicKey:
		point := must(k.Bytes())
		maps.Copy(m, map[string]any{"kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])})
	case ed25519.PublicKey:
		maps.Copy(m, map[string]any{"kty": "OKP", "crv": "Ed25519", "x": b64(k)})
	}
	if kid == "" {
		delete(m, "kid")
	}
	return m
}

// issuer is an authorization server on loopback.
type issuer struct {
	*httptest.Server
	clock   *clock
	fetches atomic.Int32 // of keys

	mu      sync.Mutex
	keys    []map[string]any
	serve   func(w http.ResponseWriter, r *http.Request) // instead of the keys
	meta    map[string]string                            // metadata by path; nil is the usual
	visited []string
}

func newIssuer(t testing.TB, keys ...map[string]any) *issuer {
	i := &issuer{clock: newClock(), keys: keys}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		keys, serve, meta := i.keys, i.serve, i.meta
		i.visited = append(i.visited, r.URL.Path)
		i.mu.Unlock()
		if meta == nil {
			meta = map[string]string{"/.well-known/oauth-authorization-server": fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, i.URL, i.URL+"/keys")}
		}
		switch text, ok := meta[r.URL.Path]; {
		case r.URL.Path == "/keys" && serve != nil:
			i.fetches.Add(1)
			serve(w, r)
		case r.URL.Path == "/keys":
			i.fetches.Add(1)
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
		case ok:
			fmt.Fprint(w, text)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *issuer) config() OAuthConfig {
	return OAuthConfig{Issuer: i.URL, Audience: audience, HTTP: i.Client(), Now: i.clock.now}
}

func oauth(t testing.TB, c OAuthConfig) *OAuth {
	t.Helper()
	o, err := NewOAuth(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// canary is in the subject of every token, and so in its text.
const canary = "canary-3f9a"

// claims are those of a good token; changes with the value nil take claims away.
func (i *issuer) claims(changes map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{"iss": i.URL, "aud": audience, "sub": canary, "exp": i.clock.now().Add(time.Hour).Unix(), "scope": "openid research read"}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func sign(method jwt.SigningMethod, key any, header map[string]any, c jwt.Claims) string {
	t := jwt.NewWithClaims(method, c)
	t.Header["typ"], t.Header["kid"] = "at+jwt", "k"
	maps.Copy(t.Header, header)
	maps.DeleteFunc(t.Header, func(_ string, v any) bool { return v == nil })
	return must(t.SignedString(key))
}

// hide fails the test if an error has a part of a token in it.
func hide(t testing.TB, err error, token string) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := e.Error() + marchwarden.HintOf(e)
		for _, part := range append(strings.Split(token, "."), canary) {
			if len(part) > 8 && (strings.Contains(text, part) || strings.Contains(text, part[:9])) {
				t.Errorf("a part of the token is in %q", text)
			}
		}
	}
}

func TestOAuthAlgorithms(t *testing.T) {
	i := newIssuer(t, jwk("rsa", rsaKey()), jwk("ec", ecKey()), jwk("ed", edKey()))
	o := oauth(t, i.config())
	for _, c := range []struct {
		method jwt.SigningMethod
		key    any
		kid    any
	}{
		{jwt.SigningMethodRS256, rsaKey(), "rsa"},
		{jwt.SigningMethodRS512, rsaKey(), "rsa"},
		{jwt.SigningMethodPS256, rsaKey(), "rsa"},
		{jwt.SigningMethodES256, ecKey(), "ec"},
		{jwt.SigningMethodEdDSA, edKey(), "ed"},
		{jwt.SigningMethodEdDSA, edKey(), nil}, // then all keys are tried
	} {
		for _, typ := range []string{"at+jwt", "application/at+jwt", "AT+JWT", "JWT", "jwt"} {
			p, err := o.Authenticate(context.Background(), sign(c.method, c.key, map[string]any{"kid": c.kid, "typ": typ}, i.claims(nil)))
			if diff := cmp.Diff(Principal{ID: "oauth:" + i.URL + "#" + canary, Scopes: []string{"research", "read"}}, p); diff != "" || err != nil {
				t.Errorf("%s %v %s: %v %s", c.method.Alg(), c.kid, typ, err, diff)
			}
		}
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestOAuthRefuses(t *testing.T) {
	i := newIssuer(t, jwk("k", rsaKey()), jwk("ed", edKey()), jwk("weak", weakKey()),
		map[string]any{"kid": "oct", "kty": "oct", "k": b64([]byte("a shared secret of an issuer, by mistake"))},
		func() map[string]any { k := jwk("enc", edKey2()); k["use"] = "enc"; return k }(),
		func() map[string]any { k := jwk("rs256", rsaKey()); k["alg"] = "RS256"; return k }())
	o := oauth(t, i.config())
	now := i.clock.now()
	public := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	good := sign(jwt.SigningMethodRS256, rsaKey(), nil, i.claims(nil))
	if id, err := accepts(o, good); id == "" {
		t.Fatal(err)
	}
	by := func(changes map[string]any) string {
		return sign(jwt.SigningMethodRS256, rsaKey(), nil, i.claims(changes))
	}
	head := func(changes map[string]any) string {
		return sign(jwt.SigningMethodRS256, rsaKey(), changes, i.claims(nil))
	}
	parts := strings.Split(good, ".")
	none := sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, i.claims(nil))
	for _, c := range []struct {
		name, token string
		err         error
	}{
		{"empty", "", errUnknown},
		{"no token", "mw_abcdefgh", errUnknown},
		{"two dots", "..", errUnknown},
		{"garbage", "a.b.c", errMalformed},
		{"huge", "e30." + strings.Repeat("A", maxTokenBytes) + ".AAAA", errUnknown},
		{"four parts", good + ".AAAA", errUnknown},
		{"alg none", none, errUnknown},
		{"alg none with a signature", none + parts[2], errSignature},
		{"alg NONE", b64([]byte(`{"alg":"NONE","typ":"JWT"}`)) + "." + parts[1] + "." + parts[2], errMalformed},
		{"no alg", b64([]byte(`{"typ":"JWT"}`)) + "." + parts[1] + "." + parts[2], errMalformed},
		{"HS256 by the public key", sign(jwt.SigningMethodHS256, public, nil, i.claims(nil)), errSignature},
		{"HS256 by its PEM", sign(jwt.SigningMethodHS256, publicPEM, nil, i.claims(nil)), errSignature},
		{"HS256 by its modulus", sign(jwt.SigningMethodHS256, rsaKey().N.Bytes(), nil, i.claims(nil)), errSignature},
		{"HS256 by a secret in the set", sign(jwt.SigningMethodHS256, []byte("a shared secret of an issuer, by mistake"), map[string]any{"kid": "oct"}, i.claims(nil)), errSignature},
		{"another key", sign(jwt.SigningMethodEdDSA, edKey2(), map[string]any{"kid": "ed"}, i.claims(nil)), errSignature},
		{"a key of another kind", sign(jwt.SigningMethodEdDSA, edKey(), nil, i.claims(nil)), errSignature},
		{"a weak key", sign(jwt.SigningMethodRS256, weakKey(), map[string]any{"kid": "weak"}, i.claims(nil)), errSignature},
		{"a key for encryption", sign(jwt.SigningMethodEdDSA, edKey2(), map[string]any{"kid": "enc"}, i.claims(nil)), errSignature},
		{"an algorithm that is not the key's", sign(jwt.SigningMethodRS512, rsaKey(), map[string]any{"kid": "rs256"}, i.claims(nil)), errMalformed},
		{"unknown kid", head(map[string]any{"kid": "other"}), errSignature},
		{"empty kid", head(map[string]any{"kid": ""}), errSignature},
		{"kid traversal", head(map[string]any{"kid": "../../../../dev/null"}), errSignature},
		{"kid with SQL", head(map[string]any{"kid": "k' OR '1'='1"}), errSignature},
		{"kid is an address", head(map[string]any{"kid": i.URL + "/mine"}), errSignature},
		{"kid is a list", head(map[string]any{"kid": []string{"k"}}), errMalformed},
		{"kid is null", b64([]byte(`{"alg":"RS256","typ":"JWT","kid":null}`)) + "." + parts[1] + "." + parts[2], errMalformed},
		{"own key in the header", sign(jwt.SigningMethodEdDSA, edKey2(), map[string]any{"kid": nil, "jwk": jwk("x", edKey2()), "jku": i.URL + "/mine"}, i.claims(nil)), errSignature},
		{"crit", head(map[string]any{"crit": []string{"x"}, "x": 1}), errMalformed},
		{"no typ", head(map[string]any{"typ": nil}), errMalformed},
		{"typ of a logout token", head(map[string]any{"typ": "logout+jwt"}), errMalformed},
		{"typ is a number", head(map[string]any{"typ": 1}), errMalformed},
		{"wrong aud", by(map[string]any{"aud": "https://other.example.org/mcp"}), errAudience},
		{"longer aud", by(map[string]any{"aud": audience + "/"}), errAudience},
		{"aud in capitals", by(map[string]any{"aud": strings.ToUpper(audience)}), errAudience},
		{"auds without ours", by(map[string]any{"aud": []string{"a", "b"}}), errAudience},
		{"no aud", by(map[string]any{"aud": nil}), errClaim},
		{"empty auds", by(map[string]any{"aud": []string{}}), errClaim},
		{"aud is a number", by(map[string]any{"aud": 7}), errClaim},
		{"wrong iss", by(map[string]any{"iss": "https://evil.example.org"}), errIssuer},
		{"iss with a slash", by(map[string]any{"iss": i.URL + "/"}), errIssuer},
		{"no iss", by(map[string]any{"iss": nil}), errClaim},
		{"another spelling of iss", by(map[string]any{"iss": nil, "ISS": i.URL}), errClaim},
		{"expired", by(map[string]any{"exp": now.Add(-leeway).Unix()}), errExpired},
		{"no exp", by(map[string]any{"exp": nil}), errClaim},
		{"exp is a text", by(map[string]any{"exp": "4102444800"}), errClaim},
		{"exp is zero", by(map[string]any{"exp": 0}), errClaim},
		{"future nbf", by(map[string]any{"nbf": now.Add(leeway + time.Second).Unix()}), errEarly},
		{"no sub", by(map[string]any{"sub": nil}), errClaim},
		{"empty sub", by(map[string]any{"sub": ""}), errClaim},
		{"sub is a number", by(map[string]any{"sub": 7}), errClaim},
		{"sub with a newline", by(map[string]any{"sub": "a\nb"}), errClaim},
		{"long sub", by(map[string]any{"sub": strings.Repeat("a", 256)}), errClaim},
		{"no scope", by(map[string]any{"scope": nil}), ErrScope},
		{"other scopes", by(map[string]any{"scope": "openid Research researcher"}), ErrScope},
		{"scope is a list", by(map[string]any{"scope": []string{"research"}}), ErrScope},
		{"scope hides scp", by(map[string]any{"scope": "openid", "scp": "research"}), ErrScope},
		{"changed claims", parts[0] + "." + b64([]byte(strings.Replace(string(must(base64.RawURLEncoding.DecodeString(parts[1]))), canary, "admin-admin", 1))) + "." + parts[2], errSignature},
		{"padded signature", good + "=", errMalformed},
		{"another spelling of the signature", good[:len(good)-1] + string(good[len(good)-1]+1), errMalformed}, // A, Q, g or w, whose last bits say nothing
		{"cut signature", good[:len(good)-2], errSignature},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := o.Authenticate(context.Background(), c.token)
			if p.ID != "" || p.Scopes != nil || marchwarden.CodeOf(err) != marchwarden.CodeDenied || !errors.Is(err, c.err) {
				t.Errorf("%v, %v", p, err)
			}
			if errors.Is(err, ErrScope) != (c.err == ErrScope) {
				t.Errorf("insufficient scope: %v", err)
			}
			hide(t, err, c.token)
		})
	}
	for _, c := range []struct {
		name   string
		token  string
		scopes []string
	}{
		{"aud list", by(map[string]any{"aud": []string{"other", audience}}), []string{"research", "read"}},
		{"leeway of exp", by(map[string]any{"exp": now.Add(-leeway + time.Second).Unix()}), []string{"research", "read"}},
		{"leeway of nbf", by(map[string]any{"nbf": now.Add(leeway).Unix()}), []string{"research", "read"}},
		{"scp list", by(map[string]any{"scope": nil, "scp": []any{"read", 7, "x"}}), []string{"read"}},
		{"scp text", by(map[string]any{"scope": nil, "scp": "read metrics"}), []string{"read"}},
		{"twice", by(map[string]any{"scope": "read read  research"}), []string{"research", "read"}},
		{"another spelling of sub", by(map[string]any{"SUB": "admin", "Scope": "read"}), []string{"research", "read"}},
	} {
		p, err := o.Authenticate(context.Background(), c.token)
		if diff := cmp.Diff(Principal{ID: "oauth:" + i.URL + "#" + canary, Scopes: c.scopes}, p); diff != "" || err != nil {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
	if slices.Contains(i.visited, "/mine") {
		t.Error("an address in a token was visited")
	}
}

// Tokens that cannot be good do not make us fetch anything.
func TestOAuthFetchesLate(t *testing.T) {
	i := newIssuer(t, jwk("k", edKey()))
	o := oauth(t, i.config())
	for _, token := range []string{
		"mw_abc", "a.b.c",
		sign(jwt.SigningMethodHS256, []byte("secret"), nil, i.claims(nil)),
		sign(jwt.SigningMethodEdDSA, edKey2(), nil, i.claims(map[string]any{"iss": "https://evil.example.org"})),
		sign(jwt.SigningMethodEdDSA, edKey2(), nil, i.claims(map[string]any{"exp": 1})),
		sign(jwt.SigningMethodEdDSA, edKey2(), map[string]any{"typ": nil}, i.claims(nil)),
	} {
		if id, err := accepts(o, token); id != "" {
			t.Errorf("%q, %v", id, err)
		}
	}
	if n := i.fetches.Load(); n != 0 {
		t.Errorf("%d fetches", n)
	}
}

func TestNewOAuthRefuses(t *testing.T) {
	base := OAuthConfig{Issuer: "https://as.example.org/tenant", Audience: audience, HTTP: &http.Client{}, Now: newClock().now}
	for name, change := range map[string]func(*OAuthConfig){
		"":              func(*OAuthConfig) {},
		"loopback":      func(c *OAuthConfig) { c.Issuer = "http://[::1]:80" },
		"no issuer":     func(c *OAuthConfig) { c.Issuer = "" },
		"http":          func(c *OAuthConfig) { c.Issuer = "http://as.example.org" },
		"near loopback": func(c *OAuthConfig) { c.Issuer = "http://127.0.0.1.example.org" },
		"ftp":           func(c *OAuthConfig) { c.Issuer = "ftp://127.0.0.1" },
		"query":         func(c *OAuthConfig) { c.Issuer += "?a=b" },
		"fragment":      func(c *OAuthConfig) { c.Issuer += "#" },
		"password":      func(c *OAuthConfig) { c.Issuer = "https://me:" + canary + "@as.example.org" },
		"no audience":   func(c *OAuthConfig) { c.Audience = "" },
	} {
		c := base
		change(&c)
		_, err := NewOAuth(c)
		if good := name == "" || name == "loopback"; good != (err == nil) || err != nil && marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
		hide(t, err, canary)
	}
}

// The log says what happened and nothing of a token.
func TestOAuthLog(t *testing.T) {
	i := newIssuer(t, jwk("k", edKey()))
	var log bytes.Buffer
	c := i.config()
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	o := oauth(t, c)
	token := sign(jwt.SigningMethodEdDSA, edKey(), nil, i.claims(nil))
	if _, err := accepts(o, token); err != nil {
		t.Fatal(err)
	}
	i.Close()
	i.clock.pass(renewEvery)
	if _, err := accepts(o, sign(jwt.SigningMethodEdDSA, edKey(), map[string]any{"kid": canary}, i.claims(nil))); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "cannot be fetched") || strings.Contains(text, canary) || strings.Contains(text, b64(edKey().Public().(ed25519.PublicKey))) {
		t.Errorf("%s", text)
	}
}

func FuzzGranted(f *testing.F) {
	for _, seed := range []string{`{}`, `{"scope":"research read"}`, `{"scp":["read",7,null]}`, `{"scope":{},"scp":"read"}`, `{"scope":"research\tread"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var claims jwt.MapClaims
		if json.Unmarshal([]byte(text), &claims) != nil {
			return
		}
		scopes := ours(granted(claims))
		for _, s := range scopes {
			if !strings.Contains(fmt.Sprint(claims["scope"], claims["scp"]), s) {
				t.Errorf("%q grants %v", text, scopes)
			}
		}
	})
}
