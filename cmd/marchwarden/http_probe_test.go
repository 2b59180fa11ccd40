//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// token makes a named token in a home.
func (r *rack) token(t *testing.T, home, name string, flags ...string) string {
	t.Helper()
	out, err := r.spec(home, append([]string{"token", "add", name}, flags...)...).run(0)
	if err != nil || out.code != exitOK {
		t.Fatalf("token add %s: exit code %d, %v: %s", name, out.code, err, out.stderr)
	}
	return strings.TrimSpace(string(out.stdout))
}

// probe is a request that a server must refuse, or must not.
type probe struct {
	name   string
	edit   func(*http.Request)
	body   string // "" is a call that is good
	status int
	header string // that the answer must have
	says   string // that the answer must hold
}

// shoot sends a probe.
func (p probe) shoot(t *testing.T, c *hostClient) (status int, header http.Header, body string) {
	t.Helper()
	req, _, err := c.request(t.Context(), "tools/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.body != "" {
		req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(p.body)), int64(len(p.body)), nil
	}
	if p.edit != nil {
		p.edit(req)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

// fire tries probes, and says how many there were.
func fire(t *testing.T, c *hostClient, probes []probe) (answers string) {
	t.Helper()
	var all strings.Builder
	for _, p := range probes {
		status, header, body := p.shoot(t, c)
		if status != p.status || (p.header != "" && header.Get(p.header) == "") || !strings.Contains(body, p.says) {
			t.Errorf("%s (%s): status %d, want %d, %s: %q: %.300s", p.name, c.era, status, p.status, p.header, header.Get(p.header), body)
		}
		fmt.Fprintln(&all, header, body)
	}
	t.Logf("%s: %d probes as they should be", c.era, len(probes))
	return all.String()
}

func withHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func withHost(host string) func(*http.Request) {
	return func(r *http.Request) { r.Host = host }
}

// doorProbes are those that every server answers alike.
func doorProbes() []probe {
	long := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"pad":"` + strings.Repeat("x", 1<<20) + `"}}`
	return []probe{
		{name: "a good call", status: 200},
		{name: "an origin of somebody else", edit: withHeader("Origin", "https://evil.example"), status: 403},
		{name: "a null origin", edit: withHeader("Origin", "null"), status: 403},
		{name: "another port of this machine as origin", edit: withHeader("Origin", "http://localhost:1"), status: 403},
		{name: "cross-site by what the browser says", edit: withHeader("Sec-Fetch-Site", "cross-site"), status: 403},
		{name: "a foreign host", edit: withHost("evil.example"), status: 403},
		{name: "a foreign host with our port", edit: withHost("evil.example:8642"), status: 403},
		{name: "a host that begins like ours", edit: withHost("127.0.0.1.evil.example"), status: 403},
		{name: "plain text", edit: withHeader("Content-Type", "text/plain"), status: 415},
		{name: "a form", edit: withHeader("Content-Type", "application/x-www-form-urlencoded"), status: 415},
		{name: "no type", edit: func(r *http.Request) { r.Header.Del("Content-Type") }, status: 415},
		{name: "a long body", body: long, status: 413},
		{name: "a long body of unknown length", edit: func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader(long)), -1 }, status: 413},
		{name: "another method", edit: func(r *http.Request) { r.Method = http.MethodPut }, status: 405, header: "Allow"},
		{name: "another path", edit: func(r *http.Request) { r.URL.Path = "/etc/passwd" }, status: 404},
		{name: "a path that goes up", edit: func(r *http.Request) { r.URL.Opaque = "/mcp/../../etc/passwd" }, status: 404},
	}
}

// TestHTTPProbes tries what attackers try, against a server with tokens of several kinds.
func TestHTTPProbes(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	home := w.home(t)
	short := w.token(t, home, "short", "--expires", "1s")
	made := time.Now()
	alice := w.token(t, home, "alice")
	reader, asker := w.token(t, home, "reader", "--scope", "read"), w.token(t, home, "asker", "--scope", "research")
	s := w.serve(t, home, "pi")
	refused := []probe{
		{name: "no token", edit: func(r *http.Request) { r.Header.Del("Authorization") }, status: 401, header: "WWW-Authenticate"},
		{name: "a wrong token", edit: withHeader("Authorization", "Bearer mw_"+strings.Repeat("A", 43)), status: 401, header: "WWW-Authenticate"},
		{name: "a token with one letter more", edit: withHeader("Authorization", "Bearer "+alice+"A"), status: 401, header: "WWW-Authenticate"},
		{name: "another scheme", edit: withHeader("Authorization", "Basic "+alice), status: 401, header: "WWW-Authenticate"},
		{name: "a token in the address", edit: func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "access_token=" + alice }, status: 401, header: "WWW-Authenticate"},
		{name: "two tokens", edit: func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+reader) }, status: 400},
	}
	time.Sleep(time.Until(made.Add(1200 * time.Millisecond)))
	refused = append(refused, probe{name: "an expired token", edit: withHeader("Authorization", "Bearer "+short), status: 401, header: "WWW-Authenticate"})
	for _, era := range bothEras {
		c := newHost(t, s.url, alice, era)
		fire(t, c, append(doorProbes(), refused...))
		for _, tt := range []struct {
			who, token, method string
			params             map[string]any
		}{
			{"reader", reader, "tools/call", map[string]any{"name": "research", "arguments": map[string]any{"question": aboutBoats}}},
			{"asker", asker, "resources/read", map[string]any{"uri": "marchwarden://contract"}},
		} {
			a, err := newHost(t, s.url, tt.token, era).do(t.Context(), tt.method, tt.params)
			if err != nil || a.fault == nil || !strings.Contains(a.fault.Message, "scope") {
				t.Errorf("%s may do what the token is not for (%s): %v, %+v", tt.who, tt.method, err, a)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := s.get(t, path, ""); status != 200 {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
	w.sessionOfAnother(t, s, alice, asker)
	s.endBy(t, syscall.SIGTERM)
}

// sessionOfAnother tries to use a session with the token of another caller.
func (w *httpWorld) sessionOfAnother(t *testing.T, s *served, owner, other string) {
	t.Helper()
	c := newHost(t, s.url, owner, eraLegacy)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		for who, want := range map[string]int{other: 403, "": 401} {
			p := probe{edit: func(r *http.Request) {
				r.Method = method
				r.Header.Set("Authorization", "Bearer "+who)
				if method != http.MethodPost {
					r.Body, r.ContentLength = nil, 0
				}
			}}
			if status, _, body := p.shoot(t, c); status != want {
				t.Errorf("%s with a session of somebody else: status %d, want %d: %.200s", method, status, want, body)
			}
		}
	}
	if a, err := c.do(t.Context(), "tools/list", nil); err != nil || a.fault != nil || a.status != 200 {
		t.Errorf("the session has not outlived it: %v, %+v", err, a)
	}
}

// TestTheTokenIsNowhere lets callers with tokens of every kind, good and bad, ask, fail
// and read. Nothing that the server says, writes or starts holds any of them.
func TestTheTokenIsNowhere(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	home := w.home(t)
	named := w.token(t, home, "alice")
	const fixed, wrong = "fixed-Kq7vT2xW9pLm4RzN8sYd", "wrong-Hj3nB6cF1gVk5QwE0uXa"
	issuer := newHTTPIssuer(t)
	w.env = append(w.env, "MARCHWARDEN_HTTP_TOKEN="+fixed, "MARCHWARDEN_DEBUG=1")
	s := w.serve(t, home, append(servings["pi"], "--isolate", "--oauth-issuer", issuer.URL, "--oauth-audience", httpAudience)...)
	signed, late := issuer.token(t, nil), issuer.token(t, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})
	secrets := []string{named, fixed, wrong, signed, late, signed[strings.LastIndex(signed, ".")+1:], late[strings.LastIndex(late, ".")+1:], strings.Split(signed, ".")[1]}

	var said strings.Builder
	held := w.hold(5) // each of three plans by one turn before it sends others
	good := []*hostClient{newHost(t, s.url, named, eraModern), newHost(t, s.url, fixed, eraLegacy), newHost(t, s.url, signed, eraModern)}
	done := make(chan error, len(good))
	for _, c := range good {
		go func() {
			_, err := c.research(t.Context(), map[string]any{"question": webtest.Startups})
			done <- err
		}()
	}
	arrives(t, held)
	children := childrenOf(s.cmd.Process.Pid)
	for _, pid := range children {
		environ := procText(pid, "environ")
		if !strings.Contains(environ, "PATH=") {
			t.Errorf("the environment of process %d is not known: %q", pid, environ)
		}
		fmt.Fprintln(&said, "process", pid, environ, procText(pid, "cmdline"))
	}
	w.hold(0)
	for range good {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, c := range append(good, &hostClient{url: s.url, token: wrong, era: eraModern, http: http.DefaultClient}, &hostClient{url: s.url, token: late, era: eraModern, http: http.DefaultClient}) {
		for _, p := range doorProbes() {
			_, header, body := p.shoot(t, c)
			fmt.Fprintln(&said, header, body)
		}
		a, err := c.do(t.Context(), "tools/call", map[string]any{"name": "research", "arguments": map[string]any{"resume": "nothing", "token": c.token}})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&said, strings.ReplaceAll(a.body, `"token"`, ""))
	}
	s.endBy(t, syscall.SIGTERM)
	for _, turn := range w.models.Turns() {
		fmt.Fprintln(&said, "model", turn.Header, string(turn.Body))
	}
	said.WriteString(s.log.String())
	files := eachFile(t, home, &said)
	for i, secret := range secrets {
		if at := strings.Index(said.String(), secret); at >= 0 {
			t.Errorf("secret %d is told: …%q…", i, said.String()[max(0, at-200):at])
		}
	}
	if len(children) == 0 || files < 10 || !strings.Contains(s.log.String(), "level=DEBUG") {
		t.Errorf("nothing was looked at: %d processes, %d files", len(children), files)
	}
	t.Logf("%d secrets looked for in %d bytes: answers, log, %d files, %d processes, %d requests of models", len(secrets), said.Len(), files, len(children), len(w.models.Turns()))
}

func procText(pid int, name string) string {
	data, err := readProc(pid, name)
	if err != nil {
		return err.Error()
	}
	return string(bytes.ReplaceAll(data, []byte{0}, []byte{'\n'}))
}
