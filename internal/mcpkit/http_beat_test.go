package mcpkit

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
)

// wireLog is the caller's end of an answer, with the time of everything that came.
type wireLog struct {
	mu     sync.Mutex
	header http.Header
	status int
	body   bytes.Buffer
	told   []time.Time // of progress
}

func (l *wireLog) Header() http.Header { return l.header }

func (l *wireLog) WriteHeader(code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = code
}

func (l *wireLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(p, []byte("notifications/progress")) {
		l.told = append(l.told, time.Now())
	}
	return l.body.Write(p)
}

func (l *wireLog) Flush() {}

// longest is the longest time between two of the times, from a beginning on.
func longest(from time.Time, times []time.Time) (most time.Duration) {
	for _, at := range times {
		most, from = max(most, at.Sub(from)), at
	}
	return most
}

// TestSilentCalls lets a researcher be silent for minutes. Behind the door a caller that wants
// progress is told of it at least every 10 seconds, and never after the answer.
func TestSilentCalls(t *testing.T) {
	const silence = 3 * time.Minute
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { silentCall(t, era, silence) })
		})
	}
}

func silentCall(t *testing.T, era string, silence time.Duration) {
	s, _ := newTestServer(t, scripted(func(_ context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if sink != nil {
			sink(marchwarden.Event{Stage: marchwarden.StageSearch, Message: "thinking"})
		}
		time.Sleep(silence)
		return sample(req.Question + " [1]"), nil
	}), func(c *Config) { c.MaxWall = -1 })
	d, err := httpdoor.New(httpdoor.Config{MCP: s.Handler(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	send := func(session, method string, params map[string]any) *wireLog {
		t.Helper()
		req, err := post(t.Context(), "http://127.0.0.1/mcp", era, session, method, params)
		if err != nil {
			t.Fatal(err)
		}
		req.RemoteAddr = "127.0.0.1:4711"
		log := &wireLog{header: http.Header{}}
		d.Handler().ServeHTTP(log, req)
		return log
	}
	session := ""
	if era != modernEra {
		session = send("", "initialize", map[string]any{"protocolVersion": era, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}}).header.Get("Mcp-Session-Id")
	}
	params := asking("How long does it take?")
	params["progressToken"] = "p"
	began := time.Now()
	log := send(session, "tools/call", params)
	if took := time.Since(began); took != silence || log.status != http.StatusOK || !strings.Contains(log.body.String(), "How long does it take? [1]") {
		t.Errorf("after %v: %d %.300s", took, log.status, log.body.String())
	}
	if gap := longest(began, log.told); gap > 10*time.Second || log.told[len(log.told)-1].Sub(began) < silence-10*time.Second {
		t.Errorf("progress was told %d times, the longest silence was %v", len(log.told), gap)
	}
	if answer, last := strings.LastIndex(log.body.String(), `"result"`), strings.LastIndex(log.body.String(), "notifications/progress"); last > answer {
		t.Error("progress after the answer")
	}
}
