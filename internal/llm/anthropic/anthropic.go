// Package anthropic speaks to Anthropic's Messages API, and to servers that speak
// like it: one streaming request a call. It owns the requests and events on the wire
// and the translation of calls, replies, usage and refusals. It does not repeat a request,
// keeps no history, and reads nothing from the environment: llm.NewSteady
// repeats, and what is configured comes in a Config.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// DefaultModel is the model of a Config that names none.
const DefaultModel = "claude-sonnet-5-5"

const (
	defaultBaseURL = "https://api.anthropic.com"
	apiVersion     = "2023-06-01" // of the API that requests are written for
)

// Model is one model of the provider. It is safe for concurrent use.
type Model struct {
	wire     *llm.Wire
	noSchema atomic.Bool // the model has refused a schema and answered without
}

// New makes a model of a configuration, whose base URL may be with or without its /v1. It sends nothing; a wrong
// configuration fails the calls.
func New(cfg llm.Config) *Model {
	cfg.Provider, cfg.Key, cfg.Model = "anthropic", strings.TrimSpace(cfg.Key), cmp.Or(cfg.Model, DefaultModel)
	w := llm.Wire{Config: cfg, Header: http.Header{"Anthropic-Version": {apiVersion}}, Hints: hints}
	if cfg.Key != "" {
		w.Header.Set("X-Api-Key", cfg.Key)
	}
	if base := llm.Base(cmp.Or(strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1"), defaultBaseURL)); base != nil {
		w.Address = base.JoinPath("v1", "messages").String()
	}
	return &Model{wire: w.Open()}
}

const hintNetwork = "check the network and ANTHROPIC_BASE_URL"

var hints = llm.Hints{
	Lost: hintNetwork, Address: hintNetwork, Key: "check ANTHROPIC_API_KEY", Model: "check that the key may use the model, or choose another with --model",
	Spend: "raise the spend limit or add credit in the provider's console, or choose another provider with --model",
}

// ID is "anthropic/" and the model's name.
func (m *Model) ID() string { return "anthropic/" + m.wire.Model }

// Generate makes one call, as llm.Model promises. Its errors are llm.Faults. A model that
// knows no schemas gets its calls without, once it has refused one.
func (m *Model) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	if m.noSchema.Load() {
		c.Schema = nil
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
	body, err := m.body(c)
	if err != nil {
		return llm.Reply{}, marchwarden.Wrap(err, marchwarden.CodeInternal, "write the request")
	}
	r := reading{kinds: map[int64]string{}}
	h, failed := m.wire.Ask(ctx, c, body, r.read)
	if failed != nil {
		return h.Lost(), failed
	}
	reply := h.Reply()
	reply.Stop = stopOf(h.Finish)
	if h.Model != "" && !strings.HasPrefix(h.Model, m.wire.Model) { // a dated name of the same model is the same model
		reply.Model = "anthropic/" + m.wire.Said(h.Model)
	}
	return m.wire.Clean(reply), nil
}

// leastCached is the number of tokens from which the provider keeps a prefix.
const leastCached = 1024

// body writes a call as a request. Each part of Shared is a block, the last with a cache mark where the prefix is long
// enough to be kept. A schema would be part of that prefix, so it is told in words after it; and the tools, which come
// first, are left out of a call that has no use for them only where nothing is kept.
func (m *Model) body(c llm.Call) ([]byte, error) {
	r := request{Model: m.wire.Model, MaxTokens: c.MaxTokens, Stream: true}
	if strings.TrimSpace(c.System) != "" {
		r.System = []text{{Type: "text", Text: c.System}}
	}
	var parts []text
	for part := range strings.SplitAfterSeq(c.Shared, "\n\n") {
		if part != "" {
			parts = append(parts, text{Type: "text", Text: part})
		}
	}
	kept := len(parts) > 0 && c.Prefix() >= leastCached
	switch {
	case kept:
		parts[len(parts)-1].CacheControl = cached
		c.Input += c.InWords()
	case len(c.Schema) > 0:
		c.Tools = nil
		r.OutputConfig.Format.Type, r.OutputConfig.Format.Schema = "json_schema", c.Schema
	}
	r.Messages = []message{{Role: "user", Content: append(parts, text{Type: "text", Text: c.Input})}}
	for _, t := range c.Tools {
		r.Tools = append(r.Tools, tool(t))
	}
	if len(r.Tools) > 0 {
		r.ToolChoice = json.RawMessage(`{"type":"auto","disable_parallel_tool_use":false}`)
	}
	return json.Marshal(r)
}

// drain is how long the end of a finished reply is waited for, so that its
// connection can serve again.
const drain = 250 * time.Millisecond

// reading takes in a reply.
type reading struct {
	kinds map[int64]string // of the content blocks
	in    counts           // the input of the last report that has one
}

// read takes in an answer. An orderly end has a stop reason and a message_stop.
func (r *reading) read(h *llm.Heard, a llm.Answer) error {
	if a.Media != "text/event-stream" {
		return h.Foreign()
	}
	ended := false
	for raw, err := range httpapi.Events(a.Body) {
		switch {
		case ended: // the connection can serve the next call
			return nil
		case err != nil:
			return err
		case raw.Name == "ping" || raw.Name == "":
			continue
		case raw.Name == "error":
			if err := h.Complaint(raw.Data, a.Header); err != nil {
				return err
			}
		}
		var e event
		if err := llm.Decode(raw.Data, &e); err != nil {
			return err
		}
		if r.take(h, &e) {
			a.Alive(math.MaxInt64)
		}
		if ended = e.Type == "message_stop" && h.Finish != ""; ended {
			a.Alive(drain)
		} else if e.Type == "message_stop" {
			return llm.ErrCut
		}
	}
	if !ended {
		return llm.ErrCut
	}
	return nil
}

// take adds an event and reports whether it was part of the reply. An unknown event is passed over.
func (r *reading) take(h *llm.Heard, e *event) bool {
	switch e.Type {
	case "message_start":
		h.Model = e.Message.Model
		r.count(h, e.Message.Usage)
	case "content_block_start":
		b := e.ContentBlock
		r.kinds[e.Index] = b.Type
		switch b.Type {
		case "text":
			h.Say(b.Text)
		case "thinking":
			h.Think(b.Thinking)
		case "tool_use":
			h.CallPiece(e.Index, b.ID, b.Name, "")
			h.CallWhole(e.Index, string(b.Input))
		}
	case "content_block_delta":
		d := e.Delta
		switch kind := r.kinds[e.Index]; {
		case kind == "":
			return false
		case d.Type == "text_delta" && kind == "text":
			h.Say(d.Text)
		case d.Type == "input_json_delta" && kind == "tool_use":
			h.CallPiece(e.Index, "", "", d.PartialJSON)
		case d.Type == "thinking_delta" && kind == "thinking":
			h.Think(d.Thinking)
		}
		return d.Text+d.PartialJSON+d.Thinking+d.Signature != ""
	case "message_delta":
		h.Finish = cmp.Or(e.Delta.StopReason, h.Finish)
		r.count(h, e.Usage)
	case "content_block_stop", "message_stop":
	default:
		return false
	}
	return true
}

// count adds a report of tokens, in which input is counted without what is cached.
func (r *reading) count(h *llm.Heard, c counts) {
	const most = 1 << 40
	at := func(n int64) int64 { return min(max(n, 0), most) }
	r.in = counts{In: max(r.in.In, at(c.In)), Read: max(r.in.Read, at(c.Read)), Write: max(r.in.Write, at(c.Write))}
	h.Count(r.in.In+r.in.Read+r.in.Write, c.Out, r.in.Read, r.in.Write)
}

// stopOf translates a stop reason.
func stopOf(s string) llm.Stop {
	switch s {
	case "end_turn", "stop_sequence":
		return llm.StopEnd
	case "tool_use":
		return llm.StopTools
	case "max_tokens", "model_context_window_exceeded":
		return llm.StopLength
	case "refusal":
		return llm.StopRefusal
	}
	return llm.StopOther // pause_turn, which only tools of the provider's own cause, and whatever comes
}

// request is the body of a call. Its fields stand in the order in which they are cached.
type request struct {
	Model        string          `json:"model"`
	MaxTokens    int             `json:"max_tokens"`
	Stream       bool            `json:"stream"`
	Tools        []tool          `json:"tools,omitempty"`
	ToolChoice   json.RawMessage `json:"tool_choice,omitempty"`
	System       []text          `json:"system,omitempty"`
	Messages     []message       `json:"messages"`
	OutputConfig struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config,omitzero"`
}

type message struct {
	Role    string `json:"role"`
	Content []text `json:"content"`
}

type text struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"` // as it is: models write fields in the order they see
}

// cached marks the end of what the provider keeps for the next call.
var cached = json.RawMessage(`{"type":"ephemeral"}`)

// event is an event of a reply; which fields it has depends on its type.
type event struct {
	Type    string
	Index   int64
	Message struct {
		Model string
		Usage counts
	}
	ContentBlock struct {
		Type, ID, Name, Text, Thinking string
		Input                          json.RawMessage
	} `json:"content_block"`
	Delta struct {
		Type, Text, Thinking, Signature string
		PartialJSON                     string `json:"partial_json"`
		StopReason                      string `json:"stop_reason"`
	}
	Usage counts
}

// counts are tokens, as the provider reports them.
type counts struct {
	In    int64 `json:"input_tokens"`
	Out   int64 `json:"output_tokens"`
	Read  int64 `json:"cache_read_input_tokens"`
	Write int64 `json:"cache_creation_input_tokens"`
}
