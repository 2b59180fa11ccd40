package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// leastRecorded is how many streams of each wire the recordings must have, so that
// a change of their form does not pass for success.
const leastRecorded = 30

// recording is one recorded stream.
type recording struct{ name, body string }

// recorded serves recorded streams as they are, and compares what the adapter
// reads with a reading of its own.
func (c conformance) recorded(t *testing.T) {
	all := recordings(t, c.wire)
	if len(all) < leastRecorded {
		t.Errorf("only %d recorded streams", len(all))
	}
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) {
			want, ok := listen(c.wire, r.body)
			if !ok {
				t.Skip("the recording has no end")
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body) // what is asked does not matter
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				_, _ = io.WriteString(w, r.body) // a client that went away fails the test by itself
			}))
			defer srv.Close()
			call := ask
			call.Tools, call.MaxTokens = tools, 64_000
			got, err := c.newModel(t, srv.URL, patiently).Generate(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(got.Text) != strings.TrimSpace(want.text) {
				t.Errorf("the text: %s", cmp.Diff(want.text, got.Text))
			}
			var calls []heardCall
			for _, k := range got.Calls {
				calls = append(calls, heardCall{k.Name, canonical(string(k.Input))})
			}
			if diff := cmp.Diff(want.calls, calls); diff != "" {
				t.Errorf("the calls: %s", diff)
			}
			if got.Usage.In != want.in || !want.out[got.Usage.Out] || got.Usage.CacheRead != want.read {
				t.Errorf("the usage %+v, not %d, %v and %d from a cache", got.Usage, want.in, want.out, want.read)
			}
			if got.Stop == llm.StopOther || (got.Stop == llm.StopTools) != (len(calls) > 0) {
				t.Errorf("%d calls, and it stopped for %s", len(calls), got.Stop)
			}
		})
	}
}

// recordings reads the streams of a wire.
func recordings(t *testing.T, wire Wire) []recording {
	t.Helper()
	mark := map[Wire]string{WireAnthropic: "event: message_start", WireOpenAI: "chat.completion.chunk"}[wire]
	var out []recording
	for _, f := range datatest.Files(t, "api/cassettes.tar.gz", func(name string) bool { return strings.HasSuffix(name, ".yaml") }) {
		if !strings.Contains(string(f.Data), mark) {
			continue
		}
		for _, body := range bodies(t, f.Name, f.Data) {
			if strings.Contains(body, mark) {
				out = append(out, recording{strings.TrimSuffix(filepath.Base(filepath.Dir(f.Name))+"/"+filepath.Base(f.Name), ".yaml"), body})
			}
		}
	}
	return out
}

// bodies are the response bodies of a cassette, in either of two forms.
func bodies(t *testing.T, name string, data []byte) []string {
	t.Helper()
	var file struct {
		Interactions []struct {
			Response struct {
				Body yaml.Node `yaml:"body"`
			} `yaml:"response"`
		} `yaml:"interactions"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var out []string
	for _, i := range file.Interactions {
		var inner struct {
			String string `yaml:"string"`
		}
		body := i.Response.Body.Value
		if i.Response.Body.Kind == yaml.MappingNode {
			if err := i.Response.Body.Decode(&inner); err != nil {
				continue // parsed JSON, which is no stream
			}
			body = inner.String
		}
		out = append(out, body)
	}
	return out
}

// heardCall is a tool call with its input in one form.
type heardCall struct{ Name, Input string }

// heard is what a stream says.
type heard struct {
	text     string
	calls    []heardCall
	in, read int
	fresh    int          // of in, neither read from a cache nor written to one
	written  int          // of in, written to a cache
	out      map[int]bool // providers disagree whether thoughts are part of the count
}

// listen reads a stream without any SDK; ok is false when it has no orderly end.
func listen(wire Wire, body string) (h heard, ok bool) {
	h.out = map[int]bool{}
	slots := map[string]int{} // index of a call in h.calls, by the stream's index
	for line := range strings.Lines(body) {
		data, found := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if !found {
			continue
		}
		if strings.TrimSpace(data) == "[DONE]" {
			ok = true
			continue
		}
		switch wire {
		case WireAnthropic:
			ok = h.anthropic(data, slots) || ok
		default:
			h.openAI(data, slots)
		}
	}
	for i := range h.calls {
		h.calls[i].Input = canonical(h.calls[i].Input)
	}
	return h, ok
}

func (h *heard) anthropic(data string, slots map[string]int) (end bool) {
	type usage struct {
		In    int `json:"input_tokens"`
		Write int `json:"cache_creation_input_tokens"`
		Read  int `json:"cache_read_input_tokens"`
		Out   int `json:"output_tokens"`
	}
	var e struct {
		Type    string `json:"type"`
		Index   json.Number
		Message struct{ Usage usage }
		Usage   usage
		Block   struct{ Type, Name string } `json:"content_block"`
		Delta   struct {
			Type, Text string
			JSON       string `json:"partial_json"`
		}
	}
	if json.Unmarshal([]byte(data), &e) != nil {
		return false
	}
	switch u := e.Usage; {
	case e.Type == "message_start":
		u = e.Message.Usage
		fallthrough
	case e.Type == "message_delta":
		// Counts of a stream only grow, each by itself.
		h.fresh, h.written, h.read = max(h.fresh, u.In), max(h.written, u.Write), max(h.read, u.Read)
		h.in = h.fresh + h.written + h.read
		h.out = map[int]bool{u.Out: true}
	case e.Block.Type == "tool_use":
		slots[e.Index.String()] = len(h.calls)
		h.calls = append(h.calls, heardCall{Name: e.Block.Name})
	case e.Delta.Type == "text_delta":
		h.text += e.Delta.Text
	case e.Delta.Type == "input_json_delta":
		if i, ok := slots[e.Index.String()]; ok {
			h.calls[i].Input += e.Delta.JSON
		}
	}
	return e.Type == "message_stop"
}

func (h *heard) openAI(data string, slots map[string]int) {
	var e struct {
		Choices []struct {
			Delta struct {
				Content   string
				ToolCalls []struct {
					Index    json.Number
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
		Usage *struct {
			In     int `json:"prompt_tokens"`
			Out    int `json:"completion_tokens"`
			Total  int `json:"total_tokens"`
			Prompt struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
			Details struct {
				Thoughts int `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	if json.Unmarshal([]byte(data), &e) != nil {
		return
	}
	if u := e.Usage; u != nil && u.In > 0 {
		h.in, h.read = u.In, u.Prompt.Cached
		h.out = map[int]bool{u.Out: true, u.Total - u.In: true, u.Out + u.Details.Thoughts: true}
	}
	for _, c := range e.Choices {
		h.text += c.Delta.Content
		for _, k := range c.Delta.ToolCalls {
			i, known := slots[k.Index.String()]
			if !known || k.ID != "" && k.Function.Name != "" {
				i = len(h.calls)
				slots[k.Index.String()] = i
				h.calls = append(h.calls, heardCall{})
			}
			h.calls[i].Name += k.Function.Name
			h.calls[i].Input += k.Function.Arguments
		}
	}
}

// canonical writes JSON in one form; what is no JSON stays as it is.
func canonical(s string) string {
	var v any
	if s == "" {
		s = "{}"
	}
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return s
	}
	return string(b)
}
