package httpdoor

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

func TestMain(m *testing.M) {
	datatest.Abreast(12) // they wait for silence, and do little meanwhile
	goleak.VerifyTestMain(m)
}

// site is a door that serves on loopback.
type site struct {
	*Door
	t      *testing.T
	url    string // http://127.0.0.1:port
	addr   string // 127.0.0.1:port
	client *http.Client
	log    *syncBuffer
	stop   context.CancelFunc // begins the end
	ended  chan error
}

// open serves a door until the test ends or stop is called.
func open(t *testing.T, cfg Config) *site {
	t.Helper()
	s := &site{t: t, log: &syncBuffer{}, ended: make(chan error, 1)}
	if cfg.MCP == nil {
		cfg.MCP = echo
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Door, s.addr = d, l.Addr().String()
	s.url = "http://" + s.addr
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	if cfg.CertFile != "" {
		s.url = "https://" + s.addr
	}
	s.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	go func() { s.ended <- d.Serve(ctx, l) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if s.ended == nil {
			return
		}
		if err := <-s.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// echo answers with the body, and says in headers what it saw.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Principal", access.From(r.Context()).ID)
	_, _ = w.Write(body)
})

// header is what to set on a request; Host is special, and "-" removes.
type header map[string]string

// do makes a request. A body makes it JSON unless the header says otherwise.
func (s *site) do(method, path, body string, h header) (*http.Response, string) {
	s.t.Helper()
	resp, text, err := s.try(method, path, body, h)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp, text
}

func (s *site) try(method, path, body string, h header) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
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
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp, string(all), err
}

// reason is the machine-readable part of a refusal.
func reason(t *testing.T, text string) string {
	t.Helper()
	var line struct{ Error, Message string }
	if err := json.Unmarshal([]byte(text), &line); err != nil || strings.Count(text, "\n") != 1 || line.Message == "" {
		t.Errorf("%q is not one line of JSON with a message: %v", text, err)
	}
	return line.Error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	good := func() Config { return Config{MCP: echo, Now: time.Now} }
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		spoil func(*Config)
	}{
		{"tls", func(c *Config) { c.CertFile = "x" }},
		{"hosts", func(c *Config) { c.Hosts = []string{"https://a.example"} }},
		{"hosts", func(c *Config) { c.Hosts = []string{"*"} }},
		{"hosts", func(c *Config) { c.Hosts = []string{""} }},
		{"hosts", func(c *Config) { c.Hosts = []string{"2001:db8::1"} }},
		{"origins", func(c *Config) { c.Origins = []string{"a.example"} }},
		{"origins", func(c *Config) { c.Origins = []string{"https://a.example/path"} }},
		{"origins", func(c *Config) { c.Origins = []string{"null"} }},
		{"origins", func(c *Config) { c.Origins = []string{"https://*.example"} }},
	} {
		cfg := good()
		c.spoil(&cfg)
		_, err := New(cfg)
		var e *marchwarden.Error
		if !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != c.field {
			t.Errorf("want an error for %s: %v", c.field, err)
		}
	}
}

func TestHost(t *testing.T) {
	s := open(t, Config{Hosts: []string{"research.example.org", "other.example.org:8443", "plain.example.org:443", "[2001:DB8::1]", "[2001:db8::2]:81"}})
	_, port, _ := net.SplitHostPort(s.addr)
	for host, want := range map[string]int{
		s.addr:                      200,
		"127.0.0.1":                 200,
		"127.8.9.1:1":               200,
		"localhost":                 200,
		"LocalHost:" + port:         200,
		"localhost.:" + port:        200,
		"[::1]":                     200,
		"[::1]:" + port:             200,
		"[::ffff:127.0.0.1]":        200,
		"research.example.org":      200,
		"Research.Example.org:8080": 200,
		"research.example.org.":     200,
		"other.example.org:8443":    200,
		"plain.example.org":         200,
		"[2001:db8::1]:9":           200,
		"[2001:db8::2]:81":          200,
		"[2001:db8::2]:82":          403,
		"other.example.org:8444":    403,
		"other.example.org":         403,
		"evil.example.org":          403,
		"evil.example.org:" + port:  403,
		"localhost.evil.org":        403,
		"127.0.0.1.evil.org":        403,
		"evil.org#localhost":        400, // by net/http
		"x@localhost":               400,
		"a.localhost":               403,
		"localhost:0":               403,
		"localhost:x":               403,
		"localhost,evil.org":        403,
		"192.168.1.7:" + port:       403,
		"[fe80::1]":                 403,
		"0.0.0.0:" + port:           403,
		"::1":                       403,
		"2130706433":                403,
	} {
		for _, path := range []string{"/mcp", "/", "/metrics", "/nowhere", "/healthz", "/readyz"} {
			status, text := s.raw(host, path)
			if strings.HasSuffix(path, "z") {
				if status == 403 {
					t.Errorf("a probe of %s with Host %q: 403", path, host)
				}
				continue
			}
			if refused := status == 403 || status == 400; refused != (want != 200) || refused && status != want {
				t.Errorf("Host %q for %s: %d, want %d", host, path, status, want)
			}
			if status == 403 && reason(t, text) != "host" {
				t.Errorf("Host %q: %s", host, text)
			}
		}
	}
}

// raw makes a GET with any Host at all, also such as no client would send.
func (s *site) raw(host, path string) (int, string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
	all, _ := io.ReadAll(conn)
	head, body, _ := strings.Cut(string(all), "\r\n\r\n")
	status := 0
	if f := strings.Fields(head); len(f) > 1 {
		for _, c := range f[1] {
			status = status*10 + int(c-'0')
		}
	}
	return status, body
}

// An address that is neither loopback nor configured is fine if the connection came to
// it: a browser cannot be made to send it for another place.
func TestTheAddressTheConnectionCameToIsAHost(t *testing.T) {
	d, err := New(Config{MCP: echo, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		local, host string
		want        bool
	}{
		{"192.0.2.7:8642", "192.0.2.7:8642", true},
		{"192.0.2.7:80", "192.0.2.7", true},
		{"[2001:db8::1]:8642", "[2001:DB8::1]:8642", true},
		{"192.0.2.7:8642", "192.0.2.7:8643", false},
		{"192.0.2.7:8642", "192.0.2.7", false},
		{"192.0.2.7:8642", "192.0.2.8:8642", false},
		{"192.0.2.7:8642", "", false},
	} {
		a, err := net.ResolveTCPAddr("tcp", c.local)
		if err != nil {
			t.Fatal(err)
		}
		r := (&http.Request{Host: c.host}).WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(a)))
		if got := d.policy.knows(r); got != c.want {
			t.Errorf("came to %s for %q: %v", c.local, c.host, got)
		}
	}
}

func TestOrigin(t *testing.T) {
	s := open(t, Config{Hosts: []string{"research.example.org", "p.example.org:8443"}, Origins: []string{"https://App.example.org", "http://localhost:6274"}})
	own := "http://" + s.addr
	for _, c := range []struct {
		name string
		h    header
		want int
	}{
		{"no browser", nil, 200},
		{"own page", header{"Origin": own}, 200},
		{"own page, modern browser", header{"Origin": own, "Sec-Fetch-Site": "same-origin"}, 200},
		{"typed by hand", header{"Sec-Fetch-Site": "none"}, 200},
		{"listed", header{"Origin": "https://app.example.org", "Sec-Fetch-Site": "cross-site"}, 200},
		{"listed, local tool", header{"Origin": "http://localhost:6274", "Sec-Fetch-Site": "same-site"}, 200},
		{"of a host", header{"Origin": "https://research.example.org"}, 200},
		{"of a host with port", header{"Origin": "https://p.example.org:8443"}, 200},
		{"behind a proxy with TLS", header{"Origin": "https://research.example.org", "Host": "research.example.org", "Sec-Fetch-Site": "same-origin"}, 200},
		{"other port of a host", header{"Origin": "https://research.example.org:444"}, 403},
		{"no port of a host with port", header{"Origin": "https://p.example.org"}, 403},
		{"foreign", header{"Origin": "https://evil.example.org"}, 403},
		{"foreign that claims to be from here", header{"Origin": "https://evil.example.org", "Sec-Fetch-Site": "same-origin"}, 403},
		{"rebound", header{"Origin": "http://evil.example.org", "Host": "evil.example.org"}, 403},
		{"other local port", header{"Origin": "http://127.0.0.1:3000"}, 403},
		{"other local name", header{"Origin": strings.Replace(own, "127.0.0.1", "localhost", 1)}, 403},
		{"null", header{"Origin": "null"}, 403},
		{"other scheme", header{"Origin": "ftp://" + s.addr}, 403},
		{"extension", header{"Origin": "chrome-extension://abcdef"}, 403},
		{"prefix of a listed one", header{"Origin": "https://app.example.org.evil.org"}, 403},
		{"listed with other scheme", header{"Origin": "http://app.example.org"}, 403},
		{"image on a foreign page", header{"Sec-Fetch-Site": "cross-site"}, 403},
		{"image on another port", header{"Sec-Fetch-Site": "same-site"}, 403},
		{"own page by a browser that disagrees", header{"Origin": own, "Sec-Fetch-Site": "cross-site"}, 403},
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS"} {
			if c.name == "own page by a browser that disagrees" && method != "POST" && method != "DELETE" {
				continue // only a change is refused for that
			}
			want := c.want
			if method == "OPTIONS" && want == 200 {
				want = 204
			}
			resp, text := s.do(method, "/mcp", "{}", c.h)
			if resp.StatusCode != want {
				t.Errorf("%s: %s: %d, want %d: %s", c.name, method, resp.StatusCode, want, text)
			}
			if want == 403 {
				if r := reason(t, text); r != "origin" && r != "host" {
					t.Errorf("%s: %s", c.name, text)
				}
				if resp.Header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: %s: the answer may be read", c.name, method)
				}
			}
		}
	}
	// Probes come by any name, but not from pages.
	if resp, _ := s.do("GET", "/readyz", "", header{"Origin": "http://evil.example.org", "Host": "evil.example.org"}); resp.StatusCode != 403 {
		t.Errorf("a rebound page reads /readyz: %d", resp.StatusCode)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+"/mcp", strings.NewReader("{}"))
	req.Header["Origin"] = []string{own, "https://evil.example.org"}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("two origins: %d", resp.StatusCode)
	}
}

// Over TLS a page without TLS is of another origin, although its host is the same.
func TestAPageWithoutTLSIsNotOfThisServer(t *testing.T) {
	r := &http.Request{Host: "localhost:1", TLS: &tls.ConnectionState{}}
	if sameOrigin("http://localhost:1", r) || !sameOrigin("https://localhost:1", r) {
		t.Error("the scheme does not count")
	}
}

func TestPreflight(t *testing.T) {
	s := open(t, Config{Origins: []string{"https://app.example.org"}, Auth: tokens{}})
	ask := header{"Origin": "https://app.example.org", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
	for _, path := range []string{"/mcp", "/.well-known/oauth-protected-resource"} {
		resp, text := s.do("OPTIONS", path, "", ask)
		if resp.StatusCode != 204 || text != "" {
			t.Errorf("%d %q", resp.StatusCode, text)
		}
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin":      "https://app.example.org",
			"Access-Control-Allow-Methods":     "POST, GET, DELETE",
			"Access-Control-Allow-Headers":     "Content-Type, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID",
			"Access-Control-Expose-Headers":    "Mcp-Session-Id, WWW-Authenticate",
			"Access-Control-Allow-Credentials": "",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	// A refusal can be read by the page too: it must learn where to get a token.
	resp, _ := s.do("POST", "/mcp", "{}", header{"Origin": "https://app.example.org"})
	if resp.StatusCode != 401 || resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example.org" || resp.Header.Get("Vary") != "Origin" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

func TestPathsOfTheDoor(t *testing.T) {
	s := open(t, Config{Metadata: []byte(`{"resource":"x"}`)})
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/", 200, "MCP is served at /mcp"},
		{"GET", "/healthz", 200, "ok\n"},
		{"HEAD", "/healthz", 200, ""},
		{"POST", "/healthz", 405, ""},
		{"GET", "/readyz", 200, "ready\n"},
		{"GET", "/.well-known/oauth-protected-resource", 200, `{"resource":"x"}`},
		{"GET", "/.well-known/oauth-protected-resource/mcp", 200, `{"resource":"x"}`},
		{"GET", "/metrics", 404, ""},
		{"GET", "/x/mcp", 404, "MCP is served at /mcp"},
		{"GET", "/mcp/", 404, "MCP is served at /mcp"},
		{"POST", "/../../etc/passwd", 404, "MCP is served at /mcp"},
		{"GET", "/debug/pprof/", 404, ""},
		{"PUT", "/mcp", 405, "use POST, GET, DELETE"},
		{"POST", "/mcp", 200, "{}"},
	} {
		resp, text := s.do(c.method, c.path, "{}", nil)
		if resp.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %q", c.method, c.path, resp.StatusCode, text)
		}
	}
	bare := open(t, Config{})
	if resp, _ := bare.do("GET", "/.well-known/oauth-protected-resource", "", nil); resp.StatusCode != 404 {
		t.Errorf("metadata without: %d", resp.StatusCode)
	}
}

func TestHeadersOfMCPAnswers(t *testing.T) {
	s := open(t, Config{MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "DELETE" {
			w.Header().Set("Cache-Control", "max-age=1")
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if r.Method == "GET" {
			http.Error(w, "no", http.StatusTeapot)
		}
	})})
	for method, want := range map[string][2]any{"POST": {200, "no-store"}, "GET": {418, "no-store"}, "DELETE": {202, "max-age=1"}, "PUT": {405, "no-store"}} {
		resp, _ := s.do(method, "/mcp", "{}", nil)
		h := resp.Header
		if resp.StatusCode != want[0] || h.Get("Cache-Control") != want[1] || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %d %v", method, resp.StatusCode, h)
		}
	}
}

func TestAPanicIsLoggedAndLeavesTheServerAlive(t *testing.T) {
	s := open(t, Config{MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("How") {
		case "early":
			panic("with " + r.Header.Get("Private"))
		case "late":
			_, _ = io.WriteString(w, "half an ans")
			_ = http.NewResponseController(w).Flush()
			_ = r.Header["None"][len(r.Header)]
		case "abort":
			panic(http.ErrAbortHandler)
		}
	})})
	resp, text := s.do("POST", "/mcp", "{}", header{"How": "early", "Private": "hush"})
	if resp.StatusCode != 500 || reason(t, text) != "panic" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if _, text, err := s.try("POST", "/mcp", "{}", header{"How": "late"}); err == nil {
		t.Errorf("a broken answer looks whole: %q", text)
	}
	if _, _, err := s.try("POST", "/mcp", "{}", header{"How": "abort"}); err == nil {
		t.Error("an aborted answer looks whole")
	}
	log := s.log.String()
	if strings.Contains(log, "hush") || !strings.Contains(log, "door_test.go") || !strings.Contains(log, "index out of range") || strings.Count(log, "a handler panicked") != 2 {
		t.Errorf("log: %s", log)
	}
	if resp, _ := s.do("POST", "/mcp", "{}", nil); resp.StatusCode != 200 {
		t.Errorf("after: %d", resp.StatusCode)
	}
}
