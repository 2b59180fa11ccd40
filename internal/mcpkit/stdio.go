package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
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
	conn := &stdioConn{LineConn: NewLineConn(in, out, maxLineBytes, decodeLine), grace: s.cfg.Grace, stopCalls: stopCalls,
		live: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1)}
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

// handover is how long the answers of stopped calls take: the grace, and to be written.
func handover(grace time.Duration) time.Duration { return grace + grace/4 }

// sessionKey is where the context of a session's calls is in that of a request.
type sessionKey struct{}

// maxLineBytes bounds one message from the client; a legal request is far below it.
const maxLineBytes = 1 << 20

// stdioConn is a LineConn of a server, which needs more than the SDK's own does:
//
//   - a line that is no message is answered with an error, and the next one is
//     read; the SDK would end the session;
//   - it knows which calls have no answer yet, so that a session can end after
//     their answers instead of before;
//   - a call that the client cancelled is not answered, as the protocol asks.
type stdioConn struct {
	*LineConn
	grace     time.Duration
	stopCalls func() // ends the contexts of running calls

	liveMu   sync.Mutex          // guards live
	live     map[jsonrpc.ID]bool // calls without an answer; true: cancelled by the client
	answered chan struct{}       // tells drain that live has shrunk
}

// Connect makes a connection its own transport.
func (c *stdioConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// Read gives the next message. At the end of input it first lets the running calls answer: the SDK
// drops answers once Read has failed.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.LineConn.Read(ctx)
	if err != nil && ctx.Err() == nil {
		c.finish()
	}
	c.track(msg)
	return msg, err
}

// finish lets running calls answer, and stops those that take too long.
func (c *stdioConn) finish() {
	select {
	case <-c.closed:
		return
	default:
	}
	if !c.drain(c.grace) {
		c.stopCalls()
		c.drain(handover(c.grace))
	}
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
	var p struct {
		RequestID any `json:"requestId"`
	}
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
	return c.LineConn.Write(ctx, msg)
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
		case <-c.closed:
			return false
		}
	}
}

// decodeLine gives the message in a line, or the error to answer it with.
func decodeLine(line []byte) (jsonrpc.Message, []byte, error) {
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
		msg, err := jsonrpc.DecodeMessage(line)
		if err == nil {
			return msg, nil, nil
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
