package llmtest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
)

func TestScript(t *testing.T) {
	busy := marchwarden.Errorf(marchwarden.CodeUnavailable, "overloaded")
	m := llmtest.New("test/script", map[string][]llmtest.Answer{
		"plan":  {{Text: "first", Usage: llm.Usage{In: 7, Out: 3}}, {Err: busy}, {Text: "last"}},
		"write": {{Text: "12345678"}},
		"hang":  {{Hang: true}},
		"tools": {{Calls: []llm.ToolCall{{Name: "abcd", Input: []byte(`{"a":1}`)}}}, {Text: "cut", Stop: llm.StopLength}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ask := func(prompt string) (llm.Reply, error) {
		return m.Generate(ctx, llm.Call{Prompt: prompt, System: "abcd", Input: "efgh"})
	}
	if r, err := ask("plan"); err != nil || r.Text != "first" || r.Usage.Total() != 10 {
		t.Errorf("the first plan: %+v, %v", r, err)
	}
	if _, err := ask("plan"); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("the second plan: %v", err)
	}
	for range 2 {
		if r, err := ask("plan"); err != nil || r.Text != "last" {
			t.Errorf("a later plan: %+v, %v", r, err)
		}
	}
	if r, err := ask("write"); err != nil || r.Usage != (llm.Usage{In: 2, Out: 2}) {
		t.Errorf("usage of its own: %+v, %v", r, err)
	}
	if r, err := ask("tools"); err != nil || len(r.Calls) != 1 || r.Stop != llm.StopTools || r.Usage.Out != 3 {
		t.Errorf("tool calls: %+v, %v", r, err)
	}
	if r, err := ask("tools"); err != nil || r.Stop != llm.StopLength || len(r.Calls) != 0 {
		t.Errorf("a stop of its own: %+v, %v", r, err)
	}
	if _, err := ask("judge"); !errors.Is(err, marchwarden.CodeInternal) {
		t.Errorf("a prompt without a script: %v", err)
	}
	cancel()
	if _, err := ask("hang"); !errors.Is(err, marchwarden.CodeCanceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("a call that hangs: %v", err)
	}
	if calls := m.Calls(); len(calls) != 9 || calls[4].Prompt != "write" || m.ID() != "test/script" {
		t.Errorf("%s was called %v", m.ID(), calls)
	}
}

func TestConcurrentCallsGetEachAnswerOnce(t *testing.T) {
	m := llmtest.New("test/script", map[string][]llmtest.Answer{"plan": {{Text: "a"}, {Text: "b"}, {Text: "c"}, {Text: "d"}}})
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r, err := m.Generate(context.Background(), llm.Call{Prompt: "plan"})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[r.Text]++
		})
	}
	wg.Wait()
	if len(seen) != 4 {
		t.Errorf("the answers went out as %v", seen)
	}
}
