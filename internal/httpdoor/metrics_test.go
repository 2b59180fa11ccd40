package httpdoor

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMetrics(t *testing.T) {
	m := NewMetrics("1.2.3")
	s := open(t, Config{Metrics: m})
	read := func() string {
		_, text := s.do("GET", "/metrics", "", nil)
		return text
	}
	if text := read(); !strings.Contains(text, "marchwarden_research_running 0\n") {
		t.Error("a gauge nobody watches is not 0")
	}
	m.Watch(Gauges{Research: func() int { return 3 }, Tasks: func() int { return 2 }})
	m.ObserveOperation("tools/call", "ok", 3*time.Second)
	m.ObserveOperation("evil\nmethod", "ok", time.Second)
	m.ObserveOperation("tools/list", "It failed: token=abc", time.Second)
	m.ObserveResearch("answered", 70*time.Second, 1234)
	m.ObserveResearch("answered", time.Second, -5)
	s.do("POST", "/mcp", "{}", nil)
	s.do("POST", "/mcp", "{}", header{"Content-Type": "text/plain"})
	s.do("BREW", "/pot/of/tea", "", nil)
	s.do("POST", "/mcp", "{}", header{"Host": "evil.example.org"})
	text := read()
	for _, want := range []string{
		`marchwarden_build_info{goversion="go1.`,
		`version="1.2.3"} 1`,
		"go_goroutines ",
		"process_start_time_seconds ",
		"marchwarden_research_running 3",
		"marchwarden_mcp_sessions 0",
		"marchwarden_mcp_tasks 2",
		`mcp_server_operation_duration_seconds_bucket{mcp_method_name="tools/call",outcome="ok",le="2"} 0`,
		`mcp_server_operation_duration_seconds_bucket{mcp_method_name="tools/call",outcome="ok",le="5"} 1`,
		`mcp_server_operation_duration_seconds_bucket{mcp_method_name="tools/call",outcome="ok",le="300"} 1`,
		`mcp_server_operation_duration_seconds_count{mcp_method_name="other",outcome="ok"} 1`,
		`mcp_server_operation_duration_seconds_count{mcp_method_name="tools/list",outcome="other"} 1`,
		`marchwarden_research_duration_seconds_count{outcome="answered"} 2`,
		`marchwarden_research_tokens_total{outcome="answered"} 1234`,
		`marchwarden_http_requests_total{method="POST",path="mcp",status="2xx"} 1`,
		`marchwarden_http_requests_total{method="POST",path="mcp",status="4xx"} 2`,
		`marchwarden_http_requests_total{method="other",path="other",status="4xx"} 1`,
		`marchwarden_http_rejected_total{reason="content_type"} 1`,
		`marchwarden_http_rejected_total{reason="host"} 1`,
		`marchwarden_http_request_duration_seconds_count{path="mcp"} 3`,
		"marchwarden_http_requests_in_flight 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, bad := range []string{"evil", "abc", "pot/of/tea", "BREW"} {
		if strings.Contains(text, bad) {
			t.Errorf("callers make labels: %s", bad)
		}
	}
}

func TestLabelsAreFewAndMethodsSafe(t *testing.T) {
	m := NewMetrics("v")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 100 {
				outcome := strings.Repeat(string(rune('a'+j%26)), 1+j/26)
				m.ObserveOperation(fmt.Sprint("method", i, j), outcome, time.Second)
				m.ObserveResearch(outcome, time.Second, 1)
				m.Watch(Gauges{})
			}
		})
	}
	wg.Wait()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.GetMetric()); strings.Contains(f.GetName(), "marchwarden_research_") && n > 2 || strings.HasPrefix(f.GetName(), "mcp_") && n > 2 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
	var none *Metrics
	none.ObserveOperation("tools/call", "ok", 1)
	none.ObserveResearch("ok", 1, 1)
	none.Watch(Gauges{})
	none.reject("x")
	none.begin()
	none.end("mcp", "GET", 200, 1)
}
