package httpdoor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

func TestHeadersOfEveryAnswer(t *testing.T) {
	want := header{
		"Content-Security-Policy":      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
		"Permissions-Policy":           noFeatures,
	}
	next := http.NewServeMux()
	next.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	next.HandleFunc("GET /moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusSeeOther) })
	next.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) })
	alone, s := openPages(t, SignInConfig{}, next), openTeam(t, SignInConfig{Public: []string{"/nowhere"}}, next)
	user := alone.browser()
	link := alone.Link("")
	ann := s.browser()
	check := func(b *browser, method, path string, form url.Values, h header, status int) {
		t.Helper()
		resp, text := b.do(method, path, form, h)
		if resp.StatusCode != status {
			t.Errorf("%s %s: %d, want %d: %s", method, path, resp.StatusCode, status, text)
		}
		for k, v := range want {
			if got := resp.Header.Values(k); len(got) != 1 || got[0] != v {
				t.Errorf("%s %s (%d): %s is %q", method, path, status, k, got)
			}
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: %v", method, path, resp.Header)
		}
	}
	check(user, "GET", "/", nil, nil, 401)
	check(user, "GET", "/in", nil, nil, 200)
	check(user, "POST", "/in", url.Values{}, nil, 405)
	check(user, "GET", "/in?token=x", nil, nil, 401)
	check(user, "GET", link, nil, header{"Sec-Purpose": "prefetch"}, 403)
	check(user, "GET", link, nil, header{"Host": "evil.example"}, 403)
	check(user, "GET", link, nil, nil, 303)
	for path, status := range map[string]int{"/": 200, "/moved": 303, "/broken": 500, "/nowhere": 404, "/../": 307, "/out": 405, "/in": 200} {
		check(user, "GET", path, nil, nil, status)
	}
	check(user, "HEAD", "/", nil, nil, 200)
	check(user, "POST", "/", nil, nil, 403)
	check(user, "GET", "/", nil, header{"Origin": "https://evil.example"}, 403)
	check(user, "OPTIONS", "/", nil, nil, 405)
	check(s.browser(), "GET", "/nowhere", nil, nil, 404)
	check(ann, "GET", "/", nil, header{"Accept": "text/event-stream"}, 401)
	check(ann, "POST", "/in", url.Values{"token": {"x"}}, nil, 401)
	check(ann, "POST", "/in", url.Values{"token": {s.mon}}, nil, 403)
	check(ann, "POST", "/in", url.Values{}, nil, 400)
	check(ann, "POST", "/in", url.Values{}, header{"Origin": "https://evil.example"}, 403)
	check(ann, "POST", "/in", url.Values{"token": {s.ann}}, nil, 303)
	_, text := ann.get("/in")
	check(ann, "POST", "/out", url.Values{"csrf": {viewOf(t, text).CSRF}}, nil, 303)
	for range 25 {
		ann.sign("guess", "")
	}
	check(ann, "POST", "/in", url.Values{"token": {s.ann + "x"}}, nil, 429)
}

// hostile are places that one must not be sent on to.
var hostile = []string{
	"", "https://evil.example", "http:evil.example", "//evil.example", "///evil.example", `/\evil.example`, `\\evil.example`, `/x\..\y`, "/\t/evil.example", "/\n/evil.example", "/\r\nSet-Cookie: a=b", "\t//evil.example", " //evil.example", "/ /evil.example",
	"javascript:alert(1)", "data:text/html,x", "evil.example", "@evil.example", "../x", "?x", "#x", "/é", "/\u2028", "/\x00", "/\x7f", "/%zz",
	"/in", "/in?token=x", "/out", "/./in", "/x/../out", "/" + strings.Repeat("x", maxNext), "/" + strings.Repeat("|", maxNext-1),
}

func TestNobodyIsSentElsewhere(t *testing.T) {
	s := openTeam(t, SignInConfig{}, nil)
	at, _ := url.Parse(s.url)
	for _, next := range append([]string{"/runs/7?tab=1&x=%2F%2Fevil.example#part", "/%2F/evil.example", "/.//evil.example", "/x//y", "/@evil.example", "/:80"}, hostile...) {
		resp, _ := s.browser().sign(s.ann, next)
		to := resp.Header.Get("Location")
		u, err := at.Parse(to)
		if resp.StatusCode != 303 || err != nil || u.Host != at.Host || u.Scheme != "http" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
			t.Errorf("%q leads to %q", next, to)
		}
	}
	for _, next := range hostile {
		if got := within(next); got != "/" {
			t.Errorf("%q is taken for %q", next, got)
		}
	}
	for next, want := range map[string]string{"/": "/", "/runs/7?tab=gaps#part": "/runs/7?tab=gaps", "/index": "/index", "/in/x": "/in/x", "/a%20b?c=d%26e": "/a%20b?c=d%26e"} {
		if got := within(next); got != want {
			t.Errorf("%q is %q", next, got)
		}
	}
	// Addresses as no browser writes them.
	for _, target := range []string{"//evil.example/x", "/%5cevil.example", "http://evil.example/x", `/\evil.example`} {
		conn, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n", target)
		all, _ := io.ReadAll(conn)
		conn.Close()
		head, _, _ := strings.Cut(string(all), "\r\n\r\n")
		if strings.Contains(head, "Location") || strings.Contains(string(all), `"Next":"//`) || strings.Contains(string(all), `"Next":"http`) {
			t.Errorf("%s: %s", target, all)
		}
	}
}

func FuzzNext(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	at, _ := url.Parse("http://localhost:1/in")
	f.Fuzz(func(t *testing.T, next string) {
		to := within(next)
		u, err := at.Parse(to)
		if err != nil || u.Host != at.Host || u.Scheme != "http" || u.User != nil || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\t\r\n ") {
			t.Errorf("%q leads to %q, %v", next, to, err)
		}
		if within(to) != to {
			t.Errorf("%q is %q, which is %q", next, to, within(to))
		}
	})
}

// Who follows a link on another site comes with the cookie, and stays in.
func TestWhoComesFromElsewhere(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	from := header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	b := s.browser()
	b.byLink()
	if resp, text := b.do("GET", "/runs/7", nil, from); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, text := s.browser().do("GET", "/runs/7", nil, from); resp.StatusCode != 401 || viewOf(t, text).Next != "/runs/7" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

func TestTextForPrograms(t *testing.T) {
	s := openTeam(t, SignInConfig{Page: func(SignInView) string { return "<p>a page</p>" }}, nil)
	for _, c := range []struct {
		path, accept, kind, says string
		cookies                  int
	}{
		{"/", "text/event-stream", "text/plain; charset=utf-8", "you are not signed in", 0},
		{"/", "-", "text/plain; charset=utf-8", "sign in with a token", 0},
		{"/in", "text/html", "text/html; charset=utf-8", "<p>a page</p>", 0},
		{"/in", "*/*", "text/plain; charset=utf-8", "you are not signed in", 0},
		{"/out", "text/html", "text/html; charset=utf-8", "<p>a page</p>", 0},
	} {
		resp, text := s.browser().do("GET", c.path, nil, header{"Accept": c.accept})
		if resp.Header.Get("Content-Type") != c.kind || !strings.Contains(text, c.says) || len(resp.Cookies()) != c.cookies {
			t.Errorf("%s for %s: %v %s", c.path, c.accept, resp.Header, text)
		}
	}
}

// Whatever happens, no secret is in the log, nor in what others are told.
func TestSecretsAreInNoLog(t *testing.T) {
	alone, s := openPages(t, SignInConfig{}, nil), openTeam(t, SignInConfig{}, nil)
	quoting := openPages(t, SignInConfig{Auth: authFunc(func(_ context.Context, token string) (access.Principal, error) {
		return access.Principal{}, errors.New("a bug with " + token) // which ours never do
	})}, nil)
	var secrets, told []string
	say := func(_ *http.Response, text string) { told = append(told, text) }
	user := alone.browser()
	link := alone.Link("")
	_, token, _ := strings.Cut(link, "=")
	for range 2 {
		user.do("GET", link, nil, nil)
		say(alone.browser().do("GET", link, nil, nil))
		say(alone.browser().do("GET", link+"x", nil, nil))
	}
	_, form := user.page()
	secrets = append(secrets, token, user.cookie().Value, form)
	say(user.do("POST", "/x", url.Values{"csrf": {form + "x"}}, nil))
	user.do("POST", "/out", url.Values{"csrf": {form}}, nil)
	ann := s.browser()
	for _, t := range []string{s.ann, s.mon, "wrong-secret", s.ann + "x"} {
		say(ann.sign(t, "/"))
		secrets = append(secrets, t)
		if c := ann.cookie(); c != nil {
			secrets = append(secrets, c.Value)
		}
	}
	eve := quoting.browser()
	say(eve.sign("eve-secret", "/"))
	secrets = append(secrets, "eve-secret")
	logs := alone.log.String() + s.log.String() + quoting.log.String()
	for _, line := range []string{"a token is refused", "signed in by a link", "signed in by a token", "token:ann", "signed out", "a bug with [token]"} {
		if !strings.Contains(logs, line) {
			t.Errorf("the log does not say %q: %s", line, logs)
		}
	}
	for _, secret := range secrets {
		if strings.Contains(logs, secret) {
			t.Errorf("the log holds %q", secret)
		}
		for _, text := range told {
			if strings.Contains(text, secret) && secret != form {
				t.Errorf("%q is told: %s", secret, text)
			}
		}
	}
	if bytes.Contains([]byte(logs), []byte("csrf")) {
		t.Error("the log holds a form")
	}
}
