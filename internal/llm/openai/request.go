package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// temperature keeps answers close to the evidence.
const temperature = 0.2

// request is a call on its way to a server.
type request struct {
	call     llm.Call
	model    string
	provider string
	foreign  bool // the provider is called openai but lives elsewhere
}

func (m *Model) request(c llm.Call) request {
	foreign := m.cfg.Provider == "openai" && !strings.HasPrefix(m.cfg.BaseURL, "https://api.openai.com/")
	return request{call: c, model: m.cfg.Model, provider: m.cfg.Provider, foreign: foreign}
}

// caps are the fields that can bound a reply, in the order to try them. A server that only calls itself openai
// gets both: one that ignores the field it does not know would write without end.
func (r request) caps() []caps {
	switch {
	case r.foreign:
		return []caps{{old: true, new: true}, {new: true}, {old: true}}
	case r.provider == "openai":
		return []caps{{new: true}, {old: true}}
	default:
		return []caps{{old: true}, {new: true}}
	}
}

// caps says which of max_tokens (old) and max_completion_tokens are set.
type caps struct{ old, new bool }

func (r request) body(l limits) ([]byte, error) {
	p := chat{Model: r.model, Stream: true}
	if most := r.call.MaxTokens; most > 0 {
		ways := r.caps()
		way := ways[min(l.cap, len(ways)-1)]
		if way.old {
			p.MaxTokens = most
		}
		if way.new {
			p.MaxCompletionTokens = most
		}
	}
	if !l.noUsage {
		p.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if thinks(r.model) {
		if (r.provider == "openai" || r.provider == "gemini") && !l.noEffort {
			p.ReasoningEffort = "low"
		}
	} else if !l.noTemperature {
		p.Temperature = temperature
	}
	format := r.format(&p, l) // after the input, so that calls with another one begin alike
	system := strings.TrimSpace(r.call.System + "\n\n" + r.tools(&p, l))
	if system != "" {
		p.Messages = append(p.Messages, message{"system", system})
	}
	p.Messages = append(p.Messages, message{"user", r.call.Shown() + format})
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "the schema of a call cannot be sent")
	}
	return raw, nil
}

// leastCached is the number of tokens from which OpenAI keeps a prefix. Tools and a schema are part of it, so the calls
// that share a longer one have the same tools, and their schemas in words.
const leastCached = 1024

func (r request) kept() bool {
	return r.provider == "openai" && !r.foreign && r.call.Shared != "" && r.call.Prefix() >= leastCached
}

// tools offers the call's tools, or returns the text that describes them. A call for a reply by a schema has no use
// for them, and many servers know no such call with tools.
func (r request) tools(p *chat, l limits) string {
	if len(r.call.Schema) > 0 {
		if !r.kept() {
			return ""
		}
		p.ToolChoice = "none"
	}
	if l.noTools && len(r.call.Tools) > 0 {
		return toolsText(r.call.Tools)
	}
	for _, t := range r.call.Tools {
		p.Tools = append(p.Tools, tool{Type: "function", Function: function{t.Name, t.Description, t.Schema}})
	}
	p.ParallelToolCalls = len(p.Tools) > 0 && p.ToolChoice == "" && !l.noParallel
	return ""
}

// toolsText tells a model without tool use how to ask for tools.
func toolsText(tools []llm.Tool) string {
	var b strings.Builder
	b.WriteString("You may use the tools below. To use some, reply with one JSON object and nothing else:\n" +
		`{"calls":[{"tool":"name of the tool","input":{}}]}` + "\nEach input must satisfy the JSON Schema of its tool.")
	for _, t := range tools {
		b.WriteString("\n\nTool " + t.Name + ": " + t.Description)
		if len(t.Schema) > 0 {
			b.WriteString("\nInput: " + string(t.Schema))
		}
	}
	return b.String()
}

// format asks for a reply by the call's schema, which is strict, or returns the text that does so.
func (r request) format(p *chat, l limits) string {
	if len(r.call.Schema) == 0 {
		return ""
	}
	way := l.schema
	if r.kept() {
		way = max(way, schemaJSON)
	}
	switch way {
	case schemaGiven:
		p.ResponseFormat = &responseFormat{"json_schema", &jsonSchema{"reply", r.call.Schema, true}}
		return ""
	case schemaJSON:
		p.ResponseFormat = &responseFormat{Type: "json_object"}
	}
	return r.call.InWords()
}

// thinks tells by its name a model that reasons, or that loops when its temperature is low.
func thinks(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if len(name) > 1 && name[0] == 'o' && name[1] >= '1' && name[1] <= '9' {
		return true
	}
	if v, ok := strings.CutPrefix(name, "gpt-"); ok && v != "" && (v[0] >= '5' && v[0] <= '9' || strings.HasPrefix(v, "oss")) {
		return true
	}
	return anyIn(name, []string{"qwen3", "deepseek-r", "gemini-2.5", "gemini-3", "qwq", "magistral", "thinking", "reasoning"})
}

// How a schema is asked for, from the best way down.
const (
	schemaGiven = iota // as response_format json_schema
	schemaJSON         // as text, and response_format json_object
	schemaText         // as text alone
)

// limits are what a server does not do.
type limits struct {
	cap           int // which of request.caps
	schema        int // how a schema is asked for
	noTools       bool
	noParallel    bool
	noUsage       bool
	noEffort      bool
	noTemperature bool
}

// and is what is left out by either.
func (l limits) and(o limits) limits {
	return limits{
		cap: max(l.cap, o.cap), schema: max(l.schema, o.schema), noTools: l.noTools || o.noTools, noParallel: l.noParallel || o.noParallel,
		noUsage: l.noUsage || o.noUsage, noEffort: l.noEffort || o.noEffort, noTemperature: l.noTemperature || o.noTemperature,
	}
}

// without reads from a refusal what to leave out of the request; false if that changes nothing, and it is final.
func (l limits) without(f *llm.Fault, r request) (limits, bool) {
	said, old := f.Said, l
	names := func(words ...string) bool { return anyIn(said, words) }
	bad := f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity ||
		f.Status == http.StatusNotFound && names("requested parameters") // OpenRouter has no server that takes them all
	tools, schema := len(r.call.Tools) > 0 && !l.noTools, len(r.call.Schema) > 0
	switch {
	case tools && f.Status != http.StatusTooManyRequests && noToolUse(said):
		l.noTools = true
	case !bad || llm.TooLong(said):
		return old, false
	case names("max_tokens", "max_completion_tokens"):
		l.cap = min(l.cap+1, len(r.caps())-1)
	case names("stream_options", "include_usage"):
		l.noUsage = true
	case names("reasoning_effort", "reasoning effort", "reasoning.effort"):
		l.noEffort = true
	case names("temperature"):
		l.noTemperature = true
	case tools && !l.noParallel && names("parallel_tool_calls", "parallel tool"):
		l.noParallel = true
	case tools && names("'tools'", `"tools"`, "`tools`", "tool_choice", "param tools", "requested parameters"):
		l.noTools = true
	case schema:
		l.schema = min(l.schema+1, schemaText)
	}
	return l, l != old
}

// noToolUse knows how servers say that a model has no tool use, with the status 400, 404 or 500.
func noToolUse(said string) bool {
	return strings.Contains(said, "tool") && anyIn(said, []string{
		"does not support tool", "not support tool", "support tool use", "not support function", "tools are not supported", "tool use is not supported",
		"tool calling is not supported", "tools is not supported", "tool choice requires", "tools param requires", "requires --jinja", "enable-auto-tool-choice",
	})
}

func anyIn(said string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
}
