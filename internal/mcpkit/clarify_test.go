package mcpkit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// asks is a researcher that asks two questions before it answers with what it heard. It says whether it could ask.
var asks = scripted(func(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	ask := AskerOf(ctx)
	if ask == nil {
		return sample("not asked [1]"), nil
	}
	return sample(fmt.Sprintf("heard %q [1]", ask(ctx, "test/model", []string{"Which purity?", "In which unit?"}))), nil
})

// person fills forms, and keeps the last.
func person(last **mcp.ElicitParams, res *mcp.ElicitResult) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		*last = req.Params
		return res, nil
	}}
}

func accepted(answers ...any) *mcp.ElicitResult {
	content := map[string]any{}
	for i, a := range answers {
		content[fmt.Sprintf("answer_%d", i+1)] = a
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}
}

func TestPersonAtTheHostIsAsked(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) { personIsAsked(t, dial) })
	for _, era := range eras {
		t.Run(era+"/http", func(t *testing.T) {
			personIsAsked(t, func(s *Server, o *mcp.ClientOptions) *mcp.ClientSession { return dialAt(t, listen(t, s, 0), era, o) })
		})
	}
}

func personIsAsked(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
	for _, c := range []struct {
		name string
		said *mcp.ElicitResult
		want string
	}{
		{"answers", accepted("99.99 %", "K"), `heard ["99.99 %" "K"]`},
		{"answers one", accepted("", "K"), `heard ["" "K"]`},
		{"declines", &mcp.ElicitResult{Action: "decline"}, `heard []`},
		{"cancels", &mcp.ElicitResult{Action: "cancel"}, `heard []`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newTestServer(t, asks)
			var form *mcp.ElicitParams
			res := call(t, dial(s, person(&form, c.said)), map[string]any{"question": "what melts?"})
			if got := textOf(t, res); res.IsError || !strings.Contains(got, c.want) {
				t.Errorf("got %s", got)
			}
			if form == nil {
				t.Fatal("no form")
			}
			want := map[string]any{"type": "object", "properties": map[string]any{
				"answer_1": map[string]any{"type": "string", "title": "Which purity?"}, "answer_2": map[string]any{"type": "string", "title": "In which unit?"}}}
			if d := cmp.Diff(want, form.RequestedSchema); d != "" || !strings.Contains(form.Message, "test/model") || form.Mode != "form" {
				t.Errorf("%+v: %s", form, d)
			}
		})
	}
}

// A client without forms, one with forms of another kind, a caller that says how long it waits, and a task are not asked.
func TestWhoIsNotAsked(t *testing.T) {
	for _, era := range eras {
		var form *mcp.ElicitParams
		urls := person(&form, accepted("x", "y"))
		urls.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}
		for name, o := range map[string]*mcp.ClientOptions{"none": nil, "url": urls, "wall": person(&form, accepted("x", "y"))} {
			s, _ := newTestServer(t, asks)
			p := &mcp.CallToolParams{Name: Tool, Arguments: map[string]any{"question": "what melts?"}}
			if name == "wall" {
				p.Meta = mcp.Meta{MetaWall: 60_000}
			}
			res, err := dialMemory(t, s, era, o).CallTool(t.Context(), p)
			if err != nil || !strings.Contains(textOf(t, res), "not asked") || form != nil {
				t.Errorf("%s, %s: %v, %+v", era, name, err, res)
			}
		}
	}
	s, _ := newTestServer(t, asks)
	visit, err := s.begin(access.With(t.Context(), access.Local()), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: Tool, Arguments: []byte(`{"question":"what melts?"}`)}}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-visit.Done()
	if res, err := visit.Outcome(); err != nil || !strings.Contains(res.Answer, "not asked") {
		t.Errorf("%+v, %v", res, err)
	}
}

// A person who never answers is waited for as long as may be; then the call goes on without, and one that ended with its form
// is stopped: its client has left.
func TestPersonNeverAnswers(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			stopped := make(chan struct{})
			s, _ := newTestServer(t, scripted(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
				res, err := asks(ctx, req, sink)
				if ctx.Err() != nil {
					close(stopped)
				}
				return res, err
			}))
			s.answerTime = 50 * time.Millisecond
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			asked := make(chan struct{}, 1)
			cs := dialMemory(t, s, era, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			var res *mcp.CallToolResult
			done := make(chan struct{})
			go func() {
				defer close(done)
				res, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: Tool, Arguments: map[string]any{"question": "what melts?"}})
			}()
			<-asked
			if era < modernEra {
				within(t, time.Minute, "the call", done)
				if got := textOf(t, res); !strings.Contains(got, "heard []") {
					t.Errorf("got %s", got)
				}
				return
			}
			within(t, time.Minute, "the research", stopped)
			leave()
			<-done
		})
	}
}

// The state of a call that ended with its form is no key: it is the id of a run, which is its owner's. Answers of the wrong
// kind, and those that come a second time, are none.
func TestHostileAnswers(t *testing.T) {
	s, _ := newTestServer(t, asks)
	url := listen(t, s, 0)
	first := dialAt(t, url, modernEra, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}}})
	args := map[string]any{"question": "what melts?"}
	res := call(t, first, args)
	if !res.NeedsInput() || len(res.InputRequests) != 1 {
		t.Fatalf("%+v", res)
	}
	again := func(state string, said mcp.InputResponse) *mcp.CallToolResult {
		t.Helper()
		res, err := first.CallTool(t.Context(), &mcp.CallToolParams{Name: Tool, Arguments: args, RequestState: state, InputResponses: mcp.InputResponseMap{formID: said}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for _, state := range []string{"nonsense", "../" + res.RequestState, "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10"} {
		if got := again(state, accepted("x", "y")); !got.IsError || !strings.Contains(textOf(t, got), "no run") {
			t.Errorf("%s: %+v", state, got)
		}
	}
	got := again(res.RequestState, accepted(map[string]any{"a": 1}, "\x1b[2J"+strings.Repeat("z", 5)))
	if text := textOf(t, got); got.IsError || !strings.Contains(text, `heard ["" "\x1b[2Jzzzzz"]`) {
		t.Errorf("got %s", text)
	}
	if got := again(res.RequestState, accepted("other", "other")); strings.Contains(textOf(t, got), "other") {
		t.Errorf("%+v", got)
	}
}
