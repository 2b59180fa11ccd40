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
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

const (
	tailTime  = 5 * time.Second        // how long usage may come after the finish reason
	drainTime = 250 * time.Millisecond // how long the end of a complete stream is waited for, so that its connection can serve the next call
)

const ownAddress = "https://api.openai.com/v1"

// Model is one model of one provider. It is safe for concurrent use.
type Model struct {
	wire *llm.Wire

	mu    sync.Mutex // guards what follows
	knows limits     // what the server turned out not to do
}

// New makes a model of a provider, "openai" if none is named. A base URL without a path gets /v1. A configuration that
// cannot work is told by Generate.
func New(cfg llm.Config) *Model {
	cfg.Key = strings.TrimSpace(cfg.Key)
	cfg.Provider = cmp.Or(cfg.Provider, "openai")
	if cfg.Provider == "openai" {
		cfg.BaseURL = cmp.Or(cfg.BaseURL, ownAddress)
	}
	w := llm.Wire{Config: cfg, Hints: hintsFor(cfg)}
	base := llm.Base(cfg.BaseURL)
	if base == nil {
		return &Model{wire: w.Open()}
	}
	if strings.Trim(base.Path, "/") == "" {
		base.Path = "/v1"
	}
	w.Address = base.JoinPath("chat", "completions").String()
	if cfg.Key != "" {
		w.Header = http.Header{"Authorization": {"Bearer " + cfg.Key}}
	}
	if ip := net.ParseIP(base.Hostname()); base.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		w.Hints.Silent, w.Hints.Lost = "a local model may still be loading: try again, or choose a smaller one", "is the server running?"
	}
	if cfg.Provider == "ollama" {
		w.Hints.Lost = "is Ollama running? start it with: ollama serve"
	}
	return &Model{wire: w.Open()}
}

// hintsFor name the settings of a provider.
func hintsFor(cfg llm.Config) llm.Hints {
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
func (m *Model) ID() string { return m.wire.Provider + "/" + m.wire.Model }

// Generate makes one call, with the promises of llm.Model. Its errors
// are llm.Faults. Where a server refuses a part of the request that it
// does not know (a schema, tools, a parameter), Generate asks again without it
// and remembers that; a refused request costs nothing.
func (m *Model) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
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
			return m.wire.Clean(replyOf(h)), nil
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
func replyOf(h *llm.Heard) llm.Reply {
	r := h.Reply()
	r.Text = llm.WithoutThinking(r.Text)
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
