package render

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// through returns a client that knows the network by the proxy alone.
func through(t *testing.T, p *proxy) *http.Client {
	t.Helper()
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.address()}), DisableKeepAlives: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func get(client *http.Client, address string) (string, error) {
	resp, err := client.Get(address)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return string(body), err
}

func openProxy(t *testing.T, cfg Config) *proxy {
	t.Helper()
	p, err := startProxy(cfg.withDefaults(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

func anywhere(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, strings.Replace(addr, "named.example", "127.0.0.1", 1))
}

func TestProxyForwards(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %q %q", r.Host, r.RequestURI, r.Header.Get("Proxy-Connection"), r.Header.Get("X-Forwarded-For"))
	}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	p := openProxy(t, Config{Dial: anywhere})
	got, err := get(through(t, p), "http://named.example:"+port+"/a?b=c%20d")
	if want := "named.example:" + port + ` /a?b=c%20d "" ""`; err != nil || got != want {
		t.Errorf("got %q, want %q, err %v", got, want, err)
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "tunnelled") }))
	defer secure.Close()
	client := through(t, p)
	client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	if got, err := get(client, secure.URL); err != nil || got != "tunnelled" {
		t.Errorf("got %q err %v", got, err)
	}
}

// TestProxyRefuses: what is no http request for another server ends without an answer.
func TestProxyRefuses(t *testing.T) {
	p := openProxy(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, errForbidden
	}})
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET https://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://x/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "CONNECT update.googleapis.com:443 HTTP/1.1\r\nHost: update.googleapis.com:443\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", p.address())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, request)
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			if resp.StatusCode == http.StatusOK {
				t.Errorf("%q: status %d", request, resp.StatusCode)
			}
			_ = resp.Body.Close()
		}
		_ = conn.Close()
	}
	if p.refusal() != nil {
		t.Errorf("refusal %v", p.refusal())
	}
}

func TestProxyLimits(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) }))
	defer srv.Close()
	p := openProxy(t, Config{Dial: anywhere, MaxWire: 3 << 19})
	if got, err := get(through(t, p), srv.URL); err != nil || len(got) != 1<<20 {
		t.Errorf("%d bytes, err %v", len(got), err)
	}
	if got, err := get(through(t, p), srv.URL); err == nil || len(got) > 1<<19 {
		t.Errorf("over the limit: %d bytes, err %v", len(got), err)
	}
	p = openProxy(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errForbidden }, MaxDials: 3})
	for range 5 {
		if _, err := get(through(t, p), srv.URL); err == nil {
			t.Error("no error")
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dials != -2 {
		t.Errorf("%d dials left of 3 after 5", p.dials)
	}
}

// TestProxyShut: a server that never ends is cut off, a tunnel too, and close waits for both.
func TestProxyShut(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(release)
	p := openProxy(t, Config{Dial: anywhere})
	ended := make(chan error, 2)
	go func() {
		_, err := get(through(t, p), srv.URL)
		ended <- err
	}()
	go func() {
		conn, err := net.Dial("tcp", p.address())
		if err == nil {
			_, _ = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", srv.Listener.Addr())
			_, err = io.ReadAll(conn) // the answer, then nothing until it is cut
			_ = conn.Close()
		}
		ended <- err
	}()
	for i := 0; ; i++ {
		p.mu.Lock()
		open := len(p.open)
		p.mu.Unlock()
		if open == 3 {
			break
		}
		if i == 500 {
			t.Fatalf("%d connections open, want 3", open)
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.shut()
	for range 2 {
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("still open")
		}
	}
	if _, err := get(through(t, p), srv.URL); err == nil {
		t.Error("a shut proxy answered")
	}
}
