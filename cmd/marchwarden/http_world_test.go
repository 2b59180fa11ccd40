//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
)

// The eras of the protocol that a client may speak.
const (
	eraLegacy = "2025-11-25"
	eraModern = "2026-07-28"
)

var bothEras = []string{eraLegacy, eraModern}

// httpWorld is a rack whose model can be held up at any of its turns.
type httpWorld struct {
	*rack
	mu   sync.Mutex // guards what follows
	n    int        // turns since the last hold
	at   int        // the turn that is held; 0 is none
	held chan struct{}
	free chan struct{}
}

func newHTTPWorld(t *testing.T) *httpWorld {
	w := &httpWorld{rack: newRack(t), free: make(chan struct{})}
	w.models = llmtest.NewServer(t, func(turn llmtest.Turn) llmtest.Said {
		w.mu.Lock()
		w.n++
		hold, held, free := w.n == w.at, w.held, w.free
		w.mu.Unlock()
		if hold {
			close(held)
			<-free
		}
		return thorough(turn)
	})
	w.env = append(w.env, "OPENAI_BASE_URL="+w.models.URL()+"/v1")
	t.Cleanup(func() { w.hold(0) })
	return w
}

// hold lets go of what is held, and holds the turn that is the n-th from now on; 0 holds
// none. The channel is closed when somebody is held.
func (w *httpWorld) hold(n int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.free)
	w.n, w.at, w.held, w.free = 0, n, make(chan struct{}), make(chan struct{})
	return w.held
}

// served is a program that serves over HTTP.
type served struct {
	cmd   *exec.Cmd
	url   string // of MCP
	log   *noted
	ended chan struct{} // closed when it has ended
}

// noted is what a program says, while it says it.
type noted struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *noted) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *noted) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

var servingAt = regexp.MustCompile(`serving \S+ at (http://\S+/mcp);`)

// serve starts the program in a home, and waits until it serves. The end of the test
// ends it.
func (r *rack) serve(t *testing.T, home string, args ...string) *served {
	t.Helper()
	spec := r.spec(home, append(append([]string{"serve"}, args...), "--http", "127.0.0.1:0")...)
	return startServed(t, spec, exec.Command(spec.program, spec.args...))
}

func startServed(t *testing.T, spec runSpec, cmd *exec.Cmd) *served {
	t.Helper()
	s := &served{cmd: cmd, log: &noted{}, ended: make(chan struct{})}
	cmd.Env, cmd.Dir, cmd.Stderr = spec.env, spec.dir, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its own group; nothing to do if it is gone
		<-s.ended
		if t.Failed() {
			t.Logf("the server said:\n%s", clip(s.log.String(), 4000))
		}
	})
	eventually(t, "the server serves", func() bool {
		if m := servingAt.FindStringSubmatch(s.log.String()); m != nil {
			s.url = m[1]
		}
		select {
		case <-s.ended:
			t.Fatalf("it does not serve: %s", s.log)
		default:
		}
		return s.url != ""
	})
	return s
}

// endBy ends the server by a signal and waits. Told to end, it must not have failed. To
// be killed is to be killed with all that it has started.
func (s *served) endBy(t *testing.T, sig syscall.Signal) {
	t.Helper()
	var children []int
	if sig == syscall.SIGKILL {
		children = childrenOf(s.cmd.Process.Pid)
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		_ = syscall.Kill(pid, sig) // it may be gone with its parent
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatalf("it does not end after %v", sig)
	}
	if code := s.cmd.ProcessState.ExitCode(); sig != syscall.SIGKILL && code != exitOK {
		t.Errorf("exit code %d after %v: %s", code, sig, s.log)
	}
}

// childrenOf are the processes that a process has started, and those that they have.
func childrenOf(pid int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // none where there is no such folder
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			all = append(append(all, child), childrenOf(child)...)
		}
	}
	return all
}

// get reads a path of the server besides MCP.
func (s *served) get(t *testing.T, path, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(s.url, "/mcp")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// eventually waits for something to become true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// arrives waits for something to happen.
func arrives(t *testing.T, what <-chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-time.After(patience):
		t.Fatal("what is waited for does not come")
	}
}

// hostClient is an MCP client of somebody else: it speaks the wire by hand, and can say
// what no library would.
type hostClient struct {
	url, token, era string
	tasks           bool // says that it knows tasks
	session         string
	http            *http.Client
	last            atomic.Int64
}

// newHost connects with one connection of its own.
func newHost(t *testing.T, url, token, era string) *hostClient {
	t.Helper()
	link := &http.Transport{MaxConnsPerHost: 1}
	if era == eraLegacy { // which listens beside its calls
		link.MaxConnsPerHost = 0
	}
	c := &hostClient{url: url, token: token, era: era, http: &http.Client{Transport: link}}
	c.last.Store(10_000) // so that all numbers are of one length
	t.Cleanup(link.CloseIdleConnections)
	if era == eraModern {
		return c
	}
	a, err := c.do(t.Context(), "initialize", map[string]any{"protocolVersion": era, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	if err != nil || a.fault != nil || a.header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: %v, %+v", err, a)
	}
	c.session = a.header.Get("Mcp-Session-Id")
	if _, err := c.do(t.Context(), "notifications/initialized", nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// meta is what every request carries about its client.
func (c *hostClient) meta() map[string]any {
	can := map[string]any{}
	if c.tasks {
		can["extensions"] = map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
	}
	m := map[string]any{"io.modelcontextprotocol/clientCapabilities": can}
	if c.era == eraModern {
		m["io.modelcontextprotocol/protocolVersion"] = c.era
		m["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "test", "version": "1"}
	}
	return m
}

// request makes the HTTP request of a call. What is not for a header is not put there.
func (c *hostClient) request(ctx context.Context, method string, params map[string]any) (*http.Request, int64, error) {
	id := c.last.Add(1)
	if params == nil {
		params = map[string]any{}
	}
	if params["_meta"] == nil && (c.era == eraModern || c.tasks) {
		params["_meta"] = c.meta()
	}
	message := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if !strings.HasPrefix(method, "notifications/") {
		message["id"] = id
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	c.dress(req)
	for _, name := range []string{"taskId", "uri", "name"} {
		if text, ok := params[name].(string); ok {
			if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0 {
				req.Header.Set("Mcp-Name", text)
			}
			break
		}
	}
	req.Header.Set("Mcp-Method", method)
	return req, id, nil
}

// dress sets the headers of every request.
func (c *hostClient) dress(req *http.Request) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.era == eraModern || c.session != "" {
		req.Header.Set("Mcp-Protocol-Version", c.era)
	}
}

// hostAnswer is what came back.
type hostAnswer struct {
	status   int
	header   http.Header
	body     string // all of it
	result   json.RawMessage
	fault    *hostFault
	notes    []hostNote
	comments int
}

type hostFault struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

type hostNote struct {
	Method string `json:"method"`
	Params struct {
		URI      string  `json:"uri"`
		Progress float64 `json:"progress"`
		Message  string  `json:"message"`
	} `json:"params"`
}

// do makes a call and waits for its answer.
func (c *hostClient) do(ctx context.Context, method string, params map[string]any) (*hostAnswer, error) {
	req, id, err := c.request(ctx, method, params)
	if err != nil {
		return nil, err
	}
	return c.send(req, id, nil)
}

// send sends a request and reads its answer to the end. each is told of every message.
func (c *hostClient) send(req *http.Request, id int64, each func(hostNote)) (*hostAnswer, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &hostAnswer{status: resp.StatusCode, header: resp.Header}
	in := bufio.NewReader(resp.Body)
	events := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	for {
		line, err := in.ReadString('\n')
		a.body += line
		text, isData := strings.CutPrefix(line, "data: ")
		switch {
		case events && strings.HasPrefix(line, ":"):
			a.comments++
		case events && isData:
			a.take(id, []byte(text), each)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a, err
		}
	}
	if !events {
		a.take(id, []byte(a.body), each)
	}
	if a.status == http.StatusOK && id != 0 && a.result == nil && a.fault == nil && req.Method == http.MethodPost && !strings.Contains(a.body, `"error":`) {
		return a, fmt.Errorf("the stream ended without an answer: %.300q", a.body)
	}
	return a, nil
}

// take takes one message in.
func (a *hostAnswer) take(id int64, data []byte, each func(hostNote)) {
	var m struct {
		ID     *int64          `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *hostFault      `json:"error"`
		hostNote
	}
	if json.Unmarshal(data, &m) != nil {
		return // not a message, such as what a door says
	}
	if m.ID == nil {
		a.notes = append(a.notes, m.hostNote)
		if each != nil && m.Method != "" {
			each(m.hostNote)
		}
		return
	}
	if *m.ID == id {
		a.result, a.fault = m.Result, m.Error
	}
}

// toolResult is the result of a call of research.
type toolResult struct {
	Content []struct {
		Type, Text, URI string
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// research makes a call and decodes its result.
func (c *hostClient) research(ctx context.Context, args map[string]any) (*marchwarden.Result, error) {
	a, err := c.do(ctx, "tools/call", map[string]any{"name": "research", "arguments": args})
	if err != nil {
		return nil, err
	}
	return a.research()
}

func (a *hostAnswer) research() (*marchwarden.Result, error) {
	if a.status != http.StatusOK || a.fault != nil {
		return nil, fmt.Errorf("status %d: %.500s", a.status, a.body)
	}
	return decodeTool(a.result)
}

func decodeTool(raw json.RawMessage) (*marchwarden.Result, error) {
	var res toolResult
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, err
	}
	if res.IsError || len(res.Structured) == 0 {
		return nil, fmt.Errorf("the tool failed: %.500s", raw)
	}
	return marchwarden.DecodeResult(res.Structured)
}

// read reads a resource, as text.
func (c *hostClient) read(ctx context.Context, uri string) (string, error) {
	a, err := c.do(ctx, "resources/read", map[string]any{"uri": uri})
	if err != nil {
		return "", err
	}
	if a.fault != nil || a.status != http.StatusOK {
		return "", fmt.Errorf("status %d: %.500s", a.status, a.body)
	}
	var res struct {
		Contents []struct{ Text string } `json:"contents"`
	}
	if err := json.Unmarshal(a.result, &res); err != nil || len(res.Contents) != 1 {
		return "", fmt.Errorf("%v: %.300s", err, a.result)
	}
	return res.Contents[0].Text, nil
}

// longTests says whether the long forms of the tests are wanted.
func longTests() bool { return os.Getenv("MARCHWARDEN_TEST_FULL") != "" }

// percentile is a value of a sorted list.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func sortedTimes(all []time.Duration) []time.Duration {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}
