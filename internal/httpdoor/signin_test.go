package httpdoor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// pagesSite is a sign-in that serves on loopback, in front of a handler that says what it saw.
type pagesSite struct {
	*SignIn
	t      *testing.T
	url    string
	now    *clock
	log    *syncBuffer
	server *httptest.Server
	behind atomic.Int64 // requests that got through
}

// openPages serves a sign-in until the test ends. Without a next, a page says who asks and gives the
// token for its forms.
func openPages(t *testing.T, cfg SignInConfig, next http.Handler) *pagesSite {
	t.Helper()
	s := &pagesSite{t: t, log: &syncBuffer{}, now: newClock()}
	if cfg.Now == nil {
		cfg.Now = s.now.Now
	}
	if cfg.Page == nil {
		cfg.Page = func(v SignInView) string {
			text, _ := json.Marshal(v)
			return string(text)
		}
	}
	cfg.Log = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g, err := NewSignIn(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.SignIn = g
	if next == nil {
		next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.behind.Add(1)
			fmt.Fprintf(w, "%s %s", access.From(r.Context()).ID, g.Token(r))
		})
	}
	if cfg.Secure {
		s.server = httptest.NewTLSServer(g.Wrap(next))
	} else {
		s.server = httptest.NewServer(g.Wrap(next))
	}
	s.url = s.server.URL
	t.Cleanup(s.server.Close)
	return s
}

// browser keeps cookies and follows no redirect.
type browser struct {
	*http.Client
	s *pagesSite
}

func (s *pagesSite) browser() *browser {
	jar, _ := cookiejar.New(nil) // there are no options that could be wrong
	c := *s.server.Client()
	c.Jar = jar
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{&c, s}
}

// do makes a request as a browser does for a window. A form makes it urlencoded.
func (b *browser) do(method, path string, form url.Values, h header) (*http.Response, string) {
	b.s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.s.t.Context(), method, b.s.url+path, body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,*/*")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for k, v := range h {
		switch {
		case k == "Host":
			req.Host = v
		case v == "-":
			req.Header.Del(k)
		default:
			req.Header.Set(k, v)
		}
	}
	resp, err := b.Do(req)
	if err != nil {
		b.s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	return resp, string(text)
}

func (b *browser) get(path string) (int, string) {
	b.s.t.Helper()
	resp, text := b.do("GET", path, nil, nil)
	return resp.StatusCode, text
}

// page is what a page behind the sign-in says.
func (b *browser) page() (who, token string) {
	b.s.t.Helper()
	status, text := b.get("/")
	if status != 200 {
		b.s.t.Fatalf("the page: %d %s", status, text)
	}
	who, token, _ = strings.Cut(text, " ")
	return who, token
}

// byLink opens a link.
func (b *browser) byLink() {
	b.s.t.Helper()
	at := strings.TrimPrefix(b.s.Link(b.s.url), b.s.url)
	if resp, text := b.do("GET", at, nil, nil); resp.StatusCode != 303 || resp.Header.Get("Location") != "/" {
		b.s.t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
}

// name is that of the site's cookies.
func (s *pagesSite) name() string {
	at, _ := url.Parse(s.url) // it was parsed before
	return s.SignIn.cookie(&http.Request{Host: at.Host})
}

// cookie is that of the session which the browser keeps for the site, nil if there is none.
func (b *browser) cookie() *http.Cookie {
	at, _ := url.Parse(b.s.url) // it was parsed before
	for _, c := range b.Jar.Cookies(at) {
		if c.Name == b.s.name() {
			return c
		}
	}
	return nil
}

func viewOf(t *testing.T, text string) SignInView {
	t.Helper()
	var v SignInView
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("no view: %s", text)
	}
	return v
}

func TestConfig(t *testing.T) {
	_, err := NewSignIn(SignInConfig{Now: time.Now, Hosts: []string{"https://a.example"}})
	if e, ok := err.(*marchwarden.Error); !ok || e.Code != marchwarden.CodeInvalid || e.Field != "hosts" {
		t.Error(err)
	}
}

func TestLinkWorksOnce(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	link := s.Link(s.url + "/")
	at, ok := strings.CutPrefix(link, s.url+"/in?token=")
	if !ok || len(at) < 26 {
		t.Fatalf("the link is %s", link)
	}
	first, second := s.browser(), s.browser()
	if status, _ := first.get("/"); status != 401 {
		t.Errorf("without a link: %d", status)
	}
	// Nothing that is loaded in advance uses it up.
	for _, h := range []header{{"Sec-Purpose": "prefetch"}, {"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}} {
		if resp, _ := first.do("GET", "/in?token="+at, nil, h); resp.StatusCode != 403 || len(resp.Cookies()) != 0 {
			t.Errorf("%v: %d %v", h, resp.StatusCode, resp.Cookies())
		}
	}
	if resp, _ := first.do("HEAD", "/in?token="+at, nil, nil); resp.StatusCode != 200 || len(resp.Cookies()) != 0 {
		t.Errorf("HEAD: %d %v", resp.StatusCode, resp.Cookies())
	}
	if status, _ := first.get("/in?token=" + at); status != 303 {
		t.Fatalf("the link: %d", status)
	}
	if who, _ := first.page(); who != "local" {
		t.Errorf("it is %q", who)
	}
	status, text := second.get("/in?token=" + at)
	if v := viewOf(t, text); status != 401 || v.Problem == "" || v.Hint == "" || v.Form || v.CSRF != "" {
		t.Errorf("once more: %d %s", status, text)
	}
	if status, _ := second.get("/"); status != 401 {
		t.Errorf("the second is in: %d", status)
	}
	// Who is in may follow the old link, and uses up a new one.
	if status, _ := first.get("/in?token=" + at); status != 303 {
		t.Errorf("who is in follows the old link: %d", status)
	}
	fresh := strings.TrimPrefix(s.Link(s.url), s.url)
	first.get(fresh)
	if status, _ := second.get(fresh); status != 401 {
		t.Errorf("a link that was followed by who is in still works: %d", status)
	}
}

func TestLinkWorksForOneOfMany(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	at := strings.TrimPrefix(s.Link(s.url), s.url)
	var in atomic.Int64
	var all sync.WaitGroup
	for range 10 {
		b := s.browser()
		all.Go(func() {
			if resp, _ := b.do("GET", at, nil, nil); resp.StatusCode == 303 {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 1 {
		t.Errorf("%d came in by one link", in.Load())
	}
}

func TestLinkEnds(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	early, late := strings.TrimPrefix(s.Link(s.url), s.url), strings.TrimPrefix(s.Link(s.url), s.url)
	s.now.add(10*time.Minute - time.Second)
	if status, _ := s.browser().get(early); status != 303 {
		t.Errorf("before 10 minutes are over: %d", status)
	}
	s.now.add(time.Second)
	if status, _ := s.browser().get(late); status != 401 {
		t.Errorf("after 10 minutes: %d", status)
	}
}

func TestLinksDoNotGrow(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	oldest := strings.TrimPrefix(s.Link(s.url), s.url)
	s.now.add(time.Second)
	for range maxLinks {
		s.Link(s.url)
	}
	if n := len(s.links.waiting.young) + len(s.links.waiting.old); n > maxLinks || n < maxLinks/2 {
		t.Errorf("%d links wait", n)
	}
	if status, _ := s.browser().get(oldest); status != 401 {
		t.Errorf("the oldest link: %d", status)
	}
}

func TestInSaysHowToGetIn(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	b := s.browser()
	status, text := b.get("/in")
	if v := viewOf(t, text); status != 200 || !strings.Contains(v.Hint, "marchwarden ui") || v.Form || v.Who != "" {
		t.Errorf("%d %s", status, text)
	}
	b.byLink()
	_, token := b.page()
	_, text = b.get("/in")
	if v := viewOf(t, text); v.Who != "local" || v.Hint != "" || v.CSRF != token {
		t.Errorf("who is in: %s", text)
	}
}

func TestLinksOfAnotherServer(t *testing.T) {
	s, other := openPages(t, SignInConfig{}, nil), openPages(t, SignInConfig{}, nil)
	if status, _ := s.browser().get(other.Link("")); status != 401 {
		t.Errorf("%d", status)
	}
	for _, q := range []string{"?token=", "?token", "?token=%00", "?token=" + strings.Repeat("A", 5000), "?token=a&token=b"} {
		if status, _ := s.browser().get("/in" + q); status != 401 && !(status == 200 && strings.TrimSuffix(q, "=") == "?token") {
			t.Errorf("%.40s: %d", q, status)
		}
	}
}

// A session is of one server, and ends with it.
func TestRestartKeepsTheLocalUser(t *testing.T) {
	kept := SignInConfig{Kept: filepath.Join(t.TempDir(), "ui-sessions.json")}
	s := openPages(t, kept, nil)
	b, out := s.browser(), s.browser()
	b.byLink()
	out.byLink()
	out.do("POST", "/out", nil, header{formHeader: formOf(out.cookie().Value)})
	again := openPages(t, kept, nil)
	for value, want := range map[string]int{b.cookie().Value: 200, "": 401, "another": 401} {
		if resp, _ := again.browser().do("GET", "/", nil, header{"Cookie": again.name() + "=" + value}); resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", value, resp.StatusCode, want)
		}
	}
	text, err := os.ReadFile(kept.Kept)
	if err != nil || bytes.Contains(text, []byte(b.cookie().Value)) || bytes.Count(text, []byte("Z\"")) != 1 {
		t.Errorf("kept: %s, %v", text, err)
	}
}

func TestRestart(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	b := s.browser()
	b.byLink()
	again := openPages(t, SignInConfig{}, nil)
	for _, name := range []string{s.name(), again.name()} {
		if resp, _ := again.browser().do("GET", "/", nil, header{"Cookie": name + "=" + b.cookie().Value}); resp.StatusCode != 401 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}
