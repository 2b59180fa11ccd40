package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
)

func TestConformance(t *testing.T) {
	llmtest.Run(t, llmtest.WireOpenAI, func(t *testing.T, baseURL string, idle time.Duration) llm.Model {
		return model(t, llm.Config{BaseURL: baseURL, Key: key, Idle: idle})
	})
}

func tool(name, input string) llm.ToolCall {
	return llm.ToolCall{Name: name, Input: json.RawMessage(input)}
}

// TestReplies reads streams as servers send them.
func TestReplies(t *testing.T) {
	use := llm.Usage{In: 30, Out: 5}
	for _, tt := range []struct {
		name   string
		call   llm.Call
		events []string
		want   llm.Reply
	}{
		{"text", call(), []string{content("It is "), content("42."), finish("stop"), usage, "[DONE]"}, llm.Reply{Text: "It is 42.", Stop: llm.StopEnd, Usage: use}},
		{"no [DONE]", call(), []string{content("42"), finish("stop"), usage}, llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{"carriage returns and comments", call(), []string{": OPENROUTER PROCESSING\r", "data: " + content("42") + "\r", "data: " + finish("stop") + "\r", usage, "[DONE]"}, llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{"an error that is null", call(), []string{`{"error":null,"choices":[{"index":0,"delta":{"content":"42"}}]}`, finish("stop"), usage}, llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{"an error after the end", call(), []string{content("42"), usage, finish("stop"), `{"error":{"message":"late"}}`}, llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{"unknown things", call(), []string{"event: moon\ndata: {\"phase\":1}", say(`{"hologram":[1]}`), content("42"), finish("stop"), usage, "[DONE]"}, llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{"a second choice", call(), []string{content("42"), `{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}`, finish("stop"), usage}, llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{"thinking aloud", call(), []string{say(`{"reasoning_content":"hm"}`), say(`{"reasoning":"hm"}`), content("42"), finish("stop"), usage}, llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{"think block", call(), []string{content("<think>hm</th"), content("ink>\n\n42"), finish("stop"), usage}, llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{"length", call(), []string{content("It is"), finish("length"), usage}, llm.Reply{Text: "It is", Stop: llm.StopLength, Usage: use}},
		{"filtered", call(), []string{content("It"), finish("content_filter"), usage}, llm.Reply{Text: "It", Stop: llm.StopRefusal, Usage: use}},
		{"refusal", call(), []string{say(`{"refusal":"I will not."}`), finish("stop"), usage}, llm.Reply{Text: "I will not.", Stop: llm.StopRefusal, Usage: use}},
		{"a reason of tomorrow", call(), []string{content("42"), finish("moon"), usage}, llm.Reply{Text: "42", Stop: llm.StopOther, Usage: use}},
		{"nothing", call(), []string{finish("stop"), usage}, llm.Reply{Stop: llm.StopEnd, Usage: use}},
		{
			"tools, in pieces", withTools(call()),
			[]string{
				content("Let me see."), say(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"web_search","arguments":""}}]}`), say(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"query\":"}}]}`),
				say(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"web_search","arguments":"{}"}},{"index":0,"function":{"arguments":"\"x\"}"}}]}`), finish("tool_calls"), usage,
			},
			llm.Reply{Text: "Let me see.", Calls: []llm.ToolCall{tool("web_search", `{"query":"x"}`), tool("web_search", `{}`)}, Stop: llm.StopTools, Usage: use},
		},
		{
			"tools, all with index 0", withTools(call()),
			[]string{say(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"web_search","arguments":"{\"query\":\"x\"}"}}]}`), say(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"web_search","arguments":""}}]}`), finish("stop"), usage},
			llm.Reply{Calls: []llm.ToolCall{tool("web_search", `{"query":"x"}`), tool("web_search", `{}`)}, Stop: llm.StopTools, Usage: use},
		},
		{
			"tools, inputs that are none", withTools(call()),
			[]string{say(`{"tool_calls":[{"index":0,"function":{"name":"web_search","arguments":"{\"query\":"}},{"index":-7,"function":{"name":"web_search","arguments":"\"x\""}}]}`), finish("tool_calls"), usage},
			llm.Reply{Calls: []llm.ToolCall{tool("web_search", `"{\"query\":"`), tool("web_search", `"x"`)}, Stop: llm.StopTools, Usage: use},
		},
		{
			"tools, written as text", withTools(call()), []string{content(`[{"tool":"web_search","input":{"query":"x"}}]`), finish("stop"), usage},
			llm.Reply{Text: `[{"tool":"web_search","input":{"query":"x"}}]`, Stop: llm.StopEnd, Usage: use},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) { stream(w, tt.events...) })
			got, err := model(t, llm.Config{BaseURL: s.URL}).Generate(t.Context(), tt.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOnePiece: a server that does not stream although it was asked to.
func TestOnePiece(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		code       marchwarden.Code
		charged    bool
	}{
		{"reply", `{"choices":[{"index":0,"message":{"content":"42","tool_calls":[{"id":"a","function":{"name":"web_search","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":30,"completion_tokens":5}}`, "", true},
		{"error", `{"error":{"message":"upstream is gone","code":502}}`, marchwarden.CodeUnavailable, false},
		{"cut", `{"choices":[{"index":0,"message":{"content":"4`, marchwarden.CodeTruncated, true},
		{"something else", `{"hello":"world"}`, marchwarden.CodeMalformed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) { refuse(w, 200, tt.body) })
			got, err := model(t, llm.Config{BaseURL: s.URL}).Generate(t.Context(), withTools(call()))
			if marchwarden.CodeOf(err) != tt.code || (got.Usage.In > 0) != tt.charged {
				t.Errorf("%v, usage %+v", err, got.Usage)
			}
			want := llm.Reply{Text: "42", Calls: []llm.ToolCall{tool("web_search", `{}`)}, Stop: llm.StopTools, Usage: llm.Usage{In: 30, Out: 5}}
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRequests looks at what is sent.
func TestRequests(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  llm.Config
		call llm.Call
		want string // fields of the request
		none string // fields that are not there
	}{
		{"openai", llm.Config{Provider: "openai", Model: "gpt-4o", Key: key}, call(), `"max_tokens":100|"temperature":0.2|"stream":true|"stream_options":{"include_usage":true}|"role":"system"`, "reasoning_effort|tools|response_format"},
		{"openai, reasoning", llm.Config{Provider: "openai", Model: "gpt-5-mini"}, call(), `"reasoning_effort":"low"|"max_tokens":100`, "temperature"},
		{"openai, o3", llm.Config{Provider: "openai", Model: "o3"}, call(), `"reasoning_effort":"low"`, "temperature"},
		{"ollama", llm.Config{Provider: "ollama", Model: "llama3.2"}, call(), `"max_tokens":100|"temperature":0.2`, "max_completion_tokens|reasoning_effort"},
		{"openrouter, reasoning", llm.Config{Provider: "openrouter", Model: "openai/o4-mini"}, call(), `"max_tokens":100`, "temperature|reasoning_effort"},
		{"no system", llm.Config{}, llm.Call{Input: "Hi"}, `"messages":[{"role":"user","content":"Hi"}]`, "max_tokens|max_completion_tokens"},
		{"tools", llm.Config{}, withTools(call()), `"parallel_tool_calls":true|"name":"web_search"|"description":"Searches."|"required":["query"]`, "response_format"},
		{"tools keep the order of fields", llm.Config{}, llm.Call{Tools: []llm.Tool{{Name: "t", Schema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)}}}, `{"z":{},"a":{}}`, "response_format"},
		{"strict schema", llm.Config{}, withSchema(call()), `"type":"json_schema"|"strict":true|"additionalProperties":false`, "tools"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) { answerWith(w, "ok") })
			tt.cfg.BaseURL = s.URL + "/v1/"
			if _, err := model(t, tt.cfg).Generate(t.Context(), tt.call); err != nil {
				t.Fatal(err)
			}
			b, raw := s.requests()[0], s.raws[0]
			for _, want := range strings.Split(tt.want, "|") {
				if !strings.Contains(raw, want) {
					t.Errorf("no %s in %s", want, raw)
				}
			}
			for _, none := range strings.Split(tt.none, "|") {
				if _, has := b[none]; has {
					t.Errorf("%s in %s", none, raw)
				}
			}
		})
	}
}

// TestOnlyConfigCounts: the environment may say what it likes.
func TestOnlyConfigCounts(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "sk-environment", "OPENAI_ADMIN_KEY": "sk-environment", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_ORG_ID": "org-environment",
		"OPENAI_PROJECT_ID": "proj-environment", "OPENAI_CUSTOM_HEADERS": "X-Environment: environment",
	} {
		t.Setenv(name, value)
	}
	for _, k := range []string{"", key} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) { answerWith(w, "ok") })
		m := model(t, llm.Config{BaseURL: s.URL, Key: k})
		if _, err := m.Generate(t.Context(), call()); err != nil {
			t.Fatal(err)
		}
		want := ""
		if k != "" {
			want = "Bearer " + k
		}
		if got := s.heads[0].Get("Authorization"); got != want {
			t.Errorf("Authorization is %q, want %q", got, want)
		}
		for name, values := range s.heads[0] {
			if strings.Contains(strings.Join(values, " "), "environment") {
				t.Errorf("%s: %s comes from the environment", name, values)
			}
		}
	}
}

func TestID(t *testing.T) {
	if got := openai.New(llm.Config{Provider: "ollama", Model: "qwen3:8b"}).ID(); got != "ollama/qwen3:8b" {
		t.Error(got)
	}
	if got := openai.New(llm.Config{Model: "gpt-5"}).ID(); got != "openai/gpt-5" {
		t.Error(got)
	}
}

// TestKeepsConnection: a stream that was read to its end leaves its connection to
// the next call.
func TestKeepsConnection(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int, _ body) {
		answerWith(w, "ok")
		_, _ = io.WriteString(w, r.RemoteAddr+"\n")
	})
	var addrs []string
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addrs = append(addrs, r.RemoteAddr)
		inner.ServeHTTP(w, r)
	})
	m := model(t, llm.Config{BaseURL: s.URL})
	for range 3 {
		if _, err := m.Generate(t.Context(), call()); err != nil {
			t.Fatal(err)
		}
	}
	if addrs[0] != addrs[1] || addrs[1] != addrs[2] {
		t.Errorf("three calls came from %v", addrs)
	}
}
