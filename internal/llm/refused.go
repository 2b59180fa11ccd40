package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// This part is what providers say in place of a reply, or inside one, and what that is called.

// complaint is what a provider says of itself.
type complaint struct{ message, kind, code, param string }

// statuses are what a kind of complaint stands for, which says more than the status of its answer: inside a
// stream that is 200.
var statuses = map[string]int{
	"rate_limit_error": http.StatusTooManyRequests, "overloaded_error": overloaded, "api_error": http.StatusInternalServerError, "timeout_error": http.StatusGatewayTimeout,
	"authentication_error": http.StatusUnauthorized, "permission_error": http.StatusForbidden, "billing_error": http.StatusPaymentRequired,
	"not_found_error": http.StatusNotFound, "request_too_large": http.StatusRequestEntityTooLarge,
}

const overloaded = 529

// spendWords are how providers say that the account has no money left, with several kinds and statuses.
var spendWords = []string{"spend limit", "credit balance", "api usage limits", "enforced_spend_limit_reached", "spend_limit_reached",
	"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits"}

// refusal is the fault of an answer that is no reply by its status or its kind, or nil.
func (w *Wire) refusal(res *http.Response, media string) error {
	switch {
	case res.StatusCode >= 400:
		body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // the status says enough
		c, ok := complaintIn(body)
		if !ok && res.StatusCode != http.StatusNotFound && !strings.Contains(res.Header.Get("Content-Type"), "html") {
			c.message = string(body)
		}
		return w.refused(res.StatusCode, c, res.Header)
	case res.StatusCode >= 300:
		return NewFault(marchwarden.CodeInvalid, false, w.Hints.Address, "what answers at %s is a redirect, which is not followed", w.Host())
	case media == "text/html":
		return w.foreign()
	}
	return nil
}

// foreign is the fault of an answer that is not of the provider's protocol.
func (w *Wire) foreign() *Fault {
	return NewFault(marchwarden.CodeMalformed, false, w.Hints.Address+", and whether this network wants a login", "what answers at %s does not speak the protocol of %s", w.Host(), w.Who)
}

// refused makes the fault of a status and what the provider said with it.
func (w *Wire) refused(status int, c complaint, header http.Header) *Fault {
	if by := statuses[c.kind]; by != 0 {
		status = by
	}
	said := strings.ToLower(c.message + " param " + c.param + " code " + c.code + " " + c.kind)
	code, hint, what := marchwarden.CodeInvalid, "", ""
	switch {
	case status == http.StatusPaymentRequired || anyIn(said, spendWords):
		code, hint, what = marchwarden.CodeDenied, w.Hints.Spend, "refuses to spend more on this account"
	case status == http.StatusTooManyRequests:
		code, what = marchwarden.CodeRateLimited, "limits the rate of requests (429) and asks to come back later"
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		code, hint, what = marchwarden.CodeDenied, w.Hints.Key, "refuses the key"
	case status == http.StatusForbidden:
		code, hint, what = marchwarden.CodeDenied, w.Hints.Key+", and that it may use the model; --model chooses another", "denies access"
	case status == http.StatusNotFound && c == complaint{}: // it knows nothing of the protocol at this address
		return NewFault(marchwarden.CodeDenied, false, w.Hints.Address, "nothing speaks the protocol of %s at %s", w.Who, w.Host())
	case status == http.StatusNotFound:
		code, hint, what = marchwarden.CodeDenied, w.Hints.Model, "does not know the model "+w.Model
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		code, what = marchwarden.CodeTimeout, "took too long"
	case status == overloaded:
		code, what = marchwarden.CodeUnavailable, "is overloaded"
	case status >= 500, status == http.StatusConflict, status == http.StatusTooEarly:
		code, what = marchwarden.CodeUnavailable, fmt.Sprintf("failed with status %d", status)
	case TooLong(said), status == http.StatusRequestEntityTooLarge:
		hint, what = "lower the token budget, or choose a model with a larger context window", "refuses an input that is too long for "+w.Model
	default:
		what = fmt.Sprintf("refuses the request (status %d)", status)
	}
	if words := w.Said(c.message); words != "" {
		what += ": " + words
	}
	passing := code == marchwarden.CodeRateLimited || code == marchwarden.CodeUnavailable || code == marchwarden.CodeTimeout
	f := NewFault(code, passing && header.Get("X-Should-Retry") != "false", hint, "%s %s", w.Who, what)
	f.Wait, f.Waits = httpapi.RetryAfter(header, time.Time{})
	f.Status, f.Said = status, said
	return f
}

// complaintIn reads the error of a body or an event: an object or a string called error, or a message on its own.
func complaintIn(data []byte) (complaint, bool) {
	var outer struct{ Error, Object, Message, Detail, Type, Code json.RawMessage }
	if json.Unmarshal(data, &outer) != nil {
		return complaint{}, false
	}
	if raw := bytes.TrimSpace(outer.Error); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		var inner struct {
			Message, Type, Code, Param json.RawMessage
			Details                    struct {
				Code string `json:"error_code"`
			}
		}
		if json.Unmarshal(raw, &inner) == nil {
			return complaint{Word(inner.Message), Word(inner.Type), Word(inner.Code) + inner.Details.Code, Word(inner.Param)}, true
		}
		return complaint{message: Word(raw)}, true
	}
	if Word(outer.Object) == "error" || Word(outer.Type) == "error" || outer.Detail != nil {
		return complaint{message: Word(outer.Message) + Word(outer.Detail), kind: Word(outer.Type), code: Word(outer.Code)}, true
	}
	return complaint{}, false
}

// Word is a JSON string without its quotes, and other JSON as it is.
func Word(raw json.RawMessage) string {
	if s, ok := Text(raw); ok {
		return s
	}
	return string(raw)
}

// status is the HTTP status that a complaint inside a stream stands for.
func (c complaint) status() int {
	if n, err := strconv.Atoi(c.code); err == nil && n >= 400 && n < 600 {
		return n
	}
	if strings.Contains(c.kind+" "+c.code, "rate_limit") {
		return http.StatusTooManyRequests
	}
	if c.kind == "invalid_request_error" || strings.HasPrefix(c.code, "invalid_") || TooLong(c.code) {
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}

// TooLong knows how providers say, in lower case, that the input is over the context window, where no other form
// of the request would help.
func TooLong(said string) bool {
	return anyIn(said, []string{"context_length", "context length", "context window", "context size", "maximum context", "too many tokens", "prompt is too long"})
}

func anyIn(said string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
}
