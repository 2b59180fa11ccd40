package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// Why a reply that began could not be read.
var (
	errTooLarge = errors.New("the reply is over its limit")
	errNotIt    = errors.New("the answer is not of this protocol")
	errGarbled  = errors.New("the reply has a part that is no JSON")
	errBrokeOff = errors.New("the reply broke off")
)

// reported is an error that the server sent in the place of a reply or inside one.
type reported struct{ complaint complaint }

func (r *reported) Error() string { return r.complaint.message }

// toolCall is a tool call as its pieces come in.
type toolCall struct {
	id, name  string
	arguments strings.Builder
}

// heard is what of a reply has come in.
type heard struct {
	opened   bool // the server began to answer: the call has cost something
	done     bool // the reply said that it is complete
	finish   string
	text     strings.Builder
	refusal  strings.Builder
	thinking int // tokens, estimated
	calls    []*toolCall
	slots    map[int64]*toolCall // by the index that pieces name
	usage    *counts
}

// read takes in a reply and calls alive for each piece of it. An error after the
// finish reason loses nothing but the usage.
func (h *heard) read(res *http.Response, alive func()) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case kind == "text/html" || res.StatusCode >= 300:
		return fmt.Errorf("%w: status %d, content type %q", errNotIt, res.StatusCode, kind)
	case kind == "application/json":
		return h.readWhole(res.Body)
	}
	h.opened = true
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
			alive()
			continue
		}
		more, err := h.take(data)
		if err != nil {
			return err
		}
		known = known || more
		if more {
			alive()
		}
	}
	switch {
	case h.finish != "":
		return nil
	case !known && kind != "text/event-stream":
		h.opened = false
		return errNotIt
	}
	return errBrokeOff
}

// take adds one event and tells whether it was a piece of the reply.
func (h *heard) take(data []byte) (more bool, err error) {
	if c, ok := complaintIn(data); ok {
		h.opened = h.text.Len() > 0 || h.thinking > 0 || len(h.calls) > 0
		return false, &reported{c}
	}
	var chunk completion
	if !decode(data, &chunk) {
		return false, errGarbled
	}
	if chunk.Usage != nil {
		h.usage = chunk.Usage
		more = true
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		heardMore := h.add(choice.Delta)
		if choice.FinishReason != "" {
			h.finish = choice.FinishReason
		}
		more = more || heardMore || choice.FinishReason != ""
	}
	return more, nil
}

// decode reads JSON of a server. A field of another type is as good as none.
func decode(data []byte, into *completion) bool {
	var odd *json.UnmarshalTypeError
	err := json.Unmarshal(data, into)
	return err == nil || errors.As(err, &odd)
}

// add takes in what was said and tells whether it was anything. What the model thought aloud is
// counted, and is not its answer.
func (h *heard) add(s said) bool {
	h.text.WriteString(s.Content)
	h.refusal.WriteString(s.Refusal)
	thought := cmp.Or(s.ReasoningContent, s.Reasoning)
	h.thinking += llm.EstimateText(thought)
	for _, c := range s.ToolCalls {
		h.takeCall(c.Index, c.ID, c.Function.Name, word(c.Function.Arguments))
	}
	return s.Content+s.Refusal+thought != "" || len(s.ToolCalls) > 0
}

// takeCall adds a piece of a tool call. Pieces belong together by their index;
// some servers give every call the index 0, and there a new id begins a new call.
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
	if slot.id == "" {
		slot.id = id
	}
	if slot.name == "" {
		slot.name = name
	}
	slot.arguments.WriteString(arguments)
}

// readWhole takes in a reply in one piece, from a server that does not stream.
func (h *heard) readWhole(body io.Reader) error {
	h.opened = true
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if c, ok := complaintIn(data); ok {
		h.opened = false
		return &reported{c}
	}
	var whole completion
	if !decode(data, &whole) {
		return errBrokeOff
	}
	if len(whole.Choices) == 0 {
		h.opened = false
		return errNotIt
	}
	choice := whole.Choices[0]
	for i := range choice.Message.ToolCalls {
		choice.Message.ToolCalls[i].Index = int64(i)
	}
	h.add(choice.Message)
	h.finish, h.done, h.usage = choice.FinishReason, true, whole.Usage
	if h.finish == "" {
		return errBrokeOff
	}
	return nil
}
