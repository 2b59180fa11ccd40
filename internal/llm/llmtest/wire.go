package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// event is one event of a stream: lines that a blank line ends.
type event string

// stream is a whole reply as events. The first lead events open it and bear no content.
type stream struct {
	events []event
	lead   int
}

// failure is the answer of a provider that does not answer.
type failure struct {
	status     int
	kind       string // the wire's word for it
	message    string
	retryAfter string // seconds, or ""
	code       string // a second word, where the wire has one
}

// dialect is how a wire writes things down.
type dialect struct {
	stream  func(reply) stream
	body    func(reply) string
	failure func(failure) string
	// What happens inside a stream besides content.
	ping, broken event // a sign of life; an error
	cut          event // an event that breaks off
	// The same failure has another status or word on each wire.
	faults map[Fault]failure
}

var dialects = map[Wire]*dialect{WireAnthropic: &anthropicWire, WireOpenAI: &openAIWire}

// call is a tool call as it goes out: the input may be anything.
type call struct{ name, input string }

// counts are token counts as they go out, not as they should be.
type counts struct{ in, out, read, write int64 }

// reply is what a Server says, in no wire's words.
type reply struct {
	n       int // number of the turn, for ids
	model   string
	text    string
	calls   []call
	stop    llm.Stop
	usage   *counts // nil: none
	tell    bool    // the client asked for usage in the stream
	strange bool
}

// shape makes the reply of what a script says to a turn, its fault included.
func shape(t Turn, s Said, includeUsage bool) reply {
	r := reply{n: t.N, model: t.Model, text: s.Text, stop: s.Stop, tell: includeUsage}
	for _, c := range s.Calls {
		r.calls = append(r.calls, call{c.Name, string(c.Input)})
	}
	r.strain(t, s.Fault)
	for i, c := range r.calls {
		if c.input == "" {
			r.calls[i].input = "{}"
		}
	}
	if r.stop == "" {
		r.stop = llm.StopEnd
		if len(r.calls) > 0 {
			r.stop = llm.StopTools
		}
	}
	r.usage = r.count(t, s)
	return r
}

// strain bends the reply to a fault that a reply can carry.
func (r *reply) strain(t Turn, f Fault) {
	one := call{name: "web_search", input: `{"query":"the same again"}`}
	if len(t.Tools) > 0 {
		one.name = t.Tools[0]
	}
	if len(r.calls) > 0 {
		one = r.calls[0]
	}
	switch f {
	case FaultEmpty:
		r.text, r.calls = "", nil
	case FaultRefusal:
		r.calls, r.stop = nil, llm.StopRefusal
		if r.text == "" {
			r.text = "I cannot help with that."
		}
	case FaultMaxTokens:
		if r.text == "" && len(r.calls) == 0 {
			r.text = "The reply ends at its lim"
		}
		r.stop = llm.StopLength
	case FaultInputString:
		one.input = `"a string where an object was asked for"`
		r.calls = []call{one}
	case FaultInputBroken:
		one.input = `{"query": "never clos`
		r.calls = []call{one}
	case FaultUnknownTool:
		r.calls = append(r.calls, call{"no_such_tool", `{"command":"id"}`})
	case FaultSameCall:
		r.calls = []call{one}
	case FaultManyCalls:
		r.calls = nil
		for range 64 {
			r.calls = append(r.calls, one)
		}
	case FaultStrange:
		r.strange = true
	case FaultCut, FaultReset, FaultErrorEvent, FaultCutJSON:
		if r.text == "" && len(r.calls) == 0 {
			r.text = "This reply has a first half, and it has a second half that is not meant to arrive."
		}
	}
}

// count gives the usage: what the script says, or what a tokenizer would find,
// which is always below the estimate of package llm and never over the limit of
// the reply.
func (r *reply) count(t Turn, s Said) *counts {
	out := llm.EstimateText(r.text)
	for _, c := range r.calls {
		out += llm.EstimateText(c.name) + llm.EstimateText(c.input)
	}
	in := llm.EstimateText(t.System) + llm.EstimateText(t.Input)
	u := llm.Usage{In: max(1, in*3/4), Out: min(max(1, out*3/4), max(1, t.MaxTokens))}
	if s.Usage != nil {
		u = *s.Usage
	}
	switch s.Fault {
	case FaultUsageMissing:
		return nil
	case FaultUsageNegative:
		return &counts{-5, -7, -3, -2}
	case FaultUsageHuge:
		const huge = 99_999_999_999
		return &counts{3 * huge, huge, huge, huge}
	}
	return &counts{int64(u.In), int64(u.Out), int64(u.CacheRead), int64(u.CacheWrite)}
}

// quote writes a JSON string.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("quote a string: %v", err)) // a string always marshals
	}
	return string(b)
}

// pieces cuts a text into what single deltas carry: a few characters, or a
// fortieth of a long text; never inside a character.
func pieces(s string, size int) []string {
	size = max(size, len(s)/40)
	var out []string
	for len(s) > size {
		n := size
		for n < len(s) && s[n]&0xC0 == 0x80 {
			n++
		}
		out, s = append(out, s[:n]), s[n:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}

// list joins JSON values into an array.
func list(items []string) string { return "[" + strings.Join(items, ",") + "]" }

// request is what the wires' requests have, in the fields of each.
type request struct {
	Model               string            `json:"model"`
	MaxTokens           int               `json:"max_tokens"`
	MaxCompletionTokens int               `json:"max_completion_tokens"`
	Stream              bool              `json:"stream"`
	System              json.RawMessage   `json:"system"`
	Messages            []message         `json:"messages"`
	Tools               []json.RawMessage `json:"tools"`
	OutputConfig        struct {
		Format *struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"output_config"`
	ResponseFormat struct {
		Type string `json:"type"`
	} `json:"response_format"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	system, input string
	tools         []string
	schema        bool
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func (q *request) limit() int { return max(q.MaxTokens, q.MaxCompletionTokens) }

// parse reads a request and says what the real provider would complain about.
func parse(wire Wire, h http.Header, body []byte) (q request, complaint string) {
	if err := json.Unmarshal(body, &q); err != nil {
		return q, "the body is not valid JSON: " + err.Error()
	}
	system, ok := texts(q.System)
	switch {
	case q.Model == "":
		return q, "model: field required"
	case len(q.Messages) == 0:
		return q, "messages: at least one message is required"
	case wire == WireAnthropic && h.Get("Anthropic-Version") == "":
		return q, "anthropic-version: header is required"
	case wire == WireAnthropic && q.MaxTokens <= 0:
		return q, "max_tokens: field required"
	case wire == WireAnthropic && !ok:
		return q, "system: text content blocks must be non-empty"
	case wire == WireAnthropic && strings.Count(string(body), `"cache_control"`) > 4:
		return q, "a maximum of 4 blocks with cache_control may be provided"
	}
	inputs := []string{}
	systems := append([]string(nil), system...)
	for _, m := range q.Messages {
		parts, ok := texts(m.Content)
		if wire == WireAnthropic && !ok {
			return q, "messages: text content blocks must be non-empty"
		}
		if m.Role == "system" || m.Role == "developer" {
			if wire == WireAnthropic {
				return q, "messages: unexpected role"
			}
			systems = append(systems, parts...)
			continue
		}
		inputs = append(inputs, parts...)
	}
	q.system, q.input = strings.Join(systems, "\n"), strings.Join(inputs, "\n")
	for _, raw := range q.Tools {
		var tool struct {
			Name     string `json:"name"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil || tool.Name+tool.Function.Name == "" {
			return q, "tools: a tool needs a name"
		}
		q.tools = append(q.tools, tool.Name+tool.Function.Name)
	}
	q.schema = q.OutputConfig.Format != nil && q.OutputConfig.Format.Type == "json_schema" || q.ResponseFormat.Type == "json_schema"
	return q, ""
}

// texts are the texts of a content, which is a string or a list of blocks; ok is
// false when one is empty.
func texts(raw json.RawMessage) (out []string, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, one != ""
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return nil, false
	}
	ok = true
	for _, b := range blocks {
		if b.Type != "text" {
			continue
		}
		ok = ok && b.Text != ""
		out = append(out, b.Text)
	}
	return out, ok
}
