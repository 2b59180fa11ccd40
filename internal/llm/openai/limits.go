package openai

import (
	"net/http"
	"slices"
	"strings"
)

// How a schema is asked for, from the best way down.
const (
	schemaGiven = iota // as response_format json_schema
	schemaJSON         // as text, and response_format json_object
	schemaText         // as text alone
)

// limits are what a server does not do. They only grow.
type limits struct {
	cap           int // which of request.caps
	schema        int // how a schema is asked for
	noTools       bool
	noParallel    bool
	noUsage       bool
	noEffort      bool
	noTemperature bool
}

// and is what neither of two has.
func (l limits) and(o limits) limits {
	return limits{
		cap: max(l.cap, o.cap), schema: max(l.schema, o.schema), noTools: l.noTools || o.noTools, noParallel: l.noParallel || o.noParallel,
		noUsage: l.noUsage || o.noUsage, noEffort: l.noEffort || o.noEffort, noTemperature: l.noTemperature || o.noTemperature,
	}
}

// without reads from a refusal what to leave out of the request; false if that changes nothing, and it is final.
func (l limits) without(f *heard, r request) (limits, bool) {
	said, old := f.refused, l
	names := func(words ...string) bool { return anyIn(said, words) }
	bad := f.status == http.StatusBadRequest || f.status == http.StatusUnprocessableEntity ||
		f.status == http.StatusNotFound && names("requested parameters") // OpenRouter has no server that takes them all
	tools, schema := len(r.call.Tools) > 0 && !l.noTools, len(r.call.Schema) > 0
	switch {
	case tools && f.status != http.StatusTooManyRequests && noToolUse(said):
		l.noTools = true
	case !bad || tooLong(said):
		return old, false
	case names("max_tokens", "max_completion_tokens"):
		l.cap = min(l.cap+1, len(r.caps())-1)
	case names("stream_options", "include_usage"):
		l.noUsage = true
	case names("reasoning_effort", "reasoning effort"):
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

// tooLong knows how servers say that the input is over the context window, where no other form would help.
func tooLong(said string) bool {
	return anyIn(said, []string{"context_length", "context length", "context window", "context size", "maximum context", "too many tokens", "prompt is too long"})
}

func anyIn(said string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
}
