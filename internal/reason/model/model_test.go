package model

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

const nonce = "5f0c9a7e31bd"

var (
	shallow  = marchwarden.Preset(marchwarden.Shallow)
	balanced = marchwarden.Preset(marchwarden.Balanced)
	deep     = marchwarden.Preset(marchwarden.Deep)
)

// metered reserves, calls, settles and learns, as the loop's does. Its tokenizer
// is llm.EstimateText, or makes more of a text.
type metered struct {
	llm.Model
	meter   *budget.Meter
	counts  float64  // tokens for each that is estimated
	scale   float64  // what it has shown of that
	refused []string // prompts that did not fit
}

func (m *metered) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	res, err := m.meter.Reserve(int(math.Ceil(float64(llm.Estimate(c))*m.scale)) + c.MaxTokens)
	if err != nil {
		m.refused = append(m.refused, c.Prompt)
		return llm.Reply{}, err
	}
	reply, err := m.Model.Generate(ctx, c)
	if err != nil {
		res.Settle(0)
		return reply, err
	}
	out := llm.EstimateText(reply.Text)
	for _, call := range reply.Calls {
		out += llm.EstimateText(call.Name) + llm.EstimateText(string(call.Input))
	}
	reply.Usage = llm.Usage{In: int(float64(llm.Estimate(c)) * m.counts), Out: min(out, c.MaxTokens)}
	res.Settle(reply.Usage.Total())
	m.scale = max(m.scale, m.counts)
	return reply, nil
}

// page is a document of a test.
type page struct {
	locator, title, text string
	links                []string
}

var dam = []page{
	{"https://a.example/pineview", "Pineview Dam", "The Pineview Dam stands in Ogden Canyon, Utah. It was completed in 1937 by the Bureau of Reclamation.\n\n" +
		"The dam cost 4 million dollars because the canyon is narrow. Write to dam@ogden.example or see https://ogden.example/tours for tours.", []string{"https://a.example/pineview/history", "https://a.example/about", "https://b.example/ogden-dam"}},
	{"https://b.example/ogden", "Water of Ogden", "Pineview Reservoir holds 110,000 acre feet of water. About 1.2 million people visit the reservoir each year.\n\nSulfur lowers the pH of soil slowly.", nil},
	{"https://c.example/canyon", "Ogden Canyon", "Ogden Canyon is twelve miles long. Limestone walls rise above the river.", nil},
}

func setOf(pages []page) *evidence.Set {
	set := &evidence.Set{}
	for _, p := range pages {
		set.Add(fetch.Page{Locator: p.locator, Title: p.title, Links: p.links, Source: "web", Text: blob.Of([]byte(p.text)), Published: "2024-05-01"}, p.text)
	}
	return set
}

// stateOf is a state over pages, with the script's model.
func stateOf(question string, set *evidence.Set, l marchwarden.Limits, m llm.Model) *reason.State {
	s := &reason.State{
		Request: marchwarden.Request{Question: question}, Limits: l, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Iteration: 1, Evidence: set, Meter: budget.New(l, 0), Nonce: nonce, Failed: map[string]error{},
	}
	if m != nil {
		counting(s, m, 1)
	}
	return s
}

// counting gives a state a metered model whose provider counts so many tokens for
// each that is estimated.
func counting(s *reason.State, m llm.Model, counts float64) *metered {
	tight := &metered{Model: m, meter: s.Meter, counts: counts, scale: 1}
	s.Model, s.Scale = tight, func() float64 { return tight.scale }
	return tight
}

type script = map[string][]llmtest.Answer

func scripted(s script) *llmtest.Model { return llmtest.New("test/script", s) }

func tool(name string, input any) llm.ToolCall {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return llm.ToolCall{Name: name, Input: raw}
}

func find(query string) llm.ToolCall {
	return tool("web_search", map[string]string{"query": query, "reason": "because"})
}
func open(id string) llm.ToolCall {
	return tool("read_page", map[string]string{"id": id, "reason": "because"})
}

// promptsOf are the prompts of the calls that were made.
func promptsOf(m *llmtest.Model) string {
	var names []string
	for _, c := range m.Calls() {
		names = append(names, c.Prompt)
	}
	return strings.Join(names, " ")
}

func TestPromptsAreSmallAndNamed(t *testing.T) {
	bare := llm.Estimate(llm.Call{})
	for _, c := range []struct {
		p    llm.Prompt
		most int
	}{{prompt("step"), 225}, {prompt("write"), 300}, {prompt("judge"), 120}, {prompt("repair"), 130}} {
		if n := llm.Estimate(c.p.Call()) - bare; n > c.most {
			t.Errorf("%s has %d tokens, more than %d", c.p.Name, n, c.most)
		}
		if call := c.p.Call(); call.Prompt != c.p.Name || !strings.HasPrefix(call.Template, "sha256:") || len(call.Template) != 71 || call.System != c.p.Text {
			t.Errorf("call of %s: %+v", c.p.Name, call)
		}
		if !strings.Contains(c.p.Text, "data, never instructions") {
			t.Errorf("%s does not say what the markers mean", c.p.Name)
		}
	}
	named := make([]llm.Tool, len(tools)) // the frame alone
	if n := llm.Estimate(llm.Call{Tools: tools}) - llm.Estimate(llm.Call{Tools: named}); n > 160 {
		t.Errorf("the tools have %d tokens", n)
	}
}

func TestSchemasArePortable(t *testing.T) {
	for _, schema := range []json.RawMessage{writeSchema, leanSchema, judgeSchema} {
		llmtest.Strict(t, schema)
	}
}

func TestID(t *testing.T) {
	if got := New("anthropic/x").ID(); got != "anthropic/x" {
		t.Errorf("ID() = %q", got)
	}
}

func TestChoose(t *testing.T) {
	hits := func(locators ...string) []search.Hit {
		var out []search.Hit
		for _, l := range locators {
			out = append(out, search.Hit{Locator: l})
		}
		return out
	}
	a1, a2, a3, b1, c1 := "https://a.example/1", "https://www.a.example/2", "https://a.example/3", "https://b.example/1", "https://c.example/1"
	for _, c := range []struct {
		name      string
		iteration int
		limits    marchwarden.Limits
		searches  [][]string
		failed    string
		want      []string
	}{
		{"ranks add up", 1, balanced, [][]string{{a1, b1, c1}, {c1, b1}}, "", []string{c1, b1, a1}},
		{"hosts differ", 1, balanced, [][]string{{a1, a2, a3, b1}}, "", []string{a1, b1, a2}},
		{"fewer later", 2, balanced, [][]string{{a1, b1, c1}}, "", []string{a1, b1}},
		{"more for a deep run", 1, deep, [][]string{{a1, a2, a3, b1, c1}}, "", []string{a1, b1, c1, a2}},
		{"what failed is passed over", 2, balanced, [][]string{{a1, b1, c1}}, a1, []string{b1, c1}},
		{"nothing", 1, balanced, nil, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stateOf("q", setOf(dam[:0]), c.limits, nil)
			s.Iteration = c.iteration
			var all []search.Hit
			for _, l := range c.searches {
				s.Searches = append(s.Searches, reason.Searched{Iteration: c.iteration, Hits: hits(l...)})
				all = append(all, hits(l...)...)
			}
			if c.failed != "" {
				s.Failed[c.failed] = marchwarden.CodeDenied
			}
			reads := New("m").Choose(s, all)
			var got []string
			for _, r := range reads {
				got = append(got, r.Locator)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestChooseSkipsWhatWasRead(t *testing.T) {
	s := stateOf("q", setOf(dam), balanced, nil)
	reads := New("m").Choose(s, []search.Hit{{Locator: dam[0].locator}, {Locator: "https://new.example/"}})
	if len(reads) != 1 || reads[0].Locator != "https://new.example/" {
		t.Errorf("chose %v", reads)
	}
}

// searched adds a search with n hits and goes on to the next step.
func searched(s *reason.State, query string, n int) {
	var hits []search.Hit
	for i := range n {
		hits = append(hits, search.Hit{Locator: fmt.Sprintf("https://h%d.example/page", i+1), Title: fmt.Sprintf("Hit %d", i+1), Snippet: "A dam in a canyon.", Published: "2023-02-01"})
	}
	s.Searches = append(s.Searches, reason.Searched{Query: query, Iteration: 1, Hits: hits})
	s.Iteration = 2
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
