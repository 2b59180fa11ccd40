package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
)

const key = "sk-test-4711-very-secret"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// body is a request as a server reads it.
type body map[string]any

// text is the JSON of a part of the request.
func (b body) text(field string) string {
	raw, _ := json.Marshal(b[field])
	return string(raw)
}

// server is a server written by hand.
type server struct {
	*httptest.Server
	mu     sync.Mutex // guards what follows
	bodies []body
	raws   []string
	heads  []http.Header
}

// serve starts a server that answers the nth request, from 1, by answer.
func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int, b body)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var b body
		if err := json.Unmarshal(raw, &b); err != nil || !strings.HasSuffix(r.URL.Path, "/v1/chat/completions") {
			t.Errorf("request %s %s: %v", r.Method, r.URL.Path, err)
		}
		s.mu.Lock()
		s.bodies, s.raws, s.heads = append(s.bodies, b), append(s.raws, string(raw)), append(s.heads, r.Header.Clone())
		n := len(s.bodies)
		s.mu.Unlock()
		answer(w, r, n, b)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) requests() []body {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies
}

// model is a model at an address, with a client that leaves nothing behind.
func model(t *testing.T, cfg llm.Config) *openai.Model {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Transport: transport}
	}
	if cfg.Model == "" {
		cfg.Model = "test-model"
	}
	if cfg.Idle == 0 {
		cfg.Idle = time.Minute
	}
	return openai.New(cfg)
}

// stream writes events as they are; a text that begins with { is a chunk.
func stream(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		if strings.HasPrefix(e, "{") || e == "[DONE]" {
			e = "data: " + e
		}
		_, _ = io.WriteString(w, e+"\n\n")
		_ = http.NewResponseController(w).Flush()
	}
}

// say makes the chunk of a delta.
func say(delta string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, delta)
}

func content(text string) string {
	raw, _ := json.Marshal(text)
	return say(fmt.Sprintf(`{"content":%s}`, raw))
}

func finish(reason string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

const usage = `{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":5,"total_tokens":35}}`

// answerWith is a whole reply of some text.
func answerWith(w http.ResponseWriter, text string) {
	stream(w, content(text), finish("stop"), usage, "[DONE]")
}

func refuse(w http.ResponseWriter, status int, answer string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func complain(w http.ResponseWriter, status int, message string) {
	raw, _ := json.Marshal(message)
	refuse(w, status, fmt.Sprintf(`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`, raw))
}

func call() llm.Call {
	return llm.Call{Prompt: "test", System: "Be brief.", Input: "What is the answer?", MaxTokens: 100}
}

func withTools(c llm.Call) llm.Call {
	c.Tools = []llm.Tool{{Name: "web_search", Description: "Searches.", Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)}}
	return c
}

func withSchema(c llm.Call) llm.Call {
	c.Schema = json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}`)
	return c
}
