package mcpkit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// lean leaves out of a result what it says twice: blocks, of which the answer is the Markdown,
// and snippets that the excerpt has.
func lean(r *marchwarden.Result) {
	r.Blocks = nil
	for i := range r.Citations {
		if c := &r.Citations[i]; strings.Contains(c.RawExcerpt, strings.TrimSuffix(c.Snippet, "…")) {
			c.Snippet = ""
		}
	}
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
