package llm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// cassettes are recorded exchanges with real providers, beside the repository and not part of it.
const cassettes = "../../../shared/data/api/cassettes.tar.gz"

// TestEstimateAgainstProviders holds the estimate against what providers counted:
// a reservation made with it must never be too small.
func TestEstimateAgainstProviders(t *testing.T) {
	f, err := os.Open(cassettes)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("estimate: no recorded exchanges at %s", cassettes)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	ratios := map[string][]float64{}
	for tape := tar.NewReader(zip); ; {
		h, err := tape.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(h.Name, ".yaml") {
			continue
		}
		raw, err := io.ReadAll(tape)
		if err != nil {
			t.Fatal(err)
		}
		asked, said := exchanges(raw)
		for _, r := range said {
			guess := llm.EstimateText(r.text)
			ratios["replies"] = append(ratios["replies"], float64(guess)/float64(r.tokens))
			if guess < r.tokens {
				t.Errorf("%s: estimate %d of a reply of %d tokens", h.Name, guess, r.tokens)
			}
		}
		for _, e := range asked {
			kind := e.kind()
			guess := llm.Estimate(e.call)
			ratios[kind] = append(ratios[kind], float64(guess)/float64(e.reported))
			hidden := 0
			if strings.Contains(e.model, "grok") { // its provider puts some 150 to 200 tokens of its own before every call
				hidden = 110
			}
			if guess+hidden < e.reported {
				t.Errorf("%s: estimate %d of %d tokens that %s counted", h.Name, guess, e.reported, e.model)
			}
		}
	}
	total := 0
	for _, kind := range []string{"anthropic, text", "anthropic, tools", "openai, text", "openai, tools", "replies"} {
		r := ratios[kind]
		slices.Sort(r)
		if total += len(r); len(r) > 0 {
			t.Logf("%-17s %3d exchanges, estimate/reported: min %.2f, median %.2f, max %.2f", kind, len(r), r[0], r[len(r)/2], r[len(r)-1])
		}
	}
	if total < 100 {
		t.Errorf("only %d exchanges could be read", total)
	}
}

// exchange is one call as it was made, and the input tokens that the provider counted.
type exchange struct {
	wire, model string
	call        llm.Call
	reported    int
}

func (e exchange) kind() string {
	if len(e.call.Tools) > 0 {
		return e.wire + ", tools"
	}
	return e.wire + ", text"
}

// exchanges are the calls of one recording whose whole input is visible, and the
// replies whose whole output is.
func exchanges(raw []byte) (out []exchange, said []reply) {
	var tape struct {
		Interactions []struct {
			Request, Response struct {
				Body   any
				Parsed any `yaml:"parsed_body"`
				URI    string
				URL    string
			}
		}
	}
	if yaml.Unmarshal(raw, &tape) != nil {
		return nil, nil
	}
	for _, i := range tape.Interactions {
		addr := i.Request.URI + i.Request.URL
		var e exchange
		switch {
		case strings.Contains(addr, "/chat/completions"):
			e.wire = "openai"
		case strings.Contains(addr, "/messages") && !strings.Contains(addr, "count_tokens"):
			e.wire = "anthropic"
		default:
			continue
		}
		if r, ok := replyIn(plain(i.Response.Body, i.Response.Parsed)); ok {
			said = append(said, r)
		}
		if e.ask(plain(i.Request.Body, i.Request.Parsed)) && e.answer(plain(i.Response.Body, i.Response.Parsed)) {
			out = append(out, e)
		}
	}
	return out, said
}

// reply is a text that a model wrote, and the tokens that its provider counted.
type reply struct {
	text   string
	tokens int
}

// replyIn reads a reply in one piece that is nothing but text, and more than a
// few words of it.
func replyIn(body []byte) (reply, bool) {
	var r struct {
		Content json.RawMessage
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls json.RawMessage `json:"tool_calls"`
				Thought   string          `json:"reasoning_content"`
				Thoughts  string          `json:"reasoning"`
			}
		}
		Usage struct {
			Out        int `json:"output_tokens"`
			Completion int `json:"completion_tokens"`
			Details    struct {
				Thinking int `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	if json.Unmarshal(body, &r) != nil {
		return reply{}, false
	}
	text, ok := words(r.Content)
	for _, c := range r.Choices {
		text += c.Message.Content
		ok = ok && c.Message.ToolCalls == nil && c.Message.Thought+c.Message.Thoughts == ""
	}
	n := r.Usage.Out + r.Usage.Completion - r.Usage.Details.Thinking
	return reply{text, n}, ok && text != "" && n >= 100
}

// plain is a recorded body as bytes, in whichever way the recorder kept it.
func plain(body, parsed any) []byte {
	if parsed != nil {
		b, _ := json.Marshal(parsed)
		return b
	}
	if m, ok := body.(map[string]any); ok {
		body = m["string"]
	}
	s, _ := body.(string)
	return []byte(s)
}

// ask reads the request. It refuses one that has input which no text shows:
// pictures, files, the provider's own tools, thinking, context it manages itself.
func (e *exchange) ask(body []byte) bool {
	var r struct {
		Model    string
		System   json.RawMessage
		Thinking json.RawMessage
		Context  json.RawMessage `json:"context_management"`
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCalls  json.RawMessage `json:"tool_calls"`
			ToolCallID string          `json:"tool_call_id"`
		}
		Tools []struct {
			Type, Name, Description string
			Schema                  json.RawMessage `json:"input_schema"`
			Function                struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
		ResponseFormat struct {
			JSONSchema struct{ Schema json.RawMessage } `json:"json_schema"`
		} `json:"response_format"`
		OutputConfig struct {
			Format struct{ Schema json.RawMessage }
		} `json:"output_config"`
	}
	if json.Unmarshal(body, &r) != nil || r.Thinking != nil || r.Context != nil || len(r.Messages) == 0 {
		return false
	}
	e.model = r.Model
	e.call.Schema = append(r.ResponseFormat.JSONSchema.Schema, r.OutputConfig.Format.Schema...)
	var ok bool
	if e.call.System, ok = words(r.System); !ok {
		return false
	}
	for _, m := range r.Messages {
		text, ok := words(m.Content)
		if !ok || m.ToolCalls != nil || m.ToolCallID != "" || m.Role == "assistant" {
			return false
		}
		if m.Role == "system" || m.Role == "developer" {
			e.call.System += text
		} else {
			e.call.Input += text
		}
	}
	for _, tool := range r.Tools {
		t := llm.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Schema}
		if tool.Type == "function" {
			t = llm.Tool{Name: tool.Function.Name, Description: tool.Function.Description, Schema: tool.Function.Parameters}
		}
		if t.Schema == nil {
			return false
		}
		e.call.Tools = append(e.call.Tools, t)
	}
	return true
}

// words is a message's content, when it is nothing but text.
func words(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(raw, &parts) != nil {
		return "", false
	}
	for _, p := range parts {
		if p.Type != "text" {
			return "", false
		}
		text += p.Text
	}
	return text, true
}

// answer reads the count out of a reply or out of the events of a stream.
func (e *exchange) answer(body []byte) bool {
	docs := [][]byte{body}
	if !json.Valid(body) {
		docs = bytes.Split(body, []byte("\n"))
	}
	type usage struct {
		Prompt  int `json:"prompt_tokens"`
		In      int `json:"input_tokens"`
		Written int `json:"cache_creation_input_tokens"`
		Read    int `json:"cache_read_input_tokens"`
	}
	for _, d := range docs {
		var r struct {
			Usage   usage
			Message struct{ Usage usage }
		}
		if json.Unmarshal(bytes.TrimPrefix(d, []byte("data: ")), &r) != nil {
			continue
		}
		for _, u := range []usage{r.Usage, r.Message.Usage} {
			if e.wire == "openai" {
				e.reported = max(e.reported, u.Prompt)
			} else {
				e.reported = max(e.reported, u.In+u.Written+u.Read)
			}
		}
	}
	return e.reported > 0
}
