// Package llm is the door to language models: one call, its usage, and its
// faults as codes. It owns the Model interface and its values; no vendor's type
// passes through it. Retrying, recording and budgets are wrappers over Model.
package llm

import "context"

// Call is one request to a model.
type Call struct {
	Prompt    string `json:"prompt"`           // the prompt's name, for people and traces
	System    string `json:"system"`           // instructions
	Input     string `json:"input"`            // the evidence and the task
	MaxTokens int    `json:"max_tokens"`       // upper bound of the reply
	Schema    []byte `json:"schema,omitempty"` // JSON Schema the reply must satisfy, or nil
}

// Reply is what a model answered.
type Reply struct {
	Text  string `json:"text"`
	Usage Usage  `json:"usage"`
	Stop  string `json:"stop"` // why the model stopped, in its provider's word
}

// Usage is what a call consumed, as the provider reported it.
type Usage struct {
	In  int `json:"in"`  // all input tokens, cached ones included
	Out int `json:"out"` // all output tokens
}

// Total is input and output together.
func (u Usage) Total() int { return u.In + u.Out }

// Model is a language model.
type Model interface {
	// ID is provider and model, such as "openai/gpt-5"; it enters traces.
	ID() string
	// Generate makes one call. Failures carry a marchwarden.Code. It is safe for
	// concurrent use.
	Generate(ctx context.Context, c Call) (Reply, error)
}
