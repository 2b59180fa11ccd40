// Package openai is a language model behind the chat completions protocol, as
// OpenAI, Gemini, Ollama, vLLM, llama.cpp, LM Studio and OpenRouter speak it. It owns
// what a request says, what a server that knows less is asked instead, and how the
// stream is read. It makes one request for one reply: repeating a failed call is
// llm.NewSteady's, and what a call may cost is the budget's.
package openai

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

const (
	tailTime  = 5 * time.Second        // how long usage may come after the finish reason
	drainTime = 250 * time.Millisecond // how long the end of a complete stream is waited for, so that its connection can serve the next call
)

const ownAddress = "https://api.openai.com/v1"

// Config says which model is asked, and where.
type Config struct {
	Key      string        // sent as a bearer token; "" sends none, as local servers want it
	BaseURL  string        // where the protocol begins, such as "http://localhost:11434/v1"; a URL without a path gets /v1
	Model    string        // the name that the server knows
	Provider string        // the first part of the ID; "" stands for "openai"
	HTTP     *http.Client  // nil stands for a client of its own
	Idle     time.Duration // how long the server may send nothing of a reply; 0 stands for 60 s
	MaxReply int64         // the most bytes of a reply; 0 stands for 8 MiB
}

// Model is one model of one provider. It is safe for concurrent use.
type Model struct {
	cfg  Config
	wire *llm.Wire // nil where cfg has no usable address

	mu    sync.Mutex // guards what follows
	knows limits     // what the server turned out not to do
}

// New makes a model. A Config that cannot work is told by Generate.
func New(cfg Config) *Model {
	cfg.Key = strings.TrimSpace(cfg.Key)
	cfg.Provider = cmp.Or(cfg.Provider, "openai")
	if cfg.Provider == "openai" {
		cfg.BaseURL = cmp.Or(cfg.BaseURL, ownAddress)
	}
	base := llm.Base(cfg.BaseURL)
	if base == nil {
		return &Model{cfg: cfg}
	}
	if strings.Trim(base.Path, "/") == "" {
		base.Path = "/v1"
	}
	w := llm.Wire{Who: cfg.Provider, Model: cfg.Model, Address: base.JoinPath("chat", "completions").String(), Idle: cfg.Idle, MaxReply: cfg.MaxReply, Secrets: httpapi.SecretsOf(cfg.Key, cfg.BaseURL), Hints: hintsFor(cfg)}
	cfg.BaseURL = base.String()
	if cfg.Key != "" {
		w.Header = http.Header{"Authorization": {"Bearer " + cfg.Key}}
	}
	if ip := net.ParseIP(base.Hostname()); base.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		w.Hints.Silent, w.Hints.Lost = "a local model may still be loading: try again, or choose a smaller one", "is the server running?"
	}
	if cfg.Provider == "ollama" {
		w.Hints.Lost = "is Ollama running? start it with: ollama serve"
	}
	return &Model{cfg: cfg, wire: w.Open(cfg.HTTP)}
}

// hintsFor name the settings of a provider.
func hintsFor(cfg Config) llm.Hints {
	address := map[string]string{"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_HOST"}[cfg.Provider]
	h := llm.Hints{
		Address: "check " + cmp.Or(address, "the base URL of "+cfg.Provider) + ": it must be the address that answers itself",
		Key:     "check the key of " + cfg.Provider, Model: "check the name of the model and the base URL of " + cfg.Provider, Spend: "see the plan and the billing of the account",
	}
	if cfg.Key == "" {
		h.Key = "set the key of " + cfg.Provider
	}
	if cfg.Provider == "ollama" {
		h.Model = "fetch the model first: ollama pull " + cfg.Model
	}
	return h
}

// ID is "<provider>/<model>".
func (m *Model) ID() string { return m.cfg.Provider + "/" + m.cfg.Model }

// Generate makes one call, with the promises of llm.Model. Its errors tell by
// Retryable whether the same call may succeed later, and by RetryAfter how long
// the provider asks to wait. Where a server refuses a part of the request that it
// does not know (a schema, tools, a parameter), Generate asks again without it
// and remembers that; a refused request costs nothing.
func (m *Model) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	if m.wire == nil {
		return llm.Reply{}, &marchwarden.Error{
			Code: marchwarden.CodeInvalid, Message: "no usable address for the provider " + m.cfg.Provider, Hint: "set its base URL, such as http://localhost:8080/v1",
		}
	}
	m.mu.Lock()
	l := m.knows
	m.mu.Unlock()
	r := request{c, m}
	for {
		body, err := r.body(l)
		if err != nil {
			return llm.Reply{}, err
		}
		h, failed := m.wire.Ask(ctx, c, body, read)
		if failed == nil || h.Finish != "" { // an error after the finish reason loses nothing but the usage
			m.mu.Lock()
			m.knows = m.knows.and(l) // calls side by side learn different things
			m.mu.Unlock()
			return m.wire.Clean(replyOf(c, h)), nil
		}
		lost := h.Lost()
		next, ok := l.without(failed, r)
		if !ok || lost.Usage != (llm.Usage{}) {
			return lost, failed
		}
		l = next
	}
}

// replyOf is what was heard of a reply that has ended.
func replyOf(c llm.Call, h *llm.Heard) llm.Reply {
	r := h.Reply()
	r.Text = llm.WithoutThinking(r.Text)
	if len(r.Calls) == 0 && len(c.Tools) > 0 { // text that names none of the tools asks for none
		known := func(call llm.ToolCall) bool {
			return slices.ContainsFunc(c.Tools, func(t llm.Tool) bool { return t.Name == call.Name })
		}
		if written := llm.CallsIn(r.Text); slices.ContainsFunc(written, known) {
			r.Text, r.Calls = "", written
		}
	}
	switch {
	case h.Finish == "content_filter" || h.Refusal.Len() > 0:
		r.Stop, r.Calls = llm.StopRefusal, nil
		r.Text = cmp.Or(r.Text, h.Refusal.String())
	case h.Finish == "length":
		r.Stop = llm.StopLength
	case len(r.Calls) > 0 || h.Finish == "tool_calls":
		r.Stop = llm.StopTools
	case h.Finish == "stop":
		r.Stop = llm.StopEnd
	default:
		r.Stop = llm.StopOther
	}
	return r
}
