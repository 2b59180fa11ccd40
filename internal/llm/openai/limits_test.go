package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
)

// TestFallbacks: each server refuses a part of the request, gets another request
// without it, and no second refusal is needed for the next call.
func TestFallbacks(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cfg      llm.Config
		call     llm.Call
		refuse   func(b body) (status int, message string) // 0 answers
		requests int                                       // of the first call
		last     func(b body) bool                         // what the request that was answered looks like
	}{
		{
			"max_tokens, old server", llm.Config{Provider: "openai"}, call(),
			func(b body) (int, string) {
				if b["max_completion_tokens"] != nil {
					return 400, "Unrecognized request argument supplied: max_completion_tokens"
				}
				return 0, ""
			},
			1, func(b body) bool { return b["max_tokens"] == 100.0 },
		},
		{
			"max_tokens, new server", llm.Config{Provider: "vllm"}, call(),
			func(b body) (int, string) {
				if b["max_tokens"] != nil {
					return 400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
				}
				return 0, ""
			},
			2, func(b body) bool { return b["max_completion_tokens"] == 100.0 },
		},
		{
			"reasoning_effort", llm.Config{Provider: "openai", Model: "gpt-5-chat-latest"}, call(),
			func(b body) (int, string) {
				if b["reasoning_effort"] != nil {
					return 400, "Unrecognized request argument supplied: reasoning_effort"
				}
				return 0, ""
			},
			2, func(b body) bool { return b["temperature"] == nil },
		},
		{
			"temperature", llm.Config{Provider: "openrouter", Model: "x/new-thinker"}, call(),
			func(b body) (int, string) {
				if b["temperature"] != nil {
					return 400, "Unsupported value: 'temperature' does not support 0.2 with this model."
				}
				return 0, ""
			},
			2, func(b body) bool { return true },
		},
		{
			"stream_options", llm.Config{Provider: "llamacpp"}, call(),
			func(b body) (int, string) {
				if b["stream_options"] != nil {
					return 422, "extra fields not permitted: stream_options"
				}
				return 0, ""
			},
			2, func(b body) bool { return b["stream"] == true },
		},
		{
			"json_schema", llm.Config{Provider: "lmstudio"}, withSchema(call()),
			func(b body) (int, string) {
				if strings.Contains(b.text("response_format"), "json_schema") {
					return 400, "response_format of type json_schema is not supported"
				}
				return 0, ""
			},
			2, func(b body) bool {
				return strings.Contains(b.text("response_format"), "json_object") && strings.Contains(b.text("messages"), `additionalProperties`)
			},
		},
		{
			"any response_format, in no words", llm.Config{Provider: "lmstudio"}, withSchema(call()),
			func(b body) (int, string) {
				if b["response_format"] != nil {
					return 400, "bad request"
				}
				return 0, ""
			},
			3, func(b body) bool { return strings.Contains(b.text("messages"), `additionalProperties`) },
		},
		{
			"tools, Ollama", llm.Config{Provider: "ollama"}, withTools(call()),
			func(b body) (int, string) {
				if b["tools"] != nil {
					return 400, "registry.ollama.ai/library/gemma:latest does not support tools"
				}
				return 0, ""
			},
			2, describesTools,
		},
		{
			"tools, vLLM", llm.Config{Provider: "vllm"}, withTools(call()),
			func(b body) (int, string) {
				if b["tools"] != nil {
					return 400, `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`
				}
				return 0, ""
			},
			2, describesTools,
		},
		{
			"tools, llama.cpp", llm.Config{Provider: "llamacpp"}, withTools(call()),
			func(b body) (int, string) {
				if b["tools"] != nil {
					return 500, "tools param requires --jinja flag"
				}
				return 0, ""
			},
			2, describesTools,
		},
		{
			"tools, OpenRouter", llm.Config{Provider: "openrouter"}, withTools(call()),
			func(b body) (int, string) {
				if b["tools"] != nil {
					return 404, "No endpoints found that support tool use."
				}
				return 0, ""
			},
			2, describesTools,
		},
		{
			"schema, OpenRouter", llm.Config{Provider: "openrouter"}, withSchema(call()),
			func(b body) (int, string) {
				if b["response_format"] != nil {
					return 404, "No endpoints found that can handle the requested parameters."
				}
				return 0, ""
			},
			3, func(b body) bool { return strings.Contains(b.text("messages"), `additionalProperties`) },
		},
		{
			"parallel calls", llm.Config{Provider: "vllm"}, withTools(call()),
			func(b body) (int, string) {
				if b["parallel_tool_calls"] != nil {
					return 400, "parallel_tool_calls is not supported"
				}
				return 0, ""
			},
			2, func(b body) bool { return b["tools"] != nil },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, b body) {
				if status, message := tt.refuse(b); status != 0 {
					complain(w, status, message)
					return
				}
				answerWith(w, `{"calls":[{"tool":"web_search","input":{"query":"x"}}]}`)
			})
			tt.cfg.BaseURL = s.URL
			m := model(t, tt.cfg)
			reply, err := m.Generate(t.Context(), tt.call)
			if err != nil {
				t.Fatal(err)
			}
			if want := (llm.Usage{In: 30, Out: 5}); reply.Usage != want {
				t.Errorf("usage %+v, want %+v: a refused request costs nothing", reply.Usage, want)
			}
			if calls := llm.CallsIn(reply.Text); len(tt.call.Tools) > 0 && (len(calls) != 1 || calls[0].Name != "web_search") {
				t.Errorf("calls %v", calls)
			}
			got := s.requests()
			if len(got) != tt.requests {
				t.Fatalf("%d requests, want %d", len(got), tt.requests)
			}
			if !tt.last(got[len(got)-1]) {
				t.Errorf("the last request is %v", got[len(got)-1])
			}
			if _, err := m.Generate(t.Context(), tt.call); err != nil || len(s.requests()) != tt.requests+1 {
				t.Errorf("the next call took %d requests: %v", len(s.requests())-tt.requests, err)
			}
		})
	}
}

func describesTools(b body) bool {
	return b["tools"] == nil && b["parallel_tool_calls"] == nil && strings.Contains(b.text("messages"), "Tool web_search: Searches.")
}

// TestFinalRefusals: a refusal that no other form of the request would avoid is
// not asked again.
func TestFinalRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		call          llm.Call
		requests      int
	}{
		{"nothing to leave out", "you may not ask that", call(), 1},
		{"too long", "This model's maximum context length is 8192 tokens; reduce max_tokens or the messages", withSchema(call()), 1},
		{"always the limit", "max_tokens is too large", call(), 2},
		{"always the schema", "bad request", withSchema(call()), 3},
		{"tools in passing", "the tool messages are out of order", withTools(call()), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) { complain(w, 400, tt.message) })
			m := model(t, llm.Config{BaseURL: s.URL, Provider: "vllm"})
			reply, err := m.Generate(t.Context(), tt.call)
			if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || reply.Usage != (llm.Usage{}) {
				t.Errorf("%v, usage %+v", err, reply.Usage)
			}
			if n := len(s.requests()); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
			// What led nowhere is not remembered.
			if _, err := m.Generate(t.Context(), tt.call); err == nil || len(s.requests()) != 2*tt.requests {
				t.Errorf("the next call took %d requests", len(s.requests())-tt.requests)
			}
		})
	}
}

// TestFallbacksAtOnce: many calls that learn the same at the same time.
func TestFallbacksAtOnce(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, b body) {
		if b["tools"] != nil {
			complain(w, 400, "gemma does not support tools")
			return
		}
		answerWith(w, "ok")
	})
	m := model(t, llm.Config{BaseURL: s.URL, Provider: "ollama"})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := m.Generate(t.Context(), withTools(call())); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// recorder answers for the real host and keeps what was sent.
type recorder struct{ bodies []string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	r.bodies = append(r.bodies, string(raw))
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: req,
		Body: io.NopCloser(strings.NewReader("data: " + content("ok") + "\n\ndata: " + finish("stop") + "\n\ndata: [DONE]\n\n"))}, err
}

// OpenAI keeps tools, schema and messages as one prefix: calls that share a long one have them alike up to the input.
func TestSharedPrefixOfTheRealHost(t *testing.T) {
	rec := &recorder{}
	m := openai.New(llm.Config{Key: key, Model: "gpt-4.1", HTTP: &http.Client{Transport: rec}})
	shared := strings.Repeat("[S1.1] The dam at the narrows was completed in 1937, at a cost of 4.3 million dollars.\n", 60) + "\n"
	step, judge := withTools(call()), withSchema(withTools(call()))
	step.Shared, judge.Shared, judge.Input = shared, shared, "1. It was completed in 1937."
	for _, c := range []llm.Call{step, judge, withSchema(withTools(call()))} {
		if _, err := m.Generate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	var got [3]struct {
		Messages       []struct{ Content string }
		Tools          json.RawMessage
		ToolChoice     string          `json:"tool_choice"`
		ResponseFormat json.RawMessage `json:"response_format"`
	}
	for i, b := range rec.bodies {
		if err := json.Unmarshal([]byte(b), &got[i]); err != nil {
			t.Fatal(err)
		}
	}
	if string(got[0].Tools) != string(got[1].Tools) || got[0].Messages[0] != got[1].Messages[0] || !strings.HasPrefix(got[1].Messages[1].Content, shared) || !strings.HasPrefix(got[0].Messages[1].Content, shared) {
		t.Errorf("they begin differently:\n%s\n%s", rec.bodies[0], rec.bodies[1])
	}
	if got[1].ToolChoice != "none" || got[0].ToolChoice != "" || strings.Contains(string(got[1].ResponseFormat), "schema") || !strings.HasSuffix(got[1].Messages[1].Content, string(judge.Schema)) {
		t.Errorf("the judge is asked %s", rec.bodies[1])
	}
	if got[2].Tools != nil || !strings.Contains(string(got[2].ResponseFormat), "json_schema") {
		t.Errorf("without a prefix worth keeping it is asked %s", rec.bodies[2])
	}
}

// TestSideBySide: of calls side by side each keeps what another learned.
func TestSideBySide(t *testing.T) {
	var first sync.WaitGroup
	first.Add(2) // both begin before one has learned anything
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, n int, b body) {
		if n <= 2 {
			first.Done()
			first.Wait()
		}
		switch {
		case b["tools"] != nil:
			complain(w, 400, "this model does not support tools")
		case b["response_format"] != nil:
			complain(w, 400, "unknown field response_format")
		default:
			answerWith(w, "ok")
		}
	})
	m := model(t, llm.Config{BaseURL: s.URL, Provider: "vllm"})
	calls := []llm.Call{withTools(call()), withSchema(call())}
	ask := func(c llm.Call) {
		if _, err := m.Generate(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	var both sync.WaitGroup
	for _, c := range calls {
		both.Go(func() { ask(c) })
	}
	both.Wait()
	before := len(s.requests())
	ask(calls[0])
	ask(calls[1])
	if n := len(s.requests()) - before; n != 2 {
		t.Errorf("%d requests for two calls", n)
	}
}
