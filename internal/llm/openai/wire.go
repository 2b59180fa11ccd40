package openai

import "encoding/json"

type chat struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
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

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // as they are: models write fields in the order they see
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
