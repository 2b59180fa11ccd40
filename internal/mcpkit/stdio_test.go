package mcpkit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// rawClient speaks lines to a running ServeStdio.
type rawClient struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Scanner
	stop   context.CancelFunc
	served chan error
}

func startRaw(t *testing.T, s *Server) *rawClient {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	c := &rawClient{t: t, in: inW, out: bufio.NewScanner(outR), stop: stop, served: make(chan error, 1)}
	c.out.Buffer(nil, 4<<20)
	go func() {
		c.served <- s.ServeStdio(ctx, inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() {
		stop()
		inW.Close()
		outR.Close()
	})
	c.send(strings.TrimSuffix(handshake, "\n"))
	if m := c.next(); m.ID != float64(1) {
		t.Fatalf("initialize was answered with %+v", m)
	}
	return c
}

func (c *rawClient) send(lines string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, lines+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

type rawMessage struct {
	ID     any
	Method string
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

func (c *rawClient) next() rawMessage {
	c.t.Helper()
	var m rawMessage
	if !c.out.Scan() {
		c.t.Fatalf("no more messages: %v", c.out.Err())
	}
	if err := json.Unmarshal(c.out.Bytes(), &m); err != nil {
		c.t.Fatalf("%v in %q", err, c.out.Text())
	}
	return m
}

// ended waits for ServeStdio and gives its error.
func (c *rawClient) ended(limit time.Duration) error {
	c.t.Helper()
	select {
	case err := <-c.served:
		return err
	case <-time.After(limit):
		c.t.Fatalf("ServeStdio did not return within %v", limit)
		return nil
	}
}

func TestMalformedLinesAreAnswered(t *testing.T) {
	s, _ := newTestServer(t, echo)
	c := startRaw(t, s)
	for _, tc := range []struct {
		name, line string
		code       int
		id         any
	}{
		{"not JSON", `hello`, -32700, nil},
		{"cut short", `{"jsonrpc":"2.0","id":2`, -32700, nil},
		{"two on a line", `{"jsonrpc":"2.0"} {}`, -32700, nil},
		{"bad UTF-8", "{\"a\":\"\xff\"}", -32700, nil},
		{"too long", `{"a":"` + strings.Repeat("x", maxLineBytes) + `"}`, -32600, nil},
		{"batch", ` [{"jsonrpc":"2.0","id":2,"method":"ping"}]`, -32600, nil},
		{"no version", `{"id":"seven","method":"ping"}`, -32600, "seven"},
		{"no method", `{"jsonrpc":"2.0"}`, -32600, nil},
		{"number", `12`, -32600, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c.send("\n" + tc.line)
			m := c.next()
			if m.Error == nil || m.Error.Code != tc.code || m.ID != tc.id {
				t.Errorf("got %+v (%+v), want code %d and id %v", m, m.Error, tc.code, tc.id)
			}
		})
	}
	c.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	if m := c.next(); m.ID != float64(9) || m.Error != nil {
		t.Errorf("the session did not survive: %+v", m)
	}
	c.in.Close()
	if err := c.ended(time.Second); err != nil {
		t.Error(err)
	}
}

func TestInputEndsAfterTheAnswers(t *testing.T) {
	s, _ := newTestServer(t, scripted(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		time.Sleep(20 * time.Millisecond)
		return sample("whole [1]"), nil
	}))
	in := handshake + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"research","arguments":{"question":"q"},"_meta":{"progressToken":7}}}
{"jsonrpc":"2.0","id":3,"method":"tools/list"}` // the last line has no end
	var out strings.Builder
	if err := s.ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	checkLines(t, out.String())
	for _, part := range []string{`"id":1,`, `"id":2,`, `"id":3,`, `"answer":"whole [1]"`, `"message":"research started"`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("output lacks %s:\n%s", part, out.String())
		}
	}
}

const slowCall = `{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"research","arguments":{"question":"q"}}}`

// untilStopped gives a partial result when it is stopped.
func untilStopped(started chan<- struct{}) scripted {
	return func(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		close(started)
		<-ctx.Done()
		return sample("partial [1]"), nil
	}
}

func TestInputEndStopsLongCalls(t *testing.T) {
	started := make(chan struct{})
	s, _ := newTestServer(t, untilStopped(started))
	c := startRaw(t, s)
	c.send(slowCall)
	<-started
	c.in.Close()
	if m := c.next(); m.ID != "slow" || !strings.Contains(string(m.Result), "partial [1]") {
		t.Errorf("got %+v", m)
	}
	if err := c.ended(time.Second); err != nil {
		t.Error(err)
	}
}

func TestContextEndHandsOverPartialResults(t *testing.T) {
	started := make(chan struct{})
	s, _ := newTestServer(t, untilStopped(started), func(c *Config) { c.Grace = time.Minute })
	c := startRaw(t, s)
	c.send(slowCall)
	<-started
	c.stop()
	if m := c.next(); m.ID != "slow" || !strings.Contains(string(m.Result), "partial [1]") {
		t.Errorf("got %+v", m)
	}
	if err := c.ended(5 * time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestStuckResearcherIsAbandoned(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	s, log := newTestServer(t, scripted(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		close(started)
		<-release
		return sample("late [1]"), nil
	}), func(c *Config) { c.MaxConcurrent = 1 })
	defer close(release)
	c := startRaw(t, s)
	c.send(slowCall)
	<-started
	c.stop()
	if m := c.next(); m.ID != "slow" || !strings.Contains(string(m.Result), "did not end in time") {
		t.Errorf("got %+v", m)
	}
	if err := c.ended(5 * time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if !strings.Contains(log.String(), "did not end after it was stopped") {
		t.Errorf("the log is silent: %s", log)
	}
	if s.runs.Running() != 1 {
		t.Error("the slot of a call that still runs was given back")
	}
}

func TestDeafClientCannotHoldTheServer(t *testing.T) {
	started := make(chan struct{})
	s, _ := newTestServer(t, untilStopped(started))
	c := startRaw(t, s) // reads the answer to initialize, and nothing after it
	c.send(slowCall)
	<-started
	c.stop()
	if err := c.ended(5 * time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestCancelledCallIsNotAnswered(t *testing.T) {
	started := make(chan struct{})
	s, _ := newTestServer(t, untilStopped(started))
	c := startRaw(t, s)
	c.send(slowCall)
	<-started
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow","reason":"enough"}}`)
	for s.runs.Running() > 0 {
		time.Sleep(time.Millisecond)
	}
	c.in.Close()
	if c.out.Scan() {
		t.Errorf("got %s", c.out.Text())
	}
	if err := c.ended(time.Second); err != nil {
		t.Error(err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (brokenPipe) Read([]byte) (int, error)  { return 0, io.ErrNoProgress }

func TestBrokenStreamsEndTheServer(t *testing.T) {
	s, _ := newTestServer(t, echo)
	inR, inW := io.Pipe()
	defer inW.Close()
	go io.WriteString(inW, handshake)
	if err := s.ServeStdio(t.Context(), inR, brokenPipe{}); !errors.Is(err, io.ErrClosedPipe) || !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("broken output: got %v", err)
	}
	if err := s.ServeStdio(t.Context(), brokenPipe{}, io.Discard); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("broken input: got %v", err)
	}
}
