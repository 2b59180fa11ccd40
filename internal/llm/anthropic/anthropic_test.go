package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/anthropic"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
)

const key = "sk-ant-conformance-0123456789"

var ask = llm.Call{Prompt: "test", System: "Be brief.", Input: "How long is the bridge?", MaxTokens: 100}

func TestConformance(t *testing.T) {
	llmtest.Run(t, llmtest.WireAnthropic, func(t *testing.T, baseURL string, idle time.Duration) llm.Model {
		return anthropic.New(llm.Config{Key: key, BaseURL: baseURL, Idle: idle})
	})
}

// serve starts a server with a handler of its own and the model before it.
func serve(t *testing.T, h http.HandlerFunc) *anthropic.Model {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return anthropic.New(llm.Config{Key: key, BaseURL: srv.URL, Idle: 10 * time.Second})
}

// stream answers with events as they are.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			var typed struct{ Type string }
			_ = json.Unmarshal([]byte(e), &typed) // what has no type has no name
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", typed.Type, e)
		}
	}
}

// TestConfigAloneCounts sets every variable that clients of the API read to something wrong.
func TestConfigAloneCounts(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN"} {
		t.Setenv(name, "leaked")
	}
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Leaked: leaked")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/leaked")
	srv := llmtest.NewServer(t, func(llmtest.Turn) llmtest.Said { return llmtest.Said{Text: "ok"} })
	for _, k := range []string{key, ""} {
		m := anthropic.New(llm.Config{Key: k, BaseURL: srv.URL() + "/v1/"})
		if _, err := m.Generate(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	turns := srv.Turns()
	if turns[0].Model != anthropic.DefaultModel || !strings.HasPrefix(anthropic.DefaultModel, "claude-sonnet-") {
		t.Errorf("the model is %s", turns[0].Model)
	}
	if got := turns[0].Header.Get("X-Api-Key") + turns[1].Header.Get("X-Api-Key"); got != key {
		t.Errorf("the keys are %q", got)
	}
	for name, values := range turns[1].Header {
		if strings.Contains(strings.Join(values, " "), "leaked") || strings.HasPrefix(name, "X-Stainless") || name == "Traceparent" || name == "Authorization" {
			t.Errorf("the request bears %s: %s", name, values)
		}
	}
}

func TestRequest(t *testing.T) {
	srv := llmtest.NewServer(t, func(llmtest.Turn) llmtest.Said { return llmtest.Said{Text: "ok"} })
	call := ask
	call.Tools = []llm.Tool{{Name: "a", Description: "does a", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string","maxLength":9},"b":{}},"additionalProperties":false}`)},
		{Name: "b", Schema: json.RawMessage(`{"type":"object"}`)}}
	m := anthropic.New(llm.Config{BaseURL: srv.URL(), Model: "claude-x"})
	if m.ID() != "anthropic/claude-x" {
		t.Errorf("the id is %s", m.ID())
	}
	if _, err := m.Generate(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(srv.Turns()[0].Body, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"model":"claude-x","max_tokens":100,"stream":true,
		"system":[{"type":"text","text":"Be brief."}],
		"messages":[{"role":"user","content":[{"type":"text","text":"How long is the bridge?"}]}],
		"tool_choice":{"type":"auto","disable_parallel_tool_use":false},
		"tools":[{"name":"a","description":"does a","input_schema":{"type":"object","properties":{"z":{"type":"string","maxLength":9},"b":{}},"additionalProperties":false}},
			{"name":"b","description":"","input_schema":{"type":"object"}}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if body := string(srv.Turns()[0].Body); strings.Index(body, `"z"`) > strings.Index(body, `"b":{}`) {
		t.Errorf("the order of properties is lost: %s", body)
	}
}

func TestBadAddress(t *testing.T) {
	for _, base := range []string{"ftp://example.org", "api.example.org", "http://", "http://[::1", "://"} {
		if _, err := anthropic.New(llm.Config{BaseURL: base}).Generate(t.Context(), ask); !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestErrorsByTypeAndStatus(t *testing.T) {
	for _, tc := range []struct {
		status    int
		kind, msg string
		code      marchwarden.Code
		retryable bool
		says      string // in the text or the hint
	}{
		{400, "invalid_request_error", "messages: too long", marchwarden.CodeInvalid, false, "refuses the request (status 400): messages: too long"},
		{400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", marchwarden.CodeDenied, false, "spend"},
		{400, "invalid_request_error", "You have reached your specified API usage limits.", marchwarden.CodeDenied, false, "console"},
		{401, "authentication_error", "invalid x-api-key", marchwarden.CodeDenied, false, "ANTHROPIC_API_KEY"},
		{402, "billing_error", "pay first", marchwarden.CodeDenied, false, "spend"},
		{403, "permission_error", "not yours", marchwarden.CodeDenied, false, "--model"},
		{404, "not_found_error", "model: claude-x", marchwarden.CodeDenied, false, "--model"},
		{408, "", "", marchwarden.CodeTimeout, true, "took too long"},
		{409, "", "", marchwarden.CodeUnavailable, true, "409"},
		{413, "request_too_large", "Request exceeds the maximum size", marchwarden.CodeInvalid, false, "maximum size"},
		{418, "", "", marchwarden.CodeInvalid, false, "418"},
		{429, "", "", marchwarden.CodeRateLimited, true, "429"},
		{429, "rate_limit_error", "This request would exceed your account's monthly spend limit.", marchwarden.CodeDenied, false, "raise the spend limit"},
		{500, "rate_limit_error", "odd", marchwarden.CodeUnavailable, true, "500: odd"},
		{502, "<html>bad gateway", "", marchwarden.CodeUnavailable, true, "502"},
		{503, "a_type_of_tomorrow", "soon", marchwarden.CodeUnavailable, true, "soon"},
		{504, "timeout_error", "slow", marchwarden.CodeTimeout, true, "slow"},
		{200, "overloaded_error", "Overloaded", marchwarden.CodeUnavailable, true, "overloaded: Overloaded"},
		{200, "rate_limit_error", "later", marchwarden.CodeRateLimited, true, "later"},
		{200, "authentication_error", "expired", marchwarden.CodeDenied, false, "ANTHROPIC_API_KEY"},
		{200, "a_type_of_tomorrow", "hm", marchwarden.CodeUnavailable, true, "hm"},
	} {
		t.Run(fmt.Sprint(tc.status, tc.kind, tc.msg), func(t *testing.T) {
			m := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body := fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, tc.kind, tc.msg)
				if strings.HasPrefix(tc.kind, "<") {
					body = tc.kind + strings.Repeat(" and more of the page", 10_000)
				}
				if tc.status == 200 {
					stream(`{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}`, body)(w, r)
					return
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, body) // the model says what it makes of it
			})
			got, err := m.Generate(t.Context(), ask)
			var retry interface{ Retryable() bool }
			if marchwarden.CodeOf(err) != tc.code || !errors.As(err, &retry) || retry.Retryable() != tc.retryable {
				t.Errorf("%s: %v", marchwarden.CodeOf(err), err)
			}
			if text := err.Error() + "; " + marchwarden.HintOf(err); !strings.Contains(text, tc.says) || len(text) > 400 || strings.Contains(text, "<html>") {
				t.Errorf("it says %q", text)
			}
			want := llm.Usage{}
			if tc.status == 200 {
				want = llm.Usage{In: 7, Out: 1}
			}
			if got.Usage != want {
				t.Errorf("the usage is %+v", got.Usage)
			}
		})
	}
}

// TestRedirect sees that no redirect carries the key elsewhere.
func TestRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed with the key %q", r.Header.Get("X-Api-Key"))
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		if got, err := m.Generate(t.Context(), ask); !errors.Is(err, marchwarden.CodeInvalid) || got.Usage.Total() != 0 {
			t.Errorf("%d: %+v, %v", status, got, err)
		}
	}
}

const (
	start = `{"type":"message_start","message":{"model":"claude-other","usage":{"input_tokens":30,"cache_read_input_tokens":5,"output_tokens":1}}}`
	stop  = `{"type":"message_stop"}`
	done  = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`
)

func TestStreamsOffTheBeatenTrack(t *testing.T) {
	text := func(index int, s string) []string {
		return []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, index),
			fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, index, s), fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)}
	}
	join := func(parts ...[]string) (all []string) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	usage := llm.Usage{In: 35, Out: 9, CacheRead: 5}
	for name, tc := range map[string]struct {
		events []string
		want   llm.Reply
		code   marchwarden.Code
	}{
		"two texts": {join([]string{start}, text(0, "one "), text(1, "two"), []string{done, stop}),
			llm.Reply{Text: "one two", Usage: usage, Stop: llm.StopEnd, Model: "anthropic/claude-other"}, ""},
		"an input that comes whole": {[]string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"t","input":{"a":1}}}`, done, stop},
			llm.Reply{Calls: []llm.ToolCall{{Name: "t", Input: json.RawMessage(`{"a":1}`)}}, Usage: usage, Stop: llm.StopEnd, Model: "anthropic/claude-other"}, ""},
		"an input that the pieces replace": {[]string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"t","input":{ }}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"y","name":"t","input":null}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"b\":2}"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":":1}"}}`, done, stop},
			llm.Reply{Calls: []llm.ToolCall{{Name: "t", Input: json.RawMessage(`{"a":1}`)}, {Name: "t", Input: json.RawMessage(`{"b":2}`)}}, Usage: usage, Stop: llm.StopEnd, Model: "anthropic/claude-other"}, ""},
		"pieces for the wrong block": {join([]string{start, `{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"lost"}}`,
			`{"type":"content_block_start","index":-1,"content_block":{"type":"tool_use","name":"t"}}`, `{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"no input"}}`}, text(0, "kept"), []string{done, stop}),
			llm.Reply{Text: "kept", Calls: []llm.ToolCall{{Name: "t", Input: json.RawMessage(`{}`)}}, Usage: usage, Stop: llm.StopEnd, Model: "anthropic/claude-other"}, ""},
		"no start": {join(text(0, "abcd"), []string{done, stop}),
			llm.Reply{Text: "abcd", Usage: llm.Usage{In: llm.Estimate(ask), Out: 9}, Stop: llm.StopEnd}, ""},
		"paused":         {[]string{start, `{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":9}}`, stop}, llm.Reply{Usage: usage, Stop: llm.StopOther, Model: "anthropic/claude-other"}, ""},
		"window":         {[]string{start, `{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":9}}`, stop}, llm.Reply{Usage: usage, Stop: llm.StopLength, Model: "anthropic/claude-other"}, ""},
		"no stop reason": {join([]string{start}, text(0, "abcd efgh"), []string{stop}), llm.Reply{Usage: llm.Usage{In: 35, Out: llm.EstimateText("abcd efgh"), CacheRead: 5}}, marchwarden.CodeTruncated},
		"cut in its thoughts": {[]string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"first","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" weigh the long and the sho"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"rt of it"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmVk"}}`},
			llm.Reply{Usage: llm.Usage{In: 35, Out: llm.EstimateText("first weigh the long and the short of it"), CacheRead: 5}}, marchwarden.CodeTruncated},
		"thoughts before an answer": {join([]string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, `{"type":"content_block_stop","index":0}`}, text(1, "yes"), []string{done, stop}),
			llm.Reply{Text: "yes", Usage: usage, Stop: llm.StopEnd, Model: "anthropic/claude-other"}, ""},
		"no message_stop":   {join([]string{start}, text(0, "abcd"), []string{done}), llm.Reply{Usage: usage}, marchwarden.CodeTruncated},
		"nothing":           {nil, llm.Reply{Usage: llm.Usage{In: llm.Estimate(ask)}}, marchwarden.CodeTruncated},
		"an error, no JSON": {[]string{start, `{"type":"error"`}, llm.Reply{Usage: llm.Usage{In: 35, Out: 1, CacheRead: 5}}, marchwarden.CodeMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if name != "an error, no JSON" {
					stream(tc.events...)(w, r)
					return
				}
				stream(tc.events[0])(w, r)
				fmt.Fprintf(w, "event: content_block_delta\ndata: %s\n\n", tc.events[1])
			}).Generate(t.Context(), ask)
			if marchwarden.CodeOf(err) != tc.code {
				t.Fatalf("%v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSecretsOfTheAddress sees that an error does not repeat the base URL.
func TestSecretsOfTheAddress(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	_, err := anthropic.New(llm.Config{BaseURL: strings.Replace(srv.URL, "http://", "http://token-of-a-gateway:pw@", 1)}).Generate(t.Context(), ask)
	if !errors.Is(err, marchwarden.CodeUnavailable) || strings.Contains(err.Error(), "token-of-a-gateway") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

// TestHugeLines sees that one endless line costs no more than many short ones.
func TestHugeLines(t *testing.T) {
	m := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(start)(w, r)
		_, _ = io.WriteString(w, "event: content_block_delta\ndata: ") // it fails when the model is gone
		for block := strings.Repeat("x", 1<<20); r.Context().Err() == nil; {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	})
	got, err := m.Generate(t.Context(), ask)
	if !errors.Is(err, marchwarden.CodeMalformed) || got.Usage.In != 35 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSignsOfLifeDoNotCount sees that neither unknown events nor empty pieces keep a call waiting.
func TestSignsOfLifeDoNotCount(t *testing.T) {
	for _, e := range []string{`{"type":"moon_phase"}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stream(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)(w, r)
			for r.Context().Err() == nil {
				stream(e)(w, r)
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}))
		defer srv.Close()
		begin := time.Now()
		_, err := anthropic.New(llm.Config{BaseURL: srv.URL, Idle: 100 * time.Millisecond}).Generate(t.Context(), ask)
		if !errors.Is(err, marchwarden.CodeTimeout) || time.Since(begin) > 10*time.Second {
			t.Errorf("%s: %v after %s", e, err, time.Since(begin))
		}
	}
}

// TestClientTimeout sees that a limit of the HTTP client is a timeout, too, and that a deadline is the caller's.
func TestClientTimeout(t *testing.T) {
	srv := llmtest.NewServer(t, func(llmtest.Turn) llmtest.Said { return llmtest.Said{Fault: llmtest.FaultPings} })
	m := anthropic.New(llm.Config{Key: key, BaseURL: srv.URL(), HTTP: &http.Client{Timeout: 100 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}})
	if got, err := m.Generate(t.Context(), ask); !errors.Is(err, marchwarden.CodeTimeout) || got.Usage.In == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	// A request that went out and was never answered may have been worked on.
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the client is seen
		<-r.Context().Done()
	}))
	defer silent.Close()
	if got, err := anthropic.New(llm.Config{BaseURL: silent.URL, Idle: 400 * time.Millisecond}).Generate(t.Context(), ask); !errors.Is(err, marchwarden.CodeTimeout) || got.Usage.In != llm.Estimate(ask) {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.Generate(ctx, ask); !errors.Is(err, marchwarden.CodeCanceled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestConnectionIsKept sees that a reply read to its end leaves a connection for the next call.
func TestConnectionIsKept(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream(start, done, stop)(w, r)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Millisecond) // the last word and the end of the body come apart
	}))
	defer srv.Close()
	var dials atomic.Int32
	m := anthropic.New(llm.Config{BaseURL: srv.URL, HTTP: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}}})
	for range 5 {
		if _, err := m.Generate(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("five calls needed %d connections", n)
	}
}

// A model that knows no schemas refuses one once; then its calls go without.
func TestModelWithoutSchemas(t *testing.T) {
	requests, answer := 0, stream(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"{}"}}`, done, stop)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(body), "output_config") {
			answer(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"type":"error","error":{"type":"invalid_request_error","message":"output_config.format: not supported by this model"}}`)
	}))
	t.Cleanup(srv.Close)
	m := anthropic.New(llm.Config{BaseURL: srv.URL, Model: "claude-old"})
	c := ask
	c.Schema = json.RawMessage(`{"type":"object"}`)
	for range 2 {
		if r, err := m.Generate(t.Context(), c); err != nil || r.Text != "{}" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if requests != 3 {
		t.Errorf("%d requests, want one refused and two answered", requests)
	}
}
