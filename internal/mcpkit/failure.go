package mcpkit

import (
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// metaError is the key under which a tool error carries its code and field in
// the result's _meta, for callers that decide by code.
const metaError = "marchwarden/error"

// maxErrorChars bounds the text of a tool error.
const maxErrorChars = 600

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
	facts := map[string]any{"code": string(code)}
	var e *marchwarden.Error
	if errors.As(err, &e) && e.Field != "" {
		facts["field"] = e.Field
	}
	return &mcp.CallToolResult{
		Meta:    mcp.Meta{metaError: facts},
		Content: []mcp.Content{&mcp.TextContent{Text: text + "\nhint: " + hint}},
		IsError: true,
	}
}
