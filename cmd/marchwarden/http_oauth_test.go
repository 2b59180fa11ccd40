//go:build unix

package main

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// httpAudience is what the tokens of a test are for.
const httpAudience = "https://research.example.org/mcp"

// httpIssuer is an authorization server on loopback: it has metadata and keys, and gives tokens to
// every caller.
type httpIssuer struct {
	*httptest.Server
	key    ed25519.PrivateKey
	office issuerOffice
}

func newHTTPIssuer(t *testing.T) *httpIssuer {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &httpIssuer{key: key}
	mux := http.NewServeMux()
	say := func(path string, v func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v()) // a client that is gone needs none
		})
	}
	say("/.well-known/oauth-authorization-server", func() any {
		return map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"registration_endpoint": i.URL + "/register", "code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"offline_access"}}
	})
	i.lend(t, mux)
	say("/keys", func() any {
		return map[string]any{"keys": []any{map[string]any{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "k1", "x": base64.RawURLEncoding.EncodeToString(public)}}}
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// token is a good token with some claims changed; nil ones are left out.
func (i *httpIssuer) token(t *testing.T, change map[string]any) string {
	t.Helper()
	return i.sign(t, "EdDSA", i.key, change)
}

// sign makes a token by a key, as an algorithm has it.
func (i *httpIssuer) sign(t *testing.T, alg string, key ed25519.PrivateKey, change map[string]any) string {
	t.Helper()
	claims := map[string]any{"iss": i.URL, "aud": httpAudience, "sub": "alice", "scope": "openid research read", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	var parts []string
	for _, part := range []any{map[string]any{"alg": alg, "kid": "k1", "typ": "at+jwt"}, claims} {
		data, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(data))
	}
	text := strings.Join(parts, ".")
	var sum []byte
	switch alg {
	case "EdDSA":
		sum = ed25519.Sign(key, []byte(text))
	case "HS256": // with a public value
		mac := hmac.New(sha256.New, key.Public().(ed25519.PublicKey))
		mac.Write([]byte(text))
		sum = mac.Sum(nil)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sum)
}

// TestOAuthProbes tries tokens of an issuer, good and otherwise.
func TestOAuthProbes(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	issuer := newHTTPIssuer(t)
	stranger := newHTTPIssuer(t)
	s := w.serve(t, w.home(t), "pi", "--oauth-issuer", issuer.URL, "--oauth-audience", httpAudience)
	bearer := func(token string) func(*http.Request) { return withHeader("Authorization", "Bearer "+token) }
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	probes := []probe{
		{name: "a good token", status: 200},
		{name: "a good token for several", edit: bearer(issuer.token(t, map[string]any{"aud": []string{"https://other.example", httpAudience}})), status: 200},
		{name: "no token", edit: func(r *http.Request) { r.Header.Del("Authorization") }, status: 401, header: "WWW-Authenticate"},
	}
	for name, token := range map[string]string{
		"another audience":              issuer.token(t, map[string]any{"aud": "https://other.example/mcp"}),
		"an audience that begins alike": issuer.token(t, map[string]any{"aud": httpAudience + "/other"}),
		"no audience":                   issuer.token(t, map[string]any{"aud": nil}),
		"expired":                       issuer.token(t, map[string]any{"exp": in(-time.Minute)}),
		"without an end":                issuer.token(t, map[string]any{"exp": nil}),
		"not valid yet":                 issuer.token(t, map[string]any{"nbf": in(time.Hour)}),
		"of another issuer":             stranger.token(t, nil),
		"by a key of somebody else":     issuer.sign(t, "EdDSA", stranger.key, nil),
		"by no key":                     issuer.sign(t, "none", issuer.key, nil),
		"by the public key as a secret": issuer.sign(t, "HS256", issuer.key, nil),
		"nobody's":                      issuer.token(t, map[string]any{"sub": nil}),
	} {
		probes = append(probes, probe{name: name, edit: bearer(token), status: 401, header: "WWW-Authenticate"})
	}
	probes = append(probes, probe{name: "for other scopes", edit: bearer(issuer.token(t, map[string]any{"scope": "openid mail"})), status: 403, header: "WWW-Authenticate"})
	fire(t, newHost(t, s.url, issuer.token(t, nil), eraModern), append(doorProbes(), probes...))
	legacy := newHost(t, s.url, issuer.token(t, nil), eraLegacy)
	fire(t, legacy, probes[:3])
	_, header, _ := probes[2].shoot(t, legacy)
	challenge := header.Get("WWW-Authenticate")
	at := strings.TrimPrefix(strings.SplitAfter(challenge, "resource_metadata=")[1], `"`)
	at = at[:strings.Index(at, `"`)]
	t.Logf("the challenge: %s", challenge)
	if !strings.HasPrefix(at, "https://research.example.org/") && !strings.HasPrefix(at, strings.TrimSuffix(s.url, "/mcp")) {
		t.Errorf("the metadata are said to be at %s", at)
	}
	status, body := s.get(t, "/.well-known/oauth-protected-resource/mcp", "")
	if status != 200 || !strings.Contains(body, issuer.URL) {
		t.Errorf("the metadata: %d, %s", status, body)
	}
	t.Logf("the metadata: %s", body)

	reader := newHost(t, s.url, issuer.token(t, map[string]any{"scope": "read"}), eraModern)
	if a, err := reader.do(t.Context(), "tools/call", map[string]any{"name": "research", "arguments": map[string]any{"question": aboutBoats}}); err != nil || a.fault == nil || !strings.Contains(a.fault.Message, "scope") {
		t.Errorf("a token to read researches: %v, %+v", err, a)
	}
	s.endBy(t, syscall.SIGTERM)
}

// readProc reads what is known of a process.
func readProc(pid int, name string) ([]byte, error) {
	return os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
}

// eachFile appends the names and contents of the files below a folder, and counts them.
func eachFile(t *testing.T, dir string, to *strings.Builder) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		n++
		fmt.Fprintln(to, "file", path, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
