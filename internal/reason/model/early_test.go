package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/anthropic"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
	reading "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// pacedReader tells when it is asked how evidence bears on a claim, and takes its time.
type pacedReader struct {
	takes time.Duration
	asked func()
}

func (pacedReader) ID() string { return "test/slow" }

func (pacedReader) Read(_ context.Context, _ string, ps []reading.Passage) ([]reading.Reading, error) {
	return make([]reading.Reading, len(ps)), nil
}

func (r pacedReader) Relate(_ context.Context, pairs []reading.Pair) ([]reading.Relation, error) {
	if len(pairs) == 0 || !strings.Contains(pairs[0].Claim, "note") { // the sources are compared
		return make([]reading.Relation, len(pairs)), nil
	}
	if r.asked != nil {
		r.asked()
	}
	time.Sleep(r.takes)
	return slices.Repeat([]reading.Relation{{Entailed: 1}}, len(pairs)), nil
}

// inOtherWords are claims that no passage has word for word, so that the judge has to read.
func inOtherWords(n int) []obj {
	var out []obj
	for i := range n {
		out = append(out, claim(fmt.Sprintf("In 1937 the Pineview Dam was completed, note %d says.", i+1), "S1.1"))
	}
	return out
}

// The judge reads the first sentences, and those who wait see them, while a provider still holds up the others; the draft
// is the same as that of a provider that does not stream.
func TestJudgedWhileWritten(t *testing.T) {
	text := encoded(answer(inOtherWords(6)...))
	quiet := stateOf(damQuestion, setOf(dam), balanced, quietModel{scripted(script{"write": {{Text: text}}, "judge": {verdicts()}})})
	quiet.Reader = pacedReader{}
	want, _ := New("m").Write(t.Context(), quiet)
	for name, open := range map[string]func(url string) llm.Model{
		"anthropic": func(url string) llm.Model { return anthropic.New(llm.Config{BaseURL: url, Model: "x"}) },
		"chat":      func(url string) llm.Model { return openai.New(llm.Config{BaseURL: url, Model: "x"}) },
	} {
		t.Run(name, func(t *testing.T) {
			judged, shown := make(chan struct{}), make(chan struct{})
			var once, onceShown sync.Once
			ended := false
			srv := llmtest.NewServer(t, func(turn llmtest.Turn) llmtest.Said {
				if !strings.Contains(turn.System+turn.Input, "sources") { // the judge
					return llmtest.Said{Text: verdicts().Text}
				}
				return llmtest.Said{Text: text, Half: func() { <-judged; <-shown; ended = true }}
			})
			s := stateOf(damQuestion, setOf(dam), balanced, open(srv.URL()))
			s.Reader = pacedReader{asked: func() { once.Do(func() { close(judged) }) }}
			var drafts []string
			s.Drafted = func(claims []reason.Claim) {
				drafts = append(drafts, reason.Drafting(marchwarden.TraceID{}, claims).Draft)
				onceShown.Do(func() { close(shown) })
			}
			got, _ := New("m").Write(t.Context(), s)
			diff(t, "the draft", got.Claims, want.Claims)
			if !ended || len(drafts) != 6 || !strings.HasPrefix(drafts[5], drafts[0]) || strings.Count(drafts[5], "note") != 6 {
				t.Errorf("shown %q", drafts)
			}
		})
	}
}

// quietModel tells nothing before a reply is whole.
type quietModel struct{ llm.Model }

func (m quietModel) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	c.Heard = nil
	return m.Model.Generate(ctx, c)
}

// slowWriter writes an object a second and then has the rest of its script answer.
type slowWriter struct{ llm.Model }

func (m slowWriter) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	heard := c.Heard
	if heard != nil {
		c.Heard = func(text string) {
			time.Sleep(time.Second)
			heard(text)
		}
	}
	return m.Model.Generate(ctx, c)
}

// Of sentences that take a second each to write and to judge, the judging of the last alone comes after the writing.
func TestJudgingIsOffTheCriticalPath(t *testing.T) {
	claims := encoded(inOtherWords(20))
	for prompt, text := range map[string]string{"write": `{"claims":` + claims + `}`, "section": `{"blocks":[{"type":"list","claims":` + claims + `}]}`} {
		t.Run(prompt, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stateOf(damQuestion, setOf(dam), deep, slowWriter{scripted(script{prompt: {{Text: text}}, "judge": {verdicts()}})})
				if prompt == "section" {
					s.Request.Format = marchwarden.Table
				}
				s.Reader = pacedReader{takes: time.Second}
				began := time.Now()
				d, _ := New("m").Write(t.Context(), s)
				critical := time.Duration(strings.Count(text, "}")+1) * time.Second
				if wall := time.Since(began); len(d.Claims) != 20 || float64(wall) > 1.10*float64(critical) {
					t.Errorf("%d claims take %v, the critical path %v", len(d.Claims), wall, critical)
				}
			})
		})
	}
}

// What breaks off, or is hostile, leaves nothing behind that changes the draft.
func TestReadAlongHostile(t *testing.T) {
	r := New("m")
	s := stateOf(damQuestion, setOf(dam), balanced, scripted(nil))
	var last []reason.Claim
	s.Drafted = func(claims []reason.Claim) { last = claims }
	calls := []llm.Call{{}, {}}
	r.readAlong(s, calls, answerBegun)
	for _, text := range []string{"", "}", strings.Repeat("{", 5000) + "}", `{"claims":}`, `{"claims":[{"text":7}`, `{"claims":[{"text":"\u001b[31mThe dam \u202estands.","passages":["S1.1"]}`, `[{"text":"The dam`} {
		calls[0].Heard(text)
	}
	calls[1].Heard(`{"claims":[{"text":"The dam cost 4 million dollars.","passages":["S1.2"]},{"te}`)
	r.opinions.work.Wait()
	if e := reason.Drafting(marchwarden.TraceID{}, last); e.Draft != "The dam cost 4 million dollars." || e.Message != "1 sentence drafted" {
		t.Errorf("%+v", e)
	}
	calls[0].Heard(`{"claims":[{"text":"\u001b[31mThe dam \u202estands.","passages":["S1.1"]}`)
	r.opinions.work.Wait()
	if e := reason.Drafting(marchwarden.TraceID{}, last); strings.ContainsAny(e.Draft, "\x1b\u202e") || !strings.HasPrefix(e.Draft, "[31mThe dam stands.") {
		t.Errorf("%+v", e)
	}
}
