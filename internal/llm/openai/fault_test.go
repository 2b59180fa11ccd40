package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
)

// judge reads what steady asks of an error.
func judge(err error) (retry bool, wait time.Duration, waits bool) {
	var r interface{ Retryable() bool }
	var a interface{ RetryAfter() (time.Duration, bool) }
	if errors.As(err, &r) {
		retry = r.Retryable()
	}
	if errors.As(err, &a) {
		wait, waits = a.RetryAfter()
	}
	return retry, wait, waits
}

// TestStatuses: what each answer without a reply is called.
func TestStatuses(t *testing.T) {
	for _, tt := range []struct {
		name     string
		provider string
		status   int
		body     string
		header   []string // name, value, …
		code     marchwarden.Code
		retry    bool
		wait     time.Duration // -1: not told
		says     string
		hint     string
	}{
		{name: "429", status: 429, body: `{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}`, code: marchwarden.CodeRateLimited, retry: true, wait: -1, says: "openai limits the rate of requests (429) and asks to come back later: Slow down"},
		{name: "429 with seconds", status: 429, header: []string{"Retry-After", "3600"}, code: marchwarden.CodeRateLimited, retry: true, wait: time.Hour},
		{name: "429 with milliseconds", status: 429, header: []string{"Retry-After-Ms", "250", "Retry-After", "1"}, code: marchwarden.CodeRateLimited, retry: true, wait: 250 * time.Millisecond},
		{name: "429 with a date", status: 429, header: []string{"Retry-After", "Sun, 15 Nov 2026 08:00:30 GMT", "Date", "Sun, 15 Nov 2026 08:00:00 GMT"}, code: marchwarden.CodeRateLimited, retry: true, wait: 30 * time.Second},
		{name: "429 with nonsense", status: 429, header: []string{"Retry-After", "soon"}, code: marchwarden.CodeRateLimited, retry: true, wait: -1},
		{name: "429 with an age", status: 429, header: []string{"Retry-After", "1e300"}, code: marchwarden.CodeRateLimited, retry: true, wait: 365 * 24 * time.Hour},
		{name: "no money", status: 429, body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, code: marchwarden.CodeDenied, wait: -1, says: "quota", hint: "billing"},
		{name: "402", provider: "openrouter", status: 402, body: `{"error":{"message":"Insufficient credits","code":402}}`, code: marchwarden.CodeDenied, wait: -1, says: "Insufficient credits"},
		{name: "401 with the key", status: 401, body: `{"error":{"message":"Incorrect API key provided: ` + key + `"}}`, code: marchwarden.CodeDenied, wait: -1, says: "provided: [key]", hint: "check the key"},
		{name: "403", status: 403, body: `{}`, code: marchwarden.CodeDenied, wait: -1},
		{name: "404", provider: "ollama", status: 404, body: `{"error":{"message":"model 'test-model' not found"}}`, code: marchwarden.CodeDenied, wait: -1, says: "ollama does not know the model test-model", hint: "ollama pull test-model"},
		{name: "404, as Ollama says it", provider: "ollama", status: 404, body: `{"error":{"message":"model \"test-model\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, code: marchwarden.CodeDenied, wait: -1, says: "ollama does not know the model test-model", hint: "ollama pull test-model"},
		{name: "400, as Ollama says it", provider: "ollama", status: 400, body: `{"error":{"message":"invalid schema","type":"api_error"}}`, code: marchwarden.CodeInvalid, wait: -1, says: "status 400"},
		{name: "404, a page", status: 404, body: `<html>nothing here</html>`, header: []string{"Content-Type", "text/html"}, code: marchwarden.CodeDenied, wait: -1, hint: "OPENAI_BASE_URL"},
		{name: "400", status: 400, body: `{"error":"just a string"}`, code: marchwarden.CodeInvalid, wait: -1, says: "just a string"},
		{name: "400, vLLM", status: 400, body: `{"object":"error","message":"bad thing","type":"BadRequestError","code":400}`, code: marchwarden.CodeInvalid, wait: -1, says: "bad thing"},
		{name: "422", status: 422, body: `{"detail":[{"msg":"wrong"}]}`, code: marchwarden.CodeInvalid, wait: -1, says: "wrong"},
		{name: "too long", status: 400, body: `{"error":{"message":"too much","code":"context_length_exceeded"}}`, code: marchwarden.CodeInvalid, wait: -1, says: "too long", hint: "context window"},
		{name: "408", status: 408, code: marchwarden.CodeTimeout, retry: true, wait: -1},
		{name: "500", status: 500, body: "plain\x1b[31m words\x00", code: marchwarden.CodeUnavailable, retry: true, wait: -1, says: "openai failed with status 500: plain[31m words"},
		{name: "503", status: 503, header: []string{"Retry-After", "2"}, code: marchwarden.CodeUnavailable, retry: true, wait: 2 * time.Second},
		{name: "529", status: 529, code: marchwarden.CodeUnavailable, retry: true, wait: -1},
		{name: "long words", status: 500, body: strings.Repeat("blah ", 1000), code: marchwarden.CodeUnavailable, retry: true, wait: -1, says: "…"},
		{name: "a page", status: 200, body: `<html>log in</html>`, header: []string{"Content-Type", "text/html"}, code: marchwarden.CodeMalformed, wait: -1, hint: "login"},
		{name: "plain text", status: 200, body: `hello`, header: []string{"Content-Type", "text/plain"}, code: marchwarden.CodeMalformed, wait: -1},
		{name: "elsewhere, Ollama", provider: "ollama", status: 302, header: []string{"Location", "https://example.invalid/"}, code: marchwarden.CodeInvalid, wait: -1, hint: "OLLAMA_HOST"},
		{name: "elsewhere, vLLM", provider: "vllm", status: 302, header: []string{"Location", "https://example.invalid/"}, code: marchwarden.CodeInvalid, wait: -1, hint: "base URL of vllm"},
		{name: "nowhere", status: 302, code: marchwarden.CodeInvalid, wait: -1, says: "is a redirect, which is not followed", hint: "OPENAI_BASE_URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) {
				for i := 0; i < len(tt.header); i += 2 {
					w.Header().Set(tt.header[i], tt.header[i+1])
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			m := model(t, llm.Config{BaseURL: s.URL, Key: key, Provider: tt.provider})
			reply, err := m.Generate(t.Context(), call())
			if got := marchwarden.CodeOf(err); got != tt.code {
				t.Fatalf("code %s, want %s: %v", got, tt.code, err)
			}
			var e *marchwarden.Error
			if !errors.As(err, &e) {
				t.Errorf("no Error in %v", err)
			}
			retry, wait, waits := judge(err)
			if retry != tt.retry || waits != (tt.wait > 0) && tt.wait != 0 || tt.wait > 0 && wait != tt.wait {
				t.Errorf("retryable %v, wait %v (%v)", retry, wait, waits)
			}
			if reply.Usage != (llm.Usage{}) {
				t.Errorf("it cost %+v", reply.Usage)
			}
			if !strings.Contains(err.Error(), tt.says) || !strings.Contains(marchwarden.HintOf(err), tt.hint) {
				t.Errorf("%q, hint %q; want %q and %q in them", err, marchwarden.HintOf(err), tt.says, tt.hint)
			}
			if strings.Contains(err.Error()+marchwarden.HintOf(err), key) || len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\x1b\x00\n") {
				t.Errorf("unfit for people: %q", err)
			}
			if len(s.requests()) != 1 {
				t.Errorf("%d requests", len(s.requests()))
			}
		})
	}
}

// TestRedirect: no redirect is followed, since it would carry the key and the text
// elsewhere, and none is worth repeating.
func TestRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed to %s with the key %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{elsewhere.URL + "/v1/chat/completions", "/v2/v1/chat/completions"} {
			s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int, _ body) { http.Redirect(w, r, to, status) })
			reply, err := model(t, llm.Config{BaseURL: s.URL, Key: key}).Generate(t.Context(), withSchema(call()))
			if retry, _, _ := judge(err); marchwarden.CodeOf(err) != marchwarden.CodeInvalid || retry || reply.Usage.Total() != 0 {
				t.Errorf("%d to %s: %v, retryable %v, usage %+v", status, to, err, retry, reply.Usage)
			}
			if hint := marchwarden.HintOf(err); !strings.Contains(hint, "OPENAI_BASE_URL") || len(s.requests()) != 1 {
				t.Errorf("%d to %s: hint %q after %d requests", status, to, hint, len(s.requests()))
			}
		}
	}
}

// TestBrokenStreams: streams that begin and do not end well.
func TestBrokenStreams(t *testing.T) {
	hang := func(r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
		}
	}
	for _, tt := range []struct {
		name    string
		answer  func(w http.ResponseWriter, r *http.Request)
		code    marchwarden.Code // "" for a reply
		retry   bool
		charged bool
	}{
		{"cut", func(w http.ResponseWriter, _ *http.Request) { stream(w, content("It")) }, marchwarden.CodeTruncated, true, true},
		{"[DONE] too early", func(w http.ResponseWriter, _ *http.Request) { stream(w, content("It"), "[DONE]") }, marchwarden.CodeTruncated, true, true},
		{"empty", func(w http.ResponseWriter, _ *http.Request) { stream(w) }, marchwarden.CodeTruncated, true, true},
		{"reset", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, content("It"))
			panic(http.ErrAbortHandler)
		}, marchwarden.CodeTruncated, true, true},
		{"reset after the finish", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, content("It"), finish("stop"))
			panic(http.ErrAbortHandler)
		}, "", false, true},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { stream(w, content("It"), `{"choices":[`) }, marchwarden.CodeMalformed, true, true},
		{"silence", func(w http.ResponseWriter, r *http.Request) { stream(w, content("It")); hang(r) }, marchwarden.CodeTimeout, true, true},
		{"silence from the start", func(_ http.ResponseWriter, r *http.Request) { hang(r) }, marchwarden.CodeTimeout, true, true},
		{"silence after the finish", func(w http.ResponseWriter, r *http.Request) { stream(w, content("It"), finish("stop")); hang(r) }, "", false, true},
		{"silence after [DONE]", func(w http.ResponseWriter, r *http.Request) {
			stream(w, content("It"), finish("stop"), "[DONE]")
			hang(r)
		}, "", false, true},
		{"only comments and empty chunks", func(w http.ResponseWriter, r *http.Request) {
			for range 100 {
				stream(w, ": OPENROUTER PROCESSING", `{"choices":[]}`, say(`{"role":"assistant","content":""}`))
				select {
				case <-r.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}, marchwarden.CodeTimeout, true, true},
		{"slow but alive", func(w http.ResponseWriter, _ *http.Request) {
			for range 8 {
				stream(w, say(`{"reasoning":"hm"}`))
				time.Sleep(300 * time.Millisecond)
			}
			stream(w, finish("stop"))
		}, "", false, true},
		{"an error at once", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, `{"error":{"message":"rate limited","type":"rate_limit_error"}}`)
		}, marchwarden.CodeRateLimited, true, false},
		{"an error in the middle", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, content("It"), `{"error":{"message":"overloaded","code":502}}`)
		}, marchwarden.CodeUnavailable, true, true},
		{"a refusal in the middle, which would cost again", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, content("It"), `{"error":{"message":"max_tokens","code":400}}`)
		}, marchwarden.CodeInvalid, false, true},
		{"a flood", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 200 {
				if _, err := fmt.Fprint(w, "data: "+content(strings.Repeat("flood ", 200))+"\n\n"); err != nil {
					return
				}
			}
		}, marchwarden.CodeMalformed, false, true},
		{"a flood without line ends", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 200 {
				if _, err := fmt.Fprint(w, strings.Repeat("flood ", 200)); err != nil {
					return
				}
			}
		}, marchwarden.CodeMalformed, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int, _ body) { tt.answer(w, r) })
			idle := time.Minute // on however busy a machine
			switch {
			case strings.Contains(tt.name, "silence"), tt.code == marchwarden.CodeTimeout: // its end is waited for
				idle = 200 * time.Millisecond
			case tt.name == "slow but alive":
				idle = 2 * time.Second
			}
			m := model(t, llm.Config{BaseURL: s.URL, Key: key, Idle: idle, MaxReply: 100_000})
			start := time.Now()
			reply, err := m.Generate(t.Context(), call())
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			if got := marchwarden.CodeOf(err); got != tt.code {
				t.Fatalf("code %q, want %q: %v", got, tt.code, err)
			}
			if retry, _, _ := judge(err); retry != tt.retry {
				t.Errorf("retryable %v", retry)
			}
			if (reply.Usage.In > 0) != tt.charged {
				t.Errorf("usage %+v", reply.Usage)
			}
			if reply.Usage.Out > 100 {
				t.Errorf("usage %+v is over the limit of the call", reply.Usage)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestUsage: what a server counts is taken within limits, and what it does not
// count is estimated.
func TestUsage(t *testing.T) {
	guess, said := llm.Estimate(call()), llm.EstimateText("It is 42")
	for _, tt := range []struct {
		name, usage string
		want        llm.Usage
	}{
		{"cached", `{"prompt_tokens":30,"completion_tokens":5,"total_tokens":35,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":4}}`, llm.Usage{In: 30, Out: 5, CacheRead: 20, CacheWrite: 4}},
		{"thinking in the total alone", `{"prompt_tokens":30,"completion_tokens":5,"total_tokens":75}`, llm.Usage{In: 30, Out: 45}},
		{"null", `null`, llm.Usage{In: guess, Out: said}},
		{"empty", `{}`, llm.Usage{In: guess, Out: said}},
		{"negative", `{"prompt_tokens":-5,"completion_tokens":-7,"total_tokens":-12,"prompt_tokens_details":{"cached_tokens":-3}}`, llm.Usage{In: guess, Out: said}},
		{"huge", `{"prompt_tokens":99999999999,"completion_tokens":99999999999,"prompt_tokens_details":{"cached_tokens":99999999999}}`, llm.Usage{In: 4*guess + 100_000, Out: 1200, CacheRead: 4*guess + 100_000}},
		{"beyond numbers", `{"prompt_tokens":1e300,"completion_tokens":9223372036854775807,"total_tokens":-9223372036854775808}`, llm.Usage{In: guess, Out: 1200}},
		{"more cached than read", `{"prompt_tokens":30,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":31,"cache_write_tokens":9}}`, llm.Usage{In: 30, Out: 5, CacheRead: 30}},
		{"no input", `{"prompt_tokens":0,"completion_tokens":5}`, llm.Usage{In: guess, Out: 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ body) {
				stream(w, content("It is 42"), finish("stop"), `{"choices":[],"usage":`+tt.usage+`}`, "[DONE]")
			})
			reply, err := model(t, llm.Config{BaseURL: s.URL}).Generate(t.Context(), call())
			if err != nil || reply.Usage != tt.want {
				t.Errorf("%+v, want %+v: %v", reply.Usage, tt.want, err)
			}
		})
	}
}

// TestCancel: the end of the context ends the request at once.
func TestCancel(t *testing.T) {
	gone := make(chan time.Time, 1)
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int, _ body) {
		stream(w, content("It"))
		time.AfterFunc(100*time.Millisecond, cancel)
		<-r.Context().Done()
		gone <- time.Now()
	})
	reply, err := model(t, llm.Config{BaseURL: s.URL, Idle: time.Minute}).Generate(ctx, call())
	end := time.Now()
	if marchwarden.CodeOf(err) != marchwarden.CodeCanceled || !errors.Is(err, context.Canceled) || reply.Usage.In == 0 {
		t.Errorf("%v, usage %+v", err, reply.Usage)
	}
	if retry, _, _ := judge(err); retry {
		t.Error("a canceled call is not worth repeating")
	}
	select {
	case at := <-gone:
		if d := at.Sub(end); d > 10*time.Second { // at once, on a machine that is not busy
			t.Errorf("the server was told %v later", d)
		}
	case <-time.After(30 * time.Second):
		t.Error("the server was not told")
	}
	if _, err := model(t, llm.Config{BaseURL: s.URL}).Generate(ctx, call()); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Error(err)
	}
	late, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := model(t, llm.Config{BaseURL: s.URL}).Generate(late, call()); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Error(err)
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	reply, err := model(t, llm.Config{BaseURL: "http://user:" + key + "@" + addr, Provider: "ollama", Key: key}).Generate(t.Context(), call())
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || reply.Usage != (llm.Usage{}) {
		t.Errorf("%v, usage %+v", err, reply.Usage)
	}
	if retry, _, _ := judge(err); !retry {
		t.Error("a server may come back")
	}
	if text := err.Error(); !strings.Contains(text, addr) || !strings.Contains(text, "connection refused") || strings.Contains(text, key) || !strings.Contains(marchwarden.HintOf(err), "ollama serve") {
		t.Errorf("%q, hint %q", text, marchwarden.HintOf(err))
	}
}

// TestBadConfig: what cannot work is told, and no key goes to a wrong address.
func TestBadConfig(t *testing.T) {
	for _, cfg := range []llm.Config{{Provider: "acme", Key: key}, {BaseURL: "localhost:11434"}, {BaseURL: "ftp://localhost"}, {BaseURL: "http://[::1"}} {
		_, err := openai.New(cfg).Generate(t.Context(), call())
		if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || marchwarden.HintOf(err) == "" {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
