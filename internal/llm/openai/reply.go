package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// reply makes the Reply of what was heard.
func (m *Model) reply(c llm.Call, h *heard) llm.Reply {
	r := llm.Reply{Text: llm.WithoutThinking(h.text.String()), Usage: m.usage(c, h)}
	for _, call := range h.calls {
		r.Calls = append(r.Calls, llm.ToolCall{Name: call.name, Input: llm.ToolInput(call.arguments.String())})
	}
	if len(r.Calls) == 0 && len(c.Tools) > 0 {
		if r.Calls = written(r.Text, c.Tools); len(r.Calls) > 0 {
			r.Text = ""
		}
	}
	switch {
	case h.finish == "content_filter" || h.refusal.Len() > 0:
		r.Stop, r.Calls = llm.StopRefusal, nil
		if r.Text == "" {
			r.Text = h.refusal.String()
		}
	case h.finish == "length":
		r.Stop = llm.StopLength
	case len(r.Calls) > 0 || h.finish == "tool_calls":
		r.Stop = llm.StopTools
	case h.finish == "stop":
		r.Stop = llm.StopEnd
	default:
		r.Stop = llm.StopOther
	}
	return r
}

// asked is a tool call that a model wrote as text, in the words of toolsText or
// in those that models are trained on.
type asked struct {
	Tool      string          `json:"tool"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Arguments json.RawMessage `json:"arguments"`
}

// written reads the tool calls that a model wrote into its text. Text that names
// none of the tools has none, whatever its form.
func written(text string, tools []llm.Tool) []llm.ToolCall {
	var all []asked
	if blocks := strings.Split(text, "<tool_call>"); len(blocks) > 1 {
		for _, b := range blocks[1:] {
			all = append(all, askedIn(b)...)
		}
	} else {
		all = askedIn(text)
	}
	var calls []llm.ToolCall
	known := false
	for _, a := range all {
		call := llm.ToolCall{Name: a.Tool, Input: a.Input}
		if call.Name == "" {
			call.Name, call.Input = a.Name, a.Arguments
		}
		if call.Name == "" {
			continue
		}
		if len(call.Input) == 0 {
			call.Input = json.RawMessage(`{}`)
		}
		known = known || slices.ContainsFunc(tools, func(t llm.Tool) bool { return t.Name == call.Name })
		calls = append(calls, call)
	}
	if !known {
		return nil
	}
	return calls
}

// askedIn reads a list of calls, a bare list or a single call.
func askedIn(text string) []asked {
	raw, ok := llm.Object(text)
	if !ok {
		return nil
	}
	var list struct {
		Calls []asked `json:"calls"`
	}
	if json.Unmarshal(raw, &list) == nil && len(list.Calls) > 0 {
		return list.Calls
	}
	var bare []asked
	if json.Unmarshal(raw, &bare) == nil {
		return bare
	}
	var one asked
	if json.Unmarshal(raw, &one) == nil {
		return []asked{one}
	}
	return nil
}

// usage is what the call consumed. A server's numbers count within limits that
// no honest one reaches; where it has none, the estimate counts, so that no call
// is free.
func (m *Model) usage(c llm.Call, h *heard) llm.Usage {
	guess, limit := llm.Estimate(c), max(c.MaxTokens, 1)
	said := h.thinking + llm.EstimateText(h.text.String()) + llm.EstimateText(h.refusal.String())
	for _, call := range h.calls {
		said += llm.EstimateText(call.name) + llm.EstimateText(call.arguments.String())
	}
	u := llm.Usage{In: guess, Out: min(said, limit)}
	if h.usage == nil {
		return u
	}
	if h.usage.Prompt > 0 {
		u.In = llm.Within(h.usage.Prompt, 4*guess+100_000)
	}
	// Some servers count thinking in the total alone.
	out := h.usage.Completion
	if h.usage.Prompt > 0 {
		out = max(out, h.usage.Total-h.usage.Prompt)
	}
	if out > 0 {
		u.Out = llm.Within(out, 2*limit+1000)
	}
	u.CacheRead = llm.Within(h.usage.Details.Read, u.In)
	u.CacheWrite = llm.Within(h.usage.Details.Write, u.In-u.CacheRead)
	return u
}
