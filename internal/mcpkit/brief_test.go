package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What a result says twice is sent once, and whole to who asks for that.
func TestLeanResult(t *testing.T) {
	data, err := os.ReadFile("../../testdata/wire/report.result.json")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := marchwarden.DecodeResult(data)
	if err != nil {
		t.Fatal(err)
	}
	whole.Citations[0].RawExcerpt += " It is sown in autumn."
	whole.Citations[0].Snippet = whole.Citations[0].RawExcerpt
	whole.Citations[1].Snippet = "The researcher's own words about it, which are not those of the source at all."
	s, _ := newTestServer(t, echo)
	got := resultIn(t, s.answer(t.Context(), outcome{res: whole}).StructuredContent)
	if got.Citations[0].Snippet != "" || got.Citations[1].Snippet == "" {
		t.Errorf("snippets: %q, %q", got.Citations[0].Snippet, got.Citations[1].Snippet)
	}
	whole.Blocks = whole.Blocks[:5]
	lean := s.answer(t.Context(), outcome{res: whole})
	if got := resultIn(t, lean.StructuredContent); len(got.Blocks) > 0 || got.Answer != whole.Answer || len(got.Claims) != 2 || len(lean.Content) != 1 || len(got.Warnings) > 0 {
		t.Errorf("%d blocks, %d claims, %d contents, warnings %q", len(got.Blocks), len(got.Claims), len(lean.Content), got.Warnings)
	}
	if got := resultIn(t, s.answer(t.Context(), outcome{res: whole, most: 200, whole: true}).StructuredContent); len(got.Blocks) != 5 {
		t.Error("who wants it whole does not get it")
	}
}

// checkBrief holds an abridged result to the contract and to the whole.
func checkBrief(t rapid.TB, res *mcp.CallToolResult, whole *marchwarden.Result) *marchwarden.Result {
	t.Helper()
	raw := res.StructuredContent.(json.RawMessage)
	var instance any
	if err := json.Unmarshal(raw, &instance); err != nil {
		t.Fatal(err)
	}
	if err := CheckResult(instance); err != nil {
		t.Fatalf("it breaks the schema: %v", err)
	}
	got, err := marchwarden.DecodeResult(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range markers.FindAllStringSubmatch(got.Answer, -1) {
		n := 0
		if _, err := fmt.Sscan(m[1], &n); err != nil || n < 1 || n > len(got.Citations) {
			t.Fatalf("marker %s indexes none of %d citations", m[0], len(got.Citations))
		}
	}
	for _, c := range got.Citations {
		kept := strings.TrimSuffix(c.RawExcerpt, marchwarden.ExcerptCut)
		found := false
		for _, was := range whole.Citations {
			found = found || was.Locator == c.Locator && strings.HasPrefix(was.RawExcerpt, kept)
		}
		if !found {
			t.Fatalf("%+v is not of the whole", c)
		}
	}
	if a := got.ShortAnswer; a != nil {
		if err := a.Validate(len(got.Citations)); err != nil || got.Citations[0].Locator != whole.Citations[whole.ShortAnswer.Citation-1].Locator {
			t.Fatalf("the short answer is %+v: %v", a, err)
		}
	}
	if !strings.Contains(strings.Join(got.Warnings, "\n"), "shortened: the whole result is at marchwarden://result/"+whole.TraceID.String()) {
		t.Fatalf("warnings: %q", got.Warnings)
	}
	return got
}

func TestMaxOutputTokens(t *testing.T) {
	s, _ := newTestServer(t, echo)
	rapid.Check(t, func(t *rapid.T) {
		whole := bulky(rapid.IntRange(1, 40).Draw(t, "citations"), rapid.SampledFrom([]string{"a", "漢", "<"}).Draw(t, "char"))
		whole.Rihlas, whole.Contradictions = whole.Rihlas[:1], whole.Contradictions[:1]
		if n := rapid.IntRange(0, len(whole.Citations)).Draw(t, "short"); n > 0 {
			whole.ShortAnswer = &marchwarden.ShortAnswer{Text: "a few words", Citation: n, Span: &marchwarden.Span{Start: 8, End: 9}, Kind: marchwarden.ShortSpan}
		}
		before := encodedResult(t, whole)
		most := rapid.IntRange(700, 12_000).Draw(t, "tokens")
		res := s.answer(context.Background(), outcome{res: whole, most: most})
		if size := max(len(res.StructuredContent.(json.RawMessage)), len(res.Content[0].(*mcp.TextContent).Text)); size > most*bytesPerToken {
			t.Fatalf("%d bytes for %d tokens", size, most)
		}
		if string(before) != string(encodedResult(t, whole)) {
			t.Fatal("the result itself changed")
		}
		if max(len(before), len(s.cfg.text(whole))) <= most*bytesPerToken {
			return
		}
		if got := checkBrief(t, res, whole); len(got.Citations) == 0 || got.Answer == "" {
			t.Fatalf("%d passages, answer %q", len(got.Citations), got.Answer)
		}
	})
}

// On the wire: the cap of the request holds, the best passage comes first, and there is a link to the whole.
func TestMaxOutputTokensOnTheWire(t *testing.T) {
	whole := bulky(30, "a")
	whole.Claims = append(whole.Claims, marchwarden.Claim{Text: "again", Citations: []int{17}, Support: marchwarden.Supported})
	s, _ := newTestServer(t, scripted(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		return whole, nil
	}))
	cs := dialMemory(t, s, "2026-07-28", nil)
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "q", "constraints": map[string]any{"max_output_tokens": 1000}}})
	if err != nil || res.IsError {
		t.Fatal(err, textOf(t, res))
	}
	got := resultIn(t, res.StructuredContent)
	if len(got.Citations) == 0 || got.Citations[0].Locator != whole.Citations[16].Locator || !strings.HasPrefix(got.Answer, "Fact number") || linked(res) == "" {
		t.Errorf("%d citations, answer %q, links %q", len(got.Citations), got.Answer, linked(res))
	}
	refused, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "q", "constraints": map[string]any{"max_output_tokens": 10}}})
	if err != nil || !refused.IsError || !strings.Contains(textOf(t, refused), "must be at least 200") {
		t.Errorf("a cap of 10: %v", err)
	}
}

func TestResting(t *testing.T) {
	number := map[int]int{3: 1, 1: 2}
	for answer, want := range map[string]string{
		"One. [1] Two. [2] Three. [3][2]":                  "One. [2]\nThree. [1]",
		"## Head\n\n- One. [1]\n\n| a |\n|---|\n| b [3] |": "One. [2]",
		"Nothing was found.":                               "Nothing was found.",
		"Two. [2]":                                         "",
	} {
		if got := resting(answer, number); got != want {
			t.Errorf("%q gives %q, want %q", answer, got, want)
		}
	}
}
