package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

func TestCallReturnsTheResult(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		s, _ := newTestServer(t, echo)
		cs := dial(s, nil)
		list, err := cs.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		res := call(t, cs, map[string]any{"question": "why <b>& “so”"})
		if res.IsError {
			t.Fatalf("tool error: %s", textOf(t, res))
		}
		encoded, err := json.Marshal(res.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		var got marchwarden.Result
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		want := sample("why <b>& “so” [1]")
		if diff := cmp.Diff(want, &got, traceIDs); diff != "" {
			t.Errorf("structured content (-want +got):\n%s", diff)
		}
		validateAs(t, list.Tools[0].OutputSchema, res.StructuredContent)
		text := textOf(t, res)
		for _, part := range []string{want.Answer, "[1] embedded:utah/tomatoes.md", "Use <row covers> & patience.", "frost dates (not found in what was searched)", "Confidence 0.72", want.TraceID.String()} {
			if !strings.Contains(text, part) {
				t.Errorf("text lacks %q:\n%s", part, text)
			}
		}
	})
}

// validateAs checks v against a schema as the client received it.
func validateAs(t *testing.T, schema, v any) {
	t.Helper()
	b, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(v); err != nil {
		t.Errorf("structured content breaks the advertised schema: %v", err)
	}
}

// badInputs are arguments and what becomes of them.
var badInputs = []struct {
	name, args string
	want       string // part of the error, or "" when the call must run
	field      string
}{
	{"none", ``, "question: must not be blank", "question"},
	{"empty", `{}`, "question: must not be blank", "question"},
	{"null", `null`, "question: must not be blank", "question"},
	{"blank", `{"question":" \t "}`, "question: must not be blank", "question"},
	{"too long", `{"question":"` + strings.Repeat("é", 501) + `"}`, "question: must be at most 500 characters, has 501", "question"},
	{"longest", `{"question":"` + strings.Repeat("é", 500) + `"}`, "", ""},
	{"context too long", `{"question":"q","context":"` + strings.Repeat("x", 2001) + `"}`, "context: must be at most 2000 characters, has 2001", "context"},
	{"depth", `{"question":"q","depth":"ultra"}`, `depth: must be shallow, balanced or deep, not "ultra"`, "depth"},
	{"depth type", `{"question":"q","depth":3}`, "depth: must be a string, not number", "depth"},
	{"question type", `{"question":["q"]}`, "question: must be a string, not array", "question"},
	{"not an object", `"q"`, "request: must be an object, not string", "request"},
	{"iterations", `{"question":"q","constraints":{"max_iterations":21}}`, "constraints.max_iterations: must be from 1 to 20, not 21", "constraints.max_iterations"},
	{"iterations type", `{"question":"q","constraints":{"max_iterations":"5"}}`, "constraints.max_iterations: must be an integer, not string", "constraints.max_iterations"},
	{"fraction", `{"question":"q","constraints":{"max_sources":1.5}}`, "constraints.max_sources: must be an integer", "constraints.max_sources"},
	{"budget", `{"question":"q","constraints":{"token_budget":999}}`, "constraints.token_budget: must be at least 1000, not 999", "constraints.token_budget"},
	{"sources", `{"question":"q","constraints":{"max_sources":0}}`, "constraints.max_sources: must be at least 1, not 0", "constraints.max_sources"},
	{"resume", `{"resume":"../../etc/passwd"}`, "resume: ", "resume"},
	{"nulls", `{"question":"q","context":null,"depth":null,"constraints":{"max_iterations":null,"source_filter":null},"resume":null}`, "", ""},
	{"null object", `{"question":"q","constraints":null}`, "", ""},
	{"extra fields", `{"question":"q","tone":"brief","constraints":{"max_hops":3}}`, "", ""},
}

func TestBadInput(t *testing.T) {
	ran := make(chan marchwarden.Request, 1)
	s, _ := newTestServer(t, scripted(func(_ context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		ran <- req
		return sample("yes [1]"), nil
	}))
	for _, tc := range badInputs {
		t.Run(tc.name, func(t *testing.T) {
			params := `{"name":"research"}`
			if tc.args != "" {
				params = `{"name":"research","arguments":` + tc.args + `}`
			}
			res := rawCall(t, s, params)
			select {
			case req := <-ran:
				if tc.want != "" {
					t.Fatalf("the researcher was asked %+v", req)
				}
				if req.Depth != "" || req.Limits() != marchwarden.Preset(marchwarden.Balanced) {
					t.Errorf("something filled in what was not given: %+v", req)
				}
			default:
				if tc.want == "" {
					t.Fatalf("refused: %s", textOf(t, res))
				}
			}
			if res.IsError != (tc.want != "") {
				t.Fatalf("isError is %v: %s", res.IsError, textOf(t, res))
			}
			if tc.want == "" {
				return
			}
			text := textOf(t, res)
			if !strings.HasPrefix(text, tc.want) || !strings.Contains(text, "\nhint: ") {
				t.Errorf("got %q, want %q and a hint", text, tc.want)
			}
			facts, _ := res.Meta[MetaError].(map[string]any)
			if hint, _ := facts["hint"].(string); !strings.HasSuffix(text, HintMark+hint) {
				t.Errorf("the hint in _meta is %q, the text %q", hint, text)
			}
			delete(facts, "hint")
			if diff := cmp.Diff(map[string]any{"code": "invalid", "field": tc.field}, facts); diff != "" {
				t.Errorf("_meta (-want +got):\n%s", diff)
			}
		})
	}
}

// rawCall sends one tools/call with the given params over ServeStdio.
func rawCall(t *testing.T, s *Server, params string) *mcp.CallToolResult {
	t.Helper()
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}},` + strings.TrimPrefix(params, "{")
	var out strings.Builder
	in := `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":` + meta + "}\n"
	if err := s.ServeStdio(context.Background(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Result *mcp.CallToolResult
		Error  json.RawMessage
	}
	if err := json.Unmarshal([]byte(out.String()), &answer); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	if answer.Result == nil {
		t.Fatalf("protocol error: %s", answer.Error)
	}
	return answer.Result
}

func TestPanicHurtsOneCall(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		const calls, bad = 20, 7
		var together sync.WaitGroup
		together.Add(calls)
		s, log := newTestServer(t, scripted(func(_ context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
			together.Done()
			together.Wait()
			if req.Question == strconv.Itoa(bad) {
				panic(fmt.Sprintf("secret state of call %s", req.Question))
			}
			return sample(req.Question + " [1]"), nil
		}), func(c *Config) { c.MaxConcurrent = calls })
		cs := dial(s, nil)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				res := call(t, cs, map[string]any{"question": strconv.Itoa(i)})
				if i != bad {
					if got := res.StructuredContent.(map[string]any)["answer"]; got != strconv.Itoa(i)+" [1]" {
						t.Errorf("call %d got %v", i, got)
					}
					return
				}
				text := textOf(t, res)
				if !res.IsError || !strings.HasPrefix(text, "internal error") || strings.Contains(text, "secret") || strings.Contains(text, "goroutine") {
					t.Errorf("the panicking call got %q", text)
				}
			})
		}
		wg.Wait()
		if l := log.String(); !strings.Contains(l, "secret state of call 7") || !strings.Contains(l, "tool_test.go") {
			t.Errorf("the log lacks the panic or its stack: %s", l)
		}
	})
}

// A call beyond the limit waits, hears its place, and is answered.
func TestACallWaitsForItsTurn(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		running, release, waits := make(chan struct{}, 3), make(chan struct{}), make(chan struct{})
		s, _ := newTestServer(t, scripted(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			running <- struct{}{}
			<-release
			return sample("done [1]"), nil
		}), func(c *Config) { c.MaxConcurrent = 2 })
		cs := dial(s, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
			if n.Params.Message == "waiting for its turn: number 1 in the queue" {
				close(waits)
			}
		}})
		var wg sync.WaitGroup
		ask := func() {
			params := &mcp.CallToolParams{Name: Tool, Arguments: map[string]any{"question": "q"}, Meta: mcp.Meta{}}
			params.SetProgressToken("token")
			if res, err := cs.CallTool(t.Context(), params); err != nil || res.IsError {
				t.Errorf("a call failed: %v, %+v", err, res)
			}
		}
		wg.Go(ask)
		wg.Go(ask)
		<-running
		<-running
		wg.Go(ask)
		<-waits
		close(release)
		wg.Wait()
	})
}

func TestCancelReachesTheResearcher(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		started, stopped := make(chan struct{}), make(chan struct{})
		s, _ := newTestServer(t, scripted(func(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
			if req.Question != "slow" {
				return sample("quick [1]"), nil
			}
			close(started)
			<-ctx.Done()
			close(stopped)
			return sample("partial [1]"), nil
		}))
		cs := dial(s, nil)
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "slow"}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled call gave %v", err)
			}
		}()
		<-started
		cancel()
		within(t, 30*time.Second, "the cancelled call", returned)
		within(t, 30*time.Second, "stopping the researcher", stopped)
		if res := call(t, cs, map[string]any{"question": "next"}); res.IsError {
			t.Errorf("the next call failed: %s", textOf(t, res))
		}
	})
}

// Research that ignores that its time is over, or that it was stopped, is not waited for.
func TestStuckResearchIsGivenUp(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{}, 1)
	s, log := newTestServer(t, scripted(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		asked <- struct{}{}
		<-release
		return sample("late [1]"), nil
	}))
	defer close(release)
	cs := dialMemory(t, s, eras[1], nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	id, err := marchwarden.ParseTraceID("6f0f1d1e-93a5-4d5c-9a54-3f9fb0d1a001")
	if err != nil {
		t.Fatal(err)
	}
	for _, meta := range []mcp.Meta{{MetaWall: 50}, {MetaTrace: id.String()}} {
		go func() {
			<-asked
			if meta[MetaTrace] != nil {
				run, err := s.runs.Find(access.With(ctx, access.Local()), id)
				if err != nil {
					t.Error(err)
					return
				}
				run.Cancel()
			}
		}()
		res, err := cs.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: "research", Arguments: map[string]any{"question": "stuck?"}})
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(t, res); !res.IsError || !strings.Contains(text, "did not end in time") {
			t.Errorf("the call gave %s", text)
		}
	}
	if !strings.Contains(log.String(), "research did not end after it was stopped") {
		t.Errorf("the log says %s", log)
	}
}

func TestProgress(t *testing.T) {
	events := []marchwarden.Event{
		{Stage: marchwarden.StagePlan, Message: "planning 3 searches"},
		{Stage: marchwarden.StageSearch},
		{Stage: marchwarden.StageFetch, Message: "reading \x1b[31mutah.md\n" + strings.Repeat("long ", 80)},
		{Stage: marchwarden.StageDone, Message: "done"},
	}
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		var late marchwarden.Sink
		s, _ := newTestServer(t, scripted(func(_ context.Context, _ marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
			if sink == nil {
				return sample("nobody listens [1]"), nil
			}
			for _, e := range events {
				sink(e)
			}
			late = sink
			return sample("yes [1]"), nil
		}))
		got := make(chan *mcp.ProgressNotificationParams, 16)
		cs := dial(s, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) { got <- n.Params }})
		params := &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "q"}}
		params.SetProgressToken("tok")
		if _, err := cs.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		late(marchwarden.Event{Message: "after the answer"})
		call(t, cs, map[string]any{"question": "without a token"})
		var messages []string
		for range len(events) + 1 {
			select {
			case p := <-got:
				if p.ProgressToken != "tok" || p.Progress != float64(len(messages)+1) {
					t.Errorf("message %d has token %v and number %v", len(messages)+1, p.ProgressToken, p.Progress)
				}
				messages = append(messages, p.Message)
			case <-time.After(30 * time.Second):
				t.Fatalf("only %d messages came: %q", len(messages), messages)
			}
		}
		want := []string{"research started", "planning 3 searches", "search", Clip("reading [31mutah.md "+strings.TrimSpace(strings.Repeat("long ", 80)), 200), "done"}
		if diff := cmp.Diff(want, messages); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
		if len(got) > 0 {
			t.Errorf("progress after the answer: %q", (<-got).Message)
		}
	})
}

func TestProgressNeverBlocksTheResearcher(t *testing.T) {
	unblock := make(chan struct{})
	sink, stop := progress(time.Hour, func(int, note) { <-unblock })
	for range 10 * progressBacklog {
		sink(marchwarden.Event{Message: "again"})
	}
	close(unblock)
	stop()
	sink(marchwarden.Event{Message: "too late"})
}

// A silent call says so again and again, with growing numbers.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		sink, stop := progress(heartbeat, func(n int, what note) { said = append(said, fmt.Sprint(n, " ", what.message)) })
		sink(marchwarden.Event{Message: "asking the model"})
		time.Sleep(2*heartbeat + time.Second)
		sink(marchwarden.Event{Message: "reading"})
		time.Sleep(heartbeat / 2)
		stop()
		want := []string{"1 asking the model", "2 still at work: asking the model", "3 still at work: asking the model", "4 reading"}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWallTime(t *testing.T) {
	for name, tc := range map[string]struct {
		said any
		want time.Duration
	}{
		"none":     {nil, 0},
		"some":     {1500.0, 1500 * time.Millisecond},
		"little":   {1e-9, 1},
		"zero":     {0.0, 0},
		"negative": {-5.0, 0},
		"for ever": {1e300, 0},
		"words":    {"soon", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := wallTime(&mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: mcp.Meta{MetaWall: tc.said}}})
			if got != tc.want || ok != (tc.want > 0) {
				t.Errorf("got %v, %v", got, ok)
			}
		})
	}
}
