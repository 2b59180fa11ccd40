package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

func TestTask(t *testing.T) {
	t.Parallel()
	words := []string{"planning", "planning", "read\x1b[31ming\n3 pages", "read\x1b[31ming\n3 pages", "planning"}
	o := &office{get: func(w http.ResponseWriter, m message, n int) {
		switch {
		case n <= len(words):
			working(w, m, words[n-1])
		case n == len(words)+1:
			plain(w, state(m, "working", `,"statusMessage":"x","_meta":{"marchwarden/event":{"stage":"fetch","message":"fetching","done":1,"total":3}}`))
		default:
			completed(w, m)
		}
	}}
	s := openOffice(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id := sample("").TraceID
	var events []marchwarden.Event
	got, err := s.Research(marchwarden.WithTraceID(ctx, id), ask("q"), func(e marchwarden.Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample("Paris. [1]"), got, traceIDs); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	want := []marchwarden.Event{{Message: "planning"}, {Message: "read[31ming 3 pages"}, {Message: "planning"},
		{Stage: marchwarden.StageFetch, Message: "fetching", Done: 1, Total: 3}}
	if diff := cmp.Diff(want, events, traceIDs); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	call := o.of("tools/call")[0]
	if !call.declares() || call.Params.Meta[mcpkit.MetaTrace] != id.String() || call.Params.Meta["progressToken"] == nil || call.Params.Arguments["question"] != "q" {
		t.Errorf("the call was %+v", call.Params)
	}
	if wall, _ := call.Params.Meta[mcpkit.MetaWall].(float64); wall < 30_000 || wall > 60_000 {
		t.Errorf("the call's wall is %v", call.Params.Meta[mcpkit.MetaWall])
	}
	for _, m := range append(o.of("tasks/get"), call) {
		name := taskName
		if m.Method == "tools/call" {
			name = "research"
		}
		for header, want := range map[string]string{"Mcp-Name": name, "Mcp-Method": m.Method, "Mcp-Protocol-Version": "2026-07-28"} {
			if got := m.header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", m.Method, header, got, want)
			}
		}
		if !m.declares() || m.Params.Meta["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" {
			t.Errorf("%s says %v", m.Method, m.Params.Meta)
		}
	}
	if n := len(o.of("tasks/cancel")); n != 0 {
		t.Errorf("a task that was done was cancelled %d times", n)
	}
}

// A client that cannot have tasks, or has no use for them, is not told of them.
func TestTasksAreNotForEverybody(t *testing.T) {
	t.Parallel()
	t.Run("process", func(t *testing.T) {
		if open(t, target(t, "own")).direct != nil {
			t.Error("a process is asked for tasks")
		}
	})
	answer := func(w http.ResponseWriter, m message) { plain(w, m.result(toolAnswer())) }
	for name, o := range map[string]*office{
		"unknown":   {call: answer, extensions: `{"com.example/other":{}}`},
		"in header": {call: answer, input: `{"type":"object","properties":{"question":{"type":"string","x-mcp-header":"question"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := openOffice(t, o)
			if _, err := s.Research(t.Context(), ask("q"), nil); err != nil {
				t.Error(err)
			}
			if call := o.of("tools/call")[0]; call.declares() {
				t.Errorf("tasks were declared: %v", call.Params.Meta)
			}
		})
	}
	t.Run("judge", func(t *testing.T) {
		o := &office{call: answer}
		if _, err := openOffice(t, o).Call(t.Context(), map[string]any{"question": "q"}); err != nil {
			t.Error(err)
		}
		if o.of("tools/call")[0].declares() {
			t.Error("tasks were declared")
		}
	})
}

// A server that knows tasks need not make one.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	note := func(m message, words string) string {
		return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + quoted(fmt.Sprint(m.Params.Meta["progressToken"])) + `,"progress":1,"message":` + quoted(words) + `}}`
	}
	for name, call := range map[string]func(http.ResponseWriter, message){
		"json":   func(w http.ResponseWriter, m message) { plain(w, m.result(toolAnswer())) },
		"events": func(w http.ResponseWriter, m message) { stream(w, "data: "+m.result(toolAnswer())+"\n\n") },
		"progress before": func(w http.ResponseWriter, m message) {
			stream(w, ": hello\n\nid: 1\nretry: 5\ndata:\n\nevent: message\ndata: "+note(m, "reading")+"\n\nevent: other\ndata: {\n\n")
			stream(w, "data:"+strings.ReplaceAll(m.result(toolAnswer()), `,"`, ",\ndata: \"")+"\n\n")
		},
		"carriage returns": func(w http.ResponseWriter, m message) {
			stream(w, "event: message\r\ndata: "+m.result(toolAnswer())+"\r\n\r\n")
		},
		"no empty line": func(w http.ResponseWriter, m message) { stream(w, "data: "+m.result(toolAnswer())) },
		"another's answer": func(w http.ResponseWriter, m message) {
			stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n\ndata: "+m.result(toolAnswer())+"\n\n")
		},
		"stream left open": func(w http.ResponseWriter, m message) {
			stream(w, "data: "+m.result(toolAnswer())+"\n\n")
			time.Sleep(time.Second)
		},
		"asks first": func(w http.ResponseWriter, m message) {
			if m.Params.State != "s1" || fmt.Sprint(m.Params.Responses) != "map[a:map[action:decline]]" {
				plain(w, m.result(`{"resultType":"input_required","requestState":"s1","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"who?"}}}}`))
				return
			}
			plain(w, m.result(toolAnswer()))
		},
		"task done already": func(w http.ResponseWriter, m message) {
			stream(w, "data: "+m.result(`{"resultType":"task","taskId":"`+taskName+`","status":"completed","pollIntervalMs":9000}`)+"\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openOffice(t, &office{call: call})
			var events []marchwarden.Event
			res, err := s.Research(t.Context(), ask("q"), func(e marchwarden.Event) { events = append(events, e) })
			if err != nil || res.Answer != "Paris. [1]" {
				t.Errorf("got %v, %v", res, err)
			}
			if name == "progress before" && (len(events) != 1 || events[0].Message != "reading") {
				t.Errorf("got events %v", events)
			}
		})
	}
}

func TestTaskWithoutEnd(t *testing.T) {
	t.Parallel()
	o := &office{get: func(w http.ResponseWriter, m message, n int) { working(w, m, fmt.Sprint(n)) }}
	s := openOffice(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := s.Research(ctx, ask("q"), nil)
	if !errors.Is(err, marchwarden.CodeTimeout) || err.Error() != "the researcher did not answer by the deadline" {
		t.Errorf("got %v", err)
	}
	if d := time.Since(start); d < 1200*time.Millisecond || d > 15*time.Second {
		t.Errorf("it took %v, want the deadline, the grace and half a second", d)
	}
	if got := o.await(t, "tasks/cancel", 1); got[0].Params.TaskID != taskName {
		t.Errorf("cancelled %+v", got)
	}
}

// Once the deadline has passed, the server is asked often, whatever it wishes.
func TestTaskHandsOverAtTheDeadline(t *testing.T) {
	t.Parallel()
	o := &office{
		call: func(w http.ResponseWriter, m message) {
			plain(w, m.result(`{"resultType":"task","taskId":"`+taskName+`","status":"working","pollIntervalMs":60000}`))
		},
		get: func(w http.ResponseWriter, m message, n int) {
			if n < 3 { // asked again before the minute is over, as the deadline comes
				plain(w, m.result(`{"status":"working","pollIntervalMs":60000}`))
				return
			}
			completed(w, m)
		},
	}
	s := openOffice(t, o)
	s.grace = patient
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	res, err := s.Research(ctx, ask("q"), nil)
	if err != nil || res.Answer != "Paris. [1]" {
		t.Errorf("got %v, %v", res, err)
	}
	if n := len(o.of("tasks/get")); n != 3 {
		t.Errorf("it was asked %d times", n)
	}
}

func TestTaskIsCancelled(t *testing.T) {
	t.Parallel()
	forever := func(w http.ResponseWriter, m message, n int) { working(w, m, "busy") }
	t.Run("by the caller", func(t *testing.T) {
		t.Parallel()
		o := &office{get: forever}
		s := openOffice(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.Research(ctx, ask("q"), func(marchwarden.Event) { cancel() })
		if !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("got %v", err)
		}
		o.await(t, "tasks/cancel", 1)
		if _, err := s.Research(ctx, ask("q"), nil); !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
	t.Run("by closing", func(t *testing.T) {
		t.Parallel()
		o := &office{get: forever}
		s := openOffice(t, o)
		returned, once := make(chan struct{}), sync.Once{}
		started := make(chan struct{})
		go func() {
			defer close(returned)
			if _, err := s.Research(t.Context(), ask("q"), func(marchwarden.Event) { once.Do(func() { close(started) }) }); !errors.Is(err, marchwarden.CodeCanceled) {
				t.Errorf("got %v", err)
			}
		}()
		<-started
		s.Close()
		if n := len(o.of("tasks/cancel")); n != 1 {
			t.Errorf("it was cancelled %d times before Close returned", n)
		}
		within(t, 30*time.Second, "the call", returned)
	})
	t.Run("in a call", func(t *testing.T) {
		t.Parallel()
		gone := make(chan struct{})
		o := &office{call: func(w http.ResponseWriter, m message) {
			stream(w, ": wait\n\n")
			time.Sleep(300 * time.Millisecond)
			close(gone)
		}}
		s := openOffice(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := s.Research(ctx, ask("q"), nil); !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("got %v", err)
		}
		<-gone
	})
	t.Run("where nobody answers", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		o := &office{get: func(w http.ResponseWriter, m message, n int) { <-release }}
		s := openOffice(t, o)
		defer close(release)
		s.pollPatience = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := s.Research(ctx, ask("q"), nil); !errors.Is(err, marchwarden.CodeTimeout) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d > 15*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// A server may fail to answer in every way, for a while.
func TestTaskSurvives(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(w http.ResponseWriter, m message){
		"500":     func(w http.ResponseWriter, m message) { w.WriteHeader(500); fmt.Fprint(w, m.fault(-32602, "boom")) },
		"503":     func(w http.ResponseWriter, m message) { w.WriteHeader(503) },
		"429":     func(w http.ResponseWriter, m message) { w.WriteHeader(429) },
		"dropped": func(w http.ResponseWriter, m message) { breakOff(w) },
		"cut short": func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Length", "500")
			plain(w, `{"jsonrpc"`)
			breakOff(w)
		},
		"cut event": func(w http.ResponseWriter, m message) { stream(w, `data: {"jsonrpc"`); breakOff(w) },
		"no answer": func(w http.ResponseWriter, m message) { stream(w, ": nothing\n\n") },
		"hangs":     func(w http.ResponseWriter, m message) { time.Sleep(400 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &office{get: func(w http.ResponseWriter, m message, n int) {
				switch {
				case n == 1:
					working(w, m, "busy")
				case n <= 3:
					fail(w, m)
				default:
					completed(w, m)
				}
			}}
			s := openOffice(t, o)
			s.pollPatience = 150 * time.Millisecond
			if name != "hangs" {
				s.pollPatience = 5 * time.Second
			}
			res, err := s.Research(t.Context(), ask("q"), nil)
			if err != nil || res.Answer != "Paris. [1]" {
				t.Errorf("got %v, %v", res, err)
			}
			select {
			case <-s.Done():
				t.Error("the session is over")
			default:
			}
		})
	}
}

// It is given up when it stays away.
func TestTaskIsGivenUp(t *testing.T) {
	t.Parallel()
	lost := "the researcher went away in the middle of a task and did not come back"
	away := func(w http.ResponseWriter, m message, n int) { breakOff(w) }
	t.Run("without a deadline", func(t *testing.T) {
		t.Parallel()
		s := openOffice(t, &office{get: away})
		s.absence = 400 * time.Millisecond
		start := time.Now()
		if _, err := s.Research(t.Context(), ask("q"), nil); !errors.Is(err, marchwarden.CodeUnavailable) || err.Error() != lost {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d < 400*time.Millisecond || d > 15*time.Second {
			t.Errorf("it took %v", d)
		}
	})
	t.Run("with one", func(t *testing.T) {
		t.Parallel()
		s := openOffice(t, &office{get: away})
		s.absence = time.Millisecond
		s.grace = time.Minute // a busy machine may take long for the last questions
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := s.Research(ctx, ask("q"), nil); !errors.Is(err, marchwarden.CodeUnavailable) || err.Error() != lost {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d < time.Second || d > 30*time.Second {
			t.Errorf("it took %v, want a little more than the deadline", d)
		}
	})
}

// Two calls that are given the same task have the same result.
func TestOneTaskForTwo(t *testing.T) {
	t.Parallel()
	s := openOffice(t, &office{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if res, err := s.Research(t.Context(), ask("q"), nil); err != nil || res.Answer != "Paris. [1]" {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
	wg.Wait()
}

func TestPollInterval(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		said any
		want time.Duration
	}{
		{nil, usualPoll}, {0.0, usualPoll}, {-1.0, usualPoll}, {"soon", usualPoll}, {true, usualPoll}, {map[string]any{}, usualPoll},
		{0.01, minPoll}, {1.0, minPoll}, {250.0, 250 * time.Millisecond}, {1e12, maxPoll}, {1e300, maxPoll},
	} {
		tk := &task{l: &listener{}, quiet: -1}
		tk.hear(&taskState{Interval: tc.said})
		if got := tk.pause(); got != tc.want {
			t.Errorf("%v: got %v, want %v", tc.said, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		tk := &task{l: &listener{}}
		before := time.Duration(0)
		interval := rapid.Float64().Draw(t, "interval")
		for i := range rapid.IntRange(1, 60).Draw(t, "polls") {
			tk.hear(&taskState{Interval: interval})
			got := tk.pause()
			if got < minPoll || got > maxPoll || got < before || got > 4*tk.every {
				t.Fatalf("poll %d: after %v comes %v", i, before, got)
			}
			before = got
		}
		tk.misses = rapid.IntRange(1, 1<<40).Draw(t, "misses")
		if got := tk.pause(); got < minPoll || got > maxPoll {
			t.Fatalf("%d misses: %v", tk.misses, got)
		}
	})
}

type spanKey struct{}

func TestTrace(t *testing.T) {
	t.Parallel()
	o := &office{get: func(w http.ResponseWriter, m message, n int) {
		if n == 1 {
			completed(w, m)
			return
		}
		plain(w, state(m, "completed", `,"result":{"content":[]}`))
	}}
	var ended []error
	hook := func(ctx context.Context, meta map[string]any) (context.Context, func(error)) {
		meta["traceparent"], meta[mcpkit.MetaWall], meta["progressToken"] = "00-1-2-01", "mine", "mine"
		return context.WithValue(ctx, spanKey{}, 1), func(err error) { ended = append(ended, err) }
	}
	s := openOffice(t, o)
	s.trace = hook
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Research(ctx, ask("q"), nil); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"tools/call", "tasks/get"} {
		if m := o.of(method)[0]; m.Params.Meta["traceparent"] != "00-1-2-01" {
			t.Errorf("%s: %v", method, m.Params.Meta)
		}
	}
	if m := o.of("tools/call")[0]; m.Params.Meta[mcpkit.MetaWall] == "mine" || m.Params.Meta["progressToken"] == "mine" {
		t.Errorf("the hook has the last word: %v", m.Params.Meta)
	}
	_, err := s.Research(ctx, ask("q"), nil)
	if err == nil || len(ended) != 2 || ended[0] != nil || ended[1] != err {
		t.Errorf("the hook heard %v, the caller %v", ended, err)
	}
	d := testDialer()
	d.Trace = hook
	far, err := d.Dial(t.Context(), target(t, "good"))
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := far.Research(t.Context(), ask("q"), nil); err != nil || len(ended) != 3 {
		t.Errorf("a process: %v, %v", err, ended)
	}
}

// Whatever comes, in whatever pieces, listen ends, and finds the answer if it is
// there.
func TestListen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		left := int64(maxCallBytes)
		x := &exchange{self: nil}
		_, id, err := x.request(context.Background(), turn{method: "m", left: &left, params: map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		junk := rapid.SliceOf(rapid.SampledFrom([]string{": hb\n", "\n", "id: 3\n", "event: x\ndata: {}\n\n", "data\n\n", "retry:\n", "data: {\"jsonrpc\":\"2.0\",\"id\":\"z\",\"result\":1}\n\n"})).Draw(t, "junk")
		answer := "{\"jsonrpc\":\"2.0\",\ndata:\"id\":\"marchwarden-1\"," + rapid.SampledFrom([]string{"", "\r\ndata: ", "\ndata:  "}).Draw(t, "break") + "\"result\":{\"a\":1}}"
		body := strings.Join(junk, "") + "\n\ndata: " + answer + rapid.SampledFrom([]string{"", "\n", "\n\n", "\r\n\r\nrest"}).Draw(t, "end")
		got, err := turn{}.listen(&slow{body, rapid.IntRange(1, 40).Draw(t, "piece")}, id)
		if err != nil || string(got) != `{"a":1}` {
			t.Fatalf("got %s, %v from %q", got, err, body)
		}
		_, _ = turn{}.listen(strings.NewReader(rapid.String().Draw(t, "noise")), id)
	})
}
