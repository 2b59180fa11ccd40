// Package llmtest is language models for tests, which need no key and no network:
// Model answers from a script, at once and always the same; Server is a provider
// on the loopback, with everything that can go wrong with one; Run tries whether
// an adapter keeps the promises of llm.Model. They judge nothing about the calls
// they get; a test reads those with Calls and Turns.
package llmtest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// Answer is what the model does with one call.
type Answer struct {
	Text  string
	Calls []llm.ToolCall
	// Stop is why the model stopped; zero stands for StopTools when there are
	// Calls and for StopEnd otherwise.
	Stop llm.Stop
	// Usage is what the call consumed; zero stands for a token for every four
	// bytes of the call and of the reply.
	Usage llm.Usage
	// Err fails the call instead; it should carry a marchwarden.Code.
	Err error
	// Hang lets the call wait for its context to end, and fail with CodeCanceled.
	Hang bool
}

// Model plays a script. It is safe for concurrent use.
type Model struct {
	id     string
	script map[string][]Answer

	mu    sync.Mutex // guards what follows
	calls []llm.Call
	next  map[string]int
}

var _ llm.Model = (*Model)(nil)

// New makes a model with answers by the name of the prompt. The first call of a
// prompt gets its first answer and so on; the last answer stays. A call of a
// prompt that the script does not have fails with CodeInternal.
func New(id string, script map[string][]Answer) *Model {
	return &Model{id: id, script: script, next: map[string]int{}}
}

// ID is the id that New was given.
func (m *Model) ID() string { return m.id }

// Calls are the calls so far, in the order of their arrival.
func (m *Model) Calls() []llm.Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]llm.Call(nil), m.calls...)
}

// Generate answers from the script.
func (m *Model) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	a, ok := m.take(c)
	switch {
	case !ok:
		return llm.Reply{}, marchwarden.Errorf(marchwarden.CodeInternal, "the script has no answer for the prompt %q", c.Prompt)
	case a.Hang:
		<-ctx.Done()
		return llm.Reply{}, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "ask %s", m.id)
	case a.Err != nil:
		return llm.Reply{}, a.Err
	}
	use := a.Usage
	if use == (llm.Usage{}) {
		said := []string{a.Text}
		for _, call := range a.Calls {
			said = append(said, call.Name, string(call.Input))
		}
		use = llm.Usage{In: tokens(c.System, c.Input), Out: tokens(said...)}
	}
	if c.Heard != nil { // as a stream would be
		for i, b := range []byte(a.Text) {
			if b == '}' && i < 16<<10 { // adapters tell of short replies alone, too
				c.Heard(a.Text[:i+1])
			}
		}
	}
	stop := a.Stop
	switch {
	case stop != "":
	case len(a.Calls) > 0:
		stop = llm.StopTools
	default:
		stop = llm.StopEnd
	}
	return llm.Reply{Text: a.Text, Calls: append([]llm.ToolCall(nil), a.Calls...), Usage: use, Stop: stop}, nil
}

// take notes the call and gives the answer that is due.
func (m *Model) take(c llm.Call) (Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	noted := c
	noted.Heard = nil // calls are compared
	m.calls = append(m.calls, noted)
	answers := m.script[c.Prompt]
	if len(answers) == 0 {
		return Answer{}, false
	}
	i := min(m.next[c.Prompt], len(answers)-1)
	m.next[c.Prompt]++
	return answers[i], true
}

func tokens(texts ...string) int {
	n := 0
	for _, t := range texts {
		n += len(t)
	}
	return (n + 3) / 4
}

// Strict fails unless a schema is one that every provider takes: objects whose
// fields are all required and closed, and so on down.
func Strict(t testing.TB, schema json.RawMessage) {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil || root["type"] != "object" {
		t.Errorf("no schema of an object: %s, %v", schema, err)
	}
	strict(t, root)
}

func strict(t testing.TB, node map[string]any) {
	t.Helper()
	for word := range node {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties", "items"}, word) {
			t.Errorf("a schema has %s", word)
		}
	}
	fields, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	if node["type"] == "object" && (node["additionalProperties"] != false || len(required) != len(fields)) {
		t.Errorf("an object is open, or a field of it is not required: %v", node)
	}
	for _, f := range fields {
		strict(t, f.(map[string]any))
	}
	if items, ok := node["items"].(map[string]any); ok {
		strict(t, items)
	} else if node["type"] == "array" {
		t.Errorf("an array has no items: %v", node)
	}
}
