package llmtest

import (
	"encoding/json"
	"fmt"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// anthropicPing is this wire's sign of life.
const anthropicPing event = "event: ping\ndata: {\"type\": \"ping\"}"

// anthropicWire writes what POST /v1/messages answers.
var anthropicWire = dialect{
	stream: anthropicStream,
	body:   anthropicBody,
	failure: func(f failure) string {
		details := "null"
		if f.code != "" {
			details = `{"error_code":` + quote(f.code) + `,"error_visibility":"user_facing"}`
		}
		return fmt.Sprintf(`{"type":"error","error":{"details":%s,"type":%s,"message":%s},"request_id":"req_011test"}`, details, quote(f.kind), quote(f.message))
	},
	ping:   anthropicPing,
	broken: "event: error\ndata: {\"type\":\"error\",\"error\":{\"details\":null,\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"req_011test\"}",
	cut:    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_de",
	faults: map[Fault]failure{
		FaultRateLimited:     {status: 429, kind: "rate_limit_error", message: "This request would exceed your organization's rate limit of 50 requests per minute", retryAfter: "1"},
		FaultRateLimitedBare: {status: 429, kind: "rate_limit_error", message: "Number of concurrent connections has exceeded your rate limit"},
		FaultRateLimitedHour: {status: 429, kind: "rate_limit_error", message: "This request would exceed your organization's rate limit", retryAfter: "3600"},
		FaultSpendLimit: {status: 429, kind: "rate_limit_error", message: "This request would exceed your account's monthly spend limit. Please try again later.",
			retryAfter: "60", code: "enforced_spend_limit_reached"},
		FaultDenied:     {status: 401, kind: "authentication_error", message: "invalid x-api-key"},
		FaultServer:     {status: 500, kind: "api_error", message: "Internal server error"},
		FaultOverloaded: {status: 529, kind: "overloaded_error", message: "Overloaded"},
	},
}

// anthropicStops are the wire's words for the reasons to stop.
var anthropicStops = map[llm.Stop]string{
	llm.StopEnd: "end_turn", llm.StopTools: "tool_use", llm.StopLength: "max_tokens", llm.StopRefusal: "refusal", llm.StopOther: "a_reason_of_tomorrow",
}

func anthropicUsage(u *counts, out int64) string {
	if u == nil {
		return ""
	}
	in := u.in - u.read - u.write
	if u.in < 0 { // a liar lies about each number
		in = u.in
	}
	return fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":0},"output_tokens":%d,"service_tier":"standard","inference_geo":"not_available"}`,
		in, u.write, u.read, u.write, out)
}

func anthropicStream(r reply) stream {
	var s stream
	add := func(name, format string, args ...any) {
		s.events = append(s.events, event("event: "+name+"\ndata: "+fmt.Sprintf(format, args...)))
	}
	first := int64(1)
	if r.usage != nil && r.usage.out <= 0 {
		first = r.usage.out
	}
	add("message_start", `{"type":"message_start","message":{"model":%s,"id":"msg_%06d","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null%s}          }`,
		quote(r.model), r.n, anthropicUsage(r.usage, first))
	s.events = append(s.events, anthropicPing)
	s.lead = len(s.events)
	i := 0
	if r.strange {
		add("moon_phase", `{"type":"moon_phase","phase":"waxing","nested":{"deep":[1,2,{"a":null}]}}`)
		add("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`)
		add("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"thoughts are not the answer"}}`)
		add("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EvMCCkYI"}}`)
		add("content_block_stop", `{"type":"content_block_stop","index":0}`)
		add("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"hologram","pixels":[[0,1],[1,0]]}}`)
		add("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"hologram_delta","frame":"AAAA"}}`)
		add("content_block_stop", `{"type":"content_block_stop","index":1}`)
		i = 2
	}
	if r.text != "" {
		add("content_block_start", `{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}           }`, i)
		for _, p := range pieces(r.text, 14) {
			add("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%s}   }`, i, quote(p))
		}
		add("content_block_stop", `{"type":"content_block_stop","index":%d            }`, i)
		i++
	}
	for k, c := range r.calls {
		add("content_block_start", `{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%06d_%02d","name":%s,"input":{},"caller":{"type":"direct"}}     }`, i, r.n, k, quote(c.name))
		add("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":""}               }`, i)
		for _, p := range pieces(c.input, 9) {
			add("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, i, quote(p))
		}
		add("content_block_stop", `{"type":"content_block_stop","index":%d}`, i)
		i++
	}
	var out int64
	if r.usage != nil {
		out = r.usage.out
	}
	add("message_delta", `{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":null}%s  }`, quote(anthropicStops[r.stop]), anthropicUsage(r.usage, out))
	add("message_stop", `{"type":"message_stop"             }`)
	return s
}

func anthropicBody(r reply) string {
	content := []string{}
	if r.strange {
		content = append(content, `{"type":"hologram","pixels":[[0,1],[1,0]]}`)
	}
	if r.text != "" {
		content = append(content, `{"type":"text","text":`+quote(r.text)+`}`)
	}
	for k, c := range r.calls {
		if !json.Valid([]byte(c.input)) {
			c.input = quote(c.input) // no provider breaks its own JSON
		}
		content = append(content, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%06d_%02d","name":%s,"input":%s,"caller":{"type":"direct"}}`, r.n, k, quote(c.name), c.input))
	}
	var out int64
	if r.usage != nil {
		out = r.usage.out
	}
	return fmt.Sprintf(`{"model":%s,"id":"msg_%06d","type":"message","role":"assistant","content":%s,"stop_reason":%s,"stop_sequence":null%s}`,
		quote(r.model), r.n, list(content), quote(anthropicStops[r.stop]), anthropicUsage(r.usage, out))
}
