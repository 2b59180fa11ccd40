package openai

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// What differs where a model is asked by OpenAI's Responses API: the request, and the events of the reply.

// ponders is how long a model of the Responses API may send nothing: some think for minutes before the first word.
const ponders = 5 * time.Minute

// responsesOnly tells by its name a model of OpenAI that has no chat completions. Others say so when they are asked.
func responsesOnly(model string) bool {
	return strings.Contains(model, "codex") || strings.HasSuffix(model, "-pro") || strings.Contains(model, "-pro-")
}

// ask is a request to the Responses API.
type ask struct {
	Model             string     `json:"model"`
	Instructions      string     `json:"instructions,omitempty"`
	Input             string     `json:"input"`
	Stream            bool       `json:"stream"`
	Store             bool       `json:"store"` // the provider keeps replies unless it is told not to
	MaxOutputTokens   int        `json:"max_output_tokens,omitempty"`
	Temperature       float64    `json:"temperature,omitempty"`
	Reasoning         *reasoning `json:"reasoning,omitempty"`
	Tools             []askTool  `json:"tools,omitempty"`
	ToolChoice        string     `json:"tool_choice,omitempty"`
	ParallelToolCalls bool       `json:"parallel_tool_calls,omitempty"`
	Text              *askText   `json:"text,omitempty"`
}

type reasoning struct {
	Effort string `json:"effort"`
}

type askTool struct {
	Type string `json:"type"`
	function
	Strict bool `json:"strict"` // not set it is true, which wants closed schemas
}

type askText struct {
	Format askFormat `json:"format"`
}

type askFormat struct {
	Type string `json:"type"`
	*jsonSchema
}

// leastOutput is the smallest max_output_tokens that the API takes.
const leastOutput = 16

// ask says the same as the chat in the words of the Responses API.
func (p chat) ask() ask {
	a := ask{Model: p.Model, Stream: true, Temperature: p.Temperature, ToolChoice: p.ToolChoice, ParallelToolCalls: p.ParallelToolCalls}
	if most := max(p.MaxTokens, p.MaxCompletionTokens); most > 0 {
		a.MaxOutputTokens = max(most, leastOutput)
	}
	for _, m := range p.Messages {
		if m.Role == "system" {
			a.Instructions = m.Content
		} else {
			a.Input = m.Content
		}
	}
	if p.ReasoningEffort != "" {
		a.Reasoning = &reasoning{p.ReasoningEffort}
	}
	for _, t := range p.Tools {
		a.Tools = append(a.Tools, askTool{Type: t.Type, function: t.Function})
	}
	if f := p.ResponseFormat; f != nil {
		a.Text = &askText{askFormat{f.Type, f.JSONSchema}}
	}
	return a
}

// response is a reply in one piece, as the last event of a stream has it too.
type response struct {
	Status string
	Output []item
	Error  json.RawMessage
	Usage  *struct { // counts by other names
		Prompt     int64 `json:"input_tokens"`
		Completion int64 `json:"output_tokens"` // thinking included
		Total      int64 `json:"total_tokens"`
		Details    struct {
			Read  int64 `json:"cached_tokens"`
			Write int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
	}
	Incomplete struct{ Reason string } `json:"incomplete_details"`
}

// item is a part of a reply: a message, a call or thoughts.
type item struct {
	Type, Name string
	ID         string `json:"call_id"`
	Arguments  string
	Content    []struct{ Text, Refusal string }
}

// takeEvent adds one event of the Responses API and tells whether it was one.
func (r *reading) takeEvent(h *llm.Heard, a llm.Answer, data []byte) (bool, error) {
	var e struct {
		Type      string
		Delta     string
		Arguments string
		Index     int64 `json:"output_index"`
		Item      item
		Response  response
	}
	if err := llm.Decode(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "response.output_text.delta":
		h.Say(e.Delta)
	case "response.refusal.delta":
		h.Refusal.WriteString(e.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		h.Think(e.Delta)
	case "response.output_item.added":
		if e.Item.Type == "function_call" {
			h.CallPiece(e.Index, e.Item.ID, e.Item.Name, "")
		} else {
			h.Works = true
		}
	case "response.function_call_arguments.delta":
		h.CallPiece(e.Index, "", "", e.Delta)
	case "response.function_call_arguments.done": // all of them again
		h.CallWhole(e.Index, e.Arguments)
	case "response.completed", "response.incomplete", "response.failed":
		return true, r.takeEnd(h, a, e.Response, strings.TrimPrefix(e.Type, "response."))
	}
	return strings.HasPrefix(e.Type, "response."), nil
}

// takeEnd adds a whole reply: its end, and what it says where no event has said it before.
func (r *reading) takeEnd(h *llm.Heard, a llm.Answer, whole response, status string) error {
	count(h, (*counts)(whole.Usage))
	if !h.Said() {
		for i, it := range whole.Output {
			if it.Type == "function_call" {
				h.CallPiece(int64(i), it.ID, it.Name, it.Arguments)
			}
			for _, c := range it.Content {
				if it.Type == "message" { // not thoughts
					h.Say(c.Text)
					h.Refusal.WriteString(c.Refusal)
				}
			}
		}
	}
	switch {
	case status == "completed":
		h.Finish = "stop"
	case status != "incomplete":
		return h.Complaint([]byte(`{"type":"error","error":`+cmp.Or(string(whole.Error), "null")+`}`), a.Header)
	case whole.Incomplete.Reason == "max_output_tokens":
		h.Finish = "length"
	default: // content_filter, or a reason of tomorrow
		h.Finish = cmp.Or(whole.Incomplete.Reason, "incomplete")
	}
	r.done = true
	return nil
}
