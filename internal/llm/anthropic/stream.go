package anthropic

import (
	"encoding/json"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// drain is how long the end of a finished reply is waited for, so that its
// connection can serve again.
const drain = 250 * time.Millisecond

// block is one content block of a reply.
type block struct {
	kind, name string
	body       strings.Builder // text, thoughts, or the input's JSON
	given      string          // the input that came with the block's start
}

// reading is a reply as far as it has come.
type reading struct {
	model  *Model
	call   llm.Call
	opened bool   // the stream has begun
	by     string // the model that answers, as it calls itself
	stop   string
	blocks []*block
	index  map[int64]*block
	tally  counts // what the stream has reported, which only grows
}

// read takes in an answer. An orderly end has a stop reason and a message_stop.
func (r *reading) read(res *http.Response, alive func(most time.Duration)) error {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")) // unreadable is not text/event-stream
	switch {
	case res.StatusCode >= 400:
		said, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // the status says enough
		return r.model.refused(res.StatusCode, res.Header, said)
	case res.StatusCode >= 300:
		return llm.NewFault(marchwarden.CodeUnavailable, false, hintNetwork, "what answered in place of anthropic is a redirect, which is not followed")
	case media != "text/event-stream":
		return llm.NewFault(marchwarden.CodeMalformed, false, hintNetwork, "what answered in place of anthropic does not speak its protocol")
	}
	r.opened = true
	ended := false
	for raw, err := range httpapi.Events(res.Body) {
		switch {
		case ended: // the connection can serve the next call
			return nil
		case err != nil:
			return err
		case raw.Name == "ping" || raw.Name == "":
			continue
		case raw.Name == "error":
			return r.model.refused(http.StatusOK, nil, raw.Data)
		}
		var e event
		if err := llm.Decode(raw.Data, &e); err != nil {
			return err
		}
		if r.take(&e) {
			alive(math.MaxInt64)
		}
		if ended = e.Type == "message_stop" && r.stop != ""; ended {
			alive(drain)
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
func (r *reading) take(e *event) bool {
	switch e.Type {
	case "message_start":
		r.by = e.Message.Model
		r.tally.see(e.Message.Usage)
	case "content_block_start":
		b := &block{kind: e.ContentBlock.Type, name: e.ContentBlock.Name, given: string(e.ContentBlock.Input)}
		b.body.WriteString(e.ContentBlock.Text + e.ContentBlock.Thinking)
		r.blocks = append(r.blocks, b)
		r.index[e.Index] = b
	case "content_block_delta":
		return r.delta(e)
	case "message_delta":
		if e.Delta.StopReason != "" {
			r.stop = e.Delta.StopReason
		}
		r.tally.see(e.Usage)
	case "content_block_stop", "message_stop":
	default:
		return false
	}
	return true
}

// delta adds a piece to its block. Thoughts are no part of the answer, but they are
// signs of work and are paid for.
func (r *reading) delta(e *event) bool {
	b := r.index[e.Index]
	if b == nil {
		return false
	}
	d := e.Delta
	switch {
	case d.Type == "text_delta" && b.kind == "text":
		b.body.WriteString(d.Text)
		r.model.wire.Tell(r.call, d.Text, r.text)
	case d.Type == "input_json_delta" && b.kind == "tool_use":
		b.body.WriteString(d.PartialJSON)
	case d.Type == "thinking_delta" && b.kind == "thinking":
		b.body.WriteString(d.Thinking)
	}
	return d.Text+d.PartialJSON+d.Thinking+d.Signature != ""
}

// text is all text of the reply.
func (r *reading) text() string {
	var s strings.Builder
	for _, b := range r.blocks {
		if b.kind == "text" {
			s.WriteString(b.body.String())
		}
	}
	return s.String()
}

// calls are the tool calls of the reply, in order.
func (r *reading) calls() []llm.ToolCall {
	var out []llm.ToolCall
	for _, b := range r.blocks {
		if b.kind == "tool_use" {
			out = append(out, llm.ToolCall{Name: b.name, Input: b.input()})
		}
	}
	return out
}

// input is the input of a tool call: what was streamed, else what came with the
// block's start.
func (b *block) input() json.RawMessage {
	if b.body.Len() == 0 {
		return llm.ToolInput(b.given)
	}
	return llm.ToolInput(b.body.String())
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

// see keeps the larger of two reports, each number by itself.
func (c *counts) see(n counts) {
	*c = counts{In: max(c.In, n.In), Out: max(c.Out, n.Out), Read: max(c.Read, n.Read), Write: max(c.Write, n.Write)}
}

// usage is what the call consumed. A provider's numbers are believed up to four times the estimate and 100,000 of
// input, twice MaxTokens and 1,000 of output; what is missing is estimated, so that no call is free.
func (r *reading) usage(c llm.Call) llm.Usage {
	estimate := llm.Estimate(c)
	mostIn, mostOut := estimate*4+100_000, c.MaxTokens*2+1_000
	read, write := llm.Within(r.tally.Read, mostIn), llm.Within(r.tally.Write, mostIn)
	u := llm.Usage{In: min(llm.Within(r.tally.In, mostIn)+read+write, mostIn), Out: llm.Within(r.tally.Out, mostOut)}
	u.CacheRead = min(read, u.In)
	u.CacheWrite = min(write, u.In-u.CacheRead)
	if u.In == 0 {
		u.In = estimate
	}
	// The count at a stream's start is a placeholder, and all there is when the stream breaks off.
	if u.Out == 0 || r.stop == "" {
		said := 0
		for _, b := range r.blocks {
			said += llm.EstimateText(b.name) + llm.EstimateText(b.body.String())
		}
		u.Out = min(max(u.Out, said), mostOut)
	}
	return u
}

// request is the body of a call. Its fields stand in the order in which they are cached.
type request struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	Stream       bool          `json:"stream"`
	Tools        []tool        `json:"tools,omitempty"`
	ToolChoice   *toolChoice   `json:"tool_choice,omitempty"`
	System       []text        `json:"system,omitempty"`
	Messages     []message     `json:"messages"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content []text `json:"content"`
}

type text struct {
	Type         string `json:"type"`
	Text         string `json:"text"`
	CacheControl *cache `json:"cache_control,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"` // as it is: models write fields in the order they see
}

type toolChoice struct {
	Type            string `json:"type"`
	DisableParallel bool   `json:"disable_parallel_tool_use"`
}

type outputConfig struct {
	Format format `json:"format"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// cache marks the end of what the provider keeps for the next call.
type cache struct {
	Type string `json:"type"`
}

var cached = &cache{Type: "ephemeral"}

// event is an event of a reply; which fields it has depends on its type.
type event struct {
	Type    string
	Index   int64
	Message struct {
		Model string
		Usage counts
	}
	ContentBlock struct {
		Type, Name, Text, Thinking string
		Input                      json.RawMessage
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
