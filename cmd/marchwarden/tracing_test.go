package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// collected is what a collector was sent, as far as this test looks at it.
type collected struct {
	ResourceSpans []struct {
		ScopeSpans []struct{ Spans []sentSpan }
	}
}

type sentSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
}

// An investigation and the processes of its researchers are one trace, which holds
// nothing of what was asked and found; without a collector nothing is sent.
func TestSpansOfAnInvestigation(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
	}))
	defer collector.Close()
	ask := func(env ...string) {
		cmd := exec.Command("marchwarden", "ask", "--isolate", "--researchers", "files", "What are ideal crops for a garden in Utah?")
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	ask()
	if len(bodies) > 0 {
		t.Fatalf("spans were sent that nobody asked for: %s", bodies)
	}
	ask("OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL)
	mu.Lock()
	defer mu.Unlock()
	byID := map[string]sentSpan{}
	var names []string
	for _, body := range bodies {
		if strings.Contains(body, "Utah") || strings.Contains(body, "crops") {
			t.Errorf("a span says what was asked or found: %s", body)
		}
		var c collected
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans {
					byID[span.SpanID] = span
					names = append(names, span.Name)
				}
			}
		}
	}
	slices.Sort(names)
	if want := []string{"invoke_agent files", "invoke_agent pi", "resources/templates/list", "server/discover", "tools/call research", "tools/call research", "tools/list"}; !slices.Equal(names, want) {
		t.Errorf("the spans are %q, want %q", names, want)
	}
	for _, span := range byID { // from the researcher's work up to the question
		if span.Name != "invoke_agent files" {
			continue
		}
		var way []string
		for at := span; at.SpanID != ""; at = byID[at.ParentSpanID] {
			way = append(way, at.Name)
			if at.TraceID != span.TraceID {
				t.Errorf("%s is of another trace", at.Name)
			}
		}
		if want := []string{"invoke_agent files", "tools/call research", "tools/call research", "invoke_agent pi"}; !slices.Equal(way, want) {
			t.Errorf("the way up is %q, want %q", way, want)
		}
	}
}
