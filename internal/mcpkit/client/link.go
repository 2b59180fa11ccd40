package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client/child"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client/login"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/wire"
)

const (
	// maxFrameBytes bounds one message from a server.
	maxFrameBytes = 16 << 20
	// maxJunkLines is how much a server may write to its standard output that is no
	// message, such as a greeting, before it is given up.
	maxJunkLines = 1000
)

// pipe is the client's connection to a child process, one JSON-RPC message a line.
// A line that is no message is passed over, where the SDK would end the session;
// one that is over the limit ends it, because it may have been the answer.
type pipe struct {
	proc *child.Process
	hear func(*jsonrpc.Request) bool // takes a notification of progress, in its place before what follows it

	frames chan jsonrpc.Message // closed after the last one

	closeOnce sync.Once
	closed    chan struct{}

	writeMu sync.Mutex // one message at a time

	mu    sync.Mutex // guards what follows
	fault error      // why no more frames come, if it is the server's fault
	junk  int
	first string // of the junk
}

func newPipe(proc *child.Process, hear func(*jsonrpc.Request) bool) *pipe {
	p := &pipe{proc: proc, hear: hear, frames: make(chan jsonrpc.Message), closed: make(chan struct{})}
	go p.scan()
	return p
}

// Connect makes a pipe its own transport, for one session.
func (p *pipe) Connect(context.Context) (mcp.Connection, error) { return p, nil }

// SessionID is empty: a stream has one session.
func (p *pipe) SessionID() string { return "" }

// Close ends reading and writing. The process is its owner's to stop.
func (p *pipe) Close() error {
	p.closeOnce.Do(func() { close(p.closed) })
	return nil
}

func (p *pipe) scan() {
	defer close(p.frames)
	r := bufio.NewReaderSize(p.proc.Out, 64<<10)
	for {
		l, err := wire.ReadLine(r, maxFrameBytes)
		if l.TooLong {
			p.fail(errHuge)
			return
		}
		if text := bytes.TrimSpace(l.Text); len(text) > 0 {
			if !p.deliver(text) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver passes on the message in a line, and says whether to go on.
func (p *pipe) deliver(text []byte) bool {
	msg := frame(text)
	if msg == nil {
		return p.tolerate(text)
	}
	if n, ok := msg.(*jsonrpc.Request); ok && p.hear(n) {
		return true
	}
	select {
	case p.frames <- msg:
		return true
	case <-p.closed:
		return false
	}
}

// frame is the message in a line, or nil. A server that answers with a batch is not
// understood: the protocol has done away with them. What is clearly an answer and
// cannot be read fails the call it belongs to, which would wait for it in vain.
func frame(text []byte) jsonrpc.Message {
	var head struct {
		Version string `json:"jsonrpc"`
		ID      any    `json:"id"`
	}
	if text[0] != '{' || json.Unmarshal(text, &head) != nil {
		return nil
	}
	msg, err := jsonrpc.DecodeMessage(text)
	if err == nil {
		return msg
	}
	id, idErr := jsonrpc.MakeID(head.ID)
	if head.Version == "" || idErr != nil || !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: malformed(said(err.Error()))}
}

// tolerate notes a line that is no message, and says whether to go on.
func (p *pipe) tolerate(text []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.junk++; p.junk == 1 {
		p.first = wire.Clip(wire.Plain(string(text[:min(len(text), 1024)])), maxSaidChars/2)
	}
	if p.junk <= maxJunkLines {
		return true
	}
	p.fault = marchwarden.Errorf(marchwarden.CodeMalformed, "the researcher wrote more than %d lines that are no protocol", maxJunkLines)
	return false
}

func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = err
}

// failure is why the connection ended if the server said something that it must
// not, or nil.
func (p *pipe) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// noise says how much the server wrote that is no message, or "", and how that begins.
func (p *pipe) noise() (lines, first string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.junk == 0 {
		return "", ""
	}
	return fmt.Sprintf("its output has %d lines that are no protocol", p.junk), p.first
}

// Read gives the next message.
func (p *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, io.EOF
	case msg, more := <-p.frames:
		if !more {
			return nil, io.EOF
		}
		return msg, nil
	}
}

// Write sends one message. It waits for a server that does not read, until the
// process is stopped.
func (p *pipe) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	_, err = p.proc.In.Write(append(data, '\n'))
	return err
}

// address is the client's side of HTTP: it adds the token, for the server that was
// named and no other, bounds what comes back, and gives the statuses that mean
// something their codes.
type address struct {
	base  http.RoundTripper
	home  *url.URL
	token string
	login *login.Login // where tokens come from instead, or nil
}

// newAddress is a client for one server. It follows redirects within the server
// only, and has no time limit of its own: a research takes what it takes.
func newAddress(base *http.Client, home *url.URL, t Target) *http.Client {
	client := *base
	client.Timeout = 0
	client.Transport = &address{base: base.Transport, home: home, token: t.Token, login: t.Login}
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if !sameServer(req.URL, home) {
			return marchwarden.Errorf(marchwarden.CodeDenied, "the researcher redirects to another server, %s", wire.Clip(wire.Plain(req.URL.Host), maxSaidChars/2))
		}
		if len(via) > 5 {
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "the researcher redirects without end")
		}
		return nil
	}
	return &client
}

func sameServer(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// RoundTrip sends one request, and once more where a login finds a better token.
func (a *address) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, used, err := a.send(req)
	if err != nil {
		return nil, err
	}
	if a.login != nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		if err := a.login.Refused(req, resp, used); err != nil {
			return nil, err
		}
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		if resp, _, err = a.send(again); err != nil {
			return nil, err
		}
	}
	var refusal *marchwarden.Error
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		refusal = marchwarden.Errorf(marchwarden.CodeDenied, "the researcher refused access (status %d)", resp.StatusCode)
		refusal.Hint = "check its token"
	case http.StatusTooManyRequests:
		refusal = marchwarden.Errorf(marchwarden.CodeRateLimited, "the researcher asks to come back later (status 429)")
	}
	if refusal != nil {
		_ = resp.Body.Close()
		return nil, refusal
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") { // of which the SDK bounds every event
		resp.Body = &bounded{resp.Body, maxFrameBytes}
	}
	return resp, nil
}

// send sends a request with the token that it says, to the server that was named.
func (a *address) send(req *http.Request) (resp *http.Response, token string, err error) {
	if sameServer(req.URL, a.home) {
		token = a.token
		if a.login != nil {
			if token, err = a.login.Token(req.Context()); err != nil {
				return nil, "", err
			}
		}
	}
	if token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err = a.base.RoundTrip(req)
	return resp, token, err
}

// bounded is a body that fails once it is over the limit.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errHuge
	}
	return n, err
}
