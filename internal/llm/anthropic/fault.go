package anthropic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// fault is a failed call.
type fault struct {
	llm.Fault
	open bool // what became of the request is unknown
}

func newFault(code marchwarden.Code, retryable bool, hint, format string, args ...any) *fault {
	e := marchwarden.Errorf(code, format, args...)
	e.Hint = hint
	return &fault{Fault: llm.Fault{Err: e, Retry: retryable}}
}

// The hints.
const (
	hintKey     = "check ANTHROPIC_API_KEY"
	hintSpend   = "raise the spend limit or add credit in the provider's console, or choose another provider with --model"
	hintModel   = "check that the key may use the model, or choose another with --model"
	hintNetwork = "check the network and ANTHROPIC_BASE_URL"
)

// fault classifies the error of a call.
func (m *Model) fault(ctx context.Context, w *watch, err error, opened bool) *fault {
	var said *refusal
	switch {
	case ctx.Err() != nil:
		f := newFault(marchwarden.CodeCanceled, false, "", "the call to %s was stopped", m.ID())
		f.Err.Err, f.open = ctx.Err(), true
		return f
	case w.silent():
		f := newFault(marchwarden.CodeTimeout, true, "", "anthropic sent nothing for %s", m.idle)
		f.open = true
		return f
	case errors.Is(err, errTooLarge), errors.Is(err, bufio.ErrTooLong):
		return newFault(marchwarden.CodeMalformed, false, "", "the reply of anthropic is over the size limit")
	case errors.Is(err, errNoStream):
		return newFault(marchwarden.CodeMalformed, false, hintNetwork, "what answered in place of anthropic does not speak its protocol")
	case errors.Is(err, errRedirect):
		return newFault(marchwarden.CodeUnavailable, false, hintNetwork, "what answered in place of anthropic is a redirect, which is not followed")
	case errors.As(err, &said):
		return m.refused(said)
	case isTimeout(err):
		f := newFault(marchwarden.CodeTimeout, true, hintNetwork, "anthropic did not answer in time")
		f.open = true
		return f
	case opened && (errors.Is(err, errCut) || isNetwork(err)):
		return newFault(marchwarden.CodeTruncated, true, "", "the reply of anthropic broke off in the middle")
	case opened:
		return newFault(marchwarden.CodeMalformed, true, "", "the reply of anthropic cannot be read")
	}
	var outer *url.Error // its text repeats the address, which may hold a secret
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return newFault(marchwarden.CodeUnavailable, true, hintNetwork, "anthropic cannot be reached: %s", httpapi.Said(err.Error(), m.secrets))
}

// isTimeout reports whether a limit of the HTTP client or of the system ended the wait.
func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// isNetwork reports whether reading failed below the protocol: what is not about
// JSON or the form of events is.
func isNetwork(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return !errors.As(err, &syntax) && !errors.As(err, &kind)
}

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

// refused is the fault of an error that the provider reports.
func (m *Model) refused(r *refusal) *fault {
	code, known := codes[r.kind]
	if !known {
		code = byStatus(r.status)
	}
	spent := r.kind == "billing_error" || r.status == http.StatusPaymentRequired
	for _, word := range spendWords {
		spent = spent || strings.Contains(strings.ToLower(r.message+" "+r.detail), word)
	}
	what, hint := "fails", ""
	switch {
	case spent:
		code, what, hint = marchwarden.CodeDenied, "refuses to spend more on this account", hintSpend
	case r.kind == "authentication_error" || r.status == http.StatusUnauthorized:
		what, hint = "refuses the key", hintKey
	case r.status == http.StatusNotFound && r.kind == "":
		code, what, hint = marchwarden.CodeDenied, "does not answer at this address", hintNetwork
	case code == marchwarden.CodeDenied:
		what, hint = fmt.Sprintf("refuses access to the model %q", m.name), hintModel
	case code == marchwarden.CodeRateLimited:
		what = "limits the rate of requests and asks to come back later"
	case code == marchwarden.CodeInvalid:
		what = "refuses the request"
	case code == marchwarden.CodeTimeout:
		what = "took too long"
	case r.kind == "overloaded_error":
		what = "is overloaded"
	}
	sentence := "anthropic " + what
	if r.status >= 400 {
		sentence += " (status " + strconv.Itoa(r.status) + ")"
	}
	if said := httpapi.Said(r.message, m.secrets); said != "" {
		sentence += ": " + said
	}
	f := newFault(code, code == marchwarden.CodeRateLimited || code == marchwarden.CodeUnavailable || code == marchwarden.CodeTimeout, hint, "%s", sentence)
	if r.header.Get("X-Should-Retry") == "false" {
		f.Retry = false
	}
	f.Wait, f.Waits = httpapi.RetryAfter(r.header, time.Time{})
	return f
}
