package httpdoor

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func handler(f http.HandlerFunc) http.HandlerFunc { return f }

func events(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
}

func TestTheContextEndsWhenTheCallerGoes(t *testing.T) {
	entered, gone := make(chan struct{}, 1), make(chan error, 1)
	s := open(t, Config{MCP: handler(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		select { // the body is not read here
		case <-r.Context().Done():
			gone <- r.Context().Err()
		case <-time.After(30 * time.Second):
			gone <- nil
		}
	})})
	for _, method := range []string{"POST", "GET"} {
		for _, wait := range []time.Duration{0, 100 * time.Millisecond} {
			ctx, cancel := context.WithCancel(t.Context())
			req, _ := http.NewRequestWithContext(ctx, method, s.url+"/mcp", strings.NewReader("{}"))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "text/event-stream")
			left := make(chan struct{})
			go func() {
				defer close(left)
				if resp, err := s.client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
			<-entered
			time.Sleep(wait)
			cancel()
			<-left
			if err := <-gone; err == nil {
				t.Errorf("%s after %v: the handler was not told", method, wait)
			}
		}
	}
}

// A caller that takes no bytes does not hold a handler for ever.
func TestACallerThatDoesNotReadIsCut(t *testing.T) {
	ended := make(chan error, 1)
	s := open(t, Config{BodyTimeout: 200 * time.Millisecond, MCP: handler(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", eventStream)
		event := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
		for range 100 {
			if _, err := io.WriteString(w, event); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	})})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a hundred megabytes went nowhere")
		}
	case <-time.After(10 * time.Second):
		t.Error("the handler hangs")
	}
}
