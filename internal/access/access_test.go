package access

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestPrincipal(t *testing.T) {
	forged := Principal{Scopes: Scopes()}
	for _, c := range []struct {
		name                string
		p                   Principal
		research, read, all bool
	}{
		{"nobody", Principal{}, false, false, false},
		{"nobody with scopes", forged, false, false, false},
		{"local", Local(), true, true, true},
		{"anonymous", Anonymous(), true, true, false},
		{"a token", Principal{ID: "token:local", Scopes: []string{ScopeResearch}}, true, false, false},
		{"without a context", From(context.Background()), false, false, false},
		{"by a context", From(With(context.Background(), Local())), true, true, true},
		{"by an inner context", From(With(With(context.Background(), Local()), Principal{})), false, false, false},
	} {
		if c.p.May(ScopeResearch) != c.research || c.p.May(ScopeRead) != c.read || c.p.SeesAll() != c.all || c.p.May("") {
			t.Errorf("%s: %+v may %t, %t, sees all %t", c.name, c.p, c.p.May(ScopeResearch), c.p.May(ScopeRead), c.p.SeesAll())
		}
	}
	Local().Scopes[0] = "gone"
	if !Local().May(ScopeResearch) {
		t.Error("one caller's scopes are another's")
	}
}

func TestCheckScopes(t *testing.T) {
	got, err := CheckScopes([]string{"read", "research", "read"})
	if diff := cmp.Diff([]string{"research", "read"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range [][]string{nil, {""}, {"read", "write"}, {"Read"}, {"read "}, {"metrics"}} {
		if got, err := CheckScopes(bad); marchwarden.CodeOf(err) != marchwarden.CodeInvalid || got != nil {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func TestFixed(t *testing.T) {
	const secret = "abcdefgh12345678"
	f, err := Fixed("env", secret)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Authenticate(context.Background(), secret)
	if diff := cmp.Diff(Principal{ID: "token:env", Scopes: Scopes()}, p); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"", secret[1:], secret + "9", strings.ToUpper(secret)} {
		if p, err := f.Authenticate(context.Background(), bad); marchwarden.CodeOf(err) != marchwarden.CodeDenied || p.ID != "" {
			t.Errorf("%q: %v, %v", bad, p, err)
		}
	}
	for _, c := range []struct{ name, token string }{
		{"env", secret[1:]},
		{"env", secret + "\n"},
		{"env", secret + " x"},
		{"env", "=" + secret},
		{"env", secret + "é"},
		{"env", strings.Repeat("x", maxTokenBytes+1)},
		{"", secret},
		{"a b", secret},
	} {
		_, err := Fixed(c.name, c.token)
		if marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%+v: %v", c, err)
		} else if strings.Contains(err.Error()+marchwarden.HintOf(err), secret[2:]) {
			t.Errorf("the token is in %q", err)
		}
	}
}

// static answers always the same.
type static struct {
	p   Principal
	err error
}

func (s static) Authenticate(context.Context, string) (Principal, error) { return s.p, s.err }

func TestChain(t *testing.T) {
	unknown, scope, expired := static{err: refuse(errUnknown)}, static{err: refuse(ErrScope)}, static{err: refuse(errExpired)}
	down := static{err: marchwarden.Errorf(marchwarden.CodeUnavailable, "down")}
	one, two := static{p: Principal{ID: "token:1"}}, static{p: Principal{ID: "token:2"}}
	for _, c := range []struct {
		name string
		all  []Authenticator
		id   string
		err  error
	}{
		{"none", nil, "", errUnknown},
		{"the first", []Authenticator{one, two}, "token:1", nil},
		{"the second", []Authenticator{expired, two}, "token:2", nil},
		{"one is down", []Authenticator{down, two}, "token:2", nil},
		{"down and unknown", []Authenticator{down, unknown}, "", marchwarden.CodeUnavailable},
		{"unknown and down", []Authenticator{unknown, down}, "", marchwarden.CodeUnavailable},
		{"scope", []Authenticator{unknown, scope, expired}, "", ErrScope},
		{"expired", []Authenticator{unknown, expired, unknown}, "", errExpired},
	} {
		p, err := chain(c.all).Authenticate(context.Background(), "x")
		if p.ID != c.id || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", c.name, p, err)
		}
	}
}

func TestMetadata(t *testing.T) {
	text, _, err := Metadata("https://r.example.org/mcp", "https://as.example.org", "Marchwarden")
	want := `{"resource":"https://r.example.org/mcp","authorization_servers":["https://as.example.org"],"scopes_supported":["research","read"],"bearer_methods_supported":["header"],"resource_name":"Marchwarden"}`
	if string(text) != want || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	for resource, want := range map[string]string{
		"https://r.example.org/mcp":   "https://r.example.org/.well-known/oauth-protected-resource/mcp",
		"https://r.example.org":       "https://r.example.org/.well-known/oauth-protected-resource",
		"http://[::1]:8642/":          "http://[::1]:8642/.well-known/oauth-protected-resource",
		"":                            "",
		"/mcp":                        "",
		"ftp://r.example.org/mcp":     "",
		"https://me:x@r.example.org/": "",
		"https://r.example.org/?a=b":  "",
		"https://r.example.org/#a":    "",
	} {
		_, got, err := Metadata(resource, "", "")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", resource, got, err)
		}
	}
}

// A digest is of one token alone, and of nothing that is framed in another way.
func TestDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if (digestOf(a) == digestOf(b)) != (a == b) {
			t.Fatalf("%q and %q", a, b)
		}
	})
}
