package httpdoor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const hb = ": hb\n\n"

func handler(f http.HandlerFunc) http.HandlerFunc { return f }

func events(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
}

func TestHeartbeat(t *testing.T) {
	const beat, silence = 40 * time.Millisecond, time.Second // a busy machine beats late
	for _, c := range []struct {
		name   string
		accept string
		serve  http.HandlerFunc
		status int
		ctype  string
		body   string // without beats
		beats  bool
	}{
		{"events after silence", "application/json, text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(silence)
			events(w)
			_, _ = io.WriteString(w, "event: message\ndata: {}\n\n")
		}, 200, "text/event-stream", "event: message\ndata: {}\n\n", true},
		{"events, then silence", "text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			events(w)
			_, _ = io.WriteString(w, "data: 1\n\n")
			time.Sleep(silence)
			_, _ = io.WriteString(w, "data: 2\n\n")
		}, 200, "text/event-stream", "data: 1\n\ndata: 2\n\n", true},
		{"a flushed head, then silence", "text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			events(w)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(silence)
		}, 200, "text/event-stream", "", true},
		{"silence within an event", "text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			events(w)
			_, _ = io.WriteString(w, "event: message\n")
			time.Sleep(silence)
			_, _ = io.WriteString(w, "data: {}\n\n")
		}, 200, "text/event-stream", "event: message\ndata: {}\n\n", false},
		{"JSON at once", "application/json, text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"a":`)
			w.(http.Flusher).Flush()
			time.Sleep(silence)
			_, _ = io.WriteString(w, `1}`)
		}, 200, "application/json", `{"a":1}`, false},
		{"JSON after silence", "application/json, text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(silence)
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "{\r\n\"a\":")
			_, _ = io.WriteString(w, "1}\n")
		}, 200, "text/event-stream", "event: message\ndata: {\ndata: \"a\":1}\n\n", true},
		{"JSON after silence for who reads no events", "application/json", func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(silence)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		}, 200, "application/json", "{}", false},
		{"an error at once", "text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusBadRequest)
			time.Sleep(silence)
		}, 400, "text/plain; charset=utf-8", "no\n", false},
		{"an error as events", "text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			events(w)
			w.WriteHeader(http.StatusNotFound)
			time.Sleep(silence)
		}, 404, "text/event-stream", "", false},
		{"an error after silence", "text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(silence)
			http.Error(w, "no\nsuch", http.StatusNotFound)
		}, 200, "text/event-stream", ": 404 no such\n\n", true},
		{"accepted", "text/event-stream", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			time.Sleep(silence)
		}, 202, "", "", false},
		{"nothing at all", "text/event-stream", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Set", "yes") }, 200, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Config{Heartbeat: beat, MCP: c.serve})
			for _, method := range []string{"POST", "GET"} {
				resp, text := s.do(method, "/mcp", "{}", header{"Accept": c.accept})
				if resp.StatusCode != c.status || resp.Header.Get("Content-Type") != c.ctype || strings.ReplaceAll(text, hb, "") != c.body || strings.Contains(text, hb) != c.beats {
					t.Errorf("%s: %d %s %q", method, resp.StatusCode, resp.Header.Get("Content-Type"), text)
				}
				if c.beats && resp.Header.Get("X-Accel-Buffering") != "no" {
					t.Errorf("%v", resp.Header)
				}
			}
		})
	}
}

func TestTheHeadComesBeforeTheAnswer(t *testing.T) {
	gate := make(chan struct{})
	headFirst(open(t, Config{Heartbeat: 20 * time.Millisecond, MCP: behind(gate)}), gate, header{})
}

// behind answers when the gate is opened.
func behind(gate chan struct{}) http.Handler {
	return handler(func(w http.ResponseWriter, r *http.Request) {
		<-gate
		events(w)
		_, _ = io.WriteString(w, "data: {}\n\n")
	})
}

// headFirst asks a server behind a gate: the head and a beat come before the gate is opened, and the
// answer after it.
func headFirst(s *site, gate chan struct{}, h header) *http.Response {
	s.t.Helper()
	req, _ := http.NewRequestWithContext(s.t.Context(), "POST", s.url+"/mcp", strings.NewReader("{}"))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range h {
		req.Header.Set(k, v)
	}
	resp, err := s.client.Do(req) // returns with the head
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, len(hb))
	if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != hb || resp.StatusCode != 200 {
		s.t.Fatalf("%d %q %v", resp.StatusCode, buf, err)
	}
	close(gate)
	if rest, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(rest), "data: {}\n\n") {
		s.t.Errorf("%q %v", rest, err)
	}
	return resp
}

// Beats and the handler write at the same time; every event arrives whole.
func TestBeatsDoNotBreakEvents(t *testing.T) {
	const events = 300
	s := open(t, Config{Heartbeat: time.Microsecond * 200, MCP: handler(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", eventStream)
		for i := range events {
			w.Header().Set("X-Late", "racing") // the map is the handler's
			_, _ = fmt.Fprintf(w, "event: message\n")
			if i%7 == 0 {
				time.Sleep(time.Millisecond)
			}
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			if i%5 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	})})
	_, text := s.do("POST", "/mcp", "{}", nil)
	var want strings.Builder
	for i := range events {
		fmt.Fprintf(&want, "event: message\ndata: %d\n\n", i)
	}
	if got := strings.ReplaceAll(text, hb, ""); got != want.String() {
		t.Errorf("events are broken: %.300q", got)
	}
	if n := strings.Count(text, hb); n == 0 {
		t.Error("no beat among the events: this test has tested nothing")
	}
}

// Who speaks needs no beats, however long it takes.
func TestNoBeatsWithoutSilence(t *testing.T) {
	s := open(t, Config{Heartbeat: 400 * time.Millisecond, MCP: handler(func(w http.ResponseWriter, _ *http.Request) {
		events(w)
		for range 20 {
			_, _ = io.WriteString(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(40 * time.Millisecond)
		}
	})})
	if _, text := s.do("POST", "/mcp", "{}", nil); strings.Contains(text, hb) {
		t.Error("a beat between events that came all the time")
	}
}

func TestTheContextEndsWhenTheCallerGoes(t *testing.T) {
	entered, gone := make(chan struct{}, 1), make(chan error, 1)
	s := open(t, Config{Heartbeat: 20 * time.Millisecond, MCP: handler(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		select { // the body is not read here
		case <-r.Context().Done():
			gone <- r.Context().Err()
		case <-time.After(30 * time.Second):
			gone <- nil
		}
	})})
	for _, method := range []string{"POST", "GET"} {
		for _, wait := range []time.Duration{0, 100 * time.Millisecond} { // before and after the first beat
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

func TestNothingIsWrittenAfterTheHandler(t *testing.T) {
	wrote := make(chan error, 2)
	s := open(t, Config{Heartbeat: time.Millisecond, MCP: handler(func(w http.ResponseWriter, r *http.Request) {
		events(w)
		_, _ = io.WriteString(w, "data: 1\n\n")
		go func() {
			<-r.Context().Done() // after the handler has returned
			_, err := io.WriteString(w, "data: 2\n\n")
			wrote <- err
			wrote <- http.NewResponseController(w).Flush()
		}()
	})})
	if _, text := s.do("POST", "/mcp", "{}", nil); strings.Contains(text, "2") {
		t.Error(text)
	}
	for range 2 {
		if err := <-wrote; err == nil {
			t.Error("a write after the end is said to have worked")
		}
	}
}

func TestAcceptsEvents(t *testing.T) {
	for accept, want := range map[string]bool{
		"application/json, text/event-stream": true, "text/event-stream;q=0.5": true, "Text/Event-Stream": true,
		"": false, "application/json": false, "*/*": false, "text/event-streams": false,
	} {
		r := &http.Request{Header: http.Header{"Accept": {accept}}}
		if acceptsEvents(r) != want {
			t.Errorf("%q: %v", accept, !want)
		}
	}
}
