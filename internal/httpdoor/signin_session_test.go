package httpdoor

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestCookie(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := openPages(t, SignInConfig{Secure: secure}, nil)
		b := s.browser()
		resp, _ := b.do("GET", strings.TrimPrefix(s.Link(s.url), s.url), nil, nil)
		if len(resp.Cookies()) != 1 {
			t.Fatal(resp.Header)
		}
		c := resp.Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.Secure != secure || c.MaxAge != 30*24*3600 {
			t.Errorf("secure %v: %v", secure, c)
		}
		if strings.HasPrefix(c.Name, "__Host-") != secure || len(c.Name)+len(c.Value) > 4096 {
			t.Errorf("secure %v: %v", secure, c)
		}
		_, token := b.page()
		resp, _ = b.do("POST", "/out", url.Values{"csrf": {token}}, nil)
		c = resp.Cookies()[0]
		if c.MaxAge >= 0 || c.Value != "" || c.Path != "/" || c.Secure != secure || !c.HttpOnly {
			t.Errorf("signing out, secure %v: %v", secure, c)
		}
	}
}

func TestSessionEnds(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	b := s.browser()
	b.byLink()
	kept := b.cookie().String()
	get := func() int {
		resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": kept})
		return resp.StatusCode
	}
	s.now.add(30*24*time.Hour - 2*time.Second)
	if got := get(); got != 200 {
		t.Errorf("before its end: %d", got)
	}
	s.now.add(2 * time.Second)
	if got := get(); got != 401 {
		t.Errorf("after its end: %d", got)
	}
}

func TestSigningOutEndsCopies(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	b, other := s.browser(), s.browser()
	b.byLink()
	other.byLink()
	_, token := b.page()
	_, otherToken := other.page()
	kept := b.cookie().String()
	if status, _ := b.get("/out"); status != 405 {
		t.Errorf("GET: %d", status)
	}
	if who, _ := b.page(); who != "local" {
		t.Error("a GET signed out")
	}
	for _, csrf := range []string{"", "x", otherToken} {
		if resp, _ := b.do("POST", "/out", url.Values{"csrf": {csrf}}, nil); resp.StatusCode != 403 || b.cookie() == nil {
			t.Errorf("with %q: %d", csrf, resp.StatusCode)
		}
	}
	if who, _ := b.page(); who != "local" {
		t.Error("a forged form signed out")
	}
	resp, _ := b.do("POST", "/out", url.Values{"csrf": {token}}, nil)
	if resp.StatusCode != 303 || resp.Header.Get("Location") != "/in" || b.cookie() != nil {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": kept}); resp.StatusCode != 401 {
		t.Errorf("a copy of the cookie: %d", resp.StatusCode)
	}
	if who, _ := other.page(); who != "local" {
		t.Error("another session ended, too")
	}
	if resp, _ := b.do("POST", "/out", url.Values{"csrf": {token}}, nil); resp.StatusCode != 401 {
		t.Errorf("once more: %d", resp.StatusCode)
	}
}

func TestForgedCookies(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	b := s.browser()
	b.byLink()
	good := b.cookie().Value
	try := func(cookies ...string) int {
		resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": strings.Join(cookies, "; ")})
		return resp.StatusCode
	}
	for _, bad := range []string{"", "x", good + "A", good[1:], strings.ToLower(good), strings.Repeat("A", 10_000)} {
		if got := try(s.name() + "=" + bad); got != 401 {
			t.Errorf("%.40q: %d", bad, got)
		}
		if got := try(s.name()+"="+bad, s.name()+"="+good); got != 200 {
			t.Errorf("the right one after %.40q: %d", bad, got)
		}
	}
	if got := try("marchwarden-1=" + good); got != 401 {
		t.Errorf("by the name of another port: %d", got)
	}
}
