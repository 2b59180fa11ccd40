package llmtest

import (
	"encoding/json"
	"fmt"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// responsesWire writes what POST /v1/responses answers. Text, calls, counts and the order of events are as in recordings
// of real models; refusals, incomplete replies and errors are as the provider documents them.
var responsesWire = dialect{
	stream:  responsesStream,
	body:    func(r reply) string { return responsesWhole(r, true) },
	failure: openAIWire.failure,
	ping:    openAIPing,
	broken:  "event: error\ndata: " + `{"type":"error","code":"server_is_overloaded","message":"The server is overloaded, please try again","param":null,"sequence_number":9}`,
	cut:     "event: response.output_text.delta\ndata: " + `{"type":"response.output_text.delta","content_index":0,"del`,
	faults:  openAIWire.faults,
}

// fromResponses puts a request into the fields that it has on the chat wire, and says what the provider would complain about.
func (q *request) fromResponses() (complaint string) {
	switch {
	case len(q.Messages) > 0:
		return "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'."
	case q.MaxTokens+q.MaxCompletionTokens > 0:
		return "Unsupported parameter: 'max_tokens'. In the Responses API, this parameter has moved to 'max_output_tokens'."
	case q.ResponseFormat.Type != "":
		return "Unsupported parameter: 'response_format'. In the Responses API, this parameter has moved to 'text.format'."
	case q.StreamOptions.IncludeUsage:
		return "Unknown parameter: 'stream_options.include_usage'."
	case q.MaxOutputTokens != 0 && q.MaxOutputTokens < 16:
		return "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
	case q.Store == nil || *q.Store:
		return "store: this server keeps nothing"
	case q.Input == "":
		return "Missing required parameter: 'input'."
	}
	for i, raw := range q.Tools {
		var tool struct {
			Type, Name string
			Strict     *bool
		}
		if json.Unmarshal(raw, &tool) != nil || tool.Name == "" || tool.Type != "function" {
			return fmt.Sprintf("Missing required parameter: 'tools[%d].name'.", i)
		}
		if tool.Strict == nil || *tool.Strict {
			return fmt.Sprintf("Invalid schema for function '%s': 'additionalProperties' is required to be supplied and to be false.", tool.Name)
		}
	}
	if q.Instructions != "" {
		q.Messages = append(q.Messages, message{"system", json.RawMessage(quote(q.Instructions))})
	}
	q.Messages = append(q.Messages, message{"user", json.RawMessage(quote(q.Input))})
	return ""
}

func responsesStream(r reply) stream {
	var s stream
	send := func(kind, format string, args ...any) {
		s.events = append(s.events, event(fmt.Sprintf("event: %s\ndata: "+`{"type":%s,"sequence_number":%d,%s}`, kind, quote(kind), len(s.events), fmt.Sprintf(format, args...))))
	}
	send("response.created", `"response":%s`, responsesWhole(r, false))
	send("response.in_progress", `"response":%s`, responsesWhole(r, false))
	s.lead = 2
	at := 0
	if r.strange {
		send("response.output_item.added", `"output_index":0,"item":{"id":"rs_1","type":"reasoning","content":[],"summary":[]}`)
		send("response.reasoning_summary_text.delta", `"output_index":0,"summary_index":0,"delta":"thoughts are not the answer"`)
		send("response.hologram.delta", `"output_index":0,"delta":{"pixels":[[0,1],[1,0]]}`)
		s.events = append(s.events, "event: moon_phase\ndata: {\"type\":\"moon.phase\",\"phase\":\"waxing\"}", openAIPing)
		at++
	}
	if r.text != "" {
		send("response.output_item.added", `"output_index":%d,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}`, at)
		kind, field := "output_text", "text"
		if r.stop == llm.StopRefusal {
			kind, field = "refusal", "refusal"
		}
		for _, p := range pieces(r.text, 14) {
			send("response."+kind+".delta", `"output_index":%d,"content_index":0,"item_id":"msg_1","delta":%s`, at, quote(p))
		}
		send("response."+kind+".done", `"output_index":%d,"content_index":0,"item_id":"msg_1",%s:%s`, at, quote(field), quote(r.text))
		at++
	}
	for k, c := range r.calls {
		send("response.output_item.added", `"output_index":%d,"item":%s`, at+k, responsesCall(r, k, ""))
		for _, p := range pieces(c.input, 9) {
			send("response.function_call_arguments.delta", `"output_index":%d,"item_id":"fc_%d","delta":%s`, at+k, k, quote(p))
		}
		send("response.function_call_arguments.done", `"output_index":%d,"item_id":"fc_%d","arguments":%s`, at+k, k, quote(c.input))
		send("response.output_item.done", `"output_index":%d,"item":%s`, at+k, responsesCall(r, k, c.input))
	}
	status, _ := responsesEnd(r.stop)
	send("response."+status, `"response":%s`, responsesWhole(r, true))
	return s
}

// responsesEnd is the status of a reply and, if it is not complete, why.
func responsesEnd(s llm.Stop) (status, details string) {
	switch s {
	case llm.StopLength:
		return "incomplete", `{"reason":"max_output_tokens"}`
	case llm.StopOther:
		return "incomplete", `{"reason":"a_reason_of_tomorrow"}`
	}
	return "completed", "null"
}

func responsesCall(r reply, k int, input string) string {
	return fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":"completed","arguments":%s,"call_id":"call_%06d_%02d","name":%s}`, k, quote(input), r.n, k, quote(r.calls[k].name))
}

// responsesWhole is the reply as an object: as the first events have it, or at its end.
func responsesWhole(r reply, end bool) string {
	status, details, usage, output := "in_progress", "null", "null", []string{}
	if end {
		status, details = responsesEnd(r.stop)
		part := `{"type":"output_text","annotations":[],"text":%s}`
		if r.stop == llm.StopRefusal {
			part = `{"type":"refusal","refusal":%s}`
		}
		if r.text != "" {
			output = append(output, fmt.Sprintf(`{"id":"msg_1","type":"message","status":"completed","content":[`+part+`],"role":"assistant"}`, quote(r.text)))
		}
		for k, c := range r.calls {
			output = append(output, responsesCall(r, k, c.input))
		}
		if u := r.usage; u != nil {
			usage = fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, u.in, u.read, u.out, u.in+u.out)
		}
	}
	return fmt.Sprintf(`{"id":"resp_%06d","object":"response","created_at":1782321657,"status":%s,"error":null,"incomplete_details":%s,"model":%s,"output":%s,"store":false,"usage":%s}`,
		r.n, quote(status), details, quote(r.model), list(output), usage)
}
