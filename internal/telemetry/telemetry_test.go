package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

// researching is a researcher made of a function.
type researching func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error)

func (f researching) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return f(ctx, req, sink)
}

const traceID = "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10"

func result(t testing.TB) *marchwarden.Result {
	id, err := marchwarden.ParseTraceID(traceID)
	if err != nil {
		t.Fatal(err)
	}
	return &marchwarden.Result{
		TraceID: id, Confidence: 0.75, Citations: make([]marchwarden.Citation, 3), Gaps: make([]marchwarden.Gap, 2),
		CostMetadata: marchwarden.CostMetadata{TokensUsed: 1234, IterationsRun: 2, SourcesRead: 4, BudgetExhausted: true, ModelID: "acme/one"},
	}
}

func TestSpansOfOneRequest(t *testing.T) {
	c := collect(t, nil)
	r := start(t, at(c))
	model := r.Model(llmtest.New("acme/one:7b", map[string][]llmtest.Answer{
		"plan": {{Text: "fine", Usage: llm.Usage{In: 30, Out: 5, CacheRead: 10}}},
	}))
	if got := llm.ID(model); got != "acme/one:7b" {
		t.Errorf("the model's id is %q", got)
	}
	desk := r.Research(researching(func(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		r.clock.move(time.Second)
		if _, err := model.Generate(ctx, llm.Call{Prompt: "plan", MaxTokens: 100, Schema: []byte(`{}`)}); err != nil {
			return nil, err
		}
		r.clock.move(time.Second)
		return result(t), nil
	}), "files")

	ctx, end := r.Serve(context.Background(), telemetry.Op{
		Method: "tools/call", Tool: "research", Session: "s3ss10n", Protocol: "2025-11-25", Transport: "tcp",
	}, nil)
	if _, err := desk.Research(ctx, marchwarden.Request{Question: "Who?", Depth: marchwarden.Deep}, nil); err != nil {
		t.Fatal(err)
	}
	end(nil)
	end(errors.New("a second end changes nothing"))
	r.flush(t)

	served, agent, chat := c.named("tools/call research"), c.named("invoke_agent files"), c.named("chat one:7b")
	if served.ParentSpanID != "" || agent.ParentSpanID != served.SpanID || chat.ParentSpanID != agent.SpanID {
		t.Errorf("parents: %q %q %q", served.ParentSpanID, agent.ParentSpanID, chat.ParentSpanID)
	}
	if agent.TraceID != served.TraceID || chat.TraceID != served.TraceID {
		t.Error("the spans are of several traces")
	}
	if served.Kind != 2 || agent.Kind != 1 || chat.Kind != 3 { // SERVER, INTERNAL, CLIENT
		t.Errorf("kinds: %d %d %d", served.Kind, agent.Kind, chat.Kind)
	}
	if served.Status.Code != 0 || agent.Status.Code != 0 || chat.Status.Code != 0 {
		t.Error("a span has failed")
	}
	if agent.StartTimeUnixNano != "1772366400123456789" || chat.StartTimeUnixNano != "1772366401123456789" || agent.EndTimeUnixNano != "1772366402123456789" {
		t.Errorf("times: %s %s %s", agent.StartTimeUnixNano, chat.StartTimeUnixNano, agent.EndTimeUnixNano)
	}
	session, _ := served.got["mcp.session.id"].(string)
	if !hex32.MatchString(session) {
		t.Errorf("the session is told as %q", session)
	}
	for _, s := range []struct {
		span *spanJSON
		want map[string]any
	}{
		{served, map[string]any{
			"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "research", "mcp.session.id": session,
			"mcp.protocol.version": "2025-11-25", "network.transport": "tcp", "network.protocol.name": "http",
		}},
		{agent, map[string]any{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "marchwarden", "gen_ai.agent.name": "files", "gen_ai.conversation.id": traceID, "gen_ai.request.model": "acme/one",
			"marchwarden.depth": "deep", "marchwarden.citations": 3, "marchwarden.gaps": 2, "marchwarden.open_questions": 0, "marchwarden.confidence": 0.75,
			"marchwarden.tokens_used": 1234, "marchwarden.iterations": 2, "marchwarden.sources_read": 4, "marchwarden.budget_exhausted": true,
		}},
		{chat, map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "acme", "gen_ai.request.model": "one:7b", "gen_ai.response.model": "one:7b", "gen_ai.request.max_tokens": 100,
			"gen_ai.output.type": "json", "gen_ai.response.finish_reasons": []any{"stop"}, "gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 5,
			"gen_ai.usage.cache_read.input_tokens": 10, "marchwarden.prompt": "plan",
		}},
	} {
		if diff := cmp.Diff(s.want, s.span.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.span.Name, diff)
		}
	}
	if c.scope != "marchwarden v1.2.3" || c.schema != "https://opentelemetry.io/schemas/1.41.0" {
		t.Errorf("scope %q, schema %q", c.scope, c.schema)
	}
	if c.paths[0] != "POST /v1/traces" || c.heads[0].Get("Content-Type") != "application/json" {
		t.Errorf("%s, %s", c.paths[0], c.heads[0].Get("Content-Type"))
	}
	want := map[string]any{"service.name": "marchwarden", "service.version": "v1.2.3", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.language": "go", "telemetry.sdk.version": c.resource["telemetry.sdk.version"]}
	if diff := cmp.Diff(want, c.resource); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	if text, n := r.log.text(); n > 0 {
		t.Errorf("it logged %s", text)
	}
}

func TestContextTravelsInMeta(t *testing.T) {
	c := collect(t, nil)
	r := start(t, at(c))
	ctx, endFirst := r.Serve(context.Background(), telemetry.Op{Method: "prompts/get", Prompt: "deep-dive", Transport: "pipe"}, map[string]any{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "rojo=00f067aa0ba902b7",
	})
	meta := map[string]any{"progressToken": 7, "tracestate": "stale=1", "traceparent": "stale"}
	_, endCall := r.Call(ctx, telemetry.Op{Method: "tools/call", Tool: "research"}, meta)
	_, endNil := r.Call(ctx, telemetry.Op{Method: "ping"}, nil)
	endNil(nil)
	around, endAround := r.Call(context.Background(), telemetry.Op{Method: "around"}, nil)
	_, endServe := r.Serve(around, telemetry.Op{Method: "resources/read", Resource: "marchwarden://trace/" + traceID}, meta)
	endServe(nil)
	endAround(nil)
	endCall(nil)
	endFirst(nil)
	r.flush(t)

	first, call, served, other := c.named("prompts/get deep-dive"), c.named("tools/call research"), c.named("resources/read"), c.named("around")
	if first.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" || first.ParentSpanID != "00f067aa0ba902b7" || first.TraceState != "rojo=00f067aa0ba902b7" {
		t.Errorf("the first span is of %s %s %q", first.TraceID, first.ParentSpanID, first.TraceState)
	}
	if first.Flags != 0x301 || call.Flags != 0x101 { // the parent is remote, and is not
		t.Errorf("flags %x and %x", first.Flags, call.Flags)
	}
	if want := "00-" + call.TraceID + "-" + call.SpanID + "-01"; meta["traceparent"] != want || meta["tracestate"] != "rojo=00f067aa0ba902b7" || meta["progressToken"] != 7 {
		t.Errorf("meta is %v, want traceparent %s", meta, want)
	}
	if call.Kind != 3 || served.ParentSpanID != call.SpanID || served.TraceID != first.TraceID {
		t.Errorf("the served span's parent is %s of %s", served.ParentSpanID, served.TraceID)
	}
	if len(served.Links) != 1 || served.Links[0].SpanID != other.SpanID || served.Links[0].TraceID != other.TraceID {
		t.Errorf("links: %+v", served.Links)
	}
	if first.got["network.transport"] != "pipe" || first.got["gen_ai.prompt.name"] != "deep-dive" || first.got["gen_ai.operation.name"] != nil {
		t.Errorf("attributes: %v", first.got)
	}
	if served.got["mcp.resource.uri"] != "marchwarden://trace/{id}" {
		t.Errorf("resource: %v", served.got)
	}
}

func TestContextThatCannotBeReadIsIgnored(t *testing.T) {
	good := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, meta := range []map[string]any{
		nil,
		{"traceparent": 17},
		{"traceparent": nil},
		{"traceparent": ""},
		{"traceparent": "00-zz"},
		{"traceparent": strings.ToUpper(good)},
		{"traceparent": "00-00000000000000000000000000000000-00f067aa0ba902b7-01"},
		{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"},
		{"traceparent": good + "-more"},
		{"traceparent": good + strings.Repeat("-x", 1000)},
		{"traceparent": map[string]any{"traceparent": good}},
		{"tracestate": "a=b"},
	} {
		c := collect(t, nil)
		r := start(t, at(c))
		ctx, endParent := r.Call(context.Background(), telemetry.Op{Method: "parent"}, nil)
		_, end := r.Serve(ctx, telemetry.Op{Method: "child"}, meta)
		end(nil)
		endParent(nil)
		r.flush(t)
		if child := c.named("child"); child.ParentSpanID != c.named("parent").SpanID || len(child.Links) != 0 {
			t.Errorf("%v: the parent is %q, links %v", meta, child.ParentSpanID, child.Links)
		}
	}
}

func TestATraceStateThatCannotBeReadLeavesTheParent(t *testing.T) {
	c := collect(t, nil)
	r := start(t, at(c))
	for i, state := range []any{"no pairs", 3, "a=" + strings.Repeat("b", 600)} {
		_, end := r.Serve(context.Background(), telemetry.Op{Method: fmt.Sprint("m", i)}, map[string]any{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": state})
		end(nil)
	}
	r.flush(t)
	for i := range 3 {
		if s := c.named(fmt.Sprint("m", i)); s.ParentSpanID != "00f067aa0ba902b7" || s.TraceState != "" {
			t.Errorf("%d: %q %q", i, s.ParentSpanID, s.TraceState)
		}
	}
}

func TestEndsOfRequests(t *testing.T) {
	denied := marchwarden.Errorf(marchwarden.CodeDenied, "no")
	for _, test := range []struct {
		name           string
		err            error
		server, client map[string]any // without mcp.method.name
		status         [2]int
	}{
		{"fine", nil, map[string]any{}, map[string]any{}, [2]int{}},
		{"code", denied, map[string]any{"error.type": "denied"}, map[string]any{"error.type": "denied"}, [2]int{2, 2}},
		{"canceled", context.Canceled, map[string]any{"error.type": "canceled"}, map[string]any{"error.type": "canceled"}, [2]int{2, 2}},
		{"unknown", errors.New("no"), map[string]any{"error.type": "internal"}, map[string]any{"error.type": "internal"}, [2]int{2, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := collect(t, nil)
			r := start(t, at(c))
			_, end := r.Serve(context.Background(), telemetry.Op{Method: "server"}, nil)
			end(test.err)
			_, end = r.Call(context.Background(), telemetry.Op{Method: "client"}, nil)
			end(test.err)
			r.flush(t)
			for i, want := range []map[string]any{test.server, test.client} {
				s := c.named([]string{"server", "client"}[i])
				delete(s.got, "mcp.method.name")
				if diff := cmp.Diff(want, s.got); diff != "" || s.Status.Code != test.status[i] {
					t.Errorf("%s: status %d, want %d (-want +got):\n%s", s.Name, s.Status.Code, test.status[i], diff)
				}
			}
		})
	}
}

func TestFailuresOfModelsAndResearchers(t *testing.T) {
	c := collect(t, nil)
	r := start(t, at(c))
	model := r.Model(llmtest.New("acme/one", map[string][]llmtest.Answer{
		"busy": {{Err: marchwarden.Errorf(marchwarden.CodeRateLimited, "later"), Usage: llm.Usage{In: 3}}},
	}))
	if _, err := model.Generate(context.Background(), llm.Call{Prompt: "busy", Attempt: 2}); !errors.Is(err, marchwarden.CodeRateLimited) {
		t.Errorf("the model's error is %v", err)
	}
	bad := errors.New("bad")
	desk := r.Research(researching(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		return nil, marchwarden.Wrap(bad, marchwarden.CodeInvalid, "no")
	}), "web")
	if _, err := desk.Research(context.Background(), marchwarden.Request{Depth: "a depth that is none", Resume: traceID}, nil); !errors.Is(err, bad) {
		t.Errorf("the researcher's error is %v", err)
	}
	broken := r.Research(researching(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		panic("boom")
	}), "broken")
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("the panic became %v", p)
			}
		}()
		_, _ = broken.Research(context.Background(), marchwarden.Request{}, nil)
	}()
	r.flush(t)
	chat := c.named("chat one")
	if chat.Status.Code != 2 || chat.got["error.type"] != "rate_limited" || chat.got["marchwarden.attempt"] != 2 || chat.got["gen_ai.response.model"] != nil {
		t.Errorf("chat: %d %v", chat.Status.Code, chat.got)
	}
	web := c.named("invoke_agent web")
	want := map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "marchwarden", "gen_ai.agent.name": "web", "error.type": "invalid", "gen_ai.conversation.id": traceID, "marchwarden.resumed": true}
	if diff := cmp.Diff(want, web.got); diff != "" || web.Status.Code != 2 {
		t.Errorf("web: %d (-want +got):\n%s", web.Status.Code, diff)
	}
	if b := c.named("invoke_agent broken"); b.Status.Code != 2 || b.got["error.type"] != "internal" {
		t.Errorf("broken: %d %v", b.Status.Code, b.got)
	}
}

func TestAnotherModelAnswered(t *testing.T) {
	c := collect(t, nil)
	r := start(t, at(c))
	if _, err := r.Model(standIn{}).Generate(context.Background(), llm.Call{Prompt: "p"}); err != nil {
		t.Fatal(err)
	}
	r.flush(t)
	if s := c.named("chat one"); s.got["gen_ai.response.model"] != "org/two" || s.got["marchwarden.stood_in"] != true || s.got["gen_ai.response.finish_reasons"].([]any)[0] != "content_filter" {
		t.Errorf("chat: %v", s.got)
	}
}

type standIn struct{}

func (standIn) ID() string { return "acme/one" }
func (standIn) Generate(context.Context, llm.Call) (llm.Reply, error) {
	return llm.Reply{Model: "openrouter/org/two", Stop: llm.StopRefusal}, nil
}

func TestOff(t *testing.T) {
	const at = "http://127.0.0.1:4318"
	for _, env := range []map[string]string{
		nil,
		{"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "nonsense", "OTEL_SDK_DISABLED": "nonsense"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": at, "OTEL_SDK_DISABLED": "True"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": at, "OTEL_TRACES_EXPORTER": "none"},
	} {
		tracer, err := telemetry.Start(telemetry.Config{Env: func(k string) string { return env[k] }})
		if tracer != nil || err != nil {
			t.Errorf("%v: %v, %v", env, tracer, err)
		}
	}
	var none *telemetry.Tracer
	m, r := llmtest.New("acme/one", nil), researching(nil)
	if none.Model(m) != llm.Model(m) || none.Model(nil) != nil || none.Research(nil, "x") != nil || fmt.Sprintf("%T", none.Research(r, "x")) != fmt.Sprintf("%T", r) {
		t.Error("no tracer changes a model or a researcher")
	}
	if err := none.Close(context.Background()); err != nil {
		t.Error(err)
	}
	meta := map[string]any{}
	ctx := context.Background()
	op := telemetry.Op{Method: "tools/call", Tool: "research", Resource: "marchwarden://trace/" + traceID}
	if n := testing.AllocsPerRun(100, func() {
		inner, end := none.Serve(ctx, op, meta)
		_, endCall := none.Call(inner, op, meta)
		endCall(nil)
		end(nil)
		if inner != ctx {
			t.Error("no tracer changes the context")
		}
	}); n != 0 || len(meta) != 0 {
		t.Errorf("no tracer: %v allocations, meta %v", n, meta)
	}
}

func TestNilModelAndResearcher(t *testing.T) {
	r := start(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
	if r.Model(nil) != nil || r.Research(nil, "x") != nil {
		t.Error("nil became something")
	}
	r.flush(t)
	r.flush(t) // again
}

func TestAnyRequestCanBeTold(t *testing.T) {
	c := collect(t, nil)
	r := start(t, at(c))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String()
		meta := map[string]any{"traceparent": s.Draw(t, "traceparent"), "tracestate": s.Draw(t, "tracestate")}
		op := telemetry.Op{Method: s.Draw(t, "method"), Tool: s.Draw(t, "tool"), Resource: s.Draw(t, "resource"), Prompt: s.Draw(t, "prompt"),
			Session: s.Draw(t, "session"), Protocol: s.Draw(t, "protocol"), Transport: s.Draw(t, "transport")}
		ctx, end := r.Serve(context.Background(), op, meta)
		_, endCall := r.Call(ctx, op, meta)
		endCall(nil)
		end(errors.New(s.Draw(t, "error")))
	})
	r.flush(t)
}
