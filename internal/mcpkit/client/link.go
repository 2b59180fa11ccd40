package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

const (
	// maxFrameBytes bounds one message from a server.
	maxFrameBytes = 16 << 20
	// maxJunkLines is how many lines on standard output may be no message, such as a greeting.
	maxJunkLines = 1000
	// maxProgressBytes bounds a line that may tell of progress.
	maxProgressBytes = 256 << 10
	progressMethod   = "notifications/progress"
	// codeUnread is the code of an answer that is put in the place of one that cannot be read.
	codeUnread = -32098
)

// pipe is the client's connection to a child process. A line that is no message is passed
// over; one that is over the limit ends the session, because it may have been the answer.
type pipe struct {
	*mcp.IOTransport
	hear  func(*jsonrpc.Request) bool       // takes a notification of progress, in its place before what follows it
	fault atomic.Pointer[marchwarden.Error] // why no more messages come, if it is the server's fault

	mu    sync.Mutex // guards what follows
	junk  int
	first string // of the junk
}

// take gives the message in a line, unless it is progress, which is heard at once.
func (p *pipe) take(line []byte) (text, answer []byte, err error) {
	if line == nil {
		p.fault.Store(errHuge)
		return nil, nil, io.EOF
	}
	text, msg := frame(line)
	if msg == nil {
		return nil, nil, p.tolerate(line)
	}
	if n, ok := msg.(*jsonrpc.Request); ok && p.hear(n) {
		return nil, nil, nil
	}
	return text, nil, nil
}

// frame is a line as a message, or nil; a batch is none. What is clearly an answer and cannot be read
// fails its call, which would wait for it in vain.
func frame(line []byte) ([]byte, jsonrpc.Message) {
	var head struct {
		Version string `json:"jsonrpc"`
		ID      any    `json:"id"`
	}
	if line[0] != '{' || json.Unmarshal(line, &head) != nil {
		return nil, nil
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if err == nil {
		return line, msg
	}
	id, idErr := jsonrpc.MakeID(head.ID)
	if head.Version == "" || idErr != nil || !id.IsValid() {
		return nil, nil
	}
	failed := &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: codeUnread, Message: err.Error()}}
	line, _ = jsonrpc.EncodeMessage(failed) // text always encodes
	return line, failed
}

// tolerate notes a line that is no message. Too many of them are an error.
func (p *pipe) tolerate(text []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.junk++; p.junk == 1 {
		p.first = brief(string(text[:min(len(text), 1024)]))
	}
	if p.junk <= maxJunkLines {
		return nil
	}
	p.fault.Store(marchwarden.Errorf(marchwarden.CodeMalformed, "the researcher wrote more than %d lines that are no protocol", maxJunkLines))
	return io.EOF
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

// withinServer follows redirects within a server only, and few of them. who is the server, for people.
func withinServer(who string) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case !sameServer(req.URL, via[0].URL):
			return marchwarden.Errorf(marchwarden.CodeDenied, "%s redirects to another server, %s", who, brief(req.URL.Host))
		case len(via) > 5:
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "%s redirects without end", who)
		}
		return nil
	}
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

const (
	// How long a program may take to end after its input ended, and after it was told to.
	stopPolitely = 300 * time.Millisecond
	stopFirmly   = time.Second
	// lingering is how long a process outside its group may keep the output of an ended program open.
	lingering = time.Second
	// tailBytes is how much of standard error is kept.
	tailBytes = 8 << 10
)

// process is a running program that is talked to over its standard streams, in a process group of its
// own. If this process is killed, Linux kills it; elsewhere it finds its input closed.
type process struct {
	// In is the program's standard input; closing it is the polite way to end it.
	In io.WriteCloser
	// Out is the program's standard output. It ends after everything that was written.
	Out io.Reader

	cmd    *exec.Cmd
	out    *os.File
	tail   *tail
	exited chan struct{} // closed when the program has ended
	stop   sync.Once
}

// startProcess runs the program of a target, without a shell.
func startProcess(t Target) (*process, error) {
	cmd := exec.Command(t.Command[0], t.Command[1:]...)
	cmd.Dir = t.Dir
	cmd.Env = append([]string{}, t.Env...) // a nil slice would hand on our own
	cmd.WaitDelay = stopPolitely
	ownGroup(cmd)
	p := &process{cmd: cmd, tail: &tail{copy: t.Stderr}, exited: make(chan struct{})}
	cmd.Stderr = p.tail
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.Command[0], err)
	}
	// A pipe of our own: that of exec is closed when the program ends, whether it was read or not.
	out, far, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.Command[0], err)
	}
	cmd.Stdout = far
	p.In, p.Out, p.out = in, out, out
	started := make(chan error)
	go func() {
		// The kernel kills the program when the thread that started it ends, and that must not be before this process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err != nil {
			return
		}
		_ = cmd.Wait()         // how it ended is in its state
		signalGroup(cmd, kill) // what it left behind
		close(p.exited)
		time.AfterFunc(lingering, func() { _ = out.Close() })
	}()
	err = <-started
	_ = far.Close() // the child has its own
	if err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("start %s: %w", t.Command[0], err)
	}
	return p, nil
}

// State says how the program ended, such as "exit status 1", or "" while it runs.
func (p *process) State() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// LastWords is the last line that is not blank on standard error, whole once the program has ended, or "".
func (p *process) LastWords() string {
	p.tail.mu.Lock()
	defer p.tail.mu.Unlock()
	text := strings.TrimSpace(string(p.tail.kept))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// Stop ends the program and its group: it closes the input, tells it to end, kills it, within two
// seconds. It returns when the program has ended.
func (p *process) Stop() {
	p.stop.Do(func() {
		_ = p.In.Close()
		if !p.endsWithin(stopPolitely) {
			signalGroup(p.cmd, term)
			if !p.endsWithin(stopFirmly) {
				signalGroup(p.cmd, kill)
			}
		}
		p.endsWithin(stopFirmly) // longer only if the system cannot even kill it
		_ = p.out.Close()
	})
}

func (p *process) endsWithin(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}

// tail keeps the end of what is written to it. It never fails, so that the program never waits.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
	copy io.Writer
}

func (t *tail) Write(b []byte) (int, error) {
	if t.copy != nil {
		_, _ = t.copy.Write(b)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}
