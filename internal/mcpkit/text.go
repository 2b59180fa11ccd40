package mcpkit

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// maxErrorChars bounds the text of a tool error.
const maxErrorChars = 600

// hintMark parts what is wrong from what to do, in the text of a tool error.
const hintMark = "\nhint: "

// remedies is the table from code to tool error: what to do about the failure,
// unless the error has a hint of its own, and what to say instead of the
// error's own words where those are not the caller's business.
var remedies = map[marchwarden.Code]struct{ hint, instead string }{
	marchwarden.CodeInvalid:     {hint: "correct the arguments by the tool's input schema and call again"},
	marchwarden.CodeNotFound:    {hint: "check the trace id, or ask the question without resume"},
	marchwarden.CodeDenied:      {hint: "ask another researcher, or a person who has access"},
	marchwarden.CodeUnavailable: {hint: "call again later"},
	marchwarden.CodeExhausted:   {hint: "raise the limit in constraints, or choose a greater depth"},
	marchwarden.CodeCanceled:    {hint: "call again if the answer is still wanted"},
	marchwarden.CodeUnsupported: {hint: "ask another researcher"},
	marchwarden.CodeCorrupt:     {hint: "ask the question again without resume; the stored evidence of that run is damaged"},
	marchwarden.CodeNotRecorded: {hint: "ask the question again without resume; that run was not recorded to the end"},
	marchwarden.CodeRateLimited: {hint: "call again later"},
	marchwarden.CodeTimeout:     {hint: "call again later"},
	marchwarden.CodeTruncated:   {hint: "call again"},
	marchwarden.CodeMalformed:   {hint: "call again later"},
	marchwarden.CodeRefused:     {hint: "ask the question in other words, or another researcher"},
	marchwarden.CodeInternal:    {hint: "the server's log has the details", instead: "internal error: this call failed, others are not affected"},
}

// failure makes the tool error of err: one line that says what is wrong, one
// that says what to do. Only an error's first line is shown, so no stack trace
// that somebody put into an error gets out.
func failure(err error) *mcp.CallToolResult {
	code := marchwarden.CodeOf(err)
	remedy, known := remedies[code]
	if !known {
		code, remedy = marchwarden.CodeInternal, remedies[marchwarden.CodeInternal]
	}
	text := remedy.instead
	if text == "" {
		first, _, _ := strings.Cut(err.Error(), "\n")
		text = clip(plain(first), maxErrorChars)
	}
	hint := remedy.hint
	if own := marchwarden.HintOf(err); own != "" && remedy.instead == "" {
		hint = clip(plain(own), maxErrorChars)
	}
	facts := map[string]any{"code": string(code), "hint": hint}
	var e *marchwarden.Error
	if errors.As(err, &e) && e.Field != "" {
		facts["field"] = e.Field
	}
	return &mcp.CallToolResult{
		Meta:    mcp.Meta{metaError: facts},
		Content: []mcp.Content{&mcp.TextContent{Text: text + hintMark + hint}},
		IsError: true,
	}
}

// maxShownExcerpt is how much of an excerpt the readable text shows; structured
// content has it whole.
const maxShownExcerpt = 240

// shortText renders a result in plain lines: answer, numbered sources, gaps,
// confidence, trace.
func shortText(r *marchwarden.Result) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(block(r.Answer)))
	b.WriteString("\n")
	if len(r.Citations) > 0 {
		b.WriteString("\nSources\n")
	}
	for i, c := range r.Citations {
		fmt.Fprintf(&b, "[%d] %s", i+1, plain(c.Locator))
		if c.Title != "" {
			fmt.Fprintf(&b, " (%s)", plain(c.Title))
		}
		fmt.Fprintf(&b, "\n    \"%s\"\n", clip(plain(c.RawExcerpt), maxShownExcerpt))
	}
	if len(r.Gaps) > 0 {
		b.WriteString("\nGaps\n")
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "- %s (%s): %s\n", plain(g.Topic), categoryWords(g.Category), plain(g.Detail))
	}
	fmt.Fprintf(&b, "\nConfidence %.2f · trace %s\n", float64(r.Confidence), r.TraceID)
	return b.String()
}

// categoryWords says what a category of gaps means; one that is not in the contract
// keeps its name.
func categoryWords(c marchwarden.GapCategory) string {
	switch c {
	case marchwarden.SourceNotFound:
		return "not found in what was searched"
	case marchwarden.AccessDenied:
		return "could not be reached or read"
	case marchwarden.ContradictorySources:
		return "sources disagree"
	case marchwarden.BudgetExhausted:
		return "the budget ended first"
	case marchwarden.ScopeExceeded:
		return "needs another kind of researcher"
	}
	return plain(string(c))
}

// plain makes one line of text from outside: runs of white space become a
// space, and what could steer a terminal or hide text is dropped.
func plain(s string) string {
	return strings.Join(strings.Fields(strings.Map(printable, s)), " ")
}

// block drops the same from text of several lines, and keeps its lines.
func block(s string) string { return strings.Map(printable, s) }

// printable drops control and formatting characters (escape sequences,
// direction overrides, zero-width marks) other than white space. The joiners
// stay: some scripts and symbols are written with them, whose words plaintext.Line
// would part.
func printable(r rune) rune {
	switch {
	case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
		return r
	case unicode.IsControl(r) && !unicode.IsSpace(r), unicode.Is(unicode.Cf, r):
		return -1
	case r == '\r', r == '\v', r == '\f', r == '\u0085':
		return ' '
	}
	return r
}

// clip shortens s to at most n characters, its ellipsis included.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
