package httpdoor

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

var changing = []string{"POST", "PUT", "PATCH", "DELETE", "get", "PROPFIND", "TRACE"}

func TestChangesMustBeMeant(t *testing.T) {
	s := openPages(t, SignInConfig{}, nil)
	b, other := s.browser(), s.browser()
	b.byLink()
	other.byLink()
	_, token := b.page()
	_, foreign := other.page()
	if token == foreign || token == "" {
		t.Fatalf("two sessions have the tokens %q and %q", token, foreign)
	}
	own := s.url
	for _, method := range changing {
		for _, c := range []struct {
			name string
			form url.Values
			h    header
			want int
		}{
			{"right", nil, header{"X-CSRF-Token": token}, 200},
			{"right, as a browser", nil, header{"X-CSRF-Token": token, "Origin": own, "Sec-Fetch-Site": "same-origin"}, 200},
			{"right, old browser", nil, header{"X-CSRF-Token": token, "Origin": own}, 200},
			{"missing", nil, nil, 403},
			{"missing, same origin", nil, header{"Origin": own, "Sec-Fetch-Site": "same-origin"}, 403},
			{"empty", url.Values{"csrf": {""}}, header{"X-CSRF-Token": ""}, 403},
			{"wrong", url.Values{"csrf": {"x"}}, nil, 403},
			{"wrong header beside the right field", url.Values{"csrf": {token}}, header{"X-CSRF-Token": "x"}, 403},
			{"shorter", nil, header{"X-CSRF-Token": token[1:]}, 403},
			{"longer", nil, header{"X-CSRF-Token": token + "A"}, 403},
			{"of another session", nil, header{"X-CSRF-Token": foreign}, 403},
			{"cross-site", nil, header{"X-CSRF-Token": token, "Sec-Fetch-Site": "cross-site"}, 403},
			{"same-site", nil, header{"X-CSRF-Token": token, "Sec-Fetch-Site": "same-site"}, 403},
			{"cross-site, own origin", nil, header{"X-CSRF-Token": token, "Sec-Fetch-Site": "cross-site", "Origin": own}, 403},
			{"cross-site navigation", nil, header{"X-CSRF-Token": token, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403},
			{"foreign origin", nil, header{"X-CSRF-Token": token, "Origin": "https://evil.example"}, 403},
			{"foreign origin that claims more", nil, header{"X-CSRF-Token": token, "Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, 403},
			{"other port", nil, header{"X-CSRF-Token": token, "Origin": "http://127.0.0.1:1"}, 403},
			{"no origin in particular", nil, header{"X-CSRF-Token": token, "Origin": "null"}, 403},
			{"in the query", url.Values{}, header{"query": token}, 403},
		} {
			at, h := "/ask", header{}
			for k, v := range c.h {
				if h[k] = v; k == "query" {
					at = "/ask?csrf=" + v
				}
			}
			before := s.behind.Load()
			resp, text := b.do(method, at, c.form, h)
			if passed := s.behind.Load() > before; resp.StatusCode != c.want || passed != (c.want == 200) {
				t.Errorf("%s, %s: %d, want %d: %s", method, c.name, resp.StatusCode, c.want, text)
			}
		}
		// Without a session nothing is of any use.
		if resp, _ := s.browser().do(method, "/ask", nil, header{"X-CSRF-Token": token}); resp.StatusCode != 401 {
			t.Errorf("%s without a session: %d", method, resp.StatusCode)
		}
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		if resp, _ := b.do(method, "/", nil, nil); resp.StatusCode != 200 {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

func TestForms(t *testing.T) {
	var got *http.Request
	var body string
	s := openPages(t, SignInConfig{MaxBody: 1000}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		text, err := io.ReadAll(r.Body)
		if body = string(text); err != nil {
			body = "too large"
		}
	}))
	b := s.browser()
	b.byLink()
	b.get("/")
	token := s.Token(got)
	post := func(form url.Values, h header) int {
		got, body = nil, ""
		resp, _ := b.do("POST", "/ask?depth=deep", form, h)
		return resp.StatusCode
	}
	if status := post(url.Values{"csrf": {token}, "question": {"why?"}}, header{"Authorization": "Bearer x"}); status != 200 || got.PostForm.Get("question") != "why?" || got.Form.Get("depth") != "deep" {
		t.Fatalf("%d", status)
	}
	if all := fmt.Sprint(got.Header, got.Form, got.PostForm, got.URL, got.RequestURI); strings.Contains(all, token) || strings.Contains(all, b.cookie().Value) || strings.Contains(all, "Bearer") {
		t.Errorf("the handler sees secrets: %s", all)
	}
	// A script sends what it likes, and a header.
	if status := post(url.Values{"a": {"b"}}, header{"Content-Type": "application/json", "X-CSRF-Token": token}); status != 200 || body != "a=b" || got.Header.Get("X-CSRF-Token") != "" {
		t.Errorf("%d %s", status, body)
	}
	for _, kind := range []string{"text/plain", "multipart/form-data; boundary=x", "application/json", "-", "application/x-www-form-urlencoded; ="} {
		if status := post(url.Values{"csrf": {token}}, header{"Content-Type": kind}); status != 403 || got != nil {
			t.Errorf("%s: %d", kind, status)
		}
	}
	large := url.Values{"csrf": {token}, "question": {strings.Repeat("x", 1000)}}
	if status := post(large, nil); status != 413 || got != nil {
		t.Errorf("a large form: %d", status)
	}
	if status := post(large, header{"Content-Type": "application/json", "X-CSRF-Token": token}); status != 200 || body != "too large" {
		t.Errorf("a large body: %d %.20s", status, body)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+"/ask", strings.NewReader("csrf="+token+"&%zz"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("a broken form: %d", resp.StatusCode)
	}
	if s.Token(req) != "" {
		t.Error("a request from elsewhere has a token")
	}
}

// A client that sends a form a byte at a time is not waited for.
func TestSlowForms(t *testing.T) {
	s := openTeam(t, SignInConfig{BodyTimeout: 50 * time.Millisecond}, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ncs")
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 408 ") {
		t.Errorf("%v %s", err, all)
	}
}

// Pages of other sites may link to us, and can load nothing.
func TestWhatOthersMayLoad(t *testing.T) {
	s := openPages(t, SignInConfig{Public: []string{"/static/"}}, nil)
	b := s.browser()
	b.byLink()
	for _, c := range []struct {
		name string
		h    header
		want int
	}{
		{"typed", header{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"own link", header{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"own script", header{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 200},
		{"link elsewhere", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"link on another port", header{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"frame", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		{"picture", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403},
		{"script", header{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, 403},
		{"stream", header{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, 403},
		{"old browser", header{"Origin": "https://evil.example"}, 403},
		{"navigation with an origin", header{"Origin": "https://evil.example", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403},
	} {
		for _, at := range []string{"/", "/static/style.css"} {
			resp, text := b.do("GET", at, nil, c.h)
			if resp.StatusCode != c.want || resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s, %s: %d %s", c.name, at, resp.StatusCode, text)
			}
		}
	}
}

func TestPublicPaths(t *testing.T) {
	var who string
	s := openPages(t, SignInConfig{Public: []string{"/static/", "/robots.txt"}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who = access.From(r.Context()).ID + r.Header.Get("Cookie")
		w.Header().Set("Cache-Control", "max-age=60")
	}))
	b := s.browser()
	for at, want := range map[string]int{
		"/static/style.css": 200, "/static/": 200, "/robots.txt": 200,
		"/static": 401, "/static/../runs": 401, "/static/..%2fruns": 401, "/static/%2e%2e/runs": 401, "/static//x": 401, "/Static/x": 401, "/": 401, "/x/static/": 401, "//static/": 401,
	} {
		resp, _ := b.do("GET", at, nil, nil)
		if resp.StatusCode != want {
			t.Errorf("%s: %d", at, resp.StatusCode)
		}
		if cached := resp.Header.Get("Cache-Control") == "max-age=60"; cached != (want == 200) {
			t.Errorf("%s: %v", at, resp.Header)
		}
	}
	if resp, _ := b.do("POST", "/static/x", nil, nil); resp.StatusCode != 401 {
		t.Errorf("POST: %d", resp.StatusCode)
	}
	b.byLink()
	if b.get("/static/style.css"); who != "" {
		t.Errorf("what is public is told who asks: %s", who)
	}
	if b.get("/"); who != "local" {
		t.Errorf("behind the sign-in is %q", who)
	}
}

func TestHosts(t *testing.T) {
	s := openPages(t, SignInConfig{Hosts: []string{"research.example.org", "other.example.org:8443"}}, nil)
	b := s.browser()
	b.byLink()
	cookie := b.cookie().String()
	addr := strings.TrimPrefix(s.url, "http://")
	_, port, _ := net.SplitHostPort(addr)
	for host, want := range map[string]int{
		addr: 200, "127.0.0.1": 200, "localhost": 200, "LOCALHOST:" + port: 200, "localhost.:" + port: 200, "127.0.0.1:1": 200,
		"[::1]": 200, "[::1]:" + port: 200, "[::ffff:127.0.0.1]:" + port: 200, "[0:0:0:0:0:0:0:1]": 200,
		"research.example.org": 200, "research.example.org:8080": 200, "Research.Example.Org": 200, "other.example.org:8443": 200,
		"other.example.org": 403, "other.example.org:8444": 403, "evil.example.org": 403, "evil.example.org:" + port: 403, "localhost.evil.org": 403, "127.0.0.1.nip.io": 403, "rebind.localhost": 403,
		"::1": 403, "[::2]": 403, "0.0.0.0:" + port: 403, "192.168.1.7:" + port: 403, "2130706433": 403, "localhost:0": 403, "localhost:99999": 403,
	} {
		for _, at := range []string{"/", "/in", "/out", "/nowhere"} {
			resp, _ := s.browser().do("GET", at, nil, header{"Host": host, "Cookie": cookie})
			if refused := resp.StatusCode == 403; refused != (want == 403) {
				t.Errorf("%s for %s: %d", at, host, resp.StatusCode)
			}
		}
	}
	// A link is not used up by a page that has our address under its own name.
	link := strings.TrimPrefix(s.Link(s.url), s.url)
	if resp, _ := s.browser().do("GET", link, nil, header{"Host": "evil.example.org"}); resp.StatusCode != 403 || len(resp.Cookies()) != 0 {
		t.Errorf("%d %v", resp.StatusCode, resp.Cookies())
	}
	if status, _ := s.browser().get(link); status != 303 {
		t.Errorf("and then: %d", status)
	}
}
