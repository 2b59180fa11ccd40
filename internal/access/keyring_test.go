package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// A key that is new is found at the first token that names it, and a key that is gone
// is no longer accepted; but an unknown key costs one fetch a minute at most.
func TestKeyRotation(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named %t", named), func(t *testing.T) {
			names := []string{"old", "new"}
			if !named {
				names = []string{"", ""}
			}
			i := newIssuer(t, jwk(names[0], edKey()))
			o := oauth(t, i.config())
			header := func(n int) map[string]any {
				if !named {
					return map[string]any{"kid": nil}
				}
				return map[string]any{"kid": names[n]}
			}
			first := sign(jwt.SigningMethodEdDSA, edKey(), header(0), i.claims(nil))
			second := sign(jwt.SigningMethodEdDSA, edKey2(), header(1), i.claims(nil))
			check := func(when, token string, good bool, fetches int32) {
				t.Helper()
				id, err := accepts(o, token)
				if (id != "") != good || err != nil && marchwarden.CodeOf(err) != marchwarden.CodeDenied || i.fetches.Load() != fetches {
					t.Errorf("%s: %q, %v, %d fetches", when, id, err, i.fetches.Load())
				}
			}
			check("at first", first, true, 1)
			check("before it is there", second, false, 1)
			i.clock.pass(renewEvery)
			check("a minute later", second, false, 2)
			check("again", second, false, 2)
			i.set(func() { i.keys = append(i.keys, jwk(names[1], edKey2())) })
			check("too early", second, false, 2)
			i.clock.pass(renewEvery)
			check("the new key", second, true, 3)
			check("the old key", first, true, 3)
			i.set(func() { i.keys = i.keys[1:] })
			i.clock.pass(renewEvery)
			if named {
				check("the old key, of which nobody has heard", first, true, 3)
				check("an unknown one", sign(jwt.SigningMethodEdDSA, edKey(), map[string]any{"kid": "x"}, i.claims(nil)), false, 4)
				check("the old key is gone", first, false, 4)
				check("the new key stays", second, true, 4)
			}
		})
	}
}

// Keys that are an hour old are fetched again, and no caller waits for that.
func TestKeysAreRefreshed(t *testing.T) {
	i := newIssuer(t, jwk("k", edKey()))
	o := oauth(t, i.config())
	token := func() string {
		return sign(jwt.SigningMethodEdDSA, edKey(), nil, i.claims(nil))
	}
	if _, err := accepts(o, token()); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	i.set(func() {
		i.serve = func(w http.ResponseWriter, _ *http.Request) {
			<-hold
			http.Error(w, "down", http.StatusInternalServerError)
		}
	})
	settle := func(n int32) {
		t.Helper()
		for range 500 {
			o.keys.mu.Lock()
			idle := o.keys.flight == nil
			o.keys.mu.Unlock()
			if idle && i.fetches.Load() == n {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%d fetches", i.fetches.Load())
	}
	i.clock.pass(freshFor)
	for range 3 {
		if _, err := accepts(o, token()); err != nil {
			t.Errorf("while they are fetched: %v", err)
		}
	}
	close(hold)
	settle(2)
	for range 3 {
		if _, err := accepts(o, token()); err != nil {
			t.Errorf("when that failed: %v", err)
		}
	}
	settle(2)
	i.clock.pass(goodFor - freshFor - time.Second)
	if _, err := accepts(o, token()); err != nil {
		t.Errorf("for a day: %v", err)
	}
	settle(3)
	i.clock.pass(renewEvery)
	if id, err := accepts(o, token()); id != "" || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("after a day: %q, %v", id, err)
	}
	settle(4)
	i.set(func() { i.serve = nil })
	i.clock.pass(retryEvery)
	if _, err := accepts(o, token()); err != nil {
		t.Errorf("when it is up again: %v", err)
	}
}

// Whatever the server of the keys does, a token is not accepted and no caller waits long.
func TestKeysCannotBeHad(t *testing.T) {
	elsewhere := newIssuer(t, jwk("k", edKey()))
	i := newIssuer(t)
	for name, c := range map[string]struct {
		serve func(w http.ResponseWriter, r *http.Request)
		says  string
	}{
		"fails":        {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, canary, http.StatusInternalServerError) }, "status 500"},
		"is not there": {http.NotFound, "status 404"},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"keys":[], "x":"%s"}`, strings.Repeat("x", maxDocument))
		}, "over the limit"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>"+canary) }, "not JSON"},
		"no keys": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }, "no key"},
		"bad keys": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[7,{"kty":"RSA","n":"`+canary+`"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`)
		}, "no key"},
		"other keys": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[{"kid":"k","kty":"OKP","crv":"X25519","x":"`+b64(append(make([]byte, 31), 9))+`"},{"kid":"k","kty":"oct","k":"AAAA"}]}`)
		}, "no key"},
		"many": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[`+strings.Repeat("{},", maxKeys)+`{}]}`)
		}, "over the limit"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/keys", http.StatusFound)
		}, "another place"},
		"in a ring": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) }, "in a circle"},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"keys":[`)
		}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			o := oauth(t, i.config())
			i.set(func() { i.serve = c.serve })
			token := sign(jwt.SigningMethodEdDSA, edKey(), nil, i.claims(nil))
			before := i.fetches.Load()
			var err error
			for range 3 {
				var id string
				if id, err = accepts(o, token); id != "" || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || errors.Is(err, marchwarden.CodeDenied) {
					t.Errorf("%q, %v", id, err)
				}
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
			hide(t, err, token)
			n := i.fetches.Load() - before
			if want := int32(1); n != want && name != "in a ring" {
				t.Errorf("%d fetches in five seconds", n)
			}
			i.set(func() { i.serve, i.keys = nil, []map[string]any{jwk("k", edKey())} })
			if _, err := accepts(o, token); err == nil {
				t.Error("it did not wait for five seconds")
			}
			i.clock.pass(retryEvery)
			if _, err := accepts(o, token); err != nil {
				t.Errorf("when all is well: %v", err)
			}
		})
	}
	if elsewhere.fetches.Load() != 0 {
		t.Error("the redirection was followed")
	}
}

// A server that does not answer holds no caller longer than it wants to wait, and one fetch is
// enough for all that need it.
func TestKeysAreSlow(t *testing.T) {
	i := newIssuer(t, jwk("k", edKey()))
	hold := make(chan struct{})
	i.set(func() {
		i.serve = func(w http.ResponseWriter, r *http.Request) {
			<-hold
			i.set(func() { i.serve = nil })
			i.Config.Handler.ServeHTTP(w, r)
		}
	})
	o := oauth(t, i.config())
	token := sign(jwt.SigningMethodEdDSA, edKey(), nil, i.claims(nil))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := o.Authenticate(ctx, token); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("who does not wait: %v", err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := accepts(o, token); err != nil {
				t.Errorf("who waits: %v", err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	close(hold)
	wg.Wait()
	if n := i.fetches.Load(); n != 2 { // one, and the handler calling itself
		t.Errorf("%d fetches", n)
	}
}

func TestDiscovery(t *testing.T) {
	type served map[string]string // by path; URL and OTHER stand for addresses
	good := `{"issuer":"URL/tenant","jwks_uri":"URL/keys"}`
	for name, c := range map[string]struct {
		meta    served
		visited []string
		says    string // "" if it works
	}{
		"RFC 8414": {served{"/.well-known/oauth-authorization-server/tenant": good}, []string{"/.well-known/oauth-authorization-server/tenant", "/keys"}, ""},
		"OpenID Connect, put in": {served{"/.well-known/openid-configuration/tenant": good},
			[]string{"/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant", "/keys"}, ""},
		"OpenID Connect": {served{"/tenant/.well-known/openid-configuration": good},
			[]string{"/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant", "/tenant/.well-known/openid-configuration", "/keys"}, ""},
		"nothing":                    {served{}, nil, "no metadata"},
		"another issuer":             {served{"/.well-known/oauth-authorization-server/tenant": `{"issuer":"URL/other","jwks_uri":"URL/keys"}`}, nil, "another issuer"},
		"the issuer with a slash":    {served{"/.well-known/oauth-authorization-server/tenant": `{"issuer":"URL/tenant/","jwks_uri":"URL/keys"}`}, nil, "another issuer"},
		"no issuer":                  {served{"/.well-known/oauth-authorization-server/tenant": `{"jwks_uri":"URL/keys"}`}, nil, "another issuer"},
		"no keys":                    {served{"/.well-known/oauth-authorization-server/tenant": `{"issuer":"URL/tenant"}`}, nil, "jwks_uri"},
		"keys in a file":             {served{"/.well-known/oauth-authorization-server/tenant": `{"issuer":"URL/tenant","jwks_uri":"file:///etc/passwd"}`}, nil, "jwks_uri"},
		"keys over http":             {served{"/.well-known/oauth-authorization-server/tenant": `{"issuer":"URL/tenant","jwks_uri":"http://as.example.org/keys"}`}, nil, "must be https"},
		"no JSON":                    {served{"/.well-known/oauth-authorization-server/tenant": `<html>`}, nil, "not JSON"},
		"huge":                       {served{"/.well-known/oauth-authorization-server/tenant": strings.Repeat(" ", maxDocument+1)}, nil, "over the limit"},
		"keys of a server elsewhere": {served{"/.well-known/oauth-authorization-server/tenant": `{"issuer":"URL/tenant","jwks_uri":"OTHER/keys"}`}, []string{"/.well-known/oauth-authorization-server/tenant"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i, other := newIssuer(t, jwk("k", edKey())), newIssuer(t, jwk("k", edKey()))
			i.meta = map[string]string{}
			for path, text := range c.meta {
				i.meta[path] = strings.NewReplacer("URL", i.URL, "OTHER", other.URL).Replace(text)
			}
			config := i.config()
			config.Issuer = i.URL + "/tenant"
			o := oauth(t, config)
			token := sign(jwt.SigningMethodEdDSA, edKey(), nil, i.claims(map[string]any{"iss": config.Issuer}))
			id, err := accepts(o, token)
			if (id != "") != (c.says == "") || err != nil && (marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%q, %v", id, err)
			}
			hide(t, err, token)
			if c.visited != nil {
				if diff := cmp.Diff(c.visited, i.visited); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Metadata is not taken from where a redirection to another host leads, and an issuer
// with TLS cannot send us to a service on this machine that has none.
func TestDiscoveryIsKeptIn(t *testing.T) {
	other := newIssuer(t, jwk("k", edKey()))
	for name, serve := range map[string]func(issuer string) (target, text string){
		"redirection": func(issuer string) (string, string) { return other.URL + "/.well-known/oauth-authorization-server", "" },
		"downgrade": func(issuer string) (string, string) {
			return "", `{"issuer":"` + issuer + `","jwks_uri":"` + other.URL + `/keys"}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				target, text := serve("https://as.example.org")
				if target != "" {
					http.Redirect(w, r, target, http.StatusFound)
					return
				}
				fmt.Fprint(w, text)
			}))
			defer server.Close()
			config := other.config()
			config.Issuer = "https://as.example.org"
			config.HTTP = &http.Client{Transport: toward{server.Client().Transport, server.URL}}
			token := sign(jwt.SigningMethodEdDSA, edKey(), nil, other.claims(map[string]any{"iss": config.Issuer}))
			if id, err := accepts(oauth(t, config), token); id != "" || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
				t.Errorf("%q, %v", id, err)
			}
		})
	}
	if len(other.visited) != 0 {
		t.Errorf("visited: %v", other.visited)
	}
}

// toward sends the requests for as.example.org to a server on loopback.
type toward struct {
	http.RoundTripper
	to string
}

func (t toward) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "as.example.org" {
		r = r.Clone(r.Context())
		to, err := url.Parse(t.to)
		if err != nil {
			return nil, err
		}
		r.URL.Host = to.Host
	}
	return t.RoundTripper.RoundTrip(r)
}

func TestWellKnown(t *testing.T) {
	for issuer, want := range map[string][]string{
		"https://as.example.org":  {"https://as.example.org/.well-known/oauth-authorization-server", "https://as.example.org/.well-known/openid-configuration"},
		"https://as.example.org/": {"https://as.example.org/.well-known/oauth-authorization-server", "https://as.example.org/.well-known/openid-configuration"},
		"https://as.example.org/a%2Fb/c/": {"https://as.example.org/.well-known/oauth-authorization-server/a%2Fb/c", "https://as.example.org/.well-known/openid-configuration/a%2Fb/c",
			"https://as.example.org/a%2Fb/c/.well-known/openid-configuration"},
	} {
		u, err := url.Parse(issuer)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, wellKnown(u)); diff != "" {
			t.Error(diff)
		}
	}
}

func FuzzKeys(f *testing.F) {
	for _, seed := range []string{`{}`, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}]}`, `{"keys":[{"kty":"oct","k":"AAAA"}]}`, `{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := parseKeys(text)
		if err == nil && (set == nil || len(set) > maxKeys) || err != nil && set != nil {
			t.Errorf("%v, %v", set, err)
		}
	})
}
