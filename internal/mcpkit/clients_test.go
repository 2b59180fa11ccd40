package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
)

// dialHTTP connects through the door, as clients on this machine do.
func dialHTTP(t *testing.T, s *Server, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	d, err := httpdoor.New(httpdoor.Config{MCP: s.Handler(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(d.Handler())
	t.Cleanup(web.Close)
	link := &http.Transport{}
	t.Cleanup(link.CloseIdleConnections)
	return dial(t, &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp", HTTPClient: &http.Client{Transport: link}}, era, o)
}

// patientResearcher answers with the events that it has told, and waits to be stopped
// where it is asked to.
type patientResearcher struct {
	waiting, stopped chan struct{}
}

func (p patientResearcher) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	for _, message := range []string{"looking", "reading", "writing"} {
		sink(marchwarden.Event{Stage: marchwarden.StagePlan, Message: message})
	}
	if strings.Contains(req.Question, "wait") {
		close(p.waiting)
		<-ctx.Done()
		close(p.stopped)
		return nil, ctx.Err()
	}
	res := sample(req.Question + " [1]")
	if id, ok := marchwarden.ChosenTraceID(ctx); ok {
		res.TraceID = id
	}
	return res, nil
}

// TestClients is what every client does, with the SDK's own one, over each transport and
// in each era: list, call, progress, resource read, cancel. Those of others are tried by
// testdata/clients.
func TestClients(t *testing.T) {
	links := map[string]func(*testing.T, *Server, string, *mcp.ClientOptions) *mcp.ClientSession{"stdio": dialStdio, "http": dialHTTP}
	for name, dial := range links {
		for _, era := range eras {
			t.Run(name+"/"+era, func(t *testing.T) {
				t.Parallel()
				r := patientResearcher{waiting: make(chan struct{}), stopped: make(chan struct{})}
				s, _ := newTestServer(t, r)
				told := make(chan *mcp.ProgressNotificationParams, 16)
				cs := dial(t, s, era, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
					told <- req.Params
				}})
				list, err := cs.ListTools(t.Context(), nil)
				if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "research" {
					t.Fatalf("list: %v, %v", list, err)
				}
				id := checkCall(t, cs)
				checkProgress(t, told, "research started", "looking", "reading", "writing")
				checkResources(t, cs, id)
				checkCancel(t, cs, s, r)
			})
		}
	}
}

// checkCall gives the trace id of a call that is answered.
func checkCall(t *testing.T, cs *mcp.ClientSession) string {
	t.Helper()
	params := &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "why"}}
	params.SetProgressToken("progress")
	res, err := cs.CallTool(t.Context(), params)
	if err != nil || res.IsError {
		t.Fatalf("call: %+v, %v", res, err)
	}
	got := res.StructuredContent.(map[string]any)
	if got["answer"] != "why [1]" {
		t.Errorf("call: the answer is %v", got["answer"])
	}
	return got["trace_id"].(string)
}

func checkProgress(t *testing.T, told <-chan *mcp.ProgressNotificationParams, want ...string) {
	t.Helper()
	last := 0.0
	for _, message := range want {
		select {
		case p := <-told:
			if p.Message != message || p.Progress <= last || p.ProgressToken != "progress" {
				t.Errorf("progress: got %+v after %v, want %q", p, last, message)
			}
			last = p.Progress
		case <-time.After(30 * time.Second):
			t.Fatalf("progress: %q did not come", message)
		}
	}
}

func checkResources(t *testing.T, cs *mcp.ClientSession, id string) {
	t.Helper()
	read := func(uri string) (doc map[string]any) {
		res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatalf("read %s: %v", uri, err)
		}
		if err := json.Unmarshal([]byte(res.Contents[0].Text), &doc); err != nil {
			t.Fatalf("read %s: %v", uri, err)
		}
		return doc
	}
	if got := read("marchwarden://contract")["version"]; got != marchwarden.ContractVersion {
		t.Errorf("contract: the version is %v", got)
	}
	if got := read("marchwarden://result/" + id)["answer"]; got != "why [1]" {
		t.Errorf("result: the answer is %v", got)
	}
}

// checkCancel stops a call, which stops the research behind it and nothing else.
func checkCancel(t *testing.T, cs *mcp.ClientSession, s *Server, r patientResearcher) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "wait"}})
		done <- err
	}()
	within(t, 30*time.Second, "the call", r.waiting)
	cancel()
	within(t, 30*time.Second, "stopping the research", r.stopped)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: the call ended with %v", err)
	}
	for end := time.Now().Add(30 * time.Second); s.runs.Running() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("cancel: a run is still counted")
		}
	}
	if _, err := cs.ListTools(t.Context(), nil); err != nil {
		t.Errorf("the server does not live after a cancelled call: %v", err)
	}
}
