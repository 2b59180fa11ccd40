package openai

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

type toolCall struct {
	id, name  string
	arguments strings.Builder
}

// heard is what of a reply has come in.
type heard struct {
	model    *Model
	call     llm.Call
	noChat   bool // it is read as the Responses API's
	opened   bool // the server began to answer: the call has cost something
	done     bool // the reply said that it is complete
	finish   string
	text     strings.Builder
	refusal  strings.Builder
	thinking int // tokens, estimated
	calls    []*toolCall
	slots    map[int64]*toolCall // by the index that pieces name
	usage    *counts
	status   int    // of a server that refused the request
	refused  string // what it said, in lower case
}

// read takes in a reply. An error after the finish reason loses nothing but the usage.
func (h *heard) read(res *http.Response, alive func(most time.Duration)) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err := h.answered(res, kind); err != nil {
		return err
	}
	h.opened = true
	if kind == "application/json" {
		return h.readWhole(res)
	}
	known := false
	for event, err := range httpapi.Events(res.Body) {
		if err != nil {
			return err
		}
		data := bytes.TrimSpace(event.Data)
		if h.done {
			continue
		}
		if string(data) == "[DONE]" {
			h.done = true
			alive(drainTime)
			continue
		}
		more, err := h.take(data, res.Header)
		if err != nil {
			return err
		}
		known = known || more
		switch {
		case h.done:
			alive(drainTime)
		case more && h.finish != "":
			alive(tailTime)
		case more:
			alive(math.MaxInt64)
		}
	}
	switch {
	case h.finish != "":
		return nil
	case !known && kind != "text/event-stream":
		return h.foreign()
	}
	return llm.ErrCut
}

// take adds one event and tells whether it was a piece of the reply.
func (h *heard) take(data []byte, header http.Header) (more bool, err error) {
	if c, ok := complaintIn(data); ok {
		return false, h.broke(c, header)
	}
	if h.noChat {
		return h.takeEvent(data, header)
	}
	var chunk completion
	if err := llm.Decode(data, &chunk); err != nil {
		return false, err
	}
	if chunk.Usage != nil {
		h.usage = chunk.Usage
		more = true
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		more = h.add(choice.Delta) || more || choice.FinishReason != ""
		h.finish = cmp.Or(choice.FinishReason, h.finish)
	}
	return more, nil
}

// add takes in what was said and tells whether it was anything. Thoughts count as tokens, not as answer.
func (h *heard) add(s said) bool {
	h.hear(s.Content)
	h.refusal.WriteString(s.Refusal)
	thought := cmp.Or(s.ReasoningContent, s.Reasoning)
	h.thinking += llm.EstimateText(thought)
	for _, c := range s.ToolCalls {
		h.takeCall(c.Index, c.ID, c.Function.Name, word(c.Function.Arguments))
	}
	return s.Content+s.Refusal+thought != "" || len(s.ToolCalls) > 0
}

// hear adds a piece of the answer's text.
func (h *heard) hear(piece string) {
	h.text.WriteString(piece)
	h.model.wire.Tell(h.call, piece, h.text.String)
}

// takeCall adds a piece of a tool call. Pieces belong together by their index; where all have the index 0, a new
// id begins a new call.
func (h *heard) takeCall(index int64, id, name, arguments string) {
	slot := h.slots[index]
	if slot == nil || id != "" && slot.id != "" && id != slot.id {
		slot = &toolCall{}
		if h.slots == nil {
			h.slots = map[int64]*toolCall{}
		}
		h.slots[index] = slot
		h.calls = append(h.calls, slot)
	}
	slot.id, slot.name = cmp.Or(slot.id, id), cmp.Or(slot.name, name)
	slot.arguments.WriteString(arguments)
}

// readWhole takes in a reply in one piece, from a server that does not stream.
func (h *heard) readWhole(res *http.Response) error {
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if c, ok := complaintIn(data); ok {
		h.opened = false
		return h.complained(c.status(), c, res.Header)
	}
	var r response
	if h.noChat && llm.Decode(data, &r) == nil && r.Status != "" {
		return h.takeEnd(r, r.Status, res.Header)
	}
	var whole completion
	if llm.Decode(data, &whole) != nil {
		return llm.ErrCut
	}
	if len(whole.Choices) == 0 {
		return h.foreign()
	}
	choice := whole.Choices[0]
	for i := range choice.Message.ToolCalls {
		choice.Message.ToolCalls[i].Index = int64(i)
	}
	h.add(choice.Message)
	h.finish, h.done, h.usage = choice.FinishReason, true, whole.Usage
	if h.finish == "" {
		return llm.ErrCut
	}
	return nil
}
