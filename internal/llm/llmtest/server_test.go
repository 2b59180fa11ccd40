package llmtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
)

var requests = map[llmtest.Wire]struct{ path, body string }{
	llmtest.WireAnthropic: {"/v1/messages", `{"model":"m-1","max_tokens":50,"stream":%t,"system":[{"type":"text","text":"be brief"}],
		"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}],"tools":[{"name":"web_search","input_schema":{"type":"object"}},{"name":"read_page","input_schema":{"type":"object"}}],
		"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}`},
	llmtest.WireOpenAI: {"/v1/chat/completions", `{"model":"m-1","max_completion_tokens":50,"stream":%t,"stream_options":{"include_usage":true},
		"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}],
		"tools":[{"type":"function","function":{"name":"web_search"}},{"type":"function","function":{"name":"read_page"}}],"response_format":{"type":"json_schema","json_schema":{}}}`},
}

// post sends a request by hand and gives status, headers, what came of the body, and the error that ended it.
func post(ctx context.Context, t *testing.T, url string, wire llmtest.Wire, streaming bool) (int, http.Header, string, error) {
	t.Helper()
	q := requests[wire]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+q.path, strings.NewReader(fmt.Sprintf(q.body, streaming)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", "sk-by-hand")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	var buf bytes.Buffer
	_, err = io.Copy(&buf, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, resp.Header, buf.String(), err
}

// said puts the deltas of a stream together: text, and arguments by tool.
func said(t *testing.T, wire llmtest.Wire, body string) (text string, args []string) {
	t.Helper()
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Delta struct {
				Text        string  `json:"text"`
				PartialJSON *string `json:"partial_json"`
			} `json:"delta"`
			Block struct {
				Name string `json:"name"`
			} `json:"content_block"`
			Choices []struct {
				Delta struct {
					Content   string `json:"content"`
					ToolCalls []struct {
						Function struct {
							Name      string `json:"name"`
							Arguments string `json:"arguments"`
						} `json:"function"`
					} `json:"tool_calls"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%s sent %q: %v", wire, data, err)
		}
		text += e.Delta.Text
		if e.Block.Name != "" {
			args = append(args, e.Block.Name+" ")
		}
		if e.Delta.PartialJSON != nil {
			args[len(args)-1] += *e.Delta.PartialJSON
		}
		for _, c := range e.Choices {
			text += c.Delta.Content
			for _, call := range c.Delta.ToolCalls {
				if call.Function.Name != "" {
					args = append(args, call.Function.Name+" ")
				}
				args[len(args)-1] += call.Function.Arguments
			}
		}
	}
	return text, args
}

func TestServerSpeaksBothWires(t *testing.T) {
	const text = "Die Straße ist länger als vierzehn Zeichen, 世界."
	srv := llmtest.NewServer(t, func(turn llmtest.Turn) llmtest.Said {
		return llmtest.Said{Text: text, Usage: &llm.Usage{In: 100, Out: 9, CacheRead: 60, CacheWrite: 30}, Calls: []llm.ToolCall{
			{Name: "web_search", Input: json.RawMessage(`{"query":"längere Suche"}`)}, {Name: "read_page", Input: json.RawMessage(`{"id":"h1"}`)}}}
	})
	wantArgs := []string{`web_search {"query":"längere Suche"}`, `read_page {"id":"h1"}`}
	for wire, ends := range map[llmtest.Wire][]string{
		llmtest.WireAnthropic: {`"cache_read_input_tokens":60`, `"input_tokens":10,`, `"stop_reason":"tool_use"`, "event: ping", "event: message_stop"},
		llmtest.WireOpenAI:    {`"cached_tokens":60`, `"prompt_tokens":100`, `"finish_reason":"tool_calls"`, "data: [DONE]"},
	} {
		status, header, body, err := post(t.Context(), t, srv.URL(), wire, true)
		if status != 200 || err != nil || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
			t.Fatalf("%s: status %d, %v, %v", wire, status, header, err)
		}
		gotText, args := said(t, wire, body)
		if gotText != text || !cmp.Equal(args, wantArgs) {
			t.Errorf("%s streamed %q and %q", wire, gotText, args)
		}
		_, _, whole, _ := post(t.Context(), t, srv.URL(), wire, false)
		if !json.Valid([]byte(whole)) {
			t.Errorf("%s answered in one piece with %q", wire, whole)
		}
		for i, want := range ends {
			if !strings.Contains(body, want) || i < 3 && !strings.Contains(whole, want) {
				t.Errorf("%s: %s is missing in\n%s\nor\n%s", wire, want, body, whole)
			}
		}
	}
	turns := srv.Turns()
	if len(turns) != 4 || srv.Canceled() != 0 {
		t.Fatalf("%d turns, %d canceled", len(turns), srv.Canceled())
	}
	for i, turn := range turns {
		want := llmtest.Turn{Wire: turn.Wire, Model: "m-1", System: "be brief", Input: "hello", MaxTokens: 50, Tools: []string{"web_search", "read_page"},
			HasSchema: true, Streaming: i%2 == 0, N: i + 1, Header: turn.Header, Body: turn.Body}
		if diff := cmp.Diff(want, turn); diff != "" {
			t.Errorf("turn %d: %s", i, diff)
		}
	}
}

func TestServerRefusesWhatAProviderRefuses(t *testing.T) {
	srv := llmtest.NewServer(t, func(llmtest.Turn) llmtest.Said { return llmtest.Said{Text: "no"} })
	for _, body := range []string{`{`, `{"model":"m","messages":[{"role":"user","content":"x"}]}`, `{"model":"m","max_tokens":1,"messages":[]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":""}]}`, `{"model":"m","max_tokens":1,"messages":[{"role":"system","content":"x"}]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{}]}`} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+"/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("%s: status %d", body, resp.StatusCode)
		}
	}
	if n := len(srv.Turns()); n != 0 {
		t.Errorf("%d turns", n)
	}
}

// TestFaults looks at each fault by hand: what status, which words, and how it ends.
func TestFaults(t *testing.T) {
	ends := map[llmtest.Fault]struct {
		status int
		header string // of Retry-After, or "none"
		has    string // in the body, or in the error when status is 0
		fails  bool   // reading does not end in order
	}{
		llmtest.FaultRateLimited: {429, "1", "rate", false}, llmtest.FaultRateLimitedBare: {429, "none", "ate limit", false}, llmtest.FaultRateLimitedHour: {429, "3600", "rate", false},
		llmtest.FaultSpendLimit: {429, "", "", false}, llmtest.FaultDenied: {401, "", "sk-by-hand", false}, llmtest.FaultServer: {500, "", "", false}, llmtest.FaultOverloaded: {0, "", "verloaded", false},
		llmtest.FaultRefused: {0, "", "reset", true}, llmtest.FaultStall: {200, "", "", true}, llmtest.FaultPings: {200, "", "", true}, llmtest.FaultCut: {200, "", "first half", false},
		llmtest.FaultReset: {200, "", "", true}, llmtest.FaultErrorEvent: {200, "", "verloaded", false}, llmtest.FaultFlood: {200, "", "flood flood", false}, llmtest.FaultHTML: {200, "", "<h1>", false},
		llmtest.FaultUsageNegative: {200, "", "_tokens\":-5", false}, llmtest.FaultUsageHuge: {200, "", "99999999999", false}, llmtest.FaultStrange: {200, "", "moon_phase", false},
		llmtest.FaultUnknownTool: {200, "", "no_such_tool", false}, llmtest.FaultInputBroken: {200, "", "", false}, llmtest.FaultManyCalls: {200, "", "_63\"", false},
	}
	for wire := range requests {
		for _, c := range llmtest.Faults {
			t.Run(string(wire)+"/"+string(c.Fault), func(t *testing.T) {
				t.Parallel()
				srv := llmtest.NewServer(t, func(llmtest.Turn) llmtest.Said { return llmtest.Said{Fault: c.Fault} })
				limit := 20 * time.Second
				if c.Fault == llmtest.FaultStall || c.Fault == llmtest.FaultPings {
					limit = 300 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				status, header, body, err := post(ctx, t, srv.URL(), wire, true)
				want, ok := ends[c.Fault]
				switch {
				case !ok && (status != 200 || err != nil):
					t.Errorf("status %d, %v", status, err)
				case ok && (want.status != 0 && want.status != status || want.fails != (err != nil)):
					t.Errorf("status %d, %v\n%s", status, err, body)
				case ok && want.status != 0 && (!strings.Contains(body, want.has) || want.header == "none" && header.Get("Retry-After") != "" || want.header != "" && want.header != "none" && header.Get("Retry-After") != want.header):
					t.Errorf("%v\n%s", header, body)
				}
				if c.Fault == llmtest.FaultUsageMissing && strings.Contains(body, "_tokens") {
					t.Errorf("there is a usage in\n%s", body)
				}
				if c.Fault == llmtest.FaultStall || c.Fault == llmtest.FaultPings || c.Fault == llmtest.FaultFlood {
					for range 100 {
						if srv.Canceled() == 1 {
							break
						}
						time.Sleep(10 * time.Millisecond)
					}
					if srv.Canceled() != 1 {
						t.Error("the server did not see its client go")
					}
				}
			})
		}
	}
}
