package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// answered is the fault of an answer that is no reply by its status or its kind, or nil.
func (h *heard) answered(res *http.Response, kind string) error {
	w := h.model.wire
	switch {
	case res.StatusCode >= 400:
		return h.failedWith(res)
	case res.StatusCode >= 300:
		return llm.NewFault(marchwarden.CodeInvalid, false, h.model.addressHint(), "what answers at %s is a redirect, which is not followed", w.Host())
	case kind == "text/html":
		return h.foreign()
	}
	return nil
}

// foreign is the fault of an answer that is not of this protocol.
func (h *heard) foreign() error {
	h.opened = false
	w := h.model.wire
	return llm.NewFault(marchwarden.CodeMalformed, false, "check the base URL of "+w.Who+", and whether this network wants a login", "what answers at %s does not speak the protocol of %s", w.Host(), w.Who)
}

func (h *heard) failedWith(res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	c, ok := complaintIn(body)
	if !ok && res.StatusCode == http.StatusNotFound { // it knows nothing of the protocol at this address
		w := h.model.wire
		return llm.NewFault(marchwarden.CodeDenied, false, h.model.addressHint(), "nothing speaks the protocol of %s at %s", w.Who, w.Host())
	}
	if err == nil && !ok && !strings.Contains(res.Header.Get("Content-Type"), "html") {
		c.message = string(body)
	}
	return h.complained(res.StatusCode, c, res.Header)
}

// broke is the fault of an error inside a reply.
func (h *heard) broke(c complaint, header http.Header) error {
	h.opened = h.text.Len() > 0 || h.thinking > 0 || len(h.calls) > 0 || h.usage != nil
	return h.complained(c.status(), c, header)
}

// complained makes the fault of a status and what the server said with it.
func (h *heard) complained(status int, c complaint, header http.Header) error {
	m, who := h.model, h.model.cfg.Provider
	h.status, h.refused = status, strings.ToLower(c.message+" param "+c.param+" code "+c.code)
	said := ""
	if text := m.wire.Said(c.message); text != "" {
		said = ": " + text
	}
	set := func(code marchwarden.Code, retry bool, hint, format string, args ...any) error {
		f := llm.NewFault(code, retry, hint, "%s", fmt.Sprintf(format, args...)+said)
		f.Wait, f.Waits = httpapi.RetryAfter(header, time.Time{})
		return f
	}
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
	case tooLong(h.refused) || status == http.StatusRequestEntityTooLarge:
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
	setting := map[string]string{"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_HOST"}[m.cfg.Provider]
	if setting == "" {
		setting = "the base URL of " + m.cfg.Provider
	}
	return "check " + setting + ": it must be the address that answers itself"
}

type complaint struct{ message, kind, code, param string }

// complaintIn reads the error of a body or an event: an object or a string called error, or a message on its own.
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
	if outer.Object == "error" || word(outer.Type) == "error" || outer.Detail != nil {
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
	if c.kind == "invalid_request_error" || strings.HasPrefix(c.code, "invalid_") || tooLong(c.code) {
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}
