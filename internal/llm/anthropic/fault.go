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

	sdk "github.com/anthropics/anthropic-sdk-go"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// fault is a failed call.
type fault struct {
	err       *marchwarden.Error
	retryable bool
	open      bool // what became of the request is unknown
	after     time.Duration
	hasAfter  bool
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// Retryable reports whether the same call may succeed later.
func (f *fault) Retryable() bool { return f.retryable }

// RetryAfter is the wait that the provider asked for, if it did.
func (f *fault) RetryAfter() (time.Duration, bool) { return f.after, f.hasAfter }

func newFault(code marchwarden.Code, retryable bool, hint, format string, args ...any) *fault {
	e := marchwarden.Errorf(code, format, args...)
	e.Hint = hint
	return &fault{err: e, retryable: retryable}
}

// The hints.
const (
	hintKey     = "check ANTHROPIC_API_KEY"
	hintSpend   = "raise the spend limit or add credit in the provider's console, or choose another provider with --model"
	hintModel   = "check that the key may use the model, or choose another with --model"
	hintNetwork = "check the network and ANTHROPIC_BASE_URL"
)

// fault classifies the error of a call. Errors of the SDK do not leave here: their
// texts hold whole bodies.
func (m *Model) fault(ctx context.Context, w *watch, err error, opened bool) *fault {
	var api *sdk.Error
	switch {
	case ctx.Err() != nil:
		f := newFault(marchwarden.CodeCanceled, false, "", "the call to %s was stopped", m.ID())
		f.err.Err, f.open = ctx.Err(), true
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
	case errors.As(err, &api):
		return m.apiFault(api)
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
var codes = map[sdk.ErrorType]marchwarden.Code{
	sdk.ErrorTypeRateLimitError:      marchwarden.CodeRateLimited,
	sdk.ErrorTypeOverloadedError:     marchwarden.CodeUnavailable,
	sdk.ErrorTypeAPIError:            marchwarden.CodeUnavailable,
	sdk.ErrorTypeTimeoutError:        marchwarden.CodeTimeout,
	sdk.ErrorTypeAuthenticationError: marchwarden.CodeDenied,
	sdk.ErrorTypePermissionError:     marchwarden.CodeDenied,
	sdk.ErrorTypeBillingError:        marchwarden.CodeDenied,
	sdk.ErrorTypeNotFoundError:       marchwarden.CodeDenied,
	sdk.ErrorTypeInvalidRequestError: marchwarden.CodeInvalid,
	"request_too_large":              marchwarden.CodeInvalid,
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

func (m *Model) apiFault(api *sdk.Error) *fault {
	var body struct {
		Error struct {
			Message string `json:"message"`
			Details struct {
				Code string `json:"error_code"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(api.RawJSON()), &body) // a body of another form has no message for people
	code, known := codes[api.Type()]
	if !known {
		code = byStatus(api.StatusCode)
	}
	spent := api.Type() == sdk.ErrorTypeBillingError || api.StatusCode == http.StatusPaymentRequired
	for _, word := range spendWords {
		spent = spent || strings.Contains(strings.ToLower(body.Error.Message+" "+body.Error.Details.Code), word)
	}
	what, hint := "fails", ""
	switch {
	case spent:
		code, what, hint = marchwarden.CodeDenied, "refuses to spend more on this account", hintSpend
	case api.Type() == sdk.ErrorTypeAuthenticationError || api.StatusCode == http.StatusUnauthorized:
		what, hint = "refuses the key", hintKey
	case api.StatusCode == http.StatusNotFound && api.Type() == "":
		code, what, hint = marchwarden.CodeDenied, "does not answer at this address", hintNetwork
	case code == marchwarden.CodeDenied:
		what, hint = fmt.Sprintf("refuses access to the model %q", m.name), hintModel
	case code == marchwarden.CodeRateLimited:
		what = "limits the rate of requests and asks to come back later"
	case code == marchwarden.CodeInvalid:
		what = "refuses the request"
	case code == marchwarden.CodeTimeout:
		what = "took too long"
	case api.Type() == sdk.ErrorTypeOverloadedError:
		what = "is overloaded"
	}
	sentence := "anthropic " + what
	if api.StatusCode >= 400 {
		sentence += " (status " + strconv.Itoa(api.StatusCode) + ")"
	}
	if said := httpapi.Said(body.Error.Message, m.secrets); said != "" {
		sentence += ": " + said
	}
	f := newFault(code, code == marchwarden.CodeRateLimited || code == marchwarden.CodeUnavailable || code == marchwarden.CodeTimeout, hint, "%s", sentence)
	if api.Response != nil {
		if api.Response.Header.Get("X-Should-Retry") == "false" {
			f.retryable = false
		}
		f.after, f.hasAfter = httpapi.RetryAfter(api.Response.Header, time.Time{})
	}
	return f
}
