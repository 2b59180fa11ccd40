package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// read takes in a stream, or a reply in one piece.
func read(h *llm.Heard, a llm.Answer) error {
	if a.Media == "application/json" {
		return readWhole(h, a)
	}
	known, done := false, false
	for event, err := range httpapi.Events(a.Body) {
		data := bytes.TrimSpace(event.Data)
		switch {
		case err != nil:
			return err
		case done:
			continue
		case string(data) == "[DONE]":
			done = true
			a.Alive(drainTime)
			continue
		}
		more, err := take(h, a, data)
		if err != nil {
			return err
		}
		known = known || more
		switch {
		case more && h.Finish != "":
			a.Alive(tailTime)
		case more:
			a.Alive(math.MaxInt64)
		}
	}
	switch {
	case h.Finish != "":
		return nil
	case !known && a.Media != "text/event-stream":
		return h.Foreign()
	}
	return llm.ErrCut
}

// take adds one event and tells whether it was a piece of the reply.
func take(h *llm.Heard, a llm.Answer, data []byte) (more bool, err error) {
	if err := h.Complaint(data, a.Header); err != nil {
		return false, err
	}
	var chunk completion
	if err := llm.Decode(data, &chunk); err != nil {
		return false, err
	}
	more = count(h, chunk.Usage)
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		more = add(h, choice.Delta) || more || choice.FinishReason != ""
		h.Finish = cmp.Or(choice.FinishReason, h.Finish)
	}
	return more, nil
}

// count notes what the server has counted, if it has.
func count(h *llm.Heard, c *counts) bool {
	if c == nil {
		return false
	}
	out := c.Completion
	if c.Prompt > 0 { // some servers count thinking in the total alone
		out = max(out, c.Total-c.Prompt)
	}
	h.Count(c.Prompt, out, c.Details.Read, c.Details.Write)
	return true
}

// add takes in what was said and tells whether it was anything.
func add(h *llm.Heard, s said) bool {
	h.Say(s.Content)
	h.Refusal.WriteString(s.Refusal)
	thought := cmp.Or(s.ReasoningContent, s.Reasoning)
	h.Think(thought)
	for _, c := range s.ToolCalls {
		h.CallPiece(c.Index, c.ID, c.Function.Name, llm.Word(c.Function.Arguments))
	}
	return s.Content+s.Refusal+thought != "" || len(s.ToolCalls) > 0
}

// readWhole takes in a reply in one piece, from a server that does not stream.
func readWhole(h *llm.Heard, a llm.Answer) error {
	data, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	if err := h.Complaint(data, a.Header); err != nil {
		return err
	}
	var whole completion
	if llm.Decode(data, &whole) != nil {
		return llm.ErrCut
	}
	if len(whole.Choices) == 0 {
		return h.Foreign()
	}
	choice := whole.Choices[0]
	for i := range choice.Message.ToolCalls {
		choice.Message.ToolCalls[i].Index = int64(i)
	}
	add(h, choice.Message)
	count(h, whole.Usage)
	if h.Finish = choice.FinishReason; h.Finish == "" {
		return llm.ErrCut
	}
	return nil
}

type chat struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Stream              bool            `json:"stream"`
	StreamOptions       json.RawMessage `json:"stream_options,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	Temperature         float64         `json:"temperature,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	Tools               []tool          `json:"tools,omitempty"`
	ToolChoice          string          `json:"tool_choice,omitempty"`
	ParallelToolCalls   bool            `json:"parallel_tool_calls,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"parameters,omitempty"` // as they are: models write fields in the order they see
}

type responseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *jsonSchema `json:"json_schema,omitempty"`
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// completion is a reply in one piece, or one piece of a streamed one.
type completion struct {
	Choices []struct {
		Index        int
		Delta        said   // streamed
		Message      said   // in one piece
		FinishReason string `json:"finish_reason"`
	}
	Usage *counts
}

// said is what a model says, or a part of it.
type said struct {
	Content          string
	Refusal          string
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string
	ToolCalls        []struct {
		Index    int64
		ID       string
		Function struct {
			Name      string
			Arguments json.RawMessage // a string of JSON; from some servers, the JSON itself
		}
	} `json:"tool_calls"`
}

// counts are tokens, as a server reports them.
type counts struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Read  int64 `json:"cached_tokens"`
		Write int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}
