package llm

import (
	"bytes"
	"cmp"
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

// Heard is what of a reply has come in.
type Heard struct {
	Finish  string          // why the reply ended, in the provider's word; "" while it has not
	Model   string          // who answers, as it calls itself; "" if it does not say
	Refusal strings.Builder // what the model says in place of an answer

	wire           *Wire
	call           Call
	opened         bool // the call has cost something
	text, thoughts strings.Builder
	calls          []*heardCall
	slots          map[int64]*heardCall // by the index that pieces name

	counted              bool
	in, out, read, write int64 // tokens, as the provider counts them
}

type heardCall struct {
	id, name string
	whole    string // the input that came at once, which the pieces replace
	input    strings.Builder
}

// mostHeard is the longest text of a reply that a caller reads along, in bytes.
const mostHeard = 64 << 10

// Say adds a piece of the answer's text, which the caller of the call may read along, without the secrets.
func (h *Heard) Say(piece string) {
	h.text.WriteString(piece)
	if h.call.Heard != nil && strings.Contains(piece, "}") && h.text.Len() <= mostHeard {
		h.call.Heard(h.wire.hide.Text(h.text.String()))
	}
}

// Think adds thoughts. They are no part of the answer, but they are signs of work and are paid for.
func (h *Heard) Think(piece string) { h.thoughts.WriteString(piece) }

// CallPiece adds a piece of a tool call. Pieces belong together by their index; where all have the same, a new
// id begins a new call.
func (h *Heard) CallPiece(index int64, id, name, input string) {
	slot := h.slots[index]
	if slot == nil || id != "" && slot.id != "" && id != slot.id {
		slot = &heardCall{}
		h.slots[index] = slot
		h.calls = append(h.calls, slot)
	}
	slot.id, slot.name = cmp.Or(slot.id, id), cmp.Or(slot.name, name)
	slot.input.WriteString(input)
}

// CallWhole notes the input that a call begins with, which stands where no pieces of it come.
func (h *Heard) CallWhole(index int64, input string) { h.slots[index].whole = input }

// Count notes what the provider has counted so far, which only grows: all input, cached included, and all output.
func (h *Heard) Count(in, out, read, write int64) {
	h.counted = true
	h.in, h.out, h.read, h.write = max(h.in, in), max(h.out, out), max(h.read, read), max(h.write, write)
}

// Complaint is the fault that a part of a reply stands for, or nil if it is none.
func (h *Heard) Complaint(data []byte, header http.Header) error {
	c, ok := complaintIn(data)
	if !ok {
		return nil
	}
	h.opened = h.text.Len()+h.Refusal.Len()+h.thoughts.Len()+len(h.calls) > 0 || h.counted
	return h.wire.refused(c.status(), c, header)
}

// Foreign is the fault of an answer that is not of the provider's protocol.
func (h *Heard) Foreign() error {
	h.opened = false
	return h.wire.foreign()
}

// Reply is what was heard, without why it ended.
func (h *Heard) Reply() Reply {
	r := h.said()
	r.Usage = h.usage()
	return r
}

// said is what of a reply can be seen.
func (h *Heard) said() Reply {
	r := Reply{Text: h.text.String()}
	for _, c := range h.calls {
		r.Calls = append(r.Calls, ToolCall{Name: c.name, Input: ToolInput(cmp.Or(c.input.String(), c.whole))})
	}
	return r
}

// Lost is the reply of a call that failed: what it has cost.
func (h *Heard) Lost() Reply {
	if !h.opened {
		return Reply{}
	}
	return Reply{Usage: h.usage()}
}

// usage is what the call consumed. A provider's numbers are believed up to four times the estimate and 100,000 of
// input, twice MaxTokens and 1,000 of output; what is missing is estimated, so that no call is free.
func (h *Heard) usage() Usage {
	guess, most := Estimate(h.call), max(h.call.MaxTokens, 1)
	u := Usage{In: within(h.in, 4*guess+100_000), Out: within(h.out, 2*most+1000)}
	if u.In == 0 {
		u.In = guess
	}
	u.CacheRead = within(h.read, u.In)
	u.CacheWrite = within(h.write, u.In-u.CacheRead)
	if u.Out == 0 || h.Finish == "" { // the count at a stream's start is a placeholder
		u.Out = max(u.Out, min(h.said().Shown()+EstimateText(h.Refusal.String())+EstimateText(h.thoughts.String()), most))
	}
	return u
}

// within clamps a number of tokens that a provider reports.
func within(n int64, most int) int { return int(min(max(n, 0), int64(most))) }

// This part is what providers say in place of a reply, or inside one, and what that is called.

// complaint is what a provider says of itself.
type complaint struct{ message, kind, code, param string }

// statuses are what a kind of complaint inside a stream stands for, whose status is 200. An answer that is an error
// has the right status itself: Ollama calls a missing model an api_error.
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
	return NewFault(marchwarden.CodeMalformed, false, w.Hints.Address+", and whether this network wants a login", "what answers at %s does not speak the protocol of %s", w.Host(), w.Provider)
}

// refused makes the fault of a status and what the provider said with it.
func (w *Wire) refused(status int, c complaint, header http.Header) *Fault {
	said := strings.ToLower(c.message + " param " + c.param + " code " + c.code + " " + c.kind)
	code, hint, what := marchwarden.CodeInvalid, "", ""
	switch {
	case status == http.StatusPaymentRequired || AnyIn(said, spendWords):
		code, hint, what = marchwarden.CodeDenied, w.Hints.Spend, "refuses to spend more on this account"
	case status == http.StatusTooManyRequests:
		code, what = marchwarden.CodeRateLimited, "limits the rate of requests (429) and asks to come back later"
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		code, hint, what = marchwarden.CodeDenied, w.Hints.Key, "refuses the key"
	case status == http.StatusForbidden:
		code, hint, what = marchwarden.CodeDenied, w.Hints.Key+", and that it may use the model; --model chooses another", "denies access"
	case status == http.StatusNotFound && c == complaint{}: // it knows nothing of the protocol at this address
		return NewFault(marchwarden.CodeDenied, false, w.Hints.Address, "nothing speaks the protocol of %s at %s", w.Provider, w.Host())
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
	f := NewFault(code, passing && header.Get("X-Should-Retry") != "false", hint, "%s %s", w.Provider, what)
	f.Wait, _ = httpapi.RetryAfter(header, time.Time{})
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
	if by := statuses[c.kind]; by != 0 {
		return by
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
	return AnyIn(said, []string{"context_length", "context length", "context window", "context size", "maximum context", "too many tokens", "prompt is too long"})
}

// AnyIn reports whether one of the words is in what was said.
func AnyIn(said string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
}
