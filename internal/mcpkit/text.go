package mcpkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// failure makes the tool error of err: one line that says what is wrong, one that says what to
// do. Only an error's first line is shown, so no stack trace within an error gets out, and of an
// internal error nothing.
func failure(err error) *mcp.CallToolResult {
	code := marchwarden.CodeOf(err)
	hint, known := words.Hints[code]
	text, _, _ := strings.Cut(err.Error(), "\n")
	if known && code != marchwarden.CodeInternal {
		hint = cmp.Or(marchwarden.HintOf(err), hint)
	} else {
		code, text = marchwarden.CodeInternal, "internal error: this call failed, others are not affected"
		hint = words.Hints[code]
	}
	hint = Clip(Plain(hint), MaxErrorChars)
	facts := map[string]any{"code": string(code), "hint": hint}
	if e, ok := errors.AsType[*marchwarden.Error](err); ok && e.Field != "" {
		facts["field"] = e.Field
	}
	return &mcp.CallToolResult{
		Meta:    mcp.Meta{MetaError: facts},
		Content: []mcp.Content{&mcp.TextContent{Text: Clip(Plain(text), MaxErrorChars) + HintMark + hint}},
		IsError: true,
	}
}

const maxShownExcerpt = 240

// shortText renders a result in plain lines.
func shortText(r *marchwarden.Result) string {
	var b strings.Builder
	for _, w := range r.Warnings {
		b.WriteString("Warning: " + Plain(w) + "\n\n")
	}
	if r.CompletedQuestion != "" {
		b.WriteString("Understood as: " + Plain(r.CompletedQuestion) + "\n\n")
	}
	if lead := Plain(r.Lead()); lead != "" {
		b.WriteString(lead + "\n\n")
	}
	b.WriteString(strings.TrimSpace(Block(r.Answer)))
	b.WriteString("\n")
	if len(r.Closest) > 0 {
		b.WriteString("\nClosest passages (not an answer)\n")
	}
	for _, c := range r.Closest[:min(len(r.Closest), marchwarden.MaxClosest)] {
		shownSource(&b, "-", c.Citation())
	}
	if len(r.Citations) > 0 {
		b.WriteString("\nSources\n")
	}
	for i, c := range r.Citations {
		shownSource(&b, fmt.Sprintf("[%d]", i+1), c)
	}
	if len(r.Gaps) > 0 {
		b.WriteString("\nGaps\n")
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "- %s (%s): %s\n", Plain(g.Topic), cmp.Or(words.Gaps[g.Category], Plain(string(g.Category))), Plain(g.Detail))
	}
	fmt.Fprintf(&b, "\nConfidence %.2f · trace %s\n", float64(r.Confidence), r.TraceID)
	return b.String()
}

func shownSource(b *strings.Builder, mark string, c marchwarden.Citation) {
	fmt.Fprintf(b, "%s %s", mark, Plain(c.Locator))
	if c.Title != "" {
		fmt.Fprintf(b, " (%s)", Plain(c.Title))
	}
	fmt.Fprintf(b, "\n    \"%s\"\n", Clip(Plain(c.RawExcerpt), maxShownExcerpt))
}

// foundSoFar parts, in the answer of a run that goes on, how to get the rest from what there is.
const foundSoFar = "\n\nFound so far:\n\n"

// sofar is the result of a run that goes on: what it has found, and how to get the rest.
func (s *Server) sofar(ctx context.Context, run *runs.Run) *marchwarden.Result {
	var res *marchwarden.Result
	if s.cfg.Records != nil {
		found, err := s.cfg.Records.SoFar(ctx, run.ID())
		if err != nil && !errors.Is(err, marchwarden.CodeNotFound) { // a run that waits for its turn has no record yet
			s.cfg.Log.Error("what a run has found so far cannot be told", "trace_id", run.ID().String(), "error", err)
		}
		res = found
	}
	if res == nil {
		res = &marchwarden.Result{ConfidenceFactors: marchwarden.ConfidenceFactors{SourceAuthority: marchwarden.LowAuthority}, CostMetadata: marchwarden.CostMetadata{ModelID: "unknown"}}
	}
	state := run.State()
	took := s.cfg.Now().Sub(state.Created)
	res.TraceID, res.CostMetadata.WallTimeSec = run.ID(), max(took.Seconds(), 0)
	how := fmt.Sprintf("call research with nothing but resume %q to get the finished answer, or read %s%s", run.ID(), resultPrefix, run.ID())
	answer := fmt.Sprintf("The research goes on and this is not the answer yet: %s.", how)
	if state.Message != "" {
		answer += " Last step: " + Clip(Plain(state.Message), MaxProgressChars) + "."
	}
	if res.Answer != "" {
		answer += foundSoFar + res.Answer
	}
	res.Answer, res.Blocks, res.Claims, res.ShortAnswer = answer, nil, nil, nil // which are of finished answers
	res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: "the finished answer", Category: marchwarden.BudgetExhausted,
		Detail: fmt.Sprintf("the call ended after %s and the research did not; %s", took.Round(time.Second), how)})
	res.Warnings = append(res.Warnings, "unfinished: the research goes on under this trace_id")
	res.Normalize()
	return res
}

// links lead to what a call did not carry.
func (s *Server) links(id marchwarden.TraceID) []mcp.Content {
	out := []mcp.Content{&mcp.ResourceLink{URI: resultPrefix + id.String(), Name: "result", Title: "The whole result", MIMEType: "application/json"}}
	if s.cfg.Records != nil {
		out = append(out, &mcp.ResourceLink{URI: tracePrefix + id.String(), Name: "trace", Title: "The record of the run", MIMEType: "application/jsonl"})
	}
	return out
}

// maxResultBytes is the largest tool result that hosts take: 25,000 tokens.
const maxResultBytes = 25_000 * bytesPerToken

// bytesPerToken is what a token has at least in text such as this.
const bytesPerToken = 3

// shorten cuts excerpts, and their spans, to at most n bytes at the end of a character.
func shorten(r *marchwarden.Result, n int) {
	for i := range r.Citations {
		c := &r.Citations[i]
		kept := strings.TrimSuffix(c.RawExcerpt, marchwarden.ExcerptCut)
		if len(kept) <= n || kept == marchwarden.ExcerptNonText {
			continue
		}
		end := n
		for !utf8.RuneStart(kept[end]) {
			end--
		}
		kept = kept[:end]
		if c.Span != nil {
			c.Span = &marchwarden.Span{Start: c.Span.Start, End: c.Span.Start + len(kept)}
		}
		c.RawExcerpt = kept + marchwarden.ExcerptCut
	}
}

// slim leaves out of a tool result what it says twice, shortens one that is too large for hosts or
// for most tokens, if that is not 0, and says where the whole is.
func (s *Server) slim(res *mcp.CallToolResult, whole *marchwarden.Result, most int) *mcp.CallToolResult {
	short, text := lean(*whole), s.cfg.text(whole)
	encoded, err := encode(short)
	limit, fits := maxResultBytes/2, len(encoded)+len(text) <= maxResultBytes
	if own := most * bytesPerToken; own > 0 && own < limit { // of which a host gives its model one
		limit, fits = own, max(len(encoded), len(text)) <= own
	}
	if err == nil && fits {
		res.StructuredContent = encoded
		return res
	}
	brief, size := res, limit+1
	if err == nil && limit == maxResultBytes/2 { // with less, the best passages come first
		brief, size, err = s.sent(bare(*short))
	}
	if err == nil && size > limit {
		brief, err = s.abridge(short, limit)
	}
	if err != nil {
		s.cfg.Log.Error("a large result could not be shortened", "trace_id", whole.TraceID.String(), "error", err)
		return res
	}
	return brief
}

// bare is a result with its answer, its sources and little else. It keeps the contract: markers
// still index citations, and a shortened excerpt still begins as the source does.
func bare(r marchwarden.Result) *marchwarden.Result {
	r.Decisions, r.Rihlas, r.Claims, r.Contradictions, r.Closest = nil, nil, nil, nil, nil
	r.DiscoveryEvents = r.DiscoveryEvents[:min(len(r.DiscoveryEvents), 10)]
	r.OpenQuestions = r.OpenQuestions[:min(len(r.OpenQuestions), 10)]
	r.Gaps = r.Gaps[:min(len(r.Gaps), 20)]
	r.Citations = slices.Clone(r.Citations)
	for i := range r.Citations {
		r.Citations[i].Snippet = ""
	}
	r.Warnings = append(slices.Clone(r.Warnings), "shortened: the whole result is at "+resultPrefix+r.TraceID.String())
	shorten(&r, 160)
	return &r
}

// sent is a shortened result as it is sent, and its size as text or as structured content.
func (s *Server) sent(r *marchwarden.Result) (res *mcp.CallToolResult, size int, err error) {
	encoded, err := encode(r)
	text := s.cfg.text(r)
	content := append([]mcp.Content{&mcp.TextContent{Text: text}}, s.links(r.TraceID)...)
	return &mcp.CallToolResult{Content: content, StructuredContent: encoded}, max(len(encoded), len(text)), err
}

// lean is a result without what it says twice: blocks, of which the answer is the Markdown,
// and snippets that the excerpt has.
func lean(r marchwarden.Result) *marchwarden.Result {
	r.Blocks, r.Citations = nil, slices.Clone(r.Citations)
	for i := range r.Citations {
		if c := &r.Citations[i]; strings.Contains(c.RawExcerpt, strings.TrimSuffix(c.Snippet, "…")) {
			c.Snippet = ""
		}
	}
	return &r
}

// outputCap is the max_output_tokens of a call; 0 is none.
func outputCap(args json.RawMessage) int {
	req, err := marchwarden.DecodeRequest(args)
	if err != nil || req.Constraints == nil || req.Constraints.MaxOutputTokens == nil {
		return 0
	}
	return *req.Constraints.MaxOutputTokens
}

// abridge is as much of a result as fits into so many bytes, as text and as structured content, of
// which a host gives its model one: the short answer, the best passages whole, and the
// sentences that rest on them.
func (s *Server) abridge(whole *marchwarden.Result, limit int) (*mcp.CallToolResult, error) {
	made := func(passages, excerpt int) (res *mcp.CallToolResult, size int, err error) {
		r := best(whole, passages)
		shorten(r, excerpt)
		return s.sent(r)
	}
	n := max(1, sort.Search(len(whole.Citations), func(n int) bool {
		_, size, err := made(n+1, marchwarden.MaxExcerptChars*4)
		return err != nil || size > limit
	}))
	for _, excerpt := range []int{marchwarden.MaxExcerptChars * 4, 160} {
		if res, size, err := made(n, excerpt); err != nil || size <= limit {
			return res, err
		}
	}
	res, _, err := made(n, 40)
	return res, err
}

// best is a result with its best passages alone, the best first: what the short answer is from, then
// what most claims rest on.
func best(whole *marchwarden.Result, passages int) *marchwarden.Result {
	uses := make([]int, len(whole.Citations)+1)
	order := make([]int, len(whole.Citations))
	for i := range order {
		order[i] = i + 1
	}
	for _, c := range whole.Claims {
		for _, n := range c.Citations {
			if n >= 1 && n < len(uses) {
				uses[n]++
			}
		}
	}
	if a := whole.ShortAnswer; a != nil && a.Citation >= 1 && a.Citation < len(uses) {
		uses[a.Citation] += len(whole.Claims)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(uses[b]-uses[a], cmp.Compare(whole.Citations[b-1].Confidence, whole.Citations[a-1].Confidence))
	})
	number := map[int]int{} // what a citation is numbered in the short result
	r := &marchwarden.Result{Confidence: whole.Confidence, ConfidenceFactors: whole.ConfidenceFactors, CostMetadata: whole.CostMetadata, TraceID: whole.TraceID, Closest: whole.Closest,
		Follows: whole.Follows, Warnings: append(slices.Clone(whole.Warnings), fmt.Sprintf("shortened: the whole result is at %s%s; %d passages are left out here, and what rests on them", resultPrefix, whole.TraceID, len(order)-min(passages, len(order))))}
	for _, g := range whole.Gaps[:min(len(whole.Gaps), 3)] {
		g.Detail = Clip(g.Detail, 120)
		r.Gaps = append(r.Gaps, g)
	}
	for i, n := range order[:min(passages, len(order))] {
		number[n] = i + 1
		c := whole.Citations[n-1]
		c.Snippet, c.FetchedAt, c.Origin = "", nil, ""
		r.Citations = append(r.Citations, c)
	}
	if first, rest, going := strings.Cut(whole.Answer, foundSoFar); going {
		r.Answer = first + foundSoFar + resting(rest, number)
	} else {
		r.Answer = resting(whole.Answer, number)
	}
	if a := whole.ShortAnswer; a != nil && (a.Citation == 0 || number[a.Citation] > 0) {
		short := *a
		short.Citation = number[a.Citation]
		r.ShortAnswer = &short
	}
	r.Normalize()
	return r
}

// maxBriefAnswer is how much is kept of an answer without markers.
const maxBriefAnswer = 1000

var marked = regexp.MustCompile(`(?s)[^\n]*?(?:\[\d{1,9}\])+`)

var oneMarker = regexp.MustCompile(`\[(\d{1,9})\]`)

// resting are the sentences of an answer with a marker that has a new number, with that one. An answer
// without markers stays, but for its end.
func resting(answer string, number map[int]int) string {
	var out []string
	for _, sentence := range marked.FindAllString(answer, -1) {
		kept := false
		renumbered := oneMarker.ReplaceAllStringFunc(sentence, func(m string) string {
			old, _ := strconv.Atoi(m[1 : len(m)-1]) // nine digits at most
			if number[old] == 0 {
				return ""
			}
			kept = true
			return fmt.Sprintf("[%d]", number[old])
		})
		renumbered = strings.TrimSpace(strings.TrimLeft(renumbered, "#>-*+ \t"))
		if kept && !strings.HasPrefix(renumbered, "|") { // a cell says nothing without its table
			out = append(out, renumbered)
		}
	}
	if len(out) == 0 && !oneMarker.MatchString(answer) {
		return Clip(answer, maxBriefAnswer)
	}
	return strings.Join(out, "\n")
}
