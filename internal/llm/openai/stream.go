package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"

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

// limitReply bounds the bytes of any answer.
func limitReply(limit int64) option.Middleware {
	return func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(req)
		if err == nil && res.Body != nil {
			res.Body = httpapi.Limit(res.Body, limit, errTooLarge)
		}
		return res, err
	}
}

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
	usage    *sdk.CompletionUsage
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
	events, known := ssestream.NewDecoder(res), false
	for events.Next() {
		data := strings.TrimSpace(string(events.Event().Data))
		if h.done {
			continue
		}
		if data == "[DONE]" {
			h.done = true
			alive()
			continue
		}
		more, err := h.take([]byte(data))
		if err != nil {
			return err
		}
		known = known || more
		if more {
			alive()
		}
	}
	switch err := events.Err(); {
	case err != nil:
		return err
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
	var chunk sdk.ChatCompletionChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return false, errGarbled
	}
	if chunk.JSON.Usage.Valid() {
		use := chunk.Usage
		h.usage = &use
		more = true
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		h.text.WriteString(d.Content)
		h.refusal.WriteString(d.Refusal)
		thought := h.think(d.JSON.ExtraFields)
		for _, c := range d.ToolCalls {
			h.takeCall(c.Index, c.ID, c.Function.Name, c.Function.Arguments)
		}
		if choice.FinishReason != "" {
			h.finish = choice.FinishReason
		}
		more = more || thought || d.Content != "" || d.Refusal != "" || len(d.ToolCalls) > 0 || choice.FinishReason != ""
	}
	return more, nil
}

// think counts what the model thought aloud, which is not its answer.
func (h *heard) think(fields map[string]respjson.Field) bool {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var thought string
		if f, ok := fields[name]; ok && json.Unmarshal([]byte(f.Raw()), &thought) == nil && thought != "" {
			h.thinking += llm.EstimateText(thought)
			return true
		}
	}
	return false
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
	var whole sdk.ChatCompletion
	if json.Unmarshal(data, &whole) != nil {
		return errBrokeOff
	}
	if len(whole.Choices) == 0 {
		h.opened = false
		return errNotIt
	}
	choice := whole.Choices[0]
	h.text.WriteString(choice.Message.Content)
	h.refusal.WriteString(choice.Message.Refusal)
	h.think(choice.Message.JSON.ExtraFields)
	for i, c := range choice.Message.ToolCalls {
		h.takeCall(int64(i), c.ID, c.Function.Name, c.Function.Arguments)
	}
	h.finish, h.done = choice.FinishReason, true
	if whole.JSON.Usage.Valid() {
		h.usage = &whole.Usage
	}
	if h.finish == "" {
		return errBrokeOff
	}
	return nil
}
