package httpdoor

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestContentType(t *testing.T) {
	s := open(t, Config{})
	for ct, want := range map[string]int{
		"application/json": 200, "Application/JSON; charset=utf-8": 200, "text/plain": 415, "-": 415, "application/jsonp": 415,
		"application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "text/plain; a=application/json": 415, "application/json;;": 415,
	} {
		resp, text := s.do("POST", "/mcp", `{"a":1}`, header{"Content-Type": ct})
		if resp.StatusCode != want || want == 200 && text != `{"a":1}` || want == 415 && reason(t, text) != "content_type" {
			t.Errorf("%q: %d %s", ct, resp.StatusCode, text)
		}
	}
	if resp, _ := s.do("DELETE", "/mcp", "", nil); resp.StatusCode != 200 {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
}

func TestBodySize(t *testing.T) {
	s := open(t, Config{MaxBody: 1000})
	for size, want := range map[int]int{0: 200, 999: 200, 1000: 200, 1001: 413, 100_000: 413} {
		body := strings.Repeat("x", size)
		if resp, text := s.do("POST", "/mcp", body, nil); resp.StatusCode != want || want == 200 && text != body {
			t.Errorf("%d bytes: %d", size, resp.StatusCode)
		}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+"/mcp", io.MultiReader(strings.NewReader(body))) // no length: chunked
		req.Header.Set("Content-Type", "application/json")
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatalf("%d bytes in chunks: %v", size, err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes in chunks: %d", size, resp.StatusCode)
		}
	}
	// A length over the limit is refused before the body comes.
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1001\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 413 ") {
		t.Errorf("before the body: %q %v", line, err)
	}
	if resp, _ := s.do("POST", "/mcp", "{}", header{"X-Large": strings.Repeat("x", 80<<10)}); resp.StatusCode != 431 {
		t.Errorf("a large head: %d", resp.StatusCode)
	}
}

// A caller that sends a byte now and then holds neither a connection nor a handler for
// long.
func TestSlowCallersAreCut(t *testing.T) {
	s := open(t, Config{HeaderTimeout: 300 * time.Millisecond, BodyTimeout: 300 * time.Millisecond})
	for name, c := range map[string]struct{ first, drip, want string }{
		"head": {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n", "X", ""},
		"body": {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n", " ", "HTTP/1.1 408 "},
	} {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _ = io.WriteString(conn, c.first)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for {
				if _, err := io.WriteString(conn, c.drip); err != nil || time.Since(began) > 8*time.Second {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		line, _ := bufio.NewReader(conn).ReadString('\n')
		if took := time.Since(began); took > 6*time.Second || !strings.HasPrefix(line, c.want) {
			t.Errorf("%s: %q after %v", name, line, took)
		}
		conn.Close()
		<-stop
	}
	if n := s.inFlight.Load(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

// The deadline of the body does not outlive it: a call may take longer.
func TestALongCallOutlivesTheTimeOfTheBody(t *testing.T) {
	s := open(t, Config{BodyTimeout: 50 * time.Millisecond, MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			http.Error(w, "the caller is gone", http.StatusTeapot)
		case <-time.After(250 * time.Millisecond):
		}
	})})
	for range 2 { // on one connection
		if resp, text := s.do("POST", "/mcp", "{}", nil); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
	}
}

func TestABodyThatBreaksOffReachesNobody(t *testing.T) {
	s := open(t, Config{MCP: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was asked") })})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"half\":")
	_ = conn.(*net.TCPConn).CloseWrite()
	if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 400 ") {
		t.Error(line)
	}
}

func TestRate(t *testing.T) {
	now := newClock()
	s := open(t, Config{Auth: someTokens(), Rate: 2, Burst: 3, Now: now.Now})
	post := func(token string) int {
		resp, text := s.do("POST", "/mcp", "{}", header{"Authorization": "Bearer " + token, "X-Forwarded-For": fmt.Sprint("192.0.2.", time.Now().Nanosecond()%250)})
		if resp.StatusCode == 429 && (resp.Header.Get("Retry-After") != "1" || reason(t, text) != "rate") {
			t.Errorf("%v %s", resp.Header, text)
		}
		return resp.StatusCode
	}
	var got []int
	for range 5 {
		got = append(got, post("ann-secret"))
	}
	if fmt.Sprint(got) != "[200 200 200 429 429]" {
		t.Error(got)
	}
	if c := post("bob-secret"); c != 200 {
		t.Errorf("another caller pays: %d", c)
	}
	now.add(time.Second)
	got = nil
	for range 3 {
		got = append(got, post("ann-secret"))
	}
	if fmt.Sprint(got) != "[200 200 429]" {
		t.Error(got)
	}
	got = nil
	for range 5 { // without a token: by address
		resp, _ := s.do("POST", "/mcp", "{}", header{"X-Forwarded-For": fmt.Sprint("192.0.2.", len(got))})
		got = append(got, resp.StatusCode)
	}
	if fmt.Sprint(got) != "[401 401 401 429 429]" {
		t.Error(got)
	}
}

func TestAtOnce(t *testing.T) {
	gate := make(chan struct{})
	inside := make(chan struct{}, 10)
	s := open(t, Config{Auth: someTokens(), MaxInFlight: 4, MCP: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-gate
	})})
	done := make(chan int, 10)
	post := func(token string) {
		resp, _ := s.do("POST", "/mcp", "{}", header{"Authorization": "Bearer " + token})
		if resp.StatusCode >= 429 && resp.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		done <- resp.StatusCode
	}
	for range 2 {
		go post("ann-secret")
		<-inside
	}
	go post("ann-secret")
	if got := <-done; got != 429 {
		t.Errorf("the third of a caller: %d", got)
	}
	for range 2 {
		go post("bob-secret")
		<-inside
	}
	go post("cat-secret")
	if got := <-done; got != 503 {
		t.Errorf("the fifth of all: %d", got)
	}
	if resp, _ := s.do("GET", "/healthz", "", nil); resp.StatusCode != 200 {
		t.Errorf("health while busy: %d", resp.StatusCode)
	}
	close(gate)
	for range 4 {
		if got := <-done; got != 200 {
			t.Errorf("%d", got)
		}
	}
	go post("cat-secret")
	if got := <-done; got != 200 {
		t.Errorf("afterwards: %d", got)
	}
}

// A hundred thousand addresses leave no more than the bound behind, and who is inside
// meanwhile stays counted.
func TestLimitsDoNotGrow(t *testing.T) {
	now := newClock()
	gate, entered := make(chan struct{}), make(chan struct{})
	d, err := New(Config{Now: now.Now, MaxInFlight: 2, MCP: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Stay") != "" {
			close(entered)
			<-gate
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	h := d.Handler()
	from := func(addr, stay string) int {
		r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader("{}"))
		r.RemoteAddr = addr
		r.Header.Set("Content-Type", "application/json")
		if stay != "" {
			r.Header.Set("Stay", stay)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		from("198.51.100.1:1", "yes")
	}()
	<-entered
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 100_000 {
		if got := from(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), ""); got != 200 {
			t.Fatalf("address %d: %d", i, got)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	count := func() int { return len(d.callers.young) + len(d.callers.old) }
	if n := count(); n < minCallersKept/2 || n > minCallersKept+1 {
		t.Errorf("%d callers are kept", n)
	}
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("100,000 addresses: %d kept, heap %+d KiB", count(), grown>>10)
	if grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if got := from("198.51.100.1:2", ""); got != 429 {
		t.Errorf("who is inside was forgotten: %d", got)
	}
	close(gate)
	<-left
	if got := from("198.51.100.1:2", ""); got != 200 {
		t.Errorf("afterwards: %d", got)
	}
	d.cfg.Auth = tokens{}
	for i := range 20_000 {
		r := httptest.NewRequest("POST", "http://localhost/mcp", nil)
		r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", i>>8, i&255)
		r.Header.Set("Authorization", "Bearer guess")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := len(d.keeper.failures.young) + len(d.keeper.failures.old); n < minCallersKept/2 || n > minCallersKept {
		t.Errorf("%d addresses with wrong tokens are kept", n)
	}
}

func TestOneCallerHasOneAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1", "[::ffff:192.0.2.1]:5": "192.0.2.1", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:5": "fe80::/64", "[::1]:5": "::1", "@": "@", "name:5": "name",
	} {
		if got := remote(&http.Request{RemoteAddr: addr}); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
