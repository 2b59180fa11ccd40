// Package llm is the door to language models: one call, its usage, and its
// faults as codes. It owns the Model interface, its values, the conservative
// count of tokens before a call and the reading of JSON that a model wrote. No
// vendor's type passes through it. Retrying, recording and budgets are wrappers
// over Model.
package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
)

// Call is one request to a model, a single turn. It reaches a model in the order Tools, System, Shared, Input: calls that
// have the first three alike, byte by byte, begin alike, which a provider's cache makes cheap and fast.
type Call struct {
	Prompt    string          `json:"prompt"`            // the prompt's name, for people and traces
	Template  string          `json:"template"`          // hash of the prompt's file, "sha256:…"
	System    string          `json:"system"`            // instructions
	Shared    string          `json:"shared,omitempty"`  // what other calls of the run show too: parts with a blank line after each, of which later calls change none and may add some
	Input     string          `json:"input"`             // the evidence and the task
	MaxTokens int             `json:"max_tokens"`        // upper bound of the reply, thinking included
	Schema    json.RawMessage `json:"schema,omitempty"`  // JSON Schema that the reply's text should satisfy, or nil; closed objects with all properties required, as providers want it
	Tools     []Tool          `json:"tools,omitempty"`   // what the model may ask for; together with Schema they are there to begin alike, and not to be used
	Attempt   int             `json:"attempt,omitempty"` // 0 at first; tells a repeated call from its predecessor
	// Heard lets the caller read along: it gets all of the reply's text so far, each time that an object in it may have
	// ended. Nothing is certain about it: a provider that does not stream and a rerun tell nothing, and a call that is
	// repeated begins anew. It is no part of the call's identity, does not outlast Generate, and must return soon.
	Heard func(text string) `json:"-"`
}

// Shown is what the model reads as input: what the call shares with others, and its own.
func (c Call) Shown() string { return c.Shared + c.Input }

// InWords asks for a reply by the call's schema, for a provider that does not take it as such; "" without one.
func (c Call) InWords() string {
	if len(c.Schema) == 0 {
		return ""
	}
	none := ""
	if len(c.Tools) > 0 {
		none = "Call no tool. "
	}
	return "\n" + none + "Reply with one JSON value and nothing else. It must satisfy this JSON Schema:\n" + string(c.Schema)
}

// Prefix estimates the tokens that the call has in common with others: Tools, System and Shared.
func (c Call) Prefix() int {
	c.Input, c.Schema = "", nil
	return Estimate(c) - callOverhead
}

// Limit is the line of an input that tells a model how long its reply may be.
func Limit(tokens int) string {
	return fmt.Sprintf("Reply: at most %d tokens\n", tokens)
}

// Tool is something a model may ask for.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the input, an object
}

// Reply is what a model answered. Nothing in it is trusted.
type Reply struct {
	Text  string     `json:"text"`
	Calls []ToolCall `json:"calls,omitempty"` // in the order the model made them
	Usage Usage      `json:"usage"`
	Stop  Stop       `json:"stop"`
	Model string     `json:"model,omitempty"` // who answered, when that is not the model that was asked
}

// By is who gave the reply of a call to the model asked.
func (r Reply) By(asked string) string {
	return cmp.Or(r.Model, asked)
}

// Shown estimates the tokens of a reply that can be seen.
func (r Reply) Shown() int {
	n := EstimateText(r.Text)
	for _, c := range r.Calls {
		n += EstimateText(c.Name) + EstimateText(string(c.Input))
	}
	return n
}

// ToolCall is a request of the model to use a tool.
type ToolCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // valid JSON of any kind; what was not JSON is a JSON string of it
}

// Stop is why a model stopped.
type Stop string

// The reasons to stop, whatever word the provider has for them.
const (
	StopEnd     Stop = "end"     // it had said all
	StopTools   Stop = "tools"   // it wants tools used
	StopLength  Stop = "length"  // MaxTokens or the context window ended the reply
	StopRefusal Stop = "refusal" // it would not answer
	StopOther   Stop = "other"   // a reason that this program does not know
)

// Usage is what a call consumed, as the provider reported it, never negative.
type Usage struct {
	In         int `json:"in"`                    // all input tokens, cached ones included
	Out        int `json:"out"`                   // all output tokens, thinking included
	CacheRead  int `json:"cache_read,omitempty"`  // of In, read from a cache
	CacheWrite int `json:"cache_write,omitempty"` // of In, written to a cache
}

// Total is input and output together.
func (u Usage) Total() int { return u.In + u.Out }

// Add is the usage of two calls together.
func (u Usage) Add(o Usage) Usage {
	return Usage{u.In + o.In, u.Out + o.Out, u.CacheRead + o.CacheRead, u.CacheWrite + o.CacheWrite}
}

// ID is the id of a model, or "" for none.
func ID(m Model) string {
	if m == nil {
		return ""
	}
	return m.ID()
}

// Model is a language model.
type Model interface {
	// ID is provider and model, such as "openai/gpt-5"; it enters traces.
	ID() string
	// Generate makes one call. It is safe for concurrent use. When it fails, the
	// error carries a marchwarden.Code and the Reply's Usage still says what the
	// call consumed; a call that reached no model consumed nothing:
	//
	//	CodeRateLimited  the provider asks to come back later
	//	CodeUnavailable  it cannot be reached, is overloaded or answers nonsense
	//	CodeDenied       it refuses the key, the model or the spending
	//	CodeTimeout      it fell silent or took too long
	//	CodeTruncated    the reply broke off in the middle
	//	CodeMalformed    the reply is not what the protocol says, or over a limit
	//	CodeInvalid      it refuses the request as such
	//	CodeCanceled     ctx ended
	//
	// A refusal of the model and a reply cut by MaxTokens are replies, not errors.
	Generate(ctx context.Context, c Call) (Reply, error)
}
