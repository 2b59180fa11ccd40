// Package openai is a language model behind the chat completions protocol, as
// OpenAI, Ollama, vLLM, llama.cpp, LM Studio and OpenRouter speak it. It owns
// what a request says, what a server that knows less is asked instead, how the
// stream is read, and what each fault is called. It makes one request for one
// reply: repeating a failed call is package steady's, and what a call may cost
// is the budget's. It reads no environment; only its Config counts.
package openai

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

const (
	defaultIdle     = 60 * time.Second
	defaultMaxReply = 8 << 20
	tailTime        = 5 * time.Second        // how long usage may come after the finish reason
	drainTime       = 250 * time.Millisecond // how long the end of a complete stream is waited for, so that its connection can serve the next call
)

// addresses are where providers are found when the Config does not say.
var addresses = map[string]string{
	"openai":     "https://api.openai.com/v1",
	"openrouter": "https://openrouter.ai/api/v1",
	"ollama":     "http://localhost:11434/v1",
	"lmstudio":   "http://localhost:1234/v1",
	"vllm":       "http://localhost:8000/v1",
	"llamacpp":   "http://localhost:8080/v1",
}

// Config says which model is asked, and where.
type Config struct {
	Key      string        // sent as a bearer token; "" sends none, as local servers want it
	BaseURL  string        // where the protocol begins, such as "http://localhost:11434/v1"; a URL without a path gets /v1
	Model    string        // the name that the server knows
	Provider string        // the first part of the ID; "" stands for "openai"
	HTTP     *http.Client  // nil stands for a client of its own; redirects are never followed: they would carry key and text elsewhere
	Idle     time.Duration // how long the server may send nothing of a reply; 0 stands for 60 s
	MaxReply int64         // the most bytes of a reply; 0 stands for 8 MiB
}

// Model is one model of one provider. It is safe for concurrent use.
type Model struct {
	secrets []string // that no error repeats
	hide    *secret.Redactor
	cfg     Config
	client  http.Client
	address string // where requests are sent
	invalid error  // what is wrong with cfg

	mu    sync.Mutex // guards what follows
	knows limits     // what the server turned out not to do
}

var _ llm.Model = (*Model)(nil)

// New makes a model. A Config that cannot work is told by Generate.
func New(cfg Config) *Model {
	cfg.Key = strings.TrimSpace(cfg.Key)
	if cfg.Provider == "" {
		cfg.Provider = "openai"
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = addresses[cfg.Provider]
	}
	if cfg.Idle <= 0 {
		cfg.Idle = defaultIdle
	}
	if cfg.MaxReply <= 0 {
		cfg.MaxReply = defaultMaxReply
	}
	m := &Model{cfg: cfg, secrets: httpapi.SecretsOf(cfg.Key, cfg.BaseURL)}
	if cfg.HTTP != nil {
		m.client = *cfg.HTTP
	}
	m.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	m.hide = secret.New(m.secrets...)
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		m.invalid = &marchwarden.Error{
			Code: marchwarden.CodeInvalid, Message: "no usable address for the provider " + cfg.Provider,
			Hint: "set its base URL, such as http://localhost:8080/v1",
		}
		return m
	}
	if strings.Trim(base.Path, "/") == "" {
		base.Path = "/v1"
	}
	m.cfg.BaseURL = base.String()
	m.address = base.JoinPath("chat", "completions").String()
	return m
}

// ID is "<provider>/<model>".
func (m *Model) ID() string { return m.cfg.Provider + "/" + m.cfg.Model }

// Generate makes one call, with the promises of llm.Model. Its errors tell by
// Retryable whether the same call may succeed later, and by RetryAfter how long
// the provider asks to wait. Where a server refuses a part of the request that it
// does not know (a schema, tools, a parameter), Generate asks again without it
// and remembers that; a refused request costs nothing.
func (m *Model) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	if m.invalid != nil {
		return llm.Reply{}, m.invalid
	}
	l := m.known()
	for {
		reply, err := m.once(ctx, c, l)
		var f *fault
		if err == nil {
			m.learn(l)
		}
		if !errors.As(err, &f) || f.refused == "" || reply.Usage != (llm.Usage{}) {
			return reply, err
		}
		next, ok := l.without(f, m.request(c))
		if !ok {
			return reply, err
		}
		l = next
	}
}

func (m *Model) known() limits {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.knows
}

func (m *Model) learn(l limits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.knows = m.knows.and(l)
}

// errSilent is the cause when the idle timer ends a request.
var errSilent = errors.New("silence")

// once makes one request and reads its reply.
func (m *Model) once(parent context.Context, c llm.Call, l limits) (llm.Reply, error) {
	body, err := m.request(c).body(l)
	if err != nil {
		return llm.Reply{}, err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watch := time.AfterFunc(m.cfg.Idle, func() { cancel(errSilent) })
	defer watch.Stop()
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) { sent.Store(w.Err == nil) },
	})
	res, err := m.send(traced, body)
	got := heard{}
	if err == nil {
		defer func() { _ = res.Body.Close() }() // what was not read is not wanted
		err = got.read(res, func() {
			switch {
			case got.done:
				watch.Reset(min(m.cfg.Idle, drainTime))
			case got.finish != "":
				watch.Reset(min(m.cfg.Idle, tailTime))
			default:
				watch.Reset(m.cfg.Idle)
			}
		})
		if err == nil || got.finish != "" {
			return m.reply(c, &got).Without(m.hide), nil
		}
	}
	failed := m.failure(parent, ctx, res, err)
	reply := llm.Reply{}
	// A server that had the request and was not waited for may have begun.
	left := res == nil && (failed.Err.Code == marchwarden.CodeTimeout || failed.Err.Code == marchwarden.CodeCanceled)
	if got.opened || left && sent.Load() {
		reply.Usage = m.usage(c, &got)
	}
	return reply, failed
}

// send posts a request. The bytes of its answer are bounded.
func (m *Model) send(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "marchwarden")
	if m.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.cfg.Key)
	}
	res, err := m.client.Do(req)
	if err != nil {
		return nil, err
	}
	res.Body = httpapi.Limit(res.Body, m.cfg.MaxReply, errTooLarge)
	return res, nil
}
