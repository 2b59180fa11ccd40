package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	status  int    // of the answer, or 0
	refused string // what a server said that refused the request, in lower case
}

// newFault is the fault of a call that got no answer that can be used.
func newFault(retry bool, e *marchwarden.Error) *fault {
	return &fault{Fault: llm.Fault{Err: e, Retry: retry}}
}

// failure makes the fault of a request that ended with err. res is nil when there
// was no answer.
func (m *Model) failure(parent, ctx context.Context, res *http.Response, err error) *fault {
	who := m.cfg.Provider
	var said *reported
	switch {
	case parent.Err() != nil:
		e := marchwarden.Errorf(marchwarden.CodeCanceled, "the call to %s was canceled", who)
		e.Err = parent.Err()
		return newFault(false, e)
	case errors.Is(context.Cause(ctx), errSilent):
		e := marchwarden.Errorf(marchwarden.CodeTimeout, "%s sent nothing for %s", who, m.cfg.Idle)
		if m.local() {
			e.Hint = "a local model may still be loading: try again, or choose a smaller one"
		}
		return newFault(true, e)
	case timedOut(err):
		return newFault(true, marchwarden.Errorf(marchwarden.CodeTimeout, "the connection to %s at %s timed out", who, m.host()))
	case errors.Is(err, errTooLarge):
		return newFault(false, marchwarden.Errorf(marchwarden.CodeMalformed, "the reply of %s is over %d bytes", who, m.cfg.MaxReply))
	case res == nil:
		return m.unreachable(err)
	case res.StatusCode >= 400:
		return m.answered(res)
	case res.StatusCode >= 300:
		e := marchwarden.Errorf(marchwarden.CodeInvalid, "what answers at %s is a redirect, which is not followed", m.host())
		e.Hint = m.addressHint()
		return newFault(false, e)
	case errors.As(err, &said):
		return m.complained(said.complaint.status(), said.complaint, res.Header)
	case errors.Is(err, errNotIt):
		e := marchwarden.Errorf(marchwarden.CodeMalformed, "what answers at %s is not a chat completions server", m.host())
		e.Hint = "check the base URL of " + who + ", and whether this network wants a login"
		return newFault(false, e)
	case errors.Is(err, errGarbled):
		return newFault(true, marchwarden.Errorf(marchwarden.CodeMalformed, "the reply of %s has a part that is no JSON", who))
	default:
		return newFault(true, marchwarden.Errorf(marchwarden.CodeTruncated, "the reply of %s broke off in the middle", who))
	}
}

// timedOut tells the timeouts of the HTTP client from other errors.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// unreachable is the fault of a server that gave no answer.
func (m *Model) unreachable(err error) *fault {
	var at *url.Error
	if errors.As(err, &at) { // it repeats the address
		err = at.Err
	}
	e := marchwarden.Errorf(marchwarden.CodeUnavailable, "%s cannot be reached at %s: %s", m.cfg.Provider, m.host(), m.clean(err.Error()))
	switch {
	case m.cfg.Provider == "ollama":
		e.Hint = "is Ollama running? start it with: ollama serve"
	case m.local():
		e.Hint = "is the server running?"
	}
	return newFault(true, e)
}

// answered is the fault of an answer with an error status.
func (m *Model) answered(res *http.Response) *fault {
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	c, ok := complaintIn(body)
	if !ok && res.StatusCode == http.StatusNotFound {
		return m.elsewhere()
	}
	if err == nil && !ok && !strings.Contains(res.Header.Get("Content-Type"), "html") {
		c.message = string(body)
	}
	return m.complained(res.StatusCode, c, res.Header)
}

// elsewhere is the fault of a server that knows nothing of the protocol at this
// address.
func (m *Model) elsewhere() *fault {
	f := newFault(false, &marchwarden.Error{
		Code: marchwarden.CodeDenied, Message: fmt.Sprintf("nothing speaks the protocol of %s at %s", m.cfg.Provider, m.host()), Hint: m.addressHint(),
	})
	f.status = http.StatusNotFound
	return f
}

// complained makes the fault of a status and what the server said with it.
func (m *Model) complained(status int, c complaint, h http.Header) *fault {
	who := m.cfg.Provider
	said := ""
	if text := m.clean(c.message); text != "" {
		said = ": " + text
	}
	f := &fault{status: status}
	f.Wait, f.Waits = httpapi.RetryAfter(h, time.Time{})
	set := func(code marchwarden.Code, retry bool, hint, format string, args ...any) *fault {
		f.Err = &marchwarden.Error{Code: code, Message: fmt.Sprintf(format, args...) + said, Hint: hint}
		f.Retry = retry
		return f
	}
	f.refused = strings.ToLower(c.message + " param " + c.param + " code " + c.code)
	switch {
	case status == http.StatusPaymentRequired || c.spent():
		return set(marchwarden.CodeDenied, false, "see the plan and the billing of the account", "%s refuses to spend more on this account", who)
	case status == http.StatusTooManyRequests:
		return set(marchwarden.CodeRateLimited, true, "", "%s limits the rate of requests (429) and asks to come back later", who)
	case status == http.StatusUnauthorized:
		return set(marchwarden.CodeDenied, false, m.keyHint(), "%s refuses the key", who)
	case status == http.StatusForbidden:
		return set(marchwarden.CodeDenied, false, m.keyHint(), "%s denies access", who)
	case status == http.StatusNotFound:
		hint := "check the name of the model and the base URL of " + who
		if who == "ollama" {
			hint = "fetch the model first: ollama pull " + m.cfg.Model
		}
		return set(marchwarden.CodeDenied, false, hint, "%s does not know the model %s", who, m.cfg.Model)
	case status == http.StatusRequestTimeout:
		return set(marchwarden.CodeTimeout, true, "", "%s took too long", who)
	case status >= 500 || status == http.StatusConflict || status == http.StatusTooEarly:
		return set(marchwarden.CodeUnavailable, true, "", "%s failed with status %d", who, status)
	case tooLong(f.refused) || status == http.StatusRequestEntityTooLarge:
		return set(marchwarden.CodeInvalid, false, "lower the token budget, or choose a model with a larger context window", "the input is too long for %s", m.ID())
	}
	return set(marchwarden.CodeInvalid, false, "", "%s refuses the request with status %d", who, status)
}

func (m *Model) keyHint() string {
	if m.cfg.Key == "" {
		return "no key is set for " + m.cfg.Provider
	}
	return "check the key of " + m.cfg.Provider
}

// addressHint names what to check when something else is at the address.
func (m *Model) addressHint() string {
	switch m.cfg.Provider {
	case "openai":
		return "check OPENAI_BASE_URL: it must be the address that answers itself"
	case "ollama":
		return "check OLLAMA_HOST: it must be the address that answers itself"
	}
	return "check the base URL of " + m.cfg.Provider + ": it must be the address that answers itself"
}

func (m *Model) host() string {
	u, err := url.Parse(m.cfg.BaseURL)
	if err != nil {
		return m.cfg.Provider
	}
	return u.Host
}

// local tells whether the server is on this machine.
func (m *Model) local() bool {
	u, err := url.Parse(m.cfg.BaseURL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// clean makes a server's words fit for an error.
func (m *Model) clean(s string) string { return httpapi.Said(s, m.secrets) }

// complaint is what a server says about an error.
type complaint struct{ message, kind, code, param string }

// complaintIn reads the error of a body or of an event, in the forms that servers
// have for it: an object or a string called error, or a message on its own.
func complaintIn(data []byte) (complaint, bool) {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(data, &outer) != nil {
		return complaint{}, false
	}
	if raw := bytes.TrimSpace(outer.Error); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		var inner struct{ Message, Type, Code, Param json.RawMessage }
		if json.Unmarshal(raw, &inner) == nil {
			return complaint{word(inner.Message), word(inner.Type), word(inner.Code), word(inner.Param)}, true
		}
		return complaint{message: word(raw)}, true
	}
	if outer.Object == "error" || outer.Detail != nil {
		return complaint{message: word(outer.Message) + word(outer.Detail), kind: word(outer.Type), code: word(outer.Code)}, true
	}
	return complaint{}, false
}

// word is a JSON string without its quotes, and other JSON as it is.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// spent tells whether the account has no money left.
func (c complaint) spent() bool {
	for _, w := range []string{c.code, c.kind} {
		switch w {
		case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits", "spend_limit_reached", "enforced_spend_limit_reached":
			return true
		}
	}
	return false
}

// status is the HTTP status that an error inside a stream stands for.
func (c complaint) status() int {
	if n, err := strconv.Atoi(c.code); err == nil && n >= 400 && n < 600 {
		return n
	}
	if strings.Contains(c.kind+" "+c.code, "rate_limit") {
		return http.StatusTooManyRequests
	}
	if c.kind == "invalid_request_error" {
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}
