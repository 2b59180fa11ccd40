package mcpkit

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

const (
	legacyEra = "2025-11-25"
	// whoHeader says who makes a request, in place of a door.
	whoHeader = "Test-Who"
)

// welcomed lets every caller in under the name it gives.
func welcomed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := access.Principal{ID: "token:alice", Scopes: access.Scopes()}
		if name := r.Header.Get(whoHeader); name != "" {
			who.ID = name
		}
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
	})
}

// listen serves over HTTP until the test ends.
func listen(t *testing.T, s *Server, sessionTimeout time.Duration) string {
	t.Helper()
	s.lines.idle = cmp.Or(sessionTimeout, s.lines.idle)
	srv := httptest.NewServer(welcomed(s.Handler()))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

// dialAt is a client of the SDK.
func dialAt(t *testing.T, url, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	link := &http.Transport{}
	t.Cleanup(link.CloseIdleConnections)
	return dial(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: link}, MaxRetries: -1}, era, o)
}

// post makes a request by hand, in either era.
func post(ctx context.Context, url, era, session, method string, params map[string]any) (*http.Request, error) {
	if params == nil {
		params = map[string]any{}
	}
	if era == modernEra {
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": era, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "test", "version": "1"}, "progressToken": params["progressToken"]}
	} else if token := params["progressToken"]; token != nil {
		params["_meta"] = map[string]any{"progressToken": token}
	}
	delete(params, "progressToken")
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("Mcp-Method", method)
	if name, ok := params["name"].(string); ok {
		h.Set("Mcp-Name", name)
	}
	if era == modernEra || session != "" {
		h.Set("Mcp-Protocol-Version", era)
	}
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
	return req, nil
}

// hello opens a session of the earlier protocol.
func hello(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	req, err := post(t.Context(), url, legacyEra, "", "initialize", map[string]any{"protocolVersion": legacyEra, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for in := bufio.NewScanner(resp.Body); in.Scan(); { // to its end, so that the connection is used again
		continue
	}
	id := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("no session: %s", resp.Status)
	}
	return id
}

// asking are the parameters of a call.
func asking(question string) map[string]any {
	return map[string]any{"name": "research", "arguments": map[string]any{"question": question}}
}

// settles waits for something to become true.
func settles(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// toolText is what a call said, or why it failed.
func toolText(res *mcp.CallToolResult, err error) string {
	switch {
	case err != nil:
		return "protocol error: " + err.Error()
	case len(res.Content) == 0:
		return "nothing"
	}
	text, _ := res.Content[0].(*mcp.TextContent)
	return fmt.Sprintf("error=%v %.200s", res.IsError, text.Text)
}
