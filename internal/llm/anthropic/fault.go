package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// The hints.
const (
	hintKey     = "check ANTHROPIC_API_KEY"
	hintSpend   = "raise the spend limit or add credit in the provider's console, or choose another provider with --model"
	hintModel   = "check that the key may use the model, or choose another with --model"
	hintNetwork = "check the network and ANTHROPIC_BASE_URL"
)

// codes are the codes by the type of an error, which says more than its status:
// an error inside a stream has the status 200.
var codes = map[string]marchwarden.Code{
	"rate_limit_error":      marchwarden.CodeRateLimited,
	"overloaded_error":      marchwarden.CodeUnavailable,
	"api_error":             marchwarden.CodeUnavailable,
	"timeout_error":         marchwarden.CodeTimeout,
	"authentication_error":  marchwarden.CodeDenied,
	"permission_error":      marchwarden.CodeDenied,
	"billing_error":         marchwarden.CodeDenied,
	"not_found_error":       marchwarden.CodeDenied,
	"invalid_request_error": marchwarden.CodeInvalid,
	"request_too_large":     marchwarden.CodeInvalid,
}

// byStatus is the code of an error of an unknown type.
func byStatus(status int) marchwarden.Code {
	switch {
	case status == http.StatusTooManyRequests:
		return marchwarden.CodeRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return marchwarden.CodeTimeout
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden,
		status == http.StatusNotFound, status == http.StatusProxyAuthRequired:
		return marchwarden.CodeDenied
	case status == http.StatusConflict, status >= 500, status < 400:
		return marchwarden.CodeUnavailable
	}
	return marchwarden.CodeInvalid
}

// spendWords are in the messages about spending, which come with several types
// and statuses and no end in sight.
var spendWords = []string{"spend limit", "credit balance", "api usage limits", "enforced_spend_limit_reached"}

// refused is the fault of an error that the provider reports, in place of a reply or inside one. A
// body of another form has no message for people.
func (m *Model) refused(status int, header http.Header, body []byte) error {
	var said struct {
		Error struct {
			Type    string // such as "overloaded_error"
			Message string
			Details struct {
				Code string `json:"error_code"`
			}
		}
	}
	_ = json.Unmarshal(body, &said)
	e := said.Error
	code, known := codes[e.Type]
	if !known {
		code = byStatus(status)
	}
	text := strings.ToLower(e.Message + " " + e.Details.Code)
	spent := e.Type == "billing_error" || status == http.StatusPaymentRequired || slices.ContainsFunc(spendWords, func(w string) bool { return strings.Contains(text, w) })
	what, hint := "fails", ""
	switch {
	case spent:
		code, what, hint = marchwarden.CodeDenied, "refuses to spend more on this account", hintSpend
	case e.Type == "authentication_error" || status == http.StatusUnauthorized:
		what, hint = "refuses the key", hintKey
	case status == http.StatusNotFound && e.Type == "":
		code, what, hint = marchwarden.CodeDenied, "does not answer at this address", hintNetwork
	case code == marchwarden.CodeDenied:
		what, hint = fmt.Sprintf("refuses access to the model %q", m.name), hintModel
	case code == marchwarden.CodeRateLimited:
		what = "limits the rate of requests and asks to come back later"
	case code == marchwarden.CodeInvalid:
		what = "refuses the request"
	case code == marchwarden.CodeTimeout:
		what = "took too long"
	case e.Type == "overloaded_error":
		what = "is overloaded"
	}
	if status >= 400 {
		what += " (status " + strconv.Itoa(status) + ")"
	}
	if words := m.wire.Said(e.Message); words != "" {
		what += ": " + words
	}
	passing := code == marchwarden.CodeRateLimited || code == marchwarden.CodeUnavailable || code == marchwarden.CodeTimeout
	f := llm.NewFault(code, passing && header.Get("X-Should-Retry") != "false", hint, "anthropic %s", what)
	f.Wait, f.Waits = httpapi.RetryAfter(header, time.Time{})
	return f
}
