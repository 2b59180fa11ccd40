package mcpkit

//lint:file-ignore SA1019 the suite still asks for sampling, roots and logging, which the protocol has deprecated

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fixture is one tool of the suite.
type fixture struct {
	name   string
	schema string // "" takes anything
	call   mcp.ToolHandler
}

func (f fixture) tool() *mcp.Tool {
	schema := f.schema
	if schema == "" {
		schema = `{"type":"object"}`
	}
	return &mcp.Tool{Name: f.name, Description: "A fixture of the conformance suite.", InputSchema: json.RawMessage(schema)}
}

// always gives the same content.
func always(content ...mcp.Content) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

// The smallest picture and the shortest sound: one red point and one silent sample.
var (
	pngBytes = decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	wavBytes = decoded("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

func decoded(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

func embedded(uri, mime, text string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mime, Text: text}}
}

// contentTools give the kinds of content that there are.
func contentTools() []fixture {
	picture := &mcp.ImageContent{Data: pngBytes, MIMEType: "image/png"}
	return []fixture{
		{name: "test_simple_text", call: always(&mcp.TextContent{Text: "Plain words."})},
		{name: "test_image_content", call: always(picture)},
		{name: "test_audio_content", call: always(&mcp.AudioContent{Data: wavBytes, MIMEType: "audio/wav"})},
		{name: "test_embedded_resource", call: always(embedded("test://embedded-resource", "text/plain", "Words inside."))},
		{name: "test_multiple_content_types", call: always(&mcp.TextContent{Text: "Of each kind one:"}, picture, embedded("test://mixed-content-resource", "application/json", `{"value":123}`))},
		{name: "test_error_handling", call: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return complains("this tool always fails"), nil
		}},
		{name: "test_tool_with_progress", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, done := range []float64{0, 50, 100} {
				if token := req.Params.GetProgressToken(); token != nil {
					if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
						return nil, err
					}
				}
				time.Sleep(20 * time.Millisecond)
			}
			return says("all done"), nil
		}},
		{name: "test_reconnection", call: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Extra != nil && req.Extra.CloseSSEStream != nil {
				req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
			}
			time.Sleep(100 * time.Millisecond)
			return says("here is what you came back for"), nil
		}},
		{name: "json_schema_2020_12_tool", schema: richSchema, call: always(&mcp.TextContent{Text: "taken"})},
		{name: "test_x_mcp_header", schema: `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
			call: always(&mcp.TextContent{Text: "the header agrees"})},
	}
}

// richSchema has the words of JSON Schema 2020-12 that must reach a client as they are.
const richSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

// probeTools are those by which the suite looks at what a server must not do.
func probeTools() []fixture {
	return []fixture{
		{name: "test_missing_capability", call: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
				return says("the client can"), nil
			}
			return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client has not declared sampling",
				Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
		}},
		{name: "test_streaming_elicitation", call: always(&mcp.TextContent{Text: "nothing is asked on the way"})},
		{name: "test_logging_tool", call: logs(1)},
		{name: "test_tool_with_logging", call: logs(3)},
	}
}

// logs tries to log n lines; the SDK decides whether the client wants them.
func logs(lines int) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range lines {
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: fmt.Sprintf("line %d", i)}); err != nil {
				return nil, err
			}
		}
		return says("logged"), nil
	}
}

// askTools ask the client something while they are called, as the earlier protocol has
// it.
func askTools() []fixture {
	ask := func(schema string) mcp.ToolHandler {
		return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Please fill in", RequestedSchema: json.RawMessage(schema)})
			if err != nil {
				return complains(err.Error()), nil
			}
			return says("%s: %v", answer.Action, answer.Content), nil
		}
	}
	options := `[{"const":"value1","title":"One"},{"const":"value2","title":"Two"},{"const":"value3","title":"Three"}]`
	return []fixture{
		{name: "test_elicitation", call: ask(`{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string"}},"required":["username","email"]}`)},
		{name: "test_elicitation_sep1034_defaults", call: ask(`{"type":"object","properties":{
			"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)},
		{name: "test_elicitation_sep1330_enums", call: ask(`{"type":"object","properties":{
			"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":` + options + `},
			"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["One","Two","Three"]},
			"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
			"titledMulti":{"type":"array","items":{"anyOf":` + options + `}}}}`)},
		{name: "test_sampling", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := req.Session.CreateMessage(ctx, sampling("Say something"))
			if err != nil {
				return complains(err.Error()), nil
			}
			return says("%v", answer.Content), nil
		}},
	}
}

// askingTools are answered by asking back, as the later protocol has it.
func askingTools() []fixture {
	name := mcp.InputRequestMap{"user_name": form("What is your name?", "name", "string")}
	confirm := mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")}
	once := func(requests mcp.InputRequestMap) mcp.ToolHandler {
		return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for key := range requests {
				if req.Params.InputResponses[key] == nil {
					return wants("", requests), nil
				}
			}
			return says("%d answers", len(requests)), nil
		}
	}
	guarded := func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "" {
			return wants(signed("asked"), confirm), nil
		}
		if _, err := unsigned(req.Params.RequestState); err != nil {
			return nil, err
		}
		if given(req.Params.InputResponses, "confirm") == nil {
			return wants(req.Params.RequestState, confirm), nil
		}
		return says("state-ok"), nil
	}
	all := mcp.InputRequestMap{"user_name": name["user_name"], "greeting": sampling("Greet somebody"), "client_roots": &mcp.ListRootsParams{}}
	return []fixture{
		{name: "test_input_required_result_elicitation", call: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if who, ok := given(req.Params.InputResponses, "user_name")["name"].(string); ok {
				return says("Hello, %s!", who), nil
			}
			return wants("", name), nil
		}},
		{name: "test_input_required_result_sampling", call: once(mcp.InputRequestMap{"capital_question": sampling("What is the capital of France?")})},
		{name: "test_input_required_result_list_roots", call: once(mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})},
		{name: "test_input_required_result_request_state", call: guarded},
		{name: "test_input_required_result_tampered_state", call: guarded},
		{name: "test_input_required_result_multiple_inputs", call: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res, err := once(all)(ctx, req)
			if err == nil && res.InputRequests != nil {
				res.RequestState = signed("all")
			}
			return res, err
		}},
		{name: "test_input_required_result_multi_round", call: rounds},
		{name: "test_input_required_result_capabilities", call: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			can, requests := req.ClientCapabilities(), mcp.InputRequestMap{}
			if can != nil && can.Elicitation != nil {
				requests["user_name"] = name["user_name"]
			}
			if can != nil && can.Sampling != nil {
				requests["greeting"] = sampling("Greet somebody")
			}
			if len(requests) == 0 || len(req.Params.InputResponses) > 0 {
				return says("nothing more to ask"), nil
			}
			return wants("", requests), nil
		}},
	}
}

// rounds asks twice, and knows by what it gave away how far it has come.
func rounds(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return wants(signed("1"), mcp.InputRequestMap{"step1": form("What is your name?", "name", "string")}), nil
	}
	state, err := unsigned(req.Params.RequestState)
	if err != nil {
		return nil, err
	}
	if state == "1" {
		who := fmt.Sprint(given(req.Params.InputResponses, "step1")["name"])
		return wants(signed("2 "+who), mcp.InputRequestMap{"step2": form("Which colour do you like?", "color", "string")}), nil
	}
	return says("%s likes %v", strings.TrimPrefix(state, "2 "), given(req.Params.InputResponses, "step2")["color"]), nil
}

// wants is a result that asks back.
func wants(state string, requests mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}
}

// form asks for one field.
func form(message, field, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field}}}
}

func sampling(words string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 50, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: words}}}}
}

// given is the form that a client has filled in, or nil.
func given(answers mcp.InputResponseMap, key string) map[string]any {
	if form, ok := answers[key].(*mcp.ElicitResult); ok && form != nil && form.Action == "accept" {
		return form.Content
	}
	return nil
}

var stateKey = []byte(rand.Text())

// signed is a state that a client can carry and not change.
func signed(state string) string {
	mac := hmac.New(sha256.New, stateKey)
	mac.Write([]byte(state))
	return state + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func unsigned(text string) (string, error) {
	state, _, _ := strings.Cut(text, ".")
	if !hmac.Equal([]byte(signed(state)), []byte(text)) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not ours"}
	}
	return state, nil
}

func addFixturePrompts(s *mcp.Server) {
	message := func(contents ...mcp.Content) *mcp.GetPromptResult {
		res := &mcp.GetPromptResult{}
		for _, c := range contents {
			res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
		}
		return res
	}
	add := func(name string, get func(*mcp.GetPromptRequest) *mcp.GetPromptResult, arguments ...string) {
		p := &mcp.Prompt{Name: name, Description: "A fixture of the conformance suite."}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return get(req), nil })
	}
	words := &mcp.TextContent{Text: "Look at this."}
	add("test_simple_prompt", func(*mcp.GetPromptRequest) *mcp.GetPromptResult { return message(words) })
	add("test_prompt_with_arguments", func(req *mcp.GetPromptRequest) *mcp.GetPromptResult {
		return message(&mcp.TextContent{Text: fmt.Sprintf("arg1=%q, arg2=%q", req.Params.Arguments["arg1"], req.Params.Arguments["arg2"])})
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", func(req *mcp.GetPromptRequest) *mcp.GetPromptResult {
		return message(embedded(req.Params.Arguments["resourceUri"], "text/plain", "Words inside."), words)
	}, "resourceUri")
	add("test_prompt_with_image", func(*mcp.GetPromptRequest) *mcp.GetPromptResult {
		return message(&mcp.ImageContent{Data: pngBytes, MIMEType: "image/png"}, words)
	})
	add("test_input_required_result_prompt", func(req *mcp.GetPromptRequest) *mcp.GetPromptResult {
		answer := given(req.Params.InputResponses, "user_context")
		if answer == nil {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": form("What is it about?", "context", "string")}}
		}
		return message(&mcp.TextContent{Text: fmt.Sprint(answer["context"])})
	})
}

func addFixtureResources(s *mcp.Server) {
	read := func(data []byte) mcp.ResourceHandler {
		return func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return contents(data)
		}
	}
	s.AddResource(&mcp.Resource{URI: "test://static-text", Name: "static-text", MIMEType: "text/plain"}, read([]byte("Words that stay.")))
	s.AddResource(&mcp.Resource{URI: "test://static-binary", Name: "static-binary", MIMEType: "image/png"}, read(pngBytes))
	s.AddResource(&mcp.Resource{URI: watchedURI, Name: "watched-resource", MIMEType: "text/plain"}, read([]byte("Words that change.")))
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id, ok := strings.CutPrefix(req.Params.URI, "test://template/")
			if !ok {
				return nil, errors.New("the template matched something else")
			}
			return contents([]byte(`{"id":"` + strings.TrimSuffix(id, "/data") + `"}`))
		})
}
