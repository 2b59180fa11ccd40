package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// bulky is a result with so many citations, each as long as the contract lets it be, of
// characters of so many bytes.
func bulky(citations int, char string) *marchwarden.Result {
	r := sample("")
	r.Citations, r.Claims, r.Gaps = nil, nil, nil
	var answer strings.Builder
	for i := range citations {
		excerpt := strings.Repeat(char, marchwarden.MaxExcerptChars)
		if i%3 == 0 {
			excerpt = strings.Repeat(char, marchwarden.MaxExcerptChars-len(marchwarden.ExcerptCut)) + marchwarden.ExcerptCut
		}
		fetched := time.Date(2026, 3, 1, 9, 0, i, 0, time.UTC)
		r.Citations = append(r.Citations, marchwarden.Citation{
			Source: "web", Locator: fmt.Sprintf("https://www.example.org/a/path/of/a/usual/length/%d", i), Title: "A title such as pages have, " + strconv.Itoa(i),
			Snippet: strings.Repeat("summary ", 12), RawExcerpt: excerpt, Confidence: 0.75, ContentHash: fmt.Sprintf("sha256:%064x", i),
			Span: &marchwarden.Span{Start: 7, End: 7 + len(strings.TrimSuffix(excerpt, marchwarden.ExcerptCut))}, FetchedAt: &fetched,
			Published: "2026-03-01", Origin: "example.org", Authority: marchwarden.MediumAuthority,
		})
		text := fmt.Sprintf("Fact number %d is of the usual length.", i)
		fmt.Fprintf(&answer, "%s [%d]\n\n", text, i+1)
		r.Claims = append(r.Claims, marchwarden.Claim{Text: text, Citations: []int{i + 1}, Support: marchwarden.Supported})
		r.Gaps = append(r.Gaps, marchwarden.Gap{Topic: "a topic", Category: marchwarden.SourceNotFound, Detail: strings.Repeat("why ", 10)})
		r.Rihlas = append(r.Rihlas, marchwarden.Rihla{Researcher: "web", Question: "why?", Reason: "to know", Outcome: "known"})
		r.Decisions = append(r.Decisions, marchwarden.Decision{About: "source_not_found", Topic: "a topic", From: 1, Action: marchwarden.Accepted, Reason: "enough"})
		r.OpenQuestions = append(r.OpenQuestions, marchwarden.OpenQuestion{Question: "and then?", Context: "so", Priority: marchwarden.Low})
		r.DiscoveryEvents = append(r.DiscoveryEvents, marchwarden.DiscoveryEvent{Type: marchwarden.NewSource, Query: "q", Reason: "seen"})
		r.Contradictions = append(r.Contradictions, marchwarden.Contradiction{Subject: "peas", Attribute: "colour", Detail: "they differ",
			A: marchwarden.Side{Locator: "a", RawExcerpt: excerpt}, B: marchwarden.Side{Locator: "b", RawExcerpt: excerpt}})
	}
	r.Answer = answer.String()
	r.Normalize()
	return r
}

// sizeOf is what a host counts of a tool result.
func sizeOf(res *mcp.CallToolResult) int {
	n := len(res.StructuredContent.(json.RawMessage))
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			n += len(text.Text)
		}
	}
	return n
}

func encodedResult(t rapid.TB, r *marchwarden.Result) []byte {
	t.Helper()
	b, err := marchwarden.EncodeResult(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var markers = regexp.MustCompile(`\[(\d+)\]`)

// The largest results that there are fit into what hosts take, and what is cut keeps the
// contract.
func TestLargestResults(t *testing.T) {
	if testing.Short() {
		t.Skip("moves much data")
	}
	s, _ := newTestServer(t, echo, func(c *Config) { c.Records = noRecords{} })
	for _, char := range []string{"a", "漢", "\U0001f345", "\""} {
		for _, n := range []int{40, 300} {
			whole := bulky(n, char)
			whole.Warnings = []string{"of the run's own"}
			whole.Citations[1].RawExcerpt, whole.Citations[1].Span = marchwarden.ExcerptNonText, nil
			before := encodedResult(t, whole)
			res := s.answer(t.Context(), outcome{res: whole})
			if res.IsError {
				t.Fatal(textOf(t, res))
			}
			if size := sizeOf(res); size > maxResultBytes {
				t.Errorf("%d citations of %q have %d bytes", n, char, size)
			}
			checkBrief(t, res, whole)
			if !bytes.Equal(before, encodedResult(t, whole)) {
				t.Error("the result itself changed")
			}
			if got := s.answer(t.Context(), outcome{res: whole, whole: true}); !bytes.Equal(got.StructuredContent.(json.RawMessage), before) || linked(got) != "" {
				t.Error("who wants it whole does not get it")
			}
		}
	}
}

// Results of every size are sent as they are if they fit, and fit if they are cut.
func TestResultsOfEverySize(t *testing.T) {
	s, _ := newTestServer(t, echo, func(c *Config) { c.Records = noRecords{} })
	rapid.Check(t, func(t *rapid.T) {
		whole := bulky(rapid.IntRange(0, 60).Draw(t, "citations"), rapid.SampledFrom([]string{"a", "é", "漢", "\U0001f345", "<"}).Draw(t, "char"))
		for i := range whole.Citations {
			c := &whole.Citations[i]
			if n := rapid.IntRange(0, 600).Draw(t, "excerpt"); n < 500 {
				runes := []rune(strings.TrimSuffix(c.RawExcerpt, marchwarden.ExcerptCut))
				c.RawExcerpt = string(runes[:min(n+1, len(runes))])
				c.Span.End = c.Span.Start + len(c.RawExcerpt)
			}
			if rapid.Bool().Draw(t, "bare") {
				c.Span, c.ContentHash, c.Snippet, c.Title = nil, "", "", ""
			}
		}
		if rapid.Bool().Draw(t, "plain") {
			whole.Contradictions, whole.Rihlas, whole.Decisions = nil, nil, nil
		}
		before := encodedResult(t, whole)
		text := s.cfg.text(whole)
		res := s.answer(context.Background(), outcome{res: whole})
		if res.IsError {
			t.Fatalf("%+v", res)
		}
		if len(before)+len(text) <= maxResultBytes {
			if !bytes.Equal(res.StructuredContent.(json.RawMessage), before) || len(res.Content) != 1 || res.Content[0].(*mcp.TextContent).Text != text || res.Meta != nil {
				t.Error("a result that fits is not sent as it is")
			}
			return
		}
		if sizeOf(res) > maxResultBytes {
			t.Errorf("it has %d bytes", sizeOf(res))
		}
		checkBrief(t, res, whole)
		if !bytes.Equal(before, encodedResult(t, whole)) {
			t.Error("the result itself changed")
		}
	})
}

// On the wire: a client that says that it takes results of any size gets them whole, and one that
// says nothing gets what a host takes, also of research under way.
func TestLargeResultsOnTheWire(t *testing.T) {
	if testing.Short() {
		t.Skip("moves much data")
	}
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		whole := bulky(100, "a")
		s, _ := newTestServer(t, scripted(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			return whole, nil
		}), func(c *Config) { c.Records = noRecords{} })
		cs := dial(s, nil)
		for _, all := range []any{nil, "true", true} {
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "q"}, Meta: mcp.Meta{MetaWhole: all}})
			if err != nil {
				t.Fatal(err)
			}
			got := resultIn(t, res.StructuredContent)
			if all == true {
				if diff := cmp.Diff(whole, got, traceIDs); diff != "" || linked(res) != "" {
					t.Errorf("whole (-want +got):\n%s", diff)
				}
				continue
			}
			if len(got.Claims) > 0 || linked(res) == "" {
				t.Errorf("%v: %d claims, links %q", all, len(got.Claims), linked(res))
			}
		}
	})
}

func TestLargePartialResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &books{sofar: func() *marchwarden.Result { return bulky(200, "a") }}
		s, _ := newTestServer(t, &labour{takes: time.Hour}, func(c *Config) { c.Records = kept })
		cs := dialMemory(t, s, "2026-07-28", nil)
		for _, meta := range []mcp.Meta{nil, {MetaWhole: true}} {
			a := ask(t.Context(), cs, map[string]any{"question": "q"}, meta)
			res := a.result(t)
			id := res.TraceID.String()
			encoded := encodedResult(t, res)
			a.res.StructuredContent = json.RawMessage(encoded)
			if fits := sizeOf(a.res) <= maxResultBytes; fits != (meta == nil) || !unfinished(res) || linked(a.res) != "result marchwarden://result/"+id+" trace marchwarden://trace/"+id {
				t.Errorf("%v: %d bytes, links %s", meta, sizeOf(a.res), linked(a.res))
			}
		}
	})
}
