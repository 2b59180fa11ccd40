package httpdoor

import (
	"encoding/base64"
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
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Secure != secure || c.MaxAge != 30*24*3600 {
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
	kept := b.cookie().String()
	if status, _ := b.get("/out"); status != 405 {
		t.Errorf("GET: %d", status)
	}
	if who, _ := b.page(); who != "local" {
		t.Error("a GET signed out")
	}
	for _, csrf := range []string{"", "x", s.formToken(s.begin(local, time.Hour, ""))} {
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

func TestEndedDoNotGrow(t *testing.T) {
	e := newExpiring[int](3)
	now := newClock().Now()
	for i := range 5 {
		e.add(i, now.Add(time.Duration(10-i)*time.Minute)) // the last ends first
	}
	if len(e.ends) != 3 || !e.has(4) || e.has(3) || e.has(2) || !e.has(0) {
		t.Errorf("%v", e.ends)
	}
	if end, ok := e.take(4); !ok || !end.Equal(now.Add(6*time.Minute)) || e.has(4) {
		t.Errorf("%v %v", end, ok)
	}
}

func TestForgedCookies(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	b := s.browser()
	b.byLink()
	good := b.cookie().Value
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		"empty": "", "a word": "local", "padding": good + "=", "truncated": good[:len(good)-1], "half": good[:len(good)/2], "longer": good + "A", "twice": good + good,
		"huge": strings.Repeat("A", 100_000), "huge with a good end": strings.Repeat("A", 4000) + good, "plain": base64.RawURLEncoding.EncodeToString(append([]byte{2}, make([]byte, 40)...)),
		"form token": s.formToken(s.begin(local, time.Hour, "")),
		"visitor":    s.encode(s.begin(visitor, time.Hour, "")), "member": s.encode(s.begin(member, time.Hour, "x")), "no kind": s.encode(s.begin(0, time.Hour, "")), "other kind": s.encode(s.begin(9, time.Hour, "")),
		"over": s.encode(s.begin(local, 0, "")), "long over": s.encode(s.begin(local, -1000*time.Hour, "")),
		"sealed, but short": base64.RawURLEncoding.EncodeToString(s.seal.Seal(nil, nil, []byte{2}, nil)),
	}
	for i := range raw {
		changed := append([]byte(nil), raw...)
		changed[i] ^= 1
		bad["bit "+string(rune('0'+i))] = base64.RawURLEncoding.EncodeToString(changed)
	}
	for name, value := range bad {
		resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": s.cookie + "=" + value})
		if resp.StatusCode != 401 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
		if len(resp.Cookies()) != 1 || resp.Cookies()[0].MaxAge >= 0 {
			t.Errorf("%s: the browser keeps it: %v", name, resp.Header["Set-Cookie"])
		}
	}
	// Another server on this machine may put cookies of our name beside ours, but not many.
	for many, want := range map[int]int{1: 200, 3: 200, 4: 401} {
		resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": strings.Repeat(s.cookie+"=x; ", many) + s.cookie + "=" + good})
		if resp.StatusCode != want {
			t.Errorf("behind %d others: %d", many, resp.StatusCode)
		}
	}
	if resp, _ := s.browser().do("GET", "/", nil, header{"Cookie": "marchwarden=" + good}); resp.StatusCode != 401 || len(resp.Cookies()) != 0 {
		t.Errorf("under another name: %d", resp.StatusCode)
	}
}

// aSession is one, and the cookie that was once made of it by testKey.
func aSession() (*session, string) {
	s := &session{kind: member, end: time.Unix(1767323045, 0), token: "mw_secret"}
	for i := range s.id {
		s.id[i] = byte(i)
	}
	return s, "f3ffDXLMoWGBEeswcDlZsXJcpOyzZkHYjyewSWUT4E8rRG35GbxKc84gNCjKEWAmX_NvPGl6muFgnoK1yBo"
}

// A new version of the program knows the sessions and the forms of the one before.
func TestCookiesOfBeforeAreKnown(t *testing.T) {
	g, err := NewSignIn(SignInConfig{Now: newClock().Now, Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	want, value := aSession()
	got, ok := g.decode(value)
	if !ok || got.kind != want.kind || got.id != want.id || got.token != want.token || !got.end.Equal(want.end) {
		t.Errorf("%v %v", got, ok)
	}
	if g.cookie != "marchwarden-1b4f9f04" || g.formToken(want) != "ETGhcj7O8Js3Pemiv71l2Uy4qcRo1MuasvwEJ9fNeBg" {
		t.Errorf("%s %s", g.cookie, g.formToken(want))
	}
}

// Whatever is put into a cookie, only what was sealed here is a session.
func FuzzCookie(f *testing.F) {
	g, err := NewSignIn(SignInConfig{Now: time.Now, Key: testKey})
	if err != nil {
		f.Fatal(err)
	}
	want, good := aSession()
	for _, s := range []string{good, good[1:], good + "\n", good[:10] + "\r\n" + good[10:], "", "AAAA", strings.Repeat("A", maxCookie+1), strings.ToUpper(good)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s, ok := g.decode(value)
		if ok != (value == good) {
			t.Fatalf("%q is a session: %v", value, ok)
		}
		if ok && (s.kind != want.kind || s.id != want.id || s.token != want.token || !s.end.Equal(want.end)) {
			t.Errorf("%v became %v", want, s)
		}
	})
}

func TestSealingIsReversible(t *testing.T) {
	g, err := NewSignIn(SignInConfig{Now: newClock().Now, Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := g.decode(g.encode(g.begin(member, time.Hour, strings.Repeat("t", maxCookie)))); ok {
		t.Error("a cookie that no browser keeps is looked at")
	}
	seen := map[string]bool{}
	for _, token := range []string{"", "x", strings.Repeat("t", maxToken)} {
		for range 3 {
			s := g.begin(member, time.Hour, token)
			value := g.encode(s)
			got, ok := g.decode(value)
			if !ok || got.id != s.id || got.token != token || !got.end.Equal(s.end) || got.kind != member {
				t.Errorf("%d bytes: %v %v", len(token), got, ok)
			}
			if seen[value] || seen[g.formToken(s)] || len(value)+len(g.cookie) > 4096 || len(token) > 8 && strings.Contains(value, base64.RawURLEncoding.EncodeToString([]byte(token))) {
				t.Errorf("%d bytes: %.80s", len(token), value)
			}
			seen[value], seen[g.formToken(s)] = true, true
		}
	}
}
