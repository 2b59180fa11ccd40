package mcpkit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// ServeStdio serves one client, one JSON-RPC message a line, until in ends or
// ctx does. It writes nothing but protocol to out.
//
// When in ends, calls that run get the grace to finish, then they are stopped; it returns nil. When
// ctx ends, calls are stopped at once. A stopped call's partial result is still sent if it comes
// within the grace; then ServeStdio returns ctx's error, even if the client does not read or the
// researcher does not stop. It returns another error when in or out fails.
//
// The caller keeps in and out and closes them. A read of in that was waiting when ctx ended goes on
// waiting in the background until in gives something or is closed.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	calls, stopCalls := context.WithCancel(ctx)
	defer stopCalls()
	gone, leave := context.WithCancel(context.Background())
	conn := &stdioConn{lines: LineTransport(in, out, maxLineBytes, takeCall), grace: s.cfg.Grace, stopCalls: stopCalls,
		gone: gone, leave: leave, live: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1)}
	defer conn.Close()
	session, err := s.mcp.Connect(access.With(context.WithValue(ctx, sessionKey{}, calls), access.Local()), conn, nil)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "serve mcp over stdio")
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err := <-ended:
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "serve mcp over stdio")
	case <-ctx.Done():
	}
	// The SDK drops the answers of running calls when it closes, so they are waited for first.
	conn.drain(handover(s.cfg.Grace))
	go session.Close()
	select {
	case <-ended:
	case <-time.After(s.cfg.Grace):
		s.cfg.Log.Error("mcp session did not close in time", "grace", s.cfg.Grace)
	}
	return ctx.Err()
}

// handover is how long the answers of stopped calls take: the grace, and to be written, which
// takes a busy machine longer than the grace of a short-lived server has room for.
func handover(grace time.Duration) time.Duration { return grace + time.Second }

// sessionKey is where the context of a session's calls is in that of a request.
type sessionKey struct{}

// maxLineBytes bounds one message from the client; a legal request is far below it.
const maxLineBytes = 1 << 20

// stdioConn is a connection of lines for a server, which needs more than the SDK does:
//
//   - it knows which calls have no answer yet, so that a session can end after
//     their answers instead of before;
//   - a call that the client cancelled is not answered, as the protocol asks.
type stdioConn struct {
	mcp.Connection
	lines     *mcp.IOTransport
	grace     time.Duration
	stopCalls func()          // ends the contexts of running calls
	gone      context.Context // ends with the connection
	leave     func()

	liveMu   sync.Mutex          // guards live
	live     map[jsonrpc.ID]bool // calls without an answer; true: cancelled by the client
	answered chan struct{}       // tells drain that live has shrunk
}

// Connect makes a connection its own transport.
func (c *stdioConn) Connect(ctx context.Context) (_ mcp.Connection, err error) {
	c.Connection, err = c.lines.Connect(ctx)
	return c, err
}

// Close ends reading and writing.
func (c *stdioConn) Close() error {
	c.leave()
	return c.Connection.Close()
}

// Read gives the next message. At the end of input it first lets the running calls answer, and stops
// those that take too long: the SDK drops answers once Read has failed.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if err != nil && ctx.Err() == nil && !c.drain(c.grace) {
		c.stopCalls()
		c.drain(handover(c.grace))
	}
	c.track(msg)
	return msg, err
}

// track notes calls as they come in, and their cancellation.
func (c *stdioConn) track(msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return
	}
	c.liveMu.Lock()
	defer c.liveMu.Unlock()
	if req.IsCall() {
		if req.Method != "subscriptions/listen" { // it ends with the session, never before
			c.live[req.ID] = false
		}
		return
	}
	if req.Method != "notifications/cancelled" {
		return
	}
	var p mcp.CancelledParams
	if json.Unmarshal(req.Params, &p) != nil {
		return // the SDK reports it
	}
	if id, err := jsonrpc.MakeID(p.RequestID); err == nil {
		if _, running := c.live[id]; running {
			c.live[id] = true
		}
	}
}

// Write sends one message. The answer of a cancelled call is swallowed.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if resp, ok := msg.(*jsonrpc.Response); ok {
		defer c.settle(resp.ID)
		c.liveMu.Lock()
		cancelled := c.live[resp.ID]
		c.liveMu.Unlock()
		if cancelled {
			return nil
		}
	}
	return c.Connection.Write(ctx, msg)
}

func (c *stdioConn) settle(id jsonrpc.ID) {
	c.liveMu.Lock()
	delete(c.live, id)
	c.liveMu.Unlock()
	select {
	case c.answered <- struct{}{}:
	default: // drain has been told already
	}
}

// drain waits until every call has its answer, at most for the limit or until
// the connection is closed, and reports whether there is none left.
func (c *stdioConn) drain(limit time.Duration) bool {
	over := time.After(limit)
	for {
		c.liveMu.Lock()
		n := len(c.live)
		c.liveMu.Unlock()
		if n == 0 {
			return true
		}
		select {
		case <-c.answered:
		case <-over:
			return false
		case <-c.gone.Done():
			return false
		}
	}
}

// takeCall passes a message on, and answers with an error what is none.
func takeCall(line []byte) (msg, answer []byte, err error) {
	wrong := ""
	code := jsonrpc.CodeInvalidRequest
	switch {
	case line == nil:
		wrong = fmt.Sprintf("a message must be at most %d bytes", maxLineBytes)
	case !utf8.Valid(line):
		code, wrong = jsonrpc.CodeParseError, "a message must be valid UTF-8"
	case !json.Valid(line):
		code, wrong = jsonrpc.CodeParseError, "a message must be one JSON object on one line"
	case line[0] == '[':
		wrong = "batches are not supported: send one message a line"
	default:
		_, err := jsonrpc.DecodeMessage(line)
		if err == nil {
			return line, nil, nil
		}
		wrong = err.Error()
	}
	return nil, protocolError(line, code, wrong), nil
}

// protocolError is the answer to something that is no message, with its id if it has one: MCP allows no
// null id.
func protocolError(text []byte, code int, message string) []byte {
	var head struct {
		ID any `json:"id"`
	}
	_ = json.Unmarshal(text, &head) // what has no id is answered without one
	answer := map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": code, "message": message}}
	switch head.ID.(type) {
	case string, float64:
		answer["id"] = head.ID
	}
	data, _ := json.Marshal(answer) // strings and numbers always marshal
	return data
}

// TakeLine makes sense of a line that is not blank, nil if it was over the limit: it gives the
// message in it, or what to answer right away, or neither to pass the line over. An error ends the
// connection.
type TakeLine func(line []byte) (msg, answer []byte, err error)

// LineTransport carries one JSON-RPC message a line, of at most limit bytes. It leaves its two streams
// open: they are the caller's. The SDK's own would end at a line that is no message.
func LineTransport(in io.Reader, out io.Writer, limit int, take TakeLine) *mcp.IOTransport {
	messages, passed := io.Pipe()
	answers := &lineWriter{out: out}
	go func() { passed.CloseWithError(takeLines(in, passed, answers, limit, take)) }()
	return &mcp.IOTransport{Reader: messages, Writer: answers, MaxLineLength: -1}
}

// takeLines reads lines until in ends, a line cannot be taken or the connection is closed.
func takeLines(in io.Reader, messages, answers io.Writer, limit int, take TakeLine) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, ended := durable.ReadLine(r, limit)
		text := bytes.TrimSpace(line)
		if len(line) > limit {
			text = nil
		}
		if len(line) > limit || len(text) > 0 {
			msg, answer, err := take(text)
			if err == nil && answer != nil {
				_, err = answers.Write(append(answer, '\n'))
			}
			if err == nil && msg != nil {
				_, err = messages.Write(append(msg, '\n'))
			}
			if err != nil {
				return err
			}
		}
		if ended != nil {
			return ended
		}
	}
}

// lineWriter writes whole lines, until it is closed. Closing does not wait for a reader that does not read.
type lineWriter struct {
	mu     sync.Mutex // one line at a time
	out    io.Writer
	closed atomic.Bool
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed.Load() {
		return 0, io.ErrClosedPipe
	}
	return w.out.Write(line)
}

func (w *lineWriter) Close() error {
	w.closed.Store(true)
	return nil
}
