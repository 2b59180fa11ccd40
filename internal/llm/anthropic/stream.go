package anthropic

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

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
			h.CallPiece(e.Index, b.ID, b.Name, strings.TrimPrefix(string(b.Input), "{}")) // which the pieces follow
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
