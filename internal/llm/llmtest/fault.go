package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// Fault is something that goes wrong with one request to a Server. The zero Fault
// is none.
type Fault string

// The faults. Each has the shape that its wire has for it. What a Said says beside
// a fault is used where the fault leaves room for it: a cut stream breaks off in
// the middle of the Said's text.
const (
	FaultRateLimited     Fault = "429_retry_after"      // 429, come back in a second
	FaultRateLimitedBare Fault = "429"                  // 429, no Retry-After
	FaultRateLimitedHour Fault = "429_retry_after_hour" // 429, come back in an hour
	FaultSpendLimit      Fault = "429_spend_limit"      // 429, the account has spent what it may
	FaultDenied          Fault = "401"                  // the key is refused, and echoed in the message
	FaultServer          Fault = "500"                  // an internal error
	FaultOverloaded      Fault = "529"                  // overloaded; 503 on the OpenAI wire
	FaultRefused         Fault = "connection_refused"   // the connection is reset before a byte of an answer
	FaultStall           Fault = "stall"                // headers, then silence
	FaultPings           Fault = "ping_only"            // the stream opens, then only signs of life
	FaultCut             Fault = "stream_cut"           // the stream ends cleanly in the middle
	FaultReset           Fault = "stream_reset"         // the connection is reset in the middle
	FaultErrorEvent      Fault = "error_event"          // an error inside the stream: overloaded
	FaultEmpty           Fault = "empty_content"        // an orderly reply without content
	FaultRefusal         Fault = "refusal"              // the model will not answer
	FaultMaxTokens       Fault = "max_tokens"           // the reply ends at its limit
	FaultInputString     Fault = "tool_input_string"    // a tool's input is a JSON string
	FaultInputBroken     Fault = "tool_input_broken"    // a tool's input is no JSON
	FaultUnknownTool     Fault = "unknown_tool"         // a call of a tool that was not offered
	FaultSameCall        Fault = "same_call"            // the same tool call whatever was asked
	FaultManyCalls       Fault = "64_calls"             // 64 tool calls in one reply
	FaultUsageNegative   Fault = "usage_negative"       // token counts below zero
	FaultUsageHuge       Fault = "usage_huge"           // token counts of 99,999,999,999
	FaultUsageMissing    Fault = "usage_missing"        // no token counts
	FaultFlood           Fault = "500_mib"              // a reply of 500 MiB, as long as the client takes it
	FaultHTML            Fault = "html_200"             // status 200 and the page of a captive portal
	FaultCutJSON         Fault = "cut_json"             // the JSON of the answer breaks off
	FaultStrange         Fault = "strange"              // a good reply among unknown events, blocks and fields
)

// FaultCase is a fault and what a model behind Generate may make of it.
type FaultCase struct {
	Fault Fault
	// Codes are the codes of which the error must have one. None: Generate
	// succeeds, and the fault is in the Reply.
	Codes []marchwarden.Code
	// Charged says that the provider may have counted the call, so that the
	// usage beside the error is not zero.
	Charged bool
	// Retryable says that the same call may succeed later.
	Retryable bool
}

// Faults are all faults, each once.
var Faults = []FaultCase{
	{Fault: FaultRateLimited, Codes: []marchwarden.Code{marchwarden.CodeRateLimited}, Retryable: true},
	{Fault: FaultRateLimitedBare, Codes: []marchwarden.Code{marchwarden.CodeRateLimited}, Retryable: true},
	{Fault: FaultRateLimitedHour, Codes: []marchwarden.Code{marchwarden.CodeRateLimited}, Retryable: true},
	{Fault: FaultSpendLimit, Codes: []marchwarden.Code{marchwarden.CodeDenied}},
	{Fault: FaultDenied, Codes: []marchwarden.Code{marchwarden.CodeDenied}},
	{Fault: FaultServer, Codes: []marchwarden.Code{marchwarden.CodeUnavailable}, Retryable: true},
	{Fault: FaultOverloaded, Codes: []marchwarden.Code{marchwarden.CodeUnavailable}, Retryable: true},
	{Fault: FaultRefused, Codes: []marchwarden.Code{marchwarden.CodeUnavailable}, Retryable: true},
	{Fault: FaultStall, Codes: []marchwarden.Code{marchwarden.CodeTimeout}, Charged: true, Retryable: true},
	{Fault: FaultPings, Codes: []marchwarden.Code{marchwarden.CodeTimeout}, Charged: true, Retryable: true},
	{Fault: FaultCut, Codes: []marchwarden.Code{marchwarden.CodeTruncated}, Charged: true, Retryable: true},
	{Fault: FaultReset, Codes: []marchwarden.Code{marchwarden.CodeTruncated}, Charged: true, Retryable: true},
	{Fault: FaultErrorEvent, Codes: []marchwarden.Code{marchwarden.CodeUnavailable}, Charged: true, Retryable: true},
	{Fault: FaultEmpty, Charged: true},
	{Fault: FaultRefusal, Charged: true},
	{Fault: FaultMaxTokens, Charged: true},
	{Fault: FaultInputString, Charged: true},
	{Fault: FaultInputBroken, Charged: true},
	{Fault: FaultUnknownTool, Charged: true},
	{Fault: FaultSameCall, Charged: true},
	{Fault: FaultManyCalls, Charged: true},
	{Fault: FaultUsageNegative, Charged: true},
	{Fault: FaultUsageHuge, Charged: true},
	{Fault: FaultUsageMissing, Charged: true},
	{Fault: FaultFlood, Codes: []marchwarden.Code{marchwarden.CodeMalformed}, Charged: true},
	{Fault: FaultHTML, Codes: []marchwarden.Code{marchwarden.CodeMalformed, marchwarden.CodeUnavailable}},
	{Fault: FaultCutJSON, Codes: []marchwarden.Code{marchwarden.CodeTruncated, marchwarden.CodeMalformed}, Charged: true, Retryable: true},
	{Fault: FaultStrange, Charged: true},
}

// judge compares what came of a fault with what may come of it.
func judge(t *testing.T, fc FaultCase, got llm.Reply, err error) {
	t.Helper()
	if len(fc.Codes) == 0 {
		if err != nil {
			t.Fatalf("%v", err)
		}
		return
	}
	var typed *marchwarden.Error
	if !errors.As(err, &typed) || !slices.Contains(fc.Codes, marchwarden.CodeOf(err)) {
		t.Fatalf("the code %s of %v is none of %q", marchwarden.CodeOf(err), err, fc.Codes)
	}
	if fc.Charged != (got.Usage.In > 0) || !fc.Charged && got.Usage != (llm.Usage{}) {
		t.Errorf("the usage is %+v", got.Usage)
	}
	if got.Text != "" || len(got.Calls) > 0 {
		t.Errorf("a failed call has the reply %+v", got)
	}
	var again interface{ Retryable() bool }
	if !errors.As(err, &again) || again.Retryable() != fc.Retryable {
		t.Errorf("whether to call again is not %v", fc.Retryable)
	}
	var wait interface{ RetryAfter() (time.Duration, bool) }
	if !errors.As(err, &wait) {
		t.Fatal("the error cannot tell how long to wait")
	}
	d, ok := wait.RetryAfter()
	want := map[Fault]time.Duration{FaultRateLimited: time.Second, FaultRateLimitedHour: time.Hour}[fc.Fault]
	if fc.Fault != FaultSpendLimit && (d != want || ok != (want > 0)) {
		t.Errorf("the wait is %s, %v", d, ok)
	}
}

// keepsKey checks that an error is fit to be seen: no key, no page of text, no control characters.
func keepsKey(t *testing.T, h http.Header, err error) {
	t.Helper()
	key := h.Get("X-Api-Key") + strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
	if key == "" {
		t.Error("the request bears no key")
	}
	// Printed with its fields, an error shows what it wraps.
	for _, s := range []string{err.Error(), marchwarden.HintOf(err), fmt.Sprintf("%+v", err)} {
		if key != "" && strings.Contains(s, key) {
			t.Errorf("the key is in %q", s)
		}
		if len(s) > 600 || strings.ContainsAny(s, "\x00\x1b\r\n") {
			t.Errorf("not fit to be shown: %q", s)
		}
	}
}

// carries checks the replies in which a fault hides.
func carries(t *testing.T, f Fault, call llm.Call, got llm.Reply) {
	t.Helper()
	input := ""
	if len(got.Calls) > 0 {
		_ = json.Unmarshal(got.Calls[0].Input, &input) // an object leaves it empty
	}
	for _, c := range got.Calls {
		if !json.Valid(c.Input) {
			t.Errorf("%s has the input %q, which is no JSON", c.Name, c.Input)
		}
	}
	ok := true
	switch f {
	case FaultEmpty:
		ok = got.Text == "" && len(got.Calls) == 0 && got.Stop == llm.StopEnd
	case FaultRefusal:
		ok = got.Stop == llm.StopRefusal && len(got.Calls) == 0
	case FaultMaxTokens:
		ok = got.Stop == llm.StopLength && got.Text != ""
	case FaultInputString:
		ok = len(got.Calls) == 1 && input == "a string where an object was asked for"
	case FaultInputBroken:
		ok = len(got.Calls) == 1 && input == `{"query": "never clos`
	case FaultUnknownTool:
		ok = len(got.Calls) == 1 && got.Calls[0].Name == "no_such_tool"
	case FaultSameCall:
		ok = len(got.Calls) == 1
	case FaultManyCalls:
		ok = len(got.Calls) == 64
	case FaultUsageHuge:
		ok = got.Usage.In <= llm.Estimate(call)*4+100_000 && got.Usage.Out <= call.MaxTokens*2+1_000
	case FaultStrange:
		ok = got.Text == "The bridge is 1,280 metres long, says the first source." && got.Stop == llm.StopEnd && len(got.Calls) == 0
	}
	u := got.Usage
	if u.In <= 0 || u.Out < 0 || u.Out == 0 && got.Text != "" || u.CacheRead < 0 || u.CacheWrite < 0 || u.CacheRead+u.CacheWrite > u.In {
		t.Errorf("the usage is %+v", u)
	}
	if !ok {
		t.Errorf("the reply is %+v", got)
	}
}
