package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

const (
	// maxFrameBytes bounds one message from a server.
	maxFrameBytes = 16 << 20
	// maxJunkLines is how many lines on standard output may be no message, such as a greeting.
	maxJunkLines = 1000
	// maxProgressBytes bounds a line that may tell of progress.
	maxProgressBytes = 256 << 10
	progressMethod   = "notifications/progress"
)

// pipe is the client's connection to a child process. A line that is no message is passed
// over; one that is over the limit ends the session, because it may have been the answer.
type pipe struct {
	*mcpkit.LineConn
	hear func(*jsonrpc.Request) bool // takes a notification of progress, in its place before what follows it

	mu    sync.Mutex // guards what follows
	fault error      // why no more messages come, if it is the server's fault
	junk  int
	first string // of the junk
}

func newPipe(proc *process, hear func(*jsonrpc.Request) bool) *pipe {
	p := &pipe{hear: hear}
	p.LineConn = mcpkit.NewLineConn(proc.Out, proc.In, maxFrameBytes, p.take)
	return p
}

// take gives the message in a line, unless it is progress, which is heard at once.
func (p *pipe) take(line []byte) (jsonrpc.Message, []byte, error) {
	if line == nil {
		return nil, nil, p.fail(errHuge)
	}
	msg := frame(line)
	if msg == nil {
		return nil, nil, p.tolerate(line)
	}
	if n, ok := msg.(*jsonrpc.Request); ok && p.hear(n) {
		return nil, nil, nil
	}
	return msg, nil, nil
}

// frame is the message in a line, or nil; a batch is none. What is clearly an answer and cannot be read
// fails its call, which would wait for it in vain.
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

// tolerate notes a line that is no message. Too many of them are an error.
func (p *pipe) tolerate(text []byte) error {
	p.mu.Lock()
	if p.junk++; p.junk == 1 {
		p.first = brief(string(text[:min(len(text), 1024)]))
	}
	lines := p.junk
	p.mu.Unlock()
	if lines <= maxJunkLines {
		return nil
	}
	return p.fail(marchwarden.Errorf(marchwarden.CodeMalformed, "the researcher wrote more than %d lines that are no protocol", maxJunkLines))
}

// fail notes what the server must not have said, and gives the error that ends the connection.
func (p *pipe) fail(fault error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
	return io.EOF
}

// failure is why the connection ended if the server said something that it must not, or nil.
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

// address is the client's side of HTTP: it adds the token, for the server that was named and no
// other, bounds what comes back, and gives the statuses that mean something their codes.
type address struct {
	base  http.RoundTripper
	home  *url.URL
	token string
	login *Login // where tokens come from instead, or nil
	hear  func(*jsonrpc.Request) bool
}

// newAddress is a client for one server. It follows redirects within the server only, and has no time
// limit: a research takes what it takes.
func newAddress(client http.Client, home *url.URL, t Target, hear func(*jsonrpc.Request) bool) *http.Client {
	client.Timeout = 0
	client.Transport = &address{base: client.Transport, home: home, token: t.Token, login: t.Login, hear: hear}
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if !sameServer(req.URL, home) {
			return marchwarden.Errorf(marchwarden.CodeDenied, "the researcher redirects to another server, %s", brief(req.URL.Host))
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
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		_ = resp.Body.Close()
		refused := marchwarden.Errorf(marchwarden.CodeDenied, "the researcher refused access (status %d)", resp.StatusCode)
		refused.Hint = "check its token"
		return nil, refused
	case http.StatusTooManyRequests:
		_ = resp.Body.Close()
		return nil, marchwarden.Errorf(marchwarden.CodeRateLimited, "the researcher asks to come back later (status 429)")
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") { // of which the SDK bounds every event
		resp.Body = &overheard{ReadCloser: resp.Body, hear: a.hear}
	} else {
		resp.Body = httpapi.Limit(resp.Body, maxFrameBytes, errHuge)
	}
	return resp, nil
}

// overheard is a stream of events whose progress is heard before the stream is read further: by the
// SDK the answer may overtake it.
type overheard struct {
	io.ReadCloser
	hear func(*jsonrpc.Request) bool
	line []byte // the beginning of a line
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	for part := range bytes.Lines(p[:n]) {
		if len(o.line)+len(part) <= maxProgressBytes {
			o.line = append(o.line, part...)
		}
		if part[len(part)-1] != '\n' {
			break
		}
		if data, ok := bytes.CutPrefix(o.line, []byte("data:")); ok && bytes.Contains(data, []byte(progressMethod)) {
			if msg, err := jsonrpc.DecodeMessage(data); err == nil {
				if note, ok := msg.(*jsonrpc.Request); ok {
					o.hear(note)
				}
			}
		}
		o.line = o.line[:0]
	}
	return n, err
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

// traffic is the calls of a session that are under way.
type traffic struct {
	mu        sync.Mutex // guards what follows
	calls     int
	wanted    int  // calls that a caller still waits for
	broken    bool // a call was broken off
	listeners map[string]*listener
	told      bool           // the process was told to end
	handover  chan struct{}  // closed when it was
	underway  sync.WaitGroup // calls; counted up while the process was not told to end
}
