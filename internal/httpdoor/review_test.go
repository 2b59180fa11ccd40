package httpdoor

import (
	"net/http"
	"strings"
	"testing"
)

// An answer is its caller's alone, whatever the handler behind the door says of events.
func TestEventsAreNotStored(t *testing.T) {
	s := open(t, Config{MCP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache, no-transform")
		w.WriteHeader(http.StatusOK)
	})})
	resp, _ := s.do("POST", "/mcp", "{}", nil)
	if got := resp.Header.Get("Cache-Control"); !strings.Contains(got, "no-store") {
		t.Errorf("Cache-Control: %s", got)
	}
}

// The document is where WWW-Authenticate says, also if a proxy serves us below another
// path.
func TestMetadataIsWhereItIsSaidToBe(t *testing.T) {
	const at = "/.well-known/oauth-protected-resource/research/mcp"
	s := open(t, Config{Auth: someTokens(), Metadata: []byte(`{"resource":"x"}`), MetadataURL: "https://example.org" + at})
	resp, _ := s.do("POST", "/mcp", "{}", nil)
	if got := resp.Header.Get("WWW-Authenticate"); !strings.Contains(got, at) {
		t.Fatalf("WWW-Authenticate: %s", got)
	}
	if resp, text := s.do("GET", at, "", nil); resp.StatusCode != http.StatusOK || text != `{"resource":"x"}` {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	// Nothing else of the door can be taken by it.
	odd := open(t, Config{Metadata: []byte(`{}`), MetadataURL: "https://example.org/healthz"})
	if _, text := odd.do("GET", "/healthz", "", nil); text != "ok\n" {
		t.Errorf("healthz says %q", text)
	}
}

func TestChecksNameTheField(t *testing.T) {
	for _, list := range [][]string{{"*"}, {"https://x.org"}, {""}, {"x.org:99999"}} {
		if err := CheckHosts(list, nil); err == nil || !strings.HasPrefix(err.Error(), "hosts: ") {
			t.Errorf("%q: %v", list, err)
		}
	}
	for _, list := range [][]string{{"*"}, {"null"}, {"x.org"}, {"https://x.org/"}} {
		if err := CheckHosts(nil, list); err == nil || !strings.HasPrefix(err.Error(), "origins: ") {
			t.Errorf("%q: %v", list, err)
		}
	}
	if CheckHosts([]string{"x.org", "[::1]:8"}, []string{"https://x.org"}) != nil {
		t.Error("good ones are refused")
	}
}
