//go:build unix

package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What is wrong with a flag is said by its name, before anything is made or opened.
func TestServeRefusesByTheNameOfTheFlag(t *testing.T) {
	for _, tc := range []struct {
		o    serveOptions
		flag string
	}{
		{serveOptions{door: doorOptions{hosts: []string{"*"}}}, "--allowed-hosts"},
		{serveOptions{door: doorOptions{hosts: []string{"a.org", ""}}}, "--allowed-hosts"},
		{serveOptions{origins: []string{"null"}}, "--allowed-origins"},
		{serveOptions{origins: []string{"https://a.org/"}}, "--allowed-origins"},
		{serveOptions{door: doorOptions{publicURL: "https://a.org:99999/mcp"}}, "--public-url"},
		{serveOptions{door: doorOptions{publicURL: "https://a.org/mcp?"}}, "--public-url"},
		{serveOptions{noAuth: true, issuer: "https://a.org"}, "--no-auth"},
		{serveOptions{door: doorOptions{cert: "/nowhere/c.pem", key: "/nowhere/k.pem"}}, "--tls-cert"},
	} {
		tc.o.http = "127.0.0.1:0"
		err := tc.o.check()
		if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || !strings.HasPrefix(err.Error(), tc.flag+": ") {
			t.Errorf("%s: %v", tc.flag, err)
		}
	}
	good := serveOptions{http: "127.0.0.1:0", door: doorOptions{hosts: []string{"a.org"}, publicURL: "https://c.org/mcp"}, origins: []string{"https://b.org"}}
	if err := good.check(); err != nil {
		t.Error(err)
	}
}

// The address that a server listens on is no name that tokens could be made for.
func TestOAuthForOthersNeedsAName(t *testing.T) {
	a := world(t, nil)
	a.Now = time.Now
	c, err := a.loadConfig()
	if err != nil {
		t.Fatal(err)
	}
	const listen = "0.0.0.0:1"
	o := &serveOptions{issuer: "https://login.example.org", listen: listen}
	if _, err := doorkeeper(a, c, o, "http://localhost:1/mcp", nil); err == nil || !strings.HasPrefix(err.Error(), "--oauth-issuer: ") {
		t.Errorf("%v", err)
	}
	for _, named := range []*serveOptions{{issuer: o.issuer, door: doorOptions{publicURL: "https://a.org/mcp"}, listen: listen}, {issuer: o.issuer, audience: "a", listen: listen}} {
		if _, err := doorkeeper(a, c, named, "https://a.org/mcp", nil); err != nil {
			t.Error(err)
		}
	}
}

// The token of the variable goes by the variable's name, which no other may have: it
// would see the runs of it.
func TestNoTokenHasTheNameOfTheVariable(t *testing.T) {
	a := world(t, nil)
	a.Now, a.stdout = time.Now, io.Discard
	err := addToken(a, nil, "MARCHWARDEN_HTTP_TOKEN", []string{"read"}, "", nil)
	if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || !strings.HasPrefix(err.Error(), "NAME: ") {
		t.Errorf("%v", err)
	}
}

// A server whose home cannot be written to still answers, and says what is lost.
func TestServesWithoutAFolderOfRuns(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	home := w.home(t)
	write(t, filepath.Join(home, ".marchwarden", "runs"), "") // no folder, also for root, whom no mode stops
	s := w.serve(t, home, servings["pi"]...)
	if !strings.Contains(s.log.String(), "runs cannot be kept") {
		t.Errorf("it says %s", s.log)
	}
	for _, era := range []string{eraLegacy, eraModern} {
		res, err := newHost(t, s.url, "", era).research(t.Context(), map[string]any{"question": "What is BM25?"})
		if err != nil || res.Answer == "" {
			t.Errorf("%s: %v", era, err)
		}
	}
}
