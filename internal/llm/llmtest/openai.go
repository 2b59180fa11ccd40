package llmtest

import (
	"fmt"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// openAIPing is this wire's sign of life: a comment.
const openAIPing event = ": keep-alive"

// openAIWire writes what POST /v1/chat/completions answers.
var openAIWire = dialect{
	stream: openAIStream,
	body:   openAIBody,
	failure: func(f failure) string {
		code := "null"
		if f.code != "" {
			code = quote(f.code)
		}
		return fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":null,"code":%s}}`, quote(f.message), quote(f.kind), code)
	},
	ping:   openAIPing,
	broken: `data: {"error":{"message":"The server is overloaded, please try again","type":"server_error","param":null,"code":"server_is_overloaded"}}`,
	cut:    `data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1782321900,"choices":[{"index":0,"delta":{"conte`,
	faults: map[Fault]failure{
		FaultRateLimited:     {status: 429, kind: "requests", message: "Rate limit reached for requests per min (RPM): Limit 3, Used 3, Requested 1.", retryAfter: "1", code: "rate_limit_exceeded"},
		FaultRateLimitedBare: {status: 429, kind: "tokens", message: "Rate limit reached for tokens per min (TPM).", code: "rate_limit_exceeded"},
		FaultRateLimitedHour: {status: 429, kind: "requests", message: "Rate limit reached for requests per day (RPD).", retryAfter: "3600", code: "rate_limit_exceeded"},
		FaultSpendLimit:      {status: 429, kind: "insufficient_quota", message: "You exceeded your current quota, please check your plan and billing details.", code: "insufficient_quota"},
		FaultDenied:          {status: 401, kind: "invalid_request_error", message: "Incorrect API key provided", code: "invalid_api_key"},
		FaultServer:          {status: 500, kind: "server_error", message: "The server had an error while processing your request"},
		FaultOverloaded:      {status: 503, kind: "server_error", message: "The engine is currently overloaded, please try again later"},
	},
}

// openAIStops are the wire's words for the reasons to stop. A refusal has none of
// its own: it is text in another field.
var openAIStops = map[llm.Stop]string{
	llm.StopEnd: "stop", llm.StopTools: "tool_calls", llm.StopLength: "length", llm.StopRefusal: "stop", llm.StopOther: "a_reason_of_tomorrow",
}

func openAIUsage(u *counts) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		u.in, u.out, u.in+u.out, u.read)
}

func openAIStream(r reply) stream {
	var s stream
	chunk := func(choices, usage string) {
		s.events = append(s.events, event(fmt.Sprintf(`data: {"id":"chatcmpl-%06d","object":"chat.completion.chunk","created":1782321900,"model":%s,"service_tier":"default","system_fingerprint":"fp_0000000000",`+
			`"choices":%s,"usage":%s,"obfuscation":"ZvYJfUI"}`, r.n, quote(r.model), choices, usage)))
	}
	delta := func(format string, args ...any) {
		chunk(fmt.Sprintf(`[{"index":0,"delta":%s,"logprobs":null,"finish_reason":null}]`, fmt.Sprintf(format, args...)), "null")
	}
	delta(`{"role":"assistant","content":null}`)
	s.lead = 1
	if r.strange {
		s.events = append(s.events, "event: moon_phase\ndata: {\"object\":\"moon.phase\",\"phase\":\"waxing\"}", openAIPing)
		delta(`{"reasoning_content":"thoughts are not the answer"}`)
		delta(`{"hologram":{"pixels":[[0,1],[1,0]]}}`)
	}
	field := "content"
	if r.stop == llm.StopRefusal {
		field = "refusal"
	}
	for _, p := range pieces(r.text, 14) {
		delta(`{"%s":%s}`, field, quote(p))
	}
	for k, c := range r.calls {
		delta(`{"tool_calls":[{"index":%d,"id":"call_%06d_%02d","type":"function","function":{"name":%s,"arguments":""}}]}`, k, r.n, k, quote(c.name))
		for _, p := range pieces(c.input, 9) {
			delta(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, k, quote(p))
		}
	}
	chunk(fmt.Sprintf(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":%s}]`, quote(openAIStops[r.stop])), "null")
	if r.tell && r.usage != nil {
		chunk("[]", openAIUsage(r.usage))
	}
	s.events = append(s.events, "data: [DONE]")
	return s
}

func openAIBody(r reply) string {
	content, refusal := "null", "null"
	switch {
	case r.stop == llm.StopRefusal:
		refusal = quote(r.text)
	case r.text != "":
		content = quote(r.text)
	}
	tools := ""
	if len(r.calls) > 0 {
		var calls []string
		for k, c := range r.calls {
			calls = append(calls, fmt.Sprintf(`{"id":"call_%06d_%02d","type":"function","function":{"name":%s,"arguments":%s}}`, r.n, k, quote(c.name), quote(c.input)))
		}
		tools = `,"tool_calls":` + list(calls)
	}
	usage := ""
	if r.usage != nil {
		usage = `,"usage":` + openAIUsage(r.usage)
	}
	return fmt.Sprintf(`{"id":"chatcmpl-%06d","object":"chat.completion","created":1782321893,"model":%s,"choices":[{"index":0,"message":{"role":"assistant","content":%s,"refusal":%s,"annotations":[]%s},`+
		`"logprobs":null,"finish_reason":%s}]%s,"service_tier":"default","system_fingerprint":"fp_0000000000"}`,
		r.n, quote(r.model), content, refusal, tools, quote(openAIStops[r.stop]), usage)
}
