package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
)

// Refusals, incomplete and failed replies, errors in a stream and the words of a model without chat completions are as
// the provider documents them or as its users quote them; the rest is also read from recordings of real models.

// detour carries what is meant for OpenAI to a server of the test.
type detour struct {
	to    *url.URL
	inner *http.Transport
}

func (d detour) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = d.to.Scheme, d.to.Host, d.to.Host
	return d.inner.RoundTrip(r)
}

// atOpenAI is a model that believes to be at OpenAI's own address.
func atOpenAI(t *testing.T, address, name string) *openai.Model {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return model(t, openai.Config{Key: key, Model: name, Idle: time.Second, HTTP: &http.Client{Transport: detour{to, transport}}})
}

func TestResponsesConformance(t *testing.T) {
	llmtest.Run(t, llmtest.WireResponses, func(t *testing.T, baseURL string) llm.Model { return atOpenAI(t, baseURL, "gpt-5-pro") })
}

// TestResponsesChosen: by name at OpenAI alone; elsewhere, and for other names, once the chat address says so.
func TestResponsesChosen(t *testing.T) {
	const only, noChat = "This model is only supported in v1/responses and not in v1/chat/completions.", "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?"
	const effort = "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead."
	for _, tt := range []struct {
		model, said string
		status      int
		elsewhere   bool
		want        string // the paths of two calls
	}{
		{"gpt-5-pro", "", 0, false, "responses responses"},
		{"o3-pro-2025-06-10", "", 0, false, "responses responses"},
		{"gpt-5.2-codex", "", 0, false, "responses responses"},
		{"gpt-5.4-mini", "", 0, false, "completions completions"},
		{"gpt-5-pro", "", 0, true, "completions completions"},
		{"gpt-5-pro", only, 404, true, "completions responses responses"},
		{"gpt-6", noChat, 404, false, "completions responses responses"},
		{"gpt-5.4", effort, 400, false, "completions responses responses"},
		{"gpt-6", "The model `gpt-6` does not exist or you do not have access to it.", 404, false, "completions completions"},
		{"gpt-6", only, 429, false, "completions completions"},
	} {
		t.Run(tt.model+" "+tt.said, func(t *testing.T) {
			var paths []string
			s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int, _ body) {
				last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
				paths = append(paths, last)
				switch {
				case last == "responses":
					stream(w, `{"type":"response.output_text.delta","delta":"ok"}`, ended("completed", `"output":[]`))
				case tt.said != "":
					complain(w, tt.status, tt.said)
				default:
					answerWith(w, "ok")
				}
			})
			m := atOpenAI(t, s.URL, tt.model)
			if tt.elsewhere {
				m = model(t, openai.Config{BaseURL: s.URL, Model: tt.model})
			}
			for range 2 {
				got, err := m.Generate(t.Context(), withTools(call()))
				if ok := tt.said == "" || strings.Contains(tt.want, "responses"); ok != (err == nil) || ok && got.Text != "ok" {
					t.Errorf("%+v, %v", got, err)
				}
			}
			if got := strings.Join(paths, " "); got != tt.want {
				t.Errorf("asked %s, want %s", got, tt.want)
			}
		})
	}
}

// ended is the last event of a stream.
func ended(status, fields string) string {
	return fmt.Sprintf(`{"type":"response.%s","response":{"status":%q,"error":null,"incomplete_details":null,"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":10},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":35},%s}}`, status, status, fields)
}

const wrote = `{"type":"response.output_text.delta","delta":"42"}`

// TestResponses reads streams of the Responses API.
func TestResponses(t *testing.T) {
	use := llm.Usage{In: 30, Out: 5, CacheRead: 10}
	for _, tt := range []struct {
		name    string
		events  []string
		want    llm.Reply
		code    marchwarden.Code
		charged bool // of a failed call
		retry   bool
	}{
		{name: "text", events: []string{wrote, ended("completed", `"output":[{"type":"message","content":[{"type":"output_text","text":"42"}]}]`)}, want: llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{name: "text at the end alone", events: []string{ended("completed", `"output":[{"type":"reasoning","content":[{"text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"42"}]}]`)}, want: llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{
			name:   "call at the end alone",
			events: []string{ended("completed", `"output":[{"type":"function_call","call_id":"a","name":"web_search","arguments":"{\"query\":\"x\"}"}]`)},
			want:   llm.Reply{Calls: []llm.ToolCall{tool("web_search", `{"query":"x"}`)}, Stop: llm.StopTools, Usage: use},
		},
		{
			name: "arguments without pieces", events: []string{
				`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"web_search","arguments":""}}`,
				`{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"query\":\"x\"}"}`, ended("completed", `"output":[]`),
			},
			want: llm.Reply{Calls: []llm.ToolCall{tool("web_search", `{"query":"x"}`)}, Stop: llm.StopTools, Usage: use},
		},
		{name: "refusal", events: []string{`{"type":"response.refusal.delta","delta":"I will not."}`, ended("completed", `"output":[]`)}, want: llm.Reply{Text: "I will not.", Stop: llm.StopRefusal, Usage: use}},
		{name: "filtered", events: []string{wrote, ended("incomplete", `"incomplete_details":{"reason":"content_filter"}`)}, want: llm.Reply{Text: "42", Stop: llm.StopRefusal, Usage: use}},
		{name: "length, all of it thoughts", events: []string{ended("incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`)}, want: llm.Reply{Stop: llm.StopLength, Usage: use}},
		{name: "incomplete without a reason", events: []string{wrote, ended("incomplete", `"output":[]`)}, want: llm.Reply{Text: "42", Stop: llm.StopOther, Usage: use}},
		{name: "fields of other types", events: []string{wrote, `{"type":"response.output_text.delta","delta":{"a":1}}`, `{"type":7}`, `[]`, ended("completed", `"output":{"a":1}`)}, want: llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{name: "an error after the end", events: []string{wrote, ended("completed", `"output":[]`), `{"type":"error","message":"late"}`}, want: llm.Reply{Text: "42", Stop: llm.StopEnd, Usage: use}},
		{name: "failed", events: []string{wrote, ended("failed", `"error":{"code":"server_error","message":"it broke"}`)}, code: marchwarden.CodeUnavailable, charged: true, retry: true},
		{name: "failed, uncounted", events: []string{`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"},"usage":null}}`}, code: marchwarden.CodeRateLimited, retry: true},
		{name: "failed before a word, counted", events: []string{ended("failed", `"error":{"code":"server_error","message":"it broke"}`)}, code: marchwarden.CodeUnavailable, charged: true, retry: true},
		{name: "failed in thought, uncounted", events: []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning"}}`, `{"type":"error","code":"server_error","message":"it broke"}`}, code: marchwarden.CodeUnavailable, charged: true, retry: true},
		{name: "failed without a word", events: []string{`{"type":"response.failed"}`}, code: marchwarden.CodeUnavailable, retry: true},
		{name: "invalid prompt", events: []string{`{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"flagged"},"usage":null}}`}, code: marchwarden.CodeInvalid},
		{name: "too long", events: []string{`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model.","param":"input"}}`}, code: marchwarden.CodeInvalid},
		{name: "no money", events: []string{`{"type":"error","code":"insufficient_quota","message":"You exceeded your current quota","param":null}`}, code: marchwarden.CodeDenied},
		{name: "torn", events: []string{`{"type":"response.created","response":{"status":"in_progress"}}`, wrote}, code: marchwarden.CodeTruncated, charged: true, retry: true},
		{name: "an event that is no JSON", events: []string{wrote, `{"type":"response.output_te`}, code: marchwarden.CodeMalformed, charged: true, retry: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) {
				for i, e := range tt.events {
					tt.events[i] = "data: " + strings.TrimPrefix(e, "data: ")
				}
				stream(w, tt.events...)
			})
			got, err := atOpenAI(t, s.URL, "gpt-5-codex").Generate(t.Context(), withTools(call()))
			if marchwarden.CodeOf(err) != tt.code {
				t.Fatalf("%+v, %v", got, err)
			}
			if err == nil {
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			again, ok := err.(interface{ Retryable() bool })
			if (got.Usage.In > 0) != tt.charged || !ok || again.Retryable() != tt.retry {
				t.Errorf("usage %+v, again %t", got.Usage, ok && again.Retryable())
			}
		})
	}
}

// TestResponsesRequest looks at what is sent, and at what is left out once it was refused.
func TestResponsesRequest(t *testing.T) {
	refused := map[string]string{
		`"reasoning":`:   "Unsupported value: 'low' is not supported with the 'gpt-5-pro' model. Supported values are: 'high'.\",\"param\":\"reasoning.effort",
		`"temperature":`: "Unsupported parameter: 'temperature' is not supported with this model.",
	}
	for _, tt := range []struct {
		name, model string
		call        llm.Call
		refuse      string // a field that is refused
		want, none  string
	}{
		{"plain", "codex-mini-latest", call(), "", `"instructions":"Be brief."|"input":"What is the answer?"|"max_output_tokens":100|"store":false|"stream":true|"temperature":0.2`, `"reasoning"|"tools"|"text"|"messages"|"stream_options"`},
		{"reasoning", "gpt-5-codex", call(), "", `"reasoning":{"effort":"low"}`, `"temperature"`},
		{"no effort", "gpt-5-pro", call(), `"reasoning":`, `"max_output_tokens":100`, `"reasoning"`},
		{"no temperature", "codex-mini-latest", call(), `"temperature":`, `"max_output_tokens":100`, `"temperature"`},
		{"the smallest limit", "gpt-5-codex", llm.Call{Input: "Hi", MaxTokens: 3}, "", `"max_output_tokens":16`, `"instructions"`},
		{"tools", "gpt-5-codex", withTools(call()), "", `"tools":[{"type":"function","name":"web_search","description":"Searches.","parameters":{"type":"object"|"strict":false|"parallel_tool_calls":true`, `"tool_choice"|"function":`},
		{"schema", "gpt-5-codex", withSchema(call()), "", `"text":{"format":{"type":"json_schema","name":"reply","schema":{"type":"object"|"strict":true`, `"response_format"|"tools"`},
		{"a kept beginning", "gpt-5-codex", llm.Call{Shared: strings.Repeat("All of it is shared. ", 500), Input: "Hi", Schema: json.RawMessage(`{"type":"object"}`), Tools: withTools(call()).Tools}, "", `"text":{"format":{"type":"json_object"}}|"tool_choice":"none"|"name":"web_search"`, `"json_schema"|"parallel_tool_calls"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, b body) {
				if raw, _ := json.Marshal(b); tt.refuse != "" && strings.Contains(string(raw), tt.refuse) {
					refuse(w, 400, `{"error":{"type":"invalid_request_error","message":"`+refused[tt.refuse]+`"}}`)
					return
				}
				stream(w, ended("completed", `"output":[]`))
			})
			if _, err := atOpenAI(t, s.URL, tt.model).Generate(t.Context(), tt.call); err != nil {
				t.Fatal(err)
			}
			raw := s.raws[len(s.raws)-1]
			if (len(s.raws) > 1) != (tt.refuse != "") {
				t.Errorf("%d requests", len(s.raws))
			}
			for want := range strings.SplitSeq(tt.want, "|") {
				if !strings.Contains(raw, want) {
					t.Errorf("no %s in %s", want, raw)
				}
			}
			for none := range strings.SplitSeq(tt.none, "|") {
				if strings.Contains(raw, none) {
					t.Errorf("%s in %s", none, raw)
				}
			}
		})
	}
}

// TestResponsesOnePiece: a reply that is not streamed, and a refusal that no other form of the request would help.
func TestResponsesOnePiece(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
		code       marchwarden.Code
		charged    bool
	}{
		{"reply", `{"object":"response","status":"completed","error":null,"output":[{"type":"message","content":[{"text":"42"}]}],"usage":{"input_tokens":30,"output_tokens":5}}`, 200, "", true},
		{"failed", `{"object":"response","status":"failed","error":{"code":"server_error","message":"it broke"}}`, 200, marchwarden.CodeUnavailable, false},
		{"cut", `{"object":"response","status":"completed","outp`, 200, marchwarden.CodeTruncated, true},
		{"something else", `{"hello":"world"}`, 200, marchwarden.CodeMalformed, false},
		{"unknown parameter", `{"error":{"message":"Unknown parameter: 'store'.","type":"invalid_request_error","param":"store","code":"unknown_parameter"}}`, 400, marchwarden.CodeInvalid, false},
		{"nothing there", `not found`, 404, marchwarden.CodeDenied, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) { refuse(w, tt.status, tt.body) })
			got, err := atOpenAI(t, s.URL, "gpt-5-pro").Generate(t.Context(), call())
			if marchwarden.CodeOf(err) != tt.code || (got.Usage.In > 0) != tt.charged || err == nil && got.Text != "42" || len(s.requests()) != 1 {
				t.Errorf("%+v, %v after %d requests", got, err, len(s.requests()))
			}
		})
	}
}
