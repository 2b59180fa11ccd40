package httpdoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// tokens is an authenticator with a few tokens. Its errors quote the token, which those
// of a real one never do.
type tokens map[string][]string

func (ts tokens) Authenticate(_ context.Context, token string) (access.Principal, error) {
	switch token {
	case "offline":
		return access.Principal{}, marchwarden.Errorf(marchwarden.CodeUnavailable, "no keys for %s", token)
	case "bug":
		return access.Principal{}, errors.New("bug with " + token)
	case "nobody":
		return access.Principal{}, nil
	case "elsewhere":
		return access.Principal{}, marchwarden.Wrap(access.ErrScope, marchwarden.CodeDenied, "refused %s", token)
	}
	if scopes, ok := ts[token]; ok {
		return access.Principal{ID: "token:" + token[:3], Scopes: scopes}, nil
	}
	return access.Principal{}, marchwarden.Errorf(marchwarden.CodeDenied, "unknown token %s", token)
}

func someTokens() tokens {
	return tokens{"ann-secret": access.Scopes(), "bob-secret": {access.ScopeRead}, "mon-secret": {"other"}, "cat-secret": {access.ScopeResearch}}
}

func TestAuth(t *testing.T) {
	var seen atomic.Pointer[http.Request]
	s := open(t, Config{Auth: someTokens(), Scope: "research read", Metadata: []byte("{}"),
		MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.Store(r)
			echo(w, r)
		})})
	meta := `resource_metadata="` + s.url + `/.well-known/oauth-protected-resource/mcp", `
	missing := `Bearer ` + meta + `scope="research read"`
	invalid := `Bearer error="invalid_token", ` + meta + `scope="research read"`
	for _, c := range []struct {
		name, path, authorization string
		status                    int
		challenge, reason         string
	}{
		{"none", "/mcp", "-", 401, missing, "auth_missing"},
		{"other scheme", "/mcp", "Basic YW5uLXNlY3JldA==", 401, missing, "auth_missing"},
		{"empty", "/mcp", "Bearer ", 401, missing, "auth_missing"},
		{"bare", "/mcp", "ann-secret", 401, missing, "auth_missing"},
		{"in the address", "/mcp?access_token=ann-secret", "-", 401, missing, "auth_missing"},
		{"wrong", "/mcp", "Bearer eve-secret", 401, invalid, "auth_invalid"},
		{"nobody", "/mcp", "Bearer nobody", 401, invalid, "auth_invalid"},
		{"two in one", "/mcp", "Bearer ann-secret, Bearer bob-secret", 401, invalid, "auth_invalid"},
		{"right", "/mcp", "Bearer ann-secret", 200, "", ""},
		{"right, other case", "/mcp", "bearer  ann-secret", 200, "", ""},
		{"read alone", "/mcp", "Bearer bob-secret", 200, "", ""},
		{"research alone", "/mcp", "Bearer cat-secret", 200, "", ""},
		{"another scope alone", "/mcp", "Bearer mon-secret", 403, `Bearer error="insufficient_scope", ` + meta + `scope="research read"`, "scope"},
		{"no scope of ours", "/mcp", "Bearer elsewhere", 403, `Bearer error="insufficient_scope", ` + meta + `scope="research read"`, "scope"},
		{"issuer away", "/mcp", "Bearer offline", 503, "", "auth_unavailable"},
		{"a bug", "/mcp", "Bearer bug", 503, "", "auth_unavailable"},
		{"health", "/healthz", "-", 200, "", ""},
		{"ready", "/readyz", "-", 200, "", ""},
		{"metadata", "/.well-known/oauth-protected-resource", "-", 200, "", ""},
		{"root", "/", "-", 200, "", ""},
	} {
		method := "POST"
		if !strings.HasPrefix(c.path, "/mcp") {
			method = "GET"
		}
		seen.Store(nil)
		resp, text := s.do(method, c.path, `{}`, header{"Authorization": c.authorization})
		if resp.StatusCode != c.status || resp.Header.Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s: %d %s\nwant %d %s", c.name, resp.StatusCode, resp.Header.Get("WWW-Authenticate"), c.status, c.challenge)
		}
		if c.reason != "" && reason(t, text) != c.reason {
			t.Errorf("%s: %s", c.name, text)
		}
		if strings.Contains(text, "secret") {
			t.Errorf("%s: the answer holds a token: %s", c.name, text)
		}
		if (seen.Load() != nil) != (c.status == 200 && method == "POST") {
			t.Errorf("%s: the handler was asked: %v", c.name, seen.Load() != nil)
		}
	}
	for _, secret := range []string{"-secret", "offline", "with bug", "elsewhere"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds a token: %s", s.log.String())
		}
	}
	if !strings.Contains(s.log.String(), "unknown token [token]") {
		t.Errorf("the log does not say why: %s", s.log.String())
	}
}

func TestTheHandlerSeesThePrincipalAndNoToken(t *testing.T) {
	var got *http.Request
	var who access.Principal
	mcp := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, who = r, access.From(r.Context()) })
	s := open(t, Config{Auth: someTokens(), MCP: mcp})
	s.do("POST", "/mcp?access_token=ann-secret&x=1", `{}`, header{"Authorization": "Bearer bob-secret", "Cookie": "sid=ann-secret", "Proxy-Authorization": "Basic ann-secret", "Mcp-Session-Id": "7"})
	if who.ID != "token:bob" || got.Header.Get("Mcp-Session-Id") != "7" || got.URL.RawQuery != "x=1" {
		t.Errorf("%v %v %v", who, got.Header, got.URL)
	}
	if all := fmt.Sprint(got.Header, got.URL, got.RequestURI, got.Trailer, got.Form); strings.Contains(all, "secret") {
		t.Errorf("the handler sees a token: %s", all)
	}
	free := open(t, Config{MCP: mcp})
	free.do("POST", "/mcp", `{}`, header{"Authorization": "Bearer bob-secret"})
	if who.ID != "anonymous" || got.Header.Get("Authorization") != "" {
		t.Errorf("%v %v", who, got.Header)
	}
}

func TestSeveralAuthorizationHeaders(t *testing.T) {
	s := open(t, Config{Auth: someTokens()})
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+"/mcp", strings.NewReader("{}"))
	req.Header["Authorization"] = []string{"Bearer ann-secret", "Bearer bob-secret"}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestChallengeWithoutMetadata(t *testing.T) {
	plain := open(t, Config{Auth: someTokens()})
	if resp, _ := plain.do("POST", "/mcp", "{}", nil); resp.Header.Get("WWW-Authenticate") != `Bearer realm="marchwarden"` {
		t.Error(resp.Header)
	}
	named := open(t, Config{Auth: someTokens(), MetadataURL: `https://x.example/m"eta`})
	if resp, _ := named.do("POST", "/mcp", "{}", nil); resp.Header.Get("WWW-Authenticate") != `Bearer resource_metadata="https://x.example/m\"eta"` {
		t.Error(resp.Header)
	}
}

func TestGuessingIsSlowAndLocksOutNobody(t *testing.T) {
	var asked atomic.Int64
	var revoked atomic.Bool
	now := newClock()
	auth := authFunc(func(ctx context.Context, token string) (access.Principal, error) {
		asked.Add(1)
		if token == "ann-secret" && revoked.Load() {
			token = "gone"
		}
		return someTokens().Authenticate(ctx, token)
	})
	s := open(t, Config{Auth: auth, Now: now.Now})
	post := func(token string) int {
		resp, _ := s.do("POST", "/mcp", "{}", header{"Authorization": "Bearer " + token})
		if resp.StatusCode == 429 && resp.Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		return resp.StatusCode
	}
	if got := post("ann-secret"); got != 200 {
		t.Fatal(got)
	}
	counts := map[int]int{}
	for i := range 60 {
		counts[post(fmt.Sprint("guess", i))]++
	}
	if counts[401] != failuresBurst || counts[429] != 60-failuresBurst || asked.Load() != 1+failuresBurst {
		t.Errorf("%v, asked %d times", counts, asked.Load())
	}
	if got := post("ann-secret"); got != 200 {
		t.Errorf("who works is locked out: %d", got)
	}
	if got := post("bob-secret"); got != 429 {
		t.Errorf("a token that was never good: %d", got)
	}
	revoked.Store(true)
	if got := post("ann-secret"); got != 401 {
		t.Errorf("a token that is good no more: %d", got)
	}
	if got := post("ann-secret"); got != 429 {
		t.Errorf("and again: %d", got)
	}
	now.add(3 * time.Second)
	if got := post("bob-secret"); got != 200 {
		t.Errorf("after a while: %d", got)
	}
	if strings.Count(s.log.String(), "a token is refused") != failuresBurst+1 {
		t.Error("the log can be flooded")
	}
}

type authFunc func(context.Context, string) (access.Principal, error)

func (f authFunc) Authenticate(ctx context.Context, token string) (access.Principal, error) {
	return f(ctx, token)
}

// clock is a time that moves when told.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) Now() time.Time      { return time.Unix(0, c.at.Load()) }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }
