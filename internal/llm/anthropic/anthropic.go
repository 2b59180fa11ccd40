// Package anthropic speaks to Anthropic's Messages API, and to servers that speak
// like it: one streaming request a call. It owns the requests and events on the wire
// and the translation of calls, replies, usage and faults. It does not repeat a request,
// keeps no history, and reads nothing from the environment: package steady
// repeats, and what is configured comes in a Config.
package anthropic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

// DefaultModel is the model of a Config that names none.
const DefaultModel = "claude-sonnet-5-5"

// What a Config leaves open.
const (
	defaultBaseURL  = "https://api.anthropic.com"
	defaultIdle     = 60 * time.Second
	defaultMaxReply = 8 << 20
)

// Config says whom to ask, and how long to bear with it.
type Config struct {
	Key     string // the API key; "" sends none, which a local server may accept
	BaseURL string // where the API is, with or without its /v1; "" is Anthropic itself
	Model   string // "" is DefaultModel
	// HTTP sends the requests; nil is a client of its own that uses no proxy.
	// Redirects are never followed: they would carry the key elsewhere.
	HTTP *http.Client
	// Idle is how long nothing of a reply may come, signs of life not counted;
	// 0 is a minute.
	Idle time.Duration
	// MaxReply is how many bytes a reply may have on the wire; 0 is 8 MiB.
	MaxReply int64
}

// Model is one model of the provider. It is safe for concurrent use.
type Model struct {
	name     string
	key      string
	secrets  []string // that no error repeats
	hide     *secret.Redactor
	idle     time.Duration
	address  string // where messages are sent; "" where BaseURL is unusable, which every call says
	client   *http.Client
	maxReply int64
	noSchema atomic.Bool // the model has refused a schema and answered without
}

var _ llm.Model = (*Model)(nil)

// New makes a model of a configuration. It sends nothing; a wrong configuration
// fails the calls.
func New(cfg Config) *Model {
	m := &Model{name: cfg.Model, key: strings.TrimSpace(cfg.Key), idle: cfg.Idle}
	m.secrets = httpapi.SecretsOf(m.key, cfg.BaseURL)
	m.hide = secret.New(m.secrets...)
	if m.name == "" {
		m.name = DefaultModel
	}
	if m.idle <= 0 {
		m.idle = defaultIdle
	}
	if cfg.MaxReply <= 0 {
		cfg.MaxReply = defaultMaxReply
	}
	base := strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1")
	if base == "" {
		base = defaultBaseURL
	}
	if u, err := url.Parse(base); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		m.address = u.JoinPath("v1", "messages").String()
	}
	m.client, m.maxReply = newClient(cfg.HTTP), cfg.MaxReply
	return m
}

// ID is "anthropic/" and the model's name.
func (m *Model) ID() string { return "anthropic/" + m.name }

// Generate makes one call, as llm.Model promises. Besides its code, an error says
// with Retryable() bool whether the same call may succeed later and with
// RetryAfter() (time.Duration, bool) what wait the provider asked for. A model that
// knows no schemas gets its calls without, once it has refused one.
func (m *Model) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	if m.noSchema.Load() {
		c.Schema = nil
	}
	if _, err := m.body(c); err != nil {
		return llm.Reply{}, err // wrong here, not there
	}
	reply, err := m.generate(ctx, c)
	if len(c.Schema) == 0 || marchwarden.CodeOf(err) != marchwarden.CodeInvalid || reply.Usage.Total() > 0 {
		return reply, err
	}
	c.Schema = nil
	again, failed := m.generate(ctx, c)
	if marchwarden.CodeOf(failed) == marchwarden.CodeInvalid {
		return reply, err // it was not the schema
	}
	m.noSchema.Store(m.noSchema.Load() || failed == nil)
	return again, failed
}

func (m *Model) generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	if m.address == "" {
		return llm.Reply{}, newFault(marchwarden.CodeInvalid, false, "check ANTHROPIC_BASE_URL", "the base URL for anthropic is no http or https address")
	}
	body, err := m.body(c)
	if err != nil {
		return llm.Reply{}, err
	}
	w := newWatch(ctx, m.idle)
	defer w.stop()
	var sent atomic.Bool
	var r reading
	stream, err := m.send(httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { sent.Store(sent.Load() || i.Err == nil) },
	}), body)
	opened := err == nil
	if opened {
		defer func() { _ = stream.Close() }() // the reply has been read, or is not wanted
		err = r.read(stream, w)
	}
	if err != nil {
		f := m.fault(ctx, w, err, opened)
		// Once the stream has opened, or the fate of a request that went out is unknown, the call
		// counts. A request that was refused costs nothing.
		if opened || f.open && sent.Load() {
			return llm.Reply{Usage: r.usage(c)}, f
		}
		return llm.Reply{}, f
	}
	reply := llm.Reply{Text: r.text(), Calls: r.calls(), Usage: r.usage(c), Stop: stopOf(r.stop)}
	if r.model != "" && !strings.HasPrefix(r.model, m.name) { // a dated name of the same model is the same model
		reply.Model = "anthropic/" + httpapi.Said(r.model, m.secrets)
	}
	return reply.Without(m.hide), nil
}

// body writes a call as a request. System and tools come first and bear cache marks,
// so that calls of one prompt share them.
func (m *Model) body(c llm.Call) ([]byte, error) {
	if c.MaxTokens <= 0 {
		return nil, newFault(marchwarden.CodeInvalid, false, "", "max_tokens must be above 0")
	}
	if strings.TrimSpace(c.Input) == "" {
		return nil, newFault(marchwarden.CodeInvalid, false, "", "the input of a call must not be empty")
	}
	r := request{Model: m.name, MaxTokens: c.MaxTokens, Stream: true, Messages: []message{{Role: "user", Content: []text{{Type: "text", Text: c.Input}}}}}
	if strings.TrimSpace(c.System) != "" {
		r.System = []text{{Type: "text", Text: c.System, CacheControl: cached}}
	}
	for i, t := range c.Tools {
		if !isObject(t.Schema) {
			return nil, newFault(marchwarden.CodeInvalid, false, "", "the schema of the tool %s is no JSON object", t.Name)
		}
		r.Tools = append(r.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema})
		if i == len(c.Tools)-1 {
			r.Tools[i].CacheControl = cached
		}
	}
	if len(c.Tools) > 0 {
		r.ToolChoice = &toolChoice{Type: "auto"}
	}
	if len(c.Schema) > 0 {
		schema, err := fit(c.Schema)
		if err != nil {
			return nil, newFault(marchwarden.CodeInvalid, false, "", "the schema of a call cannot be sent: %v", err)
		}
		r.OutputConfig = &outputConfig{Format: format{Type: "json_schema", Schema: schema}}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, newFault(marchwarden.CodeInternal, false, "", "write the request: %v", err)
	}
	return raw, nil
}

// isObject reports whether raw is a JSON object.
func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && strings.HasPrefix(strings.TrimLeft(string(raw), " \t\r\n"), "{")
}
