package model

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/anthropic"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
)

var update = flag.Bool("update", false, "write the recorded requests anew")

// cache is a provider's: it answers as readerModel does, in whatever protocol, keeps what it was sent, and counts how much
// of each request it has seen before, up to a mark or up to where the requests differ.
type cache struct {
	t      *testing.T
	mind   readerModel
	srv    *llmtest.Server
	bodies []string
	seen   []string
	hits   int // bytes
	all    int
}

func newCache(t *testing.T) *cache {
	c := &cache{t: t, mind: readerModel{cites: 40}}
	c.srv = llmtest.NewServer(t, func(turn llmtest.Turn) llmtest.Said {
		prompt := "write"
		for name, text := range map[string]string{"step": instructions("step"), "judge": instructions("judge")} {
			if strings.Contains(turn.System+turn.Input, text) {
				prompt = name
			}
		}
		r, err := c.mind.Generate(t.Context(), llm.Call{Prompt: prompt, Input: turn.Input})
		if err != nil {
			t.Error(err)
		}
		return llmtest.Said{Text: r.Text, Calls: r.Calls}
	})
	return c
}

// RoundTrip sends what was meant for a real host to the one that runs here.
func (c *cache) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	c.bodies = append(c.bodies, string(raw))
	prompt := prefixOf(c.t, raw)
	most := 0
	for _, s := range c.seen {
		n := 0
		for n < min(len(s), len(prompt)) && s[n] == prompt[n] {
			n++
		}
		most = max(most, n)
	}
	c.seen, c.hits, c.all = append(c.seen, prompt), c.hits+most, c.all+len(prompt)
	out, err := http.NewRequestWithContext(req.Context(), req.Method, c.srv.URL()+req.URL.Path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	out.Header = req.Header
	return http.DefaultTransport.RoundTrip(out)
}

// prefixOf is a request in the order in which providers keep it: schema, tools, system, messages.
func prefixOf(t *testing.T, body []byte) string {
	var q struct {
		OutputConfig   json.RawMessage `json:"output_config"`
		ResponseFormat json.RawMessage `json:"response_format"`
		Tools, System  json.RawMessage
		Messages       []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(body, &q); err != nil {
		t.Fatal(err)
	}
	out := string(q.OutputConfig) + string(q.Tools) + string(q.System)
	if strings.Contains(string(q.ResponseFormat), "json_schema") {
		out = string(q.ResponseFormat) + out
	}
	for _, m := range q.Messages {
		out += string(m.Content)
	}
	return strings.ReplaceAll(out, `,"cache_control":{"type":"ephemeral"}`, "")
}

// The calls of a run with room begin alike, byte by byte, at providers that keep beginnings; those of a small budget are
// as short as they can be.
func TestCallsBeginAlike(t *testing.T) {
	for name, open := range map[string]func(*http.Client) llm.Model{
		"anthropic": func(c *http.Client) llm.Model {
			return anthropic.New(llm.Config{Model: "claude-x", HTTP: c})
		},
		"openai": func(c *http.Client) llm.Model { return openai.New(llm.Config{Model: "gpt-4.1", HTTP: c}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t)
			_, s := newLibrary(t).run(t, startups, deep, open(&http.Client{Transport: c}))
			t.Logf("%d of %d bytes in %d requests were sent before; %d tokens", c.hits, c.all, len(c.seen), s.Meter.Usage().Tokens)
			if len(c.seen) < 4 || float64(c.hits) < 0.58*float64(c.all) {
				t.Errorf("%d of %d bytes in %d requests were sent before", c.hits, c.all, len(c.seen))
			}
			for i := 1; i < len(c.bodies); i++ {
				if name == "anthropic" && strings.Count(c.bodies[i], `"cache_control"`) != 1 {
					t.Errorf("request %d has %d marks", i, strings.Count(c.bodies[i], `"cache_control"`))
				}
			}
			brief := newCache(t)
			limits := marchwarden.Limits{MaxIterations: 2, TokenBudget: roomyFrom, MaxSources: 6}
			newLibrary(t).run(t, startups, limits, open(&http.Client{Transport: brief}))
			recorded(t, filepath.Join("testdata", name+".txt"), brief.bodies)
		})
	}
	small := newCache(t)
	newLibrary(t).run(t, startups, shallow, anthropic.New(llm.Config{HTTP: &http.Client{Transport: small}}))
	for _, b := range small.bodies {
		if strings.Contains(b, "cache_control") || strings.Contains(b, strings.SplitN(instructions("common"), ".", 2)[0]) {
			t.Errorf("a small budget pays for %s", b)
		}
	}
}

// recorded compares requests with those in a file.
func recorded(t *testing.T, file string, bodies []string) {
	t.Helper()
	var got strings.Builder
	for i, b := range bodies {
		var out bytes.Buffer
		if err := json.Indent(&out, []byte(b), "", " "); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "-- request %d --\n", i+1)
		for line := range strings.Lines(strings.ReplaceAll(out.String(), `\n`, "\n")) { // the beginning of a long line says enough
			got.WriteString(llm.Clip(strings.TrimSuffix(line, "\n"), 120) + "\n")
		}
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, file+" (go test ./internal/reason/model -run TestCallsBeginAlike -update)", got.String(), string(want))
}
