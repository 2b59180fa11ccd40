package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

var (
	alice = access.Principal{ID: "token:alice", Scopes: access.Scopes()}
	bob   = access.Principal{ID: "token:bob", Scopes: access.Scopes()}
)

// link is one client's end of a connection, to say on it what no good client would. It
// is safe for concurrent use.
type link struct {
	t    *testing.T
	conn mcp.Connection
	last atomic.Int64

	mu      sync.Mutex // guards waiting
	waiting map[string]chan *jsonrpc.Response
}

// linkAs connects a caller.
func linkAs(t *testing.T, s *Server, who access.Principal) *link {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	session, err := s.mcp.Connect(access.With(t.Context(), who), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := near.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &link{t: t, conn: conn, waiting: map[string]chan *jsonrpc.Response{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			m, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			if r, ok := m.(*jsonrpc.Response); ok {
				l.mu.Lock()
				if heard := l.waiting[fmt.Sprint(r.ID.Raw())]; heard != nil {
					heard <- r
				}
				l.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-read
		_ = session.Wait()
	})
	return l
}

// say makes a request and gives its answer.
func (l *link) say(method, params string) (json.RawMessage, *jsonrpc.Error) {
	l.t.Helper()
	id := fmt.Sprintf("r%d", l.last.Add(1))
	heard := make(chan *jsonrpc.Response, 1)
	l.mu.Lock()
	l.waiting[id] = heard
	l.mu.Unlock()
	m, err := jsonrpc.DecodeMessage([]byte(`{"jsonrpc":"2.0","id":"` + id + `","method":"` + method + `","params":` + params + `}`))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.conn.Write(l.t.Context(), m); err != nil {
		l.t.Fatal(err)
	}
	r := <-heard
	if r.Error == nil {
		return r.Result, nil
	}
	var wrong *jsonrpc.Error
	if !errors.As(r.Error, &wrong) {
		l.t.Fatalf("%s: %v", method, r.Error)
	}
	return nil, wrong
}

// get makes a request that must be answered well.
func (l *link) get(into any, method, params string) {
	l.t.Helper()
	res, wrong := l.say(method, params)
	if wrong != nil {
		l.t.Fatalf("%s: %v", method, wrong)
	}
	if err := json.Unmarshal(res, into); err != nil {
		l.t.Fatalf("%s: %v in %s", method, err, res)
	}
}

// modern gives parameters, as the inside of an object, the _meta of a client of the
// later protocol with these capabilities.
func modern(capabilities, inside string) string {
	if inside != "" {
		inside = "," + inside
	}
	return `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}` + inside + `}`
}

const tasksDeclared = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// everyMethod is what a client can ask, with parameters that are right. %s is the id of
// a run.
var everyMethod = map[string]string{
	"server/discover":          ``,
	"ping":                     ``,
	"tools/list":               ``,
	"tools/call":               `"name":"research","arguments":{"question":"q"}`,
	"prompts/list":             ``,
	"prompts/get":              `"name":"deep-dive","arguments":{"topic":"peas"}`,
	"resources/list":           ``,
	"resources/templates/list": ``,
	"resources/read":           `"uri":"marchwarden://contract"`,
	"tasks/get":                `"taskId":"%s"`,
	"tasks/update":             `"taskId":"%s","inputResponses":{}`,
	"tasks/cancel":             `"taskId":"%s"`,
}

// What a method needs is asked of the caller, each time, and no more.
func TestScopes(t *testing.T) {
	s, _ := newTestServer(t, echo, func(c *Config) { c.Records = noRecords{} })
	var task struct{ TaskID string }
	linkAs(t, s, alice).get(&task, "tools/call", modern(tasksDeclared, everyMethod["tools/call"]))
	needs := func(scope string) func(string) bool { return func(had string) bool { return had != scope } }
	for _, had := range [][]string{{}, {access.ScopeResearch}, {access.ScopeRead}, access.Scopes()} {
		l := linkAs(t, s, access.Principal{ID: alice.ID, Scopes: had})
		for method, params := range everyMethod {
			if strings.Contains(params, "%s") {
				params = fmt.Sprintf(params, task.TaskID)
			}
			scope := map[string]string{"tools/call": "research", "tasks/cancel": "research", "tasks/update": "research", "tasks/get": "read", "resources/read": "read"}[method]
			capabilities := tasksDeclared
			if method == "tools/call" {
				capabilities = `{}`
			}
			if method == "ping" { // which the later protocol has not
				continue
			}
			_, wrong := l.say(method, modern(capabilities, params))
			refused := scope != "" && !slices.ContainsFunc(had, func(h string) bool { return !needs(scope)(h) })
			switch {
			case !refused && wrong != nil:
				t.Errorf("%s with %v: %v", method, had, wrong)
			case refused && (wrong == nil || wrong.Code != jsonrpc.CodeInvalidRequest || wrong.Message != method+" needs a token with the scope "+scope):
				t.Errorf("%s with %v is refused with %v", method, had, wrong)
			}
		}
	}
	nobody := linkAs(t, s, access.Principal{Scopes: access.Scopes()})
	if _, wrong := nobody.say("tools/call", modern(`{}`, everyMethod["tools/call"])); wrong == nil {
		t.Error("nobody may research")
	}
}

// A session of the earlier protocol that subscribes is held to the same.
func TestScopesOfSubscriptions(t *testing.T) {
	for _, had := range []string{access.ScopeResearch, access.ScopeRead} {
		s, _ := newTestServer(t, echo, func(c *Config) { c.Records = &books{} })
		l := linkAs(t, s, access.Principal{ID: alice.ID, Scopes: []string{had}})
		l.get(&struct{}{}, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`)
		_, wrong := l.say("resources/subscribe", `{"uri":"marchwarden://trace/`+sample("").TraceID.String()+`"}`)
		if refused := wrong != nil && wrong.Code == jsonrpc.CodeInvalidRequest; refused == (had == access.ScopeRead) {
			t.Errorf("with %s: %v", had, wrong)
		}
	}
}

// Metrics and traces learn what was done, how long it took and how it failed, and nothing of what
// was asked.
// A request may come with parameters of any shape, or with none: it is answered, and
// nothing panics.
func TestParametersOfEveryShape(t *testing.T) {
	methods := []string{"initialize", "logging/setLevel", "completion/complete", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed", "tasks/list", "tasks/result", "nobody/knows"}
	for method := range everyMethod {
		methods = append(methods, method)
	}
	slices.Sort(methods)
	shapes := []string{``, `null`, `[]`, `[1]`, `{}`, `""`, `7`, `true`, `{"_meta":null}`, `{"_meta":7}`, `{"_meta":{"progressToken":{}}}`,
		`{"name":7,"arguments":7,"uri":7,"taskId":7,"inputResponses":7,"cursor":7,"notifications":7}`,
		`{"name":null,"arguments":null,"uri":null,"taskId":null,"inputResponses":null,"cursor":null,"notifications":null}`,
		`{"name":"research","arguments":[]}`, `{"name":"deep-dive","arguments":{"topic":7}}`,
		modern(`7`, ``), modern(`null`, ``), modern(tasksDeclared, ``), modern(`{"extensions":7}`, `"taskId":"x"`), modern(tasksDeclared, `"taskId":7`), modern(tasksDeclared, `"name":7`),
		modern(tasksDeclared, `"name":"research"`), modern(tasksDeclared, `"name":"research","arguments":7`), modern(tasksDeclared, `"name":"deep-dive","uri":"marchwarden://trace/","notifications":{}`)}
	for _, first := range []string{"", `{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n"} {
		s, log := newTestServer(t, echo, func(c *Config) {
			c.Records = noRecords{}
			c.Evidence = func(context.Context, string) ([]byte, error) { return nil, nil }
			c.App = &App{Page: []byte("page")}
		})
		in, send := io.Pipe()
		receive, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeStdio(t.Context(), in, out); out.Close() }()
		answers := json.NewDecoder(receive)
		next := func() (id string, code int64) {
			var a struct {
				ID     string
				Error  *struct{ Code int64 }
				Method string
			}
			for {
				if err := answers.Decode(&a); err != nil {
					t.Fatal(err)
				}
				if a.ID == "" && a.Method != "" { // a notification
					continue
				}
				if a.Error != nil {
					return a.ID, a.Error.Code
				}
				return a.ID, 0
			}
		}
		if first != "" {
			io.WriteString(send, first)
			next()
		}
		for _, method := range methods {
			for i, shape := range shapes {
				if shape != "" {
					shape = `,"params":` + shape
				}
				id := fmt.Sprintf("%s %d", method, i)
				go io.WriteString(send, `{"jsonrpc":"2.0","id":"`+id+`","method":"`+method+`"`+shape+"}\n")
				switch got, code := next(); {
				case method == "subscriptions/listen" && got == id && code == 0: // it is answered when it ends
				case got != id:
					t.Fatalf("%s%s: the answer is of %q with %d", method, shape, got, code)
				case code == jsonrpc.CodeInternalError:
					t.Errorf("%s%s: an internal error", method, shape)
				}
			}
		}
		send.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "panic") {
			t.Errorf("the log: %s", log)
		}
	}
}
