package httpdoor

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestProbe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var draining atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- Probe(ctx, l, func() error {
			if draining.Load() {
				return errors.New("draining")
			}
			return nil
		})
	}()
	get := func(method, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode < 400 && resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be kept", path)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	check := func(method, path string, status int, part string) {
		t.Helper()
		if got, body := get(method, path); got != status || !strings.Contains(body, part) {
			t.Errorf("%s %s: %d %q", method, path, got, body)
		}
	}
	check("GET", "/healthz", 200, "ok")
	check("GET", "/readyz", 200, "ready")
	check("POST", "/healthz", 405, "")
	check("GET", "/metrics", 404, "")
	check("GET", "/mcp", 404, "")
	draining.Store(true)
	check("GET", "/readyz", 503, "not ready: draining")
	check("GET", "/healthz", 200, "ok")
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := Probe(t.Context(), l, nil); err == nil {
		t.Error("it serves on what is closed")
	}
}
