package openai

import (
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

func (m *Model) reply(c llm.Call, h *heard) llm.Reply {
	r := llm.Reply{Text: llm.WithoutThinking(h.text.String()), Usage: m.usage(c, h)}
	for _, call := range h.calls {
		r.Calls = append(r.Calls, llm.ToolCall{Name: call.name, Input: llm.ToolInput(call.arguments.String())})
	}
	if len(r.Calls) == 0 && len(c.Tools) > 0 { // text that names none of the tools asks for none
		known := func(call llm.ToolCall) bool {
			return slices.ContainsFunc(c.Tools, func(t llm.Tool) bool { return t.Name == call.Name })
		}
		if written := llm.CallsIn(r.Text); slices.ContainsFunc(written, known) {
			r.Text, r.Calls = "", written
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

// usage is what the call consumed. A server's numbers count within limits; what it does not count is estimated,
// so that no call is free.
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
