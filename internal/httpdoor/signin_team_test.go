package httpdoor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// team is a site with a file of tokens: of ann, who may ask and read, of bob, who may read, and
// of mon, who may ask and not read.
type team struct {
	*pagesSite
	tokens        *access.Tokens
	ann, bob, mon string
}

func openTeam(t *testing.T, cfg SignInConfig, next http.Handler) *team {
	t.Helper()
	now := newClock()
	tokens, err := access.OpenTokens(filepath.Join(t.TempDir(), "tokens.json"), now.Now)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, scopes ...string) string {
		text, err := tokens.Add(rand.Reader, access.Token{Name: name, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	tm := &team{tokens: tokens, ann: add("ann", access.ScopeResearch, access.ScopeRead), bob: add("bob", access.ScopeRead), mon: add("mon", access.ScopeResearch)}
	cfg.Now = now.Now
	if cfg.Auth == nil {
		cfg.Auth = tokens
	}
	tm.pagesSite = openPages(t, cfg, next)
	tm.now = now
	return tm
}

// sign sends a token by the form.
func (b *browser) sign(token, next string) (*http.Response, string) {
	b.s.t.Helper()
	return b.do("POST", "/in", url.Values{"token": {token}, "next": {next}}, header{"Origin": b.s.url})
}

func TestTeam(t *testing.T) {
	s := openTeam(t, SignInConfig{}, nil)
	if link := s.Link("http://127.0.0.1:1"); link != "http://127.0.0.1:1/in" {
		t.Errorf("the link of a team is %s", link)
	}
	ann, bob := s.browser(), s.browser()
	status, text := ann.get("/runs/7?tab=gaps")
	if v := viewOf(t, text); status != 401 || !v.Form || v.CSRF != "" || v.Next != "/runs/7?tab=gaps" || v.Problem != "" || v.Who != "" {
		t.Errorf("%d %s", status, text)
	}
	resp, _ := ann.sign(" "+s.ann+"\n", "/runs/7?tab=gaps")
	if resp.StatusCode != 303 || resp.Header.Get("Location") != "/runs/7?tab=gaps" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	c := resp.Cookies()
	if len(c) != 1 || c[0].Name != s.name() || strings.Contains(c[0].Value, s.ann) || c[0].MaxAge <= 0 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode || c[0].Path != "/" {
		t.Errorf("%v", c)
	}
	bob.sign(s.bob, "")
	annWho, annToken := ann.page()
	bobWho, bobToken := bob.page()
	if annWho != "token:ann" || bobWho != "token:bob" || annToken == bobToken {
		t.Errorf("%s %s", annWho, bobWho)
	}
	// A session is new when a user signs in: one that was planted before is no one's.
	planted := s.browser()
	if resp, _ := planted.do("POST", "/in", url.Values{"token": {s.ann}}, header{"Cookie": s.name() + "=planted"}); resp.StatusCode != 303 || resp.Cookies()[0].Value == "planted" {
		t.Errorf("%d %v", resp.StatusCode, resp.Cookies())
	}
	if resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": s.name() + "=planted"}); resp.StatusCode != 401 {
		t.Errorf("the planted session: %d", resp.StatusCode)
	}
	if resp, _ := ann.do("POST", "/ask", url.Values{"csrf": {bobToken}}, nil); resp.StatusCode != 403 {
		t.Errorf("a form of bob: %d", resp.StatusCode)
	}
	if _, text := ann.get("/in"); viewOf(t, text).Who != "token:ann" || viewOf(t, text).CSRF != annToken {
		t.Errorf("/in of who is in: %s", text)
	}
	old := ann.cookie().String()
	ann.sign(s.bob, "") // on another's behalf, from the same window
	if who, _ := ann.page(); who != "token:bob" {
		t.Errorf("it is %s", who)
	}
	if resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": old}); resp.StatusCode != 401 {
		t.Errorf("the session of ann goes on: %d", resp.StatusCode)
	}
}

func TestSigningInMustBeMeant(t *testing.T) {
	s := openTeam(t, SignInConfig{}, nil)
	for name, h := range map[string]header{
		"other site":   {"Sec-Fetch-Site": "cross-site"},
		"other port":   {"Sec-Fetch-Site": "same-site"},
		"navigation":   {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
		"other origin": {"Origin": "https://evil.example"},
		"no origin":    {"Origin": "null"},
	} {
		b := s.browser()
		resp, text := b.do("POST", "/in", url.Values{"token": {s.ann}}, h)
		if resp.StatusCode != 403 || strings.Contains(text, s.ann) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
		if status, _ := b.get("/"); status != 401 {
			t.Errorf("%s: is in", name)
		}
	}
	if resp, _ := s.browser().do("POST", "/in?token="+s.ann, url.Values{}, nil); resp.StatusCode != 400 {
		t.Errorf("%d", resp.StatusCode)
	}
	// A token in the address is not looked at.
	late := s.browser()
	if status, _ := late.get("/in?token=" + s.ann); status != 200 || late.cookie() != nil {
		t.Errorf("%d", status)
	}
	if status, _ := late.get("/"); status != 401 {
		t.Errorf("in by a token in the address: %d", status)
	}
}

func TestRevokedTokenEndsTheSession(t *testing.T) {
	s := openTeam(t, SignInConfig{}, nil)
	ann, bob := s.browser(), s.browser()
	ann.sign(s.ann, "")
	bob.sign(s.bob, "")
	_, token := ann.page()
	if err := s.tokens.Remove("ann"); err != nil {
		t.Fatal(err)
	}
	s.now.add(time.Second) // the file is looked at again
	if resp, _ := ann.do("POST", "/ask", url.Values{"csrf": {token}}, header{"Accept": "*/*"}); resp.StatusCode != 401 || len(resp.Cookies()) != 1 || resp.Cookies()[0].MaxAge >= 0 {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	ann = s.browser()
	if resp, _ := ann.sign(s.ann, ""); resp.StatusCode != 401 {
		t.Errorf("signing in again: %d", resp.StatusCode)
	}
	if who, _ := bob.page(); who != "token:bob" {
		t.Errorf("bob is %q", who)
	}
}

func TestRevokedTokenAtAPage(t *testing.T) {
	s := openTeam(t, SignInConfig{}, nil)
	ann := s.browser()
	ann.sign(s.ann, "")
	before := ann.cookie()
	if err := s.tokens.Remove("ann"); err != nil {
		t.Fatal(err)
	}
	s.now.add(time.Second)
	status, text := ann.get("/runs/7")
	v := viewOf(t, text)
	if status != 401 || v.Problem != "the token is refused" || !v.Form || v.Next != "/runs/7" || before == nil || ann.cookie() != nil {
		t.Fatalf("%d %s", status, text)
	}
	if resp, _ := ann.do("POST", "/in", url.Values{"csrf": {v.CSRF}, "token": {s.bob}, "next": {v.Next}}, nil); resp.StatusCode != 303 {
		t.Errorf("with another token: %d", resp.StatusCode)
	}
}

func TestScopeAndOtherRefusals(t *testing.T) {
	var fault atomic.Value
	s := openTeam(t, SignInConfig{Auth: authFunc(func(_ context.Context, token string) (access.Principal, error) {
		if err, _ := fault.Load().(error); err != nil && !errors.Is(err, errNotSignedIn) {
			return access.Principal{}, err
		}
		if token == "nobody" {
			return access.Principal{}, nil
		}
		return access.Principal{ID: "token:" + token, Scopes: map[string][]string{"ann": access.Scopes(), "asks": {access.ScopeResearch}, "mon": {"other"}}[token]}, nil
	})}, nil)
	for token, want := range map[string]int{"ann": 303, "asks": 403, "mon": 403, "none": 403, "nobody": 401, "": 400, " ": 400} {
		b := s.browser()
		resp, text := b.sign(token, "/x")
		if resp.StatusCode != want {
			t.Errorf("%.20s: %d %s", token, resp.StatusCode, text)
		}
		if want == 303 {
			continue
		}
		if v := viewOf(t, text); v.Problem == "" || !v.Form || v.Next != "/x" {
			t.Errorf("%.20s: %s", token, text)
		}
		if status, _ := b.get("/"); status != 401 {
			t.Errorf("%.20s is in: %d", token, status)
		}
	}
	// When the token cannot be checked, the session is kept until it can.
	b := s.browser()
	b.sign("ann", "")
	fault.Store(error(marchwarden.Errorf(marchwarden.CodeUnavailable, "the issuer is away")))
	for _, at := range []string{"/", "/in"} {
		if resp, _ := b.do("GET", at, nil, nil); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || len(resp.Cookies()) != 0 {
			t.Errorf("%s: %d %v", at, resp.StatusCode, resp.Header)
		}
	}
	fault.Store(error(errNotSignedIn))
	if who, _ := b.page(); who != "token:ann" {
		t.Errorf("and then: %s", who)
	}
}

// The local user sees everything: the cookie of that one is nothing to a team, nor the other
// way round.
func TestSessionsOfOthersAreNone(t *testing.T) {
	alone, s := openPages(t, SignInConfig{}, nil), openTeam(t, SignInConfig{}, nil)
	user, ann := alone.browser(), s.browser()
	user.byLink()
	ann.sign(s.ann, "")
	if resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": user.cookie().String()}); resp.StatusCode != 401 {
		t.Errorf("the local user in a team: %d", resp.StatusCode)
	}
	if resp, _ := alone.browser().do("GET", "/", nil, header{"Cookie": ann.cookie().String()}); resp.StatusCode != 401 {
		t.Errorf("ann with the local user: %d", resp.StatusCode)
	}
	if status, _ := s.browser().get(alone.Link("")); status != 200 {
		t.Errorf("a link in a team: %d", status)
	}
	if resp, _ := user.do("POST", "/in", url.Values{"token": {s.ann}}, nil); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("a token without a team: %d", resp.StatusCode)
	}
}

func TestGuessingIsSlow(t *testing.T) {
	s := openTeam(t, SignInConfig{}, nil)
	ann, eve := s.browser(), s.browser()
	ann.sign(s.ann, "")
	counts := map[int]int{}
	for i := range 50 {
		resp, _ := eve.sign(fmt.Sprint("guess", i), "")
		if counts[resp.StatusCode]++; resp.StatusCode == 429 && resp.Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	if counts[401] != 20 || counts[429] != 30 {
		t.Errorf("%v", counts)
	}
	if who, _ := ann.page(); who != "token:ann" {
		t.Errorf("who works is locked out: %s", who)
	}
	if resp, _ := eve.sign(s.bob, ""); resp.StatusCode != 429 {
		t.Errorf("the right one among guesses: %d", resp.StatusCode)
	}
	s.now.add(2 * time.Second)
	if resp, _ := eve.sign(s.bob, ""); resp.StatusCode != 303 {
		t.Errorf("after a while: %d", resp.StatusCode)
	}
	alone := openPages(t, SignInConfig{}, nil)
	link := alone.Link("")
	counts = map[int]int{}
	for i := range 50 {
		status, _ := alone.browser().get(fmt.Sprint("/in?token=guess", i))
		counts[status]++
	}
	if counts[401] != 20 || counts[429] != 30 {
		t.Errorf("links: %v", counts)
	}
	// All programs on loopback have one address: none of them can lock the user out.
	if status, _ := alone.browser().get(link); status != 303 {
		t.Errorf("the right link: %d", status)
	}
	if status, _ := alone.browser().get(link); status != 429 {
		t.Errorf("the right link once more: %d", status)
	}
}

// A stream of events does not outlive the right to see it.
func TestLongRequestsEndWithTheSession(t *testing.T) {
	for name, end := range map[string]func(s *team, b *browser, token string){
		"revoked":  func(s *team, _ *browser, _ string) { _ = s.tokens.Remove("ann"); s.now.add(time.Second) },
		"too old":  func(s *team, _ *browser, _ string) { s.now.add(sessionLife) },
		"sign out": func(_ *team, b *browser, token string) { b.do("POST", "/out", url.Values{"csrf": {token}}, nil) },
	} {
		began, ended := make(chan struct{}), make(chan struct{})
		var g *SignIn
		s := openTeam(t, SignInConfig{Recheck: 20 * time.Millisecond}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/events" {
				fmt.Fprint(w, access.From(r.Context()).ID, " ", g.Token(r))
				return
			}
			close(began)
			<-r.Context().Done()
			close(ended)
		}))
		g = s.SignIn
		b := s.browser()
		b.sign(s.ann, "")
		_, token := b.page()
		gone := make(chan struct{})
		go func() { defer close(gone); b.get("/events") }()
		<-began
		select {
		case <-ended:
			t.Fatalf("%s: it ended by itself", name)
		case <-time.After(100 * time.Millisecond):
		}
		end(s, b, token)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it goes on", name)
		}
		<-gone
	}
}
