package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// temperature keeps answers close to the evidence.
const temperature = 0.2

// request is a call on its way to a server.
type request struct {
	llm.Call
	*Model
}

// atOpenAI reports whether OpenAI itself is asked: other servers are called so, too.
func (r request) atOpenAI() bool {
	return r.wire.Provider == "openai" && strings.HasPrefix(r.wire.Address, "https://api.openai.com/")
}

func (r request) body(l limits) ([]byte, error) {
	p := chat{Model: r.wire.Model, Stream: true}
	if r.atOpenAI() == (l[bound] == 0) {
		p.MaxCompletionTokens = r.Call.MaxTokens
	} else {
		p.MaxTokens = r.Call.MaxTokens
	}
	if l[usage] == 0 {
		p.StreamOptions = json.RawMessage(`{"include_usage":true}`)
	}
	if thinks(r.wire.Model) {
		if (r.wire.Provider == "openai" || r.wire.Provider == "gemini") && l[effort] == 0 {
			p.ReasoningEffort = "low"
		}
	} else if l[warmth] == 0 {
		p.Temperature = temperature
	}
	format := r.format(&p, l) // after the input, so that calls with another one begin alike
	system := strings.TrimSpace(r.Call.System + "\n\n" + r.tools(&p, l))
	if system != "" {
		p.Messages = append(p.Messages, message{"system", system})
	}
	p.Messages = append(p.Messages, message{"user", r.Call.Shown() + format})
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
	return r.atOpenAI() && r.Call.Shared != "" && r.Call.Prefix() >= leastCached
}

// tools offers the call's tools, or returns the text that describes them. A call for a reply by a schema has no use
// for them, and many servers know no such call with tools.
func (r request) tools(p *chat, l limits) string {
	if len(r.Call.Schema) > 0 {
		if !r.kept() {
			return ""
		}
		p.ToolChoice = "none"
	}
	if l[toolUse] > 0 && len(r.Call.Tools) > 0 {
		return toolsText(r.Call.Tools)
	}
	for _, t := range r.Call.Tools {
		p.Tools = append(p.Tools, tool{"function", function(t)})
	}
	p.ParallelToolCalls = len(p.Tools) > 0 && p.ToolChoice == "" && l[parallel] == 0
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
	if len(r.Call.Schema) == 0 {
		return ""
	}
	way := l[schema]
	if r.kept() {
		way = max(way, schemaJSON)
	}
	switch way {
	case schemaGiven:
		p.ResponseFormat = &responseFormat{"json_schema", &jsonSchema{"reply", r.Call.Schema, true}}
		return ""
	case schemaJSON:
		p.ResponseFormat = &responseFormat{Type: "json_object"}
	}
	return r.Call.InWords()
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
	return llm.AnyIn(name, []string{"qwen3", "deepseek-r", "gemini-2.5", "gemini-3", "qwq", "magistral", "thinking", "reasoning"})
}

// How a schema is asked for, from the best way down.
const (
	schemaGiven = iota // as response_format json_schema
	schemaJSON         // as text, and response_format json_object
	schemaText         // as text alone
)

// What a server may refuse.
const (
	bound    = iota // the field that bounds a reply: max_completion_tokens at OpenAI, max_tokens elsewhere
	schema          // a way to ask for a schema
	toolUse         // tools
	parallel        // several tool calls at once
	usage           // the usage of a stream
	effort          // how much to think
	warmth          // the temperature
	features
)

// limits are how many ways of each thing a server has refused.
type limits [features]int

// and is what is left out by either.
func (l limits) and(o limits) limits {
	for i := range l {
		l[i] = max(l[i], o[i])
	}
	return l
}

// without reads from a refusal what to leave out of the request; false if that changes nothing, and it is final.
func (l limits) without(f *llm.Fault, r request) (limits, bool) {
	said, old := f.Said, l
	names := func(words ...string) bool { return llm.AnyIn(said, words) }
	bad := f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity ||
		f.Status == http.StatusNotFound && names("requested parameters") // OpenRouter has no server that takes them all
	tools := len(r.Call.Tools) > 0 && l[toolUse] == 0
	switch {
	case tools && f.Status != http.StatusTooManyRequests && noToolUse(said):
		l[toolUse] = 1
	case !bad || llm.TooLong(said):
		return old, false
	case names("max_tokens", "max_completion_tokens"):
		l[bound] = 1 // the other one
	case names("stream_options", "include_usage"):
		l[usage] = 1
	case names("reasoning_effort", "reasoning effort", "reasoning.effort"):
		l[effort] = 1
	case names("temperature"):
		l[warmth] = 1
	case tools && l[parallel] == 0 && names("parallel_tool_calls", "parallel tool"):
		l[parallel] = 1
	case tools && names("'tools'", `"tools"`, "`tools`", "tool_choice", "param tools", "requested parameters"):
		l[toolUse] = 1
	case len(r.Call.Schema) > 0:
		l[schema] = min(l[schema]+1, schemaText)
	}
	return l, l != old
}

// noToolUse knows how servers say that a model has no tool use, with the status 400, 404 or 500.
func noToolUse(said string) bool {
	return strings.Contains(said, "tool") && llm.AnyIn(said, []string{
		"does not support tool", "not support tool", "support tool use", "not support function", "tools are not supported", "tool use is not supported",
		"tool calling is not supported", "tools is not supported", "tool choice requires", "tools param requires", "requires --jinja", "enable-auto-tool-choice",
	})
}
