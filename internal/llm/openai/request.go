package openai

import (
	"encoding/json"
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
		if r.provider == "openai" && !l.noEffort {
			p.ReasoningEffort = "low"
		}
	} else if !l.noTemperature {
		p.Temperature = temperature
	}
	system := r.call.System
	for _, text := range []string{r.tools(&p, l), r.format(&p, l)} {
		if text != "" {
			system = strings.TrimSpace(system + "\n\n" + text)
		}
	}
	if system != "" {
		p.Messages = append(p.Messages, message{"system", system})
	}
	p.Messages = append(p.Messages, message{"user", r.call.Input})
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "the schema of a call cannot be sent")
	}
	return raw, nil
}

// tools offers the call's tools, or returns the text that describes them.
func (r request) tools(p *chat, l limits) string {
	if l.noTools && len(r.call.Tools) > 0 {
		return toolsText(r.call.Tools)
	}
	for _, t := range r.call.Tools {
		p.Tools = append(p.Tools, tool{Type: "function", Function: function{t.Name, t.Description, t.Schema}})
	}
	p.ParallelToolCalls = len(p.Tools) > 0 && !l.noParallel
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
	switch l.schema {
	case schemaGiven:
		p.ResponseFormat = &responseFormat{"json_schema", &jsonSchema{"reply", r.call.Schema, true}}
		return ""
	case schemaJSON:
		p.ResponseFormat = &responseFormat{Type: "json_object"}
	}
	return "Reply with one JSON value and nothing else. It must satisfy this JSON Schema:\n" + string(r.call.Schema)
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
	return anyIn(name, []string{"qwen3", "deepseek-r", "qwq", "magistral", "thinking", "reasoning"})
}
