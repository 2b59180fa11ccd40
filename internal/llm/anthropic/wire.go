package anthropic

import "encoding/json"

// request is the body of a call. Its fields stand in the order in which they are cached.
type request struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	Stream       bool          `json:"stream"`
	Tools        []tool        `json:"tools,omitempty"`
	ToolChoice   *toolChoice   `json:"tool_choice,omitempty"`
	System       []text        `json:"system,omitempty"`
	Messages     []message     `json:"messages"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content []text `json:"content"`
}

type text struct {
	Type         string `json:"type"`
	Text         string `json:"text"`
	CacheControl *cache `json:"cache_control,omitempty"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"` // as it is: models write fields in the order they see
	CacheControl *cache          `json:"cache_control,omitempty"`
}

type toolChoice struct {
	Type            string `json:"type"`
	DisableParallel bool   `json:"disable_parallel_tool_use"`
}

type outputConfig struct {
	Format format `json:"format"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// cache marks the end of what the provider keeps for the next call.
type cache struct {
	Type string `json:"type"`
}

var cached = &cache{Type: "ephemeral"}

// event is an event of a reply; which fields it has depends on its type.
type event struct {
	Type    string
	Index   int64
	Message struct {
		Model string
		Usage counts
	}
	ContentBlock struct {
		Type, Name, Text, Thinking string
		Input                      json.RawMessage
	} `json:"content_block"`
	Delta struct {
		Type, Text, Thinking, Signature string
		PartialJSON                     string `json:"partial_json"`
		StopReason                      string `json:"stop_reason"`
	}
	Usage counts
}

// counts are tokens, as the provider reports them.
type counts struct {
	In    int64 `json:"input_tokens"`
	Out   int64 `json:"output_tokens"`
	Read  int64 `json:"cache_read_input_tokens"`
	Write int64 `json:"cache_creation_input_tokens"`
}
