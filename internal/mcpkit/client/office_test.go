package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

// office is a server at an address, written by hand, that knows tasks.
type office struct {
	// call and get make the answers to tools/call and to the nth tasks/get, from one.
	call func(w http.ResponseWriter, m message)
	get  func(w http.ResponseWriter, m message, n int)
	// input and extensions go into what it says of itself; "" is the usual.
	input, extensions string

	mu   sync.Mutex // guards what follows
	seen []message
}

// message is a request as the office got it.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		TaskID    string `json:"taskId"`
		Arguments map[string]any
		Meta      map[string]any `json:"_meta"`
		Responses map[string]any `json:"inputResponses"`
		State     string         `json:"requestState"`
	}
	header http.Header
}

func (m message) result(result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (m message) fault(code int, words string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, m.ID, code, quoted(words))
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.header = r.Header.Clone()
	o.mu.Lock()
	o.seen = append(o.seen, m)
	n := 0
	for _, before := range o.seen {
		if before.Method == m.Method {
			n++
		}
	}
	o.mu.Unlock()
	input, extensions := o.input, o.extensions
	if input == "" {
		input = `{"type":"object","properties":{"question":{"type":"string"}}}`
	}
	if extensions == "" {
		extensions = `{"` + mcpkit.TasksExtension + `":{}}`
	}
	switch m.Method {
	case "server/discover":
		plain(w, m.result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":`+extensions+`}}`))
	case "tools/list":
		plain(w, m.result(`{"resultType":"complete","tools":[{"name":"research","inputSchema":`+input+`}]}`))
	case "tools/call":
		o.call(w, m)
	case "tasks/get":
		o.get(w, m, n)
	case "tasks/cancel":
		plain(w, m.result(`{"resultType":"complete"}`))
	default:
		plain(w, m.fault(-32601, "no such method"))
	}
}

// of is every request for a method.
func (o *office) of(method string) []message {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []message
	for _, m := range o.seen {
		if m.Method == method {
			found = append(found, m)
		}
	}
	return found
}

// await waits for n requests for a method.
func (o *office) await(t *testing.T, method string, n int) []message {
	t.Helper()
	for range 3000 {
		if found := o.of(method); len(found) >= n {
			return found
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d requests for %s, want %d", len(o.of(method)), method, n)
	return nil
}

// plain answers with JSON, stream with events.
func plain(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, body)
}

func stream(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	fmt.Fprint(w, body)
	w.(http.Flusher).Flush()
}

// breakOff cuts the connection.
func breakOff(http.ResponseWriter) { panic(http.ErrAbortHandler) }

const taskName = "task-7f3a!"

// created is the usual answer to a call: a task that is to be asked about soon.
func created(w http.ResponseWriter, m message) {
	plain(w, m.result(`{"resultType":"task","taskId":"`+taskName+`","status":"working","ttlMs":null,"pollIntervalMs":1}`))
}

// state is the answer to tasks/get.
func state(m message, status, rest string) string {
	return m.result(fmt.Sprintf(`{"resultType":"complete","taskId":%s,"status":%s,"pollIntervalMs":1%s}`, quoted(m.Params.TaskID), quoted(status), rest))
}

func working(w http.ResponseWriter, m message, words string) {
	plain(w, state(m, "working", `,"statusMessage":`+quoted(words)))
}

func completed(w http.ResponseWriter, m message) {
	plain(w, state(m, "completed", `,"result":`+toolAnswer()))
}

func toolAnswer() string { return `{"content":[],"structuredContent":` + wireResult(nil) + `}` }

// openOffice serves o, which does the usual where it is not told otherwise, and
// gives a session with it.
func openOffice(t *testing.T, o *office) *Session {
	t.Helper()
	if o.call == nil {
		o.call = created
	}
	if o.get == nil {
		o.get = func(w http.ResponseWriter, m message, _ int) { completed(w, m) }
	}
	web := httptest.NewServer(o)
	t.Cleanup(web.Close)
	s := open(t, Target{URL: web.URL})
	if s.direct == nil && o.input == "" && o.extensions == "" {
		t.Fatal("the session does not know of tasks")
	}
	return s
}

// declares says whether a request offers to take a task.
func (m message) declares() bool {
	capabilities, _ := m.Params.Meta["io.modelcontextprotocol/clientCapabilities"].(map[string]any)
	extensions, _ := capabilities["extensions"].(map[string]any)
	_, ok := extensions[mcpkit.TasksExtension]
	return ok
}

// fit fails the test if an error is not fit to be shown.
func fit(t *testing.T, err error) {
	t.Helper()
	if msg := fmt.Sprint(err); strings.ContainsAny(msg, "\x1b\n") || len(msg) > 400 || strings.Contains(msg, taskName) {
		t.Errorf("the message is not fit to be shown: %q", msg)
	}
}
