package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

// one makes a span.
func (r rig) one(method string) {
	_, end := r.Serve(context.Background(), telemetry.Op{Method: method}, nil)
	end(nil)
}

// hang answers nothing until the client is gone or the test is over.
func hang(t *testing.T) func(http.ResponseWriter, *http.Request, int) bool {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	return func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		select {
		case <-r.Context().Done():
		case <-over:
		}
		return true
	}
}

func TestACollectorThatIsDownChangesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	r := start(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + address, "OTEL_BSP_SCHEDULE_DELAY": "1"})
	want := result(t)
	desk := r.Research(researching(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		return want, nil
	}), "files")
	begun := time.Now()
	for range 200 {
		if got, err := desk.Research(context.Background(), marchwarden.Request{}, nil); got != want || err != nil {
			t.Fatalf("research: %v, %v", got, err)
		}
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("200 calls took %v", took)
	}
	begun = time.Now()
	r.flush(t) // no error: it is told, and no reason to fail
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("closing took %v", took)
	}
	text, n := r.log.text()
	if n != 1 || !strings.Contains(text, "cannot be reached") || !strings.Contains(text, address) {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

func TestASlowCollectorHoldsNobody(t *testing.T) {
	c := collect(t, hang(t))
	env := at(c)
	env["OTEL_BSP_SCHEDULE_DELAY"], env["OTEL_BSP_MAX_QUEUE_SIZE"], env["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"] = "1", "16", "4"
	r := start(t, env)
	begun := time.Now()
	for range 2000 {
		r.one("ping")
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("2000 spans took %v", took)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	begun = time.Now()
	err := r.Close(ctx)
	if took := time.Since(begun); took > 4*time.Second || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("closing took %v: %v", took, err)
	}
	if text, n := r.log.text(); n != 1 || !strings.Contains(text, "ended=2000 delivered=0") {
		t.Errorf("%d lines:\n%s", n, text)
	}
	r.one("late") // after the close
}

func TestAFullQueueIsTold(t *testing.T) {
	release := make(chan struct{})
	c := collect(t, func(_ http.ResponseWriter, _ *http.Request, _ int) bool {
		<-release
		return false
	})
	env := at(c)
	env["OTEL_BSP_SCHEDULE_DELAY"], env["OTEL_BSP_MAX_QUEUE_SIZE"], env["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"] = "1", "8", "4"
	r := start(t, env)
	for range 100 {
		r.one("ping")
	}
	close(release)
	r.flush(t)
	c.mu.Lock()
	got := len(c.spans)
	c.mu.Unlock()
	text, n := r.log.text()
	if got == 0 || got >= 100 || n != 1 || !strings.Contains(text, fmt.Sprintf("ended=100 delivered=%d", got)) {
		t.Errorf("%d spans, %d lines:\n%s", got, n, text)
	}
}

func TestAnswersOfTheCollector(t *testing.T) {
	status := func(code int, header ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "it says s3cr3t-t0ken")
		}
	}
	says := func(body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = io.WriteString(w, body) }
	}
	for _, test := range []struct {
		name     string
		first    func(http.ResponseWriter)
		requests int
		log      string // a part of the only line, or "" for none
	}{
		{"unavailable", status(503, "Retry-After-Ms", "5"), 2, ""},
		{"too many", status(429, "Retry-After-Ms", "5"), 2, ""},
		{"bad gateway", status(502, "Retry-After-Ms", "5"), 2, ""},
		{"gateway timeout", status(504, "Retry-After-Ms", "5"), 2, ""},
		{"bad request", status(400), 1, "the collector answered 400"},
		{"unauthorized", status(401, "Retry-After-Ms", "5"), 1, "the collector answered 401"},
		{"internal", status(500, "Retry-After-Ms", "5"), 1, "the collector answered 500"},
		{"redirect", status(307, "Location", "/elsewhere"), 1, "the collector answered 307"},
		{"no JSON", says("fine"), 1, ""},
		{"nothing", says(""), 1, ""},
		{"endless", says(strings.Repeat("x", 1<<20)), 1, ""},
		{"partial", says(`{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too\u001b[31m old: s3cr3t-t0ken"}}`), 1, `rejected=1 reason="too[31m old: [key]"`},
		{"partial number", says(`{"partialSuccess":{"rejectedSpans":1}}`), 1, "rejected=1"},
		{"warned", says(`{"partialSuccess":{"errorMessage":"soon over"}}`), 1, `took the spans with a warning" reason="soon over"`},
		{"odd", says(`{"partialSuccess":{"rejectedSpans":"-4"}}`), 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var once sync.Once
			done := make(chan struct{})
			c := collect(t, func(w http.ResponseWriter, _ *http.Request, n int) bool {
				if n == 1 {
					test.first(w)
				}
				if n == test.requests {
					once.Do(func() { close(done) })
				}
				return n == 1
			})
			env := at(c)
			env["OTEL_BSP_SCHEDULE_DELAY"], env["OTEL_EXPORTER_OTLP_HEADERS"] = "1", "authorization=Bearer%20s3cr3t-t0ken"
			r := start(t, env)
			r.one("ping")
			select { // before the close, which would hurry
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the collector was not asked again")
			}
			r.flush(t)
			if got := c.requests(); got != test.requests {
				t.Errorf("%d requests, want %d", got, test.requests)
			}
			text, n := r.log.text()
			if (test.log == "") != (n == 0) || n > 1 || !strings.Contains(text, test.log) || strings.Contains(text, "s3cr3t") {
				t.Errorf("%d lines:\n%s", n, text)
			}
		})
	}
}

func TestClosingDoesNotWaitForALaterTime(t *testing.T) {
	c := collect(t, func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n == 1 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return n == 1
	})
	env := at(c)
	env["OTEL_BSP_SCHEDULE_DELAY"] = "1"
	r := start(t, env)
	r.one("ping")
	for deadline := time.Now().Add(30 * time.Second); c.requests() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	r.flush(t)
	c.named("ping") // the last attempt
	if got := c.requests(); got != 2 {
		t.Errorf("%d requests", got)
	}
}

func TestOneWarningAMinute(t *testing.T) {
	c := collect(t, func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.WriteHeader(http.StatusBadRequest)
		return true
	})
	env := at(c)
	env["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"] = "1" // a request a span
	r := start(t, env)
	for i := range 10 {
		r.one("ping")
		for deadline := time.Now().Add(30 * time.Second); c.requests() < i+1 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond) // until the answer is read
		r.clock.move(15 * time.Second)
	}
	r.flush(t) // after 150 s
	if text, n := r.log.text(); n != 3 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// TestNothingOfTheMatterIsTold has every text that a request, a call and a result can
// hold say the same, and looks for it in all that is sent and logged.
func TestNothingOfTheMatterIsTold(t *testing.T) {
	const canary = "the canary sings at dawn"
	const token = "canary-t0ken-4711"
	text := canary + " " + token
	c := collect(t, nil)
	c.says = fmt.Sprintf(`{"partialSuccess":{"rejectedSpans":"1","errorMessage":%q}}`, token)
	r := start(t, map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": strings.Replace(c.URL, "http://", "http://user:"+token+"@", 1) + "/in?key=" + token,
		"OTEL_EXPORTER_OTLP_HEADERS":         "x-key=" + token,
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "grpc",
		"OTEL_BSP_SCHEDULE_DELAY":            "1",
	})
	failure := &marchwarden.Error{Code: marchwarden.CodeDenied, Message: text, Hint: text, Field: text, Err: errors.New(text)}
	model := r.Model(chatter{id: "acme/" + text, reply: llm.Reply{Text: text, Model: text, Instead: text, Stop: llm.Stop(text), Calls: []llm.ToolCall{{Name: text, Input: []byte(`"` + text + `"`)}}}})
	failing := r.Model(chatter{id: text, err: failure})
	call := llm.Call{Prompt: text, Template: text, System: text, Input: text, Schema: []byte(`"` + text + `"`), Tools: []llm.Tool{{Name: text, Description: text}}}
	desk := r.Research(researching(func(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		_, _ = model.Generate(ctx, call)
		_, _ = failing.Generate(ctx, call)
		res := result(t)
		res.Answer, res.Warnings, res.CostMetadata.ModelID = text, []string{text}, text
		res.OpenQuestions = []marchwarden.OpenQuestion{{Question: text}}
		return res, nil
	}), text)
	op := telemetry.Op{Method: text, Tool: text, Resource: "https://example.test/" + text + "?q=" + token, Prompt: text, Session: token, Protocol: text, Transport: text}
	ctx, end := r.Serve(context.Background(), op, map[string]any{"traceparent": text, "question": text, "baggage": "q=" + text})
	_, _ = desk.Research(ctx, marchwarden.Request{Question: text, Context: text, Depth: marchwarden.Depth(text), Resume: text, Constraints: &marchwarden.Constraints{SourceFilter: text}}, nil)
	op.Resource = "marchwarden://trace/" + token + "?q=" + token
	_, endCall := r.Call(ctx, op, map[string]any{"arguments": text})
	endCall(failure)
	end(failure)
	func() {
		defer func() { _ = recover() }()
		_, _ = r.Research(researching(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) { panic(text) }), "x").Research(ctx, marchwarden.Request{}, nil)
	}()
	r.flush(t)

	log, _ := r.log.text()
	c.mu.Lock()
	sent := c.raw.String()
	user := c.heads[0].Get("Authorization")
	key, path := c.heads[0].Get("X-Key"), c.paths[0]
	c.mu.Unlock()
	if len(c.spans) < 6 || !strings.Contains(log, "4318") || !strings.Contains(log, "rejected=1") {
		t.Fatalf("%d spans, log:\n%s", len(c.spans), log)
	}
	if user == "" || key != token || path != "POST /in?key="+token {
		t.Errorf("the collector got %q, %q, %s", user, key, path)
	}
	for where, text := range map[string]string{"sent": sent, "log": log} {
		for _, word := range []string{"canary", "sings", "dawn", token, "4711", "example.test"} {
			if strings.Contains(text, word) {
				t.Errorf("%s holds %q:\n%s", where, word, text)
			}
		}
	}
}

// chatter is a model with one answer.
type chatter struct {
	id    string
	reply llm.Reply
	err   error
}

func (c chatter) ID() string                                            { return c.id }
func (c chatter) Generate(context.Context, llm.Call) (llm.Reply, error) { return c.reply, c.err }
