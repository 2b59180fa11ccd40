package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// Run tries whether an adapter keeps the promises of llm.Model over a wire: against
// a Server, with every fault there is, and against recorded answers of real
// providers where they lie beside the repository. newModel makes the model under
// test for a base address without a path, which bears a silence of idle. It should give
// it a key that is not in use elsewhere, and take replies of at most 8 MiB. The test that calls Run must not run in
// parallel with others: memory and goroutines are measured.
func Run(t *testing.T, w Wire, newModel func(t *testing.T, baseURL string, idle time.Duration) llm.Model) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	c := conformance{wire: w, newModel: newModel}
	t.Run("text", c.text)
	t.Run("tools", c.tools)
	t.Run("along", c.along)
	t.Run("echo", c.echo)
	t.Run("schema", c.schema)
	t.Run("usage", c.usage)
	t.Run("stops", c.stops)
	t.Run("prefix", c.prefix)
	t.Run("concurrent", c.concurrent)
	t.Run("faults", c.faults)
	t.Run("flood", c.flood)
	t.Run("unreachable", c.unreachable)
	t.Run("cancel", c.cancel)
	t.Run("recorded", c.recorded)
	if err := goleak.Find(before); err != nil {
		t.Errorf("goroutines are left: %v", err)
	}
}

// conformance is one run of the suite.
type conformance struct {
	wire     Wire
	newModel func(t *testing.T, baseURL string, idle time.Duration) llm.Model
}

// How long a silence is borne: by a test that waits for its end, and by all others, on however busy a machine.
const (
	briefly   = time.Second
	patiently = time.Minute
)

// ask is a call with nothing special about it.
var ask = llm.Call{Prompt: "test", System: "You answer from the evidence alone.", Input: "How long is the bridge?\n\n[1] The bridge is 1,280 metres long.", MaxTokens: 400}

// tools are what calls of the suite offer.
var tools = []llm.Tool{
	{Name: "web_search", Description: "Search the web.", Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)},
	{Name: "read_page", Description: "Read a page.", Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`)},
}

// serve starts a server with one answer and the model under test before it.
func (c conformance) serve(t *testing.T, said Said) (*Server, llm.Model) {
	t.Helper()
	srv, idle := NewServer(t, func(Turn) Said { return said }), patiently
	if said.Fault == FaultStall || said.Fault == FaultPings {
		idle = briefly
	}
	return srv, c.newModel(t, srv.URL(), idle)
}

func (c conformance) text(t *testing.T) {
	const text = "Die Brücke ist 1.280 m lang; 世界 🌉.\n\n\tZweite Zeile mit \"Anführung\" und \\."
	srv, m := c.serve(t, Said{Text: text, Usage: &llm.Usage{In: 41, Out: 17}})
	got, err := m.Generate(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(llm.Reply{Text: text, Usage: llm.Usage{In: 41, Out: 17}, Stop: llm.StopEnd}, got); diff != "" {
		t.Errorf("the reply: %s", diff)
	}
	turns := srv.Turns()
	if len(turns) != 1 {
		t.Fatalf("%d requests for one call", len(turns))
	}
	turn := turns[0]
	if turn.Wire != c.wire || turn.System != ask.System || turn.Input != ask.Input || turn.MaxTokens != ask.MaxTokens || len(turn.Tools) != 0 || turn.HasSchema {
		t.Errorf("the request: %+v", turn)
	}
	if !turn.Streaming {
		t.Error("the reply was not asked for as a stream")
	}
	if provider, name, ok := strings.Cut(m.ID(), "/"); !ok || provider == "" || name != turn.Model {
		t.Errorf("the model %s asks for %s", m.ID(), turn.Model)
	}
	if srv.Canceled() != 0 {
		t.Error("the model went away before the end")
	}
}

// along sees that a caller can read a reply while the rest of it is held up, and never a secret.
func (c conformance) along(t *testing.T) {
	var key string
	object := func(i int) string { return fmt.Sprintf(`{"text":"The bridge has %d piers of stone. %s"}`, i, key) }
	heard, once := make(chan struct{}), sync.Once{}
	srv := NewServer(t, func(turn Turn) Said {
		key = first(turn.Header.Get("X-Api-Key"), strings.TrimPrefix(turn.Header.Get("Authorization"), "Bearer "))
		return Said{Text: "[" + object(1) + "," + object(2) + "," + object(3) + "]", Half: func() { <-heard }}
	})
	var said []string
	call := ask
	call.Heard = func(text string) {
		said = append(said, text)
		once.Do(func() { close(heard) })
	}
	reply, err := c.newModel(t, srv.URL(), patiently).Generate(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if len(said) < 3 || said[len(said)-1] != reply.Text {
		t.Errorf("heard %q of %q", said, reply.Text)
	}
	for _, text := range said {
		if !strings.HasPrefix(reply.Text, text) || strings.Contains(text, key) {
			t.Errorf("heard %q", text)
		}
	}
}

func (c conformance) tools(t *testing.T) {
	calls := []llm.ToolCall{
		{Name: "web_search", Input: json.RawMessage(`{"query":"Länge der Brücke \"in Metern\""}`)},
		{Name: "web_search", Input: json.RawMessage(`{"query":"bridge length","n":3,"deep":{"a":[1,2,null]}}`)},
		{Name: "read_page", Input: json.RawMessage(`{}`)},
	}
	for name, text := range map[string]string{"with text": "I will look for it.", "without text": ""} {
		srv, m := c.serve(t, Said{Text: text, Calls: calls})
		call := ask
		call.Tools = tools
		got, err := m.Generate(t.Context(), call)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Text != text || got.Stop != llm.StopTools {
			t.Errorf("%s: %+v", name, got)
		}
		if diff := cmp.Diff(calls, got.Calls); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got := srv.Turns()[0].Tools; !slices.Equal(got, []string{"web_search", "read_page"}) {
			t.Errorf("%s: the tools offered are %q", name, got)
		}
	}
}

// echo sees that a key which the provider repeats is in no reply: streams bring it in
// pieces.
func (c conformance) echo(t *testing.T) {
	keyOf := func(h http.Header) string {
		return h.Get("X-Api-Key") + strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
	}
	srv := NewServer(t, func(turn Turn) Said {
		key := keyOf(turn.Header)
		input, _ := json.Marshal(map[string]string{"query": "who has " + key}) // it marshals
		return Said{Text: "Your key is " + key + ", is it?", Calls: []llm.ToolCall{{Name: "web_search", Input: input}}}
	})
	call := ask
	call.Tools = tools
	got, err := c.newModel(t, srv.URL(), patiently).Generate(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if key := keyOf(srv.Turns()[0].Header); key == "" || strings.Contains(fmt.Sprintf("%s %s", got.Text, got.Calls), key) {
		t.Errorf("the key is in %+v", got)
	}
	if !strings.HasPrefix(got.Text, "Your key is ") || !strings.HasSuffix(got.Text, ", is it?") || len(got.Calls) != 1 || !json.Valid(got.Calls[0].Input) {
		t.Errorf("the rest is not as it was: %+v", got)
	}
}

func (c conformance) schema(t *testing.T) {
	const text = `{"answer":"1,280 m","ids":[1]}`
	srv, m := c.serve(t, Said{Text: text})
	call := ask
	call.Schema = json.RawMessage(`{"type":"object","properties":{"thoughts":{"type":"string"},"answer":{"type":"string"},"ids":{"type":"array","items":{"type":"integer"}}},"required":["thoughts","answer","ids"],"additionalProperties":false}`)
	got, err := m.Generate(t.Context(), call)
	if err != nil || got.Text != text {
		t.Fatalf("%+v, %v", got, err)
	}
	turn := srv.Turns()[0]
	if !turn.HasSchema {
		t.Errorf("there is no schema in %s", turn.Body)
	}
	if i, j := strings.Index(string(turn.Body), `"thoughts":`), strings.Index(string(turn.Body), `"answer":`); i < 0 || i > j {
		t.Errorf("the order of the properties is lost: %s", turn.Body)
	}
}

func (c conformance) usage(t *testing.T) {
	_, m := c.serve(t, Said{Text: "ok", Usage: &llm.Usage{In: 1000, Out: 20, CacheRead: 600, CacheWrite: 300}})
	want := llm.Usage{In: 1000, Out: 20, CacheRead: 600, CacheWrite: 300}
	if c.wire != WireAnthropic { // which does not count what it writes
		want.CacheWrite = 0
	}
	got, err := m.Generate(t.Context(), ask)
	if err != nil || got.Usage != want {
		t.Errorf("%+v, %v", got.Usage, err)
	}
}

func (c conformance) stops(t *testing.T) {
	for _, stop := range []llm.Stop{llm.StopEnd, llm.StopTools, llm.StopLength, llm.StopRefusal, llm.StopOther} {
		_, m := c.serve(t, Said{Text: "so far", Stop: stop})
		if got, err := m.Generate(t.Context(), ask); err != nil || got.Stop != stop {
			t.Errorf("%s: %+v, %v", stop, got, err)
		}
	}
}

// prefix checks that calls which share a beginning begin alike, so that a provider can cache it, and that what is too
// short to be cached is not marked.
func (c conformance) prefix(t *testing.T) {
	srv, m := c.serve(t, Said{Text: "ok"})
	part := strings.Repeat("[S1.1] The dam at the narrows was completed in 1937, at a cost of 4.3 million dollars.\n", 60) + "\n"
	more := part + "[S2.1] It was raised in 1957.\n\n"
	var seen []string
	for i, shared := range []string{"", "short\n\n", part, part, more} {
		call := ask
		call.Shared, call.Input, call.Tools = shared, fmt.Sprintf("question %d", i), tools
		if i == 3 {
			call.Schema = json.RawMessage(`{"type":"object"}`)
		}
		if _, err := m.Generate(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		var q struct {
			System       json.RawMessage
			Instructions json.RawMessage
			Messages     []struct{ Content json.RawMessage }
			Tools        json.RawMessage
		}
		turn := srv.Turns()[i]
		if err := json.Unmarshal(turn.Body, &q); err != nil {
			t.Fatal(err)
		}
		if marked := strings.Contains(string(turn.Body), `"cache_control"`); marked != (c.wire == WireAnthropic && i >= 2) {
			t.Errorf("call %d is marked for the cache: %t", i, marked)
		}
		head := string(q.System) + strings.Split(strings.ReplaceAll(turn.Input, "\n\n\n", "\n\n"), "question")[0]
		if c.wire == WireAnthropic {
			head += string(q.Tools)
		} else {
			head += string(q.Messages[0].Content)
		}
		if !strings.Contains(head, ask.System) || !strings.Contains(turn.Input, call.Input) {
			t.Errorf("what should stay the same is %s", head)
		}
		seen = append(seen, head)
	}
	if seen[2] != seen[3] || !strings.Contains(seen[4], part) {
		t.Errorf("two calls begin differently:\n%s\n%s", seen[2], seen[3])
	}
}

func (c conformance) concurrent(t *testing.T) {
	srv := NewServer(t, func(turn Turn) Said { return Said{Text: "you said " + turn.Input, Delay: 10 * time.Millisecond} })
	m := c.newModel(t, srv.URL(), patiently)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			call := ask
			call.Input = fmt.Sprintf("number %d", i)
			if got, err := m.Generate(t.Context(), call); err != nil || got.Text != "you said "+call.Input {
				t.Errorf("%d: %+v, %v", i, got, err)
			}
		})
	}
	wg.Wait()
}

// faults has the provider fail in every way, and be slow, side by side: some take as long as a silence is borne.
func (c conformance) faults(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { t.Run("slow", c.slow) })
	all.Go(func() { t.Run("no answer", c.noAnswer) })
	for _, fc := range Faults {
		if fc.Fault == FaultFlood {
			continue // measured by itself
		}
		all.Go(func() { t.Run(string(fc.Fault), func(t *testing.T) { c.fault(t, fc) }) })
	}
}

func (c conformance) fault(t *testing.T, fc FaultCase) {
	srv, m := c.serve(t, Said{Text: "The bridge is 1,280 metres long, says the first source.", Fault: fc.Fault})
	call := ask
	call.Tools = tools
	start := time.Now()
	got, err := m.Generate(t.Context(), call)
	if d := time.Since(start); d > patiently/2 {
		t.Errorf("it took %s", d)
	}
	if n := len(srv.Turns()); n != 1 {
		t.Errorf("%d requests for one call", n)
	}
	judge(t, fc, got, err)
	if err != nil {
		keepsKey(t, srv.Turns()[0].Header, err)
		return
	}
	carries(t, fc.Fault, call, got)
}

// flood checks that a reply without end costs little.
func (c conformance) flood(t *testing.T) {
	srv, m := c.serve(t, Said{Fault: FaultFlood})
	runtime.GC()
	base := heap()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var top uint64
		for {
			select {
			case <-stop:
				peak <- top
				return
			case <-time.After(time.Millisecond):
				top = max(top, heap())
			}
		}
	}()
	got, err := m.Generate(t.Context(), ask)
	close(stop)
	growth := int64(<-peak) - int64(base)
	judge(t, FaultCase{Fault: FaultFlood, Codes: []marchwarden.Code{marchwarden.CodeMalformed}, Charged: true}, got, err)
	if growth > 256<<20 { // a busy machine collects garbage late; the flood itself has no end
		t.Errorf("the heap grew by %d MiB", growth>>20)
	}
	t.Logf("the heap grew by %d MiB", growth>>20)
	within(t, patiently/2, "the server sees the model go", func() bool { return srv.Canceled() == 1 })
}

func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// unreachable asks an address where no server listens.
func (c conformance) unreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := c.newModel(t, "http://"+l.Addr().String(), patiently).Generate(t.Context(), ask)
	judge(t, FaultCase{Fault: FaultRefused, Codes: []marchwarden.Code{marchwarden.CodeUnavailable}, Retryable: true}, got, err)
}

// slow sends a reply whose words come one by one, for longer than any silence is borne.
func (c conformance) slow(t *testing.T) {
	text := strings.Repeat("slow but steady ", 20)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what is asked does not matter
		w.Header().Set("Content-Type", "text/event-stream")
		events := dialects[c.wire].stream(reply{model: "m", text: text, stop: llm.StopEnd, usage: &counts{in: 5, out: 5}, tell: true}).events
		for _, e := range events {
			if _, err := io.WriteString(w, string(e)+"\n\n"); err != nil || http.NewResponseController(w).Flush() != nil {
				return // the test fails by itself
			}
			time.Sleep(5 * briefly / 2 / time.Duration(len(events)))
		}
	}))
	defer srv.Close()
	if got, err := c.newModel(t, srv.URL, 2*briefly).Generate(t.Context(), ask); err != nil || got.Text != text {
		t.Errorf("%+v, %v", got, err)
	}
}

// noAnswer asks a server that takes the request and says nothing, not even headers.
func (c conformance) noAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the client is seen
		<-r.Context().Done()
	}))
	defer srv.Close()
	start := time.Now()
	_, err := c.newModel(t, srv.URL, briefly).Generate(t.Context(), ask)
	if !errors.Is(err, marchwarden.CodeTimeout) || time.Since(start) > patiently/2 {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}

func (c conformance) cancel(t *testing.T) {
	for name, said := range map[string]Said{"silence": {Fault: FaultStall}, "pings": {Fault: FaultPings}, "before the first word": {Text: "late", Delay: time.Hour}} {
		srv := NewServer(t, func(Turn) Said { return said })
		m := c.newModel(t, srv.URL(), patiently)
		ctx, cancel := context.WithCancel(t.Context())
		canceled := make(chan time.Time, 1)
		go func() {
			within(t, patiently/2, name+": the request arrives", func() bool { return len(srv.Turns()) == 1 })
			time.Sleep(20 * time.Millisecond)
			canceled <- time.Now()
			cancel()
		}()
		got, err := m.Generate(ctx, ask)
		start := <-canceled
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		judge(t, FaultCase{Codes: []marchwarden.Code{marchwarden.CodeCanceled}, Charged: true}, got, err)
		if d := time.Since(start); d > patiently/2 {
			t.Errorf("%s: it took %s", name, d)
		}
		within(t, patiently/2, name+": the server sees the model go", func() bool { return srv.Canceled() == 1 })
	}
	srv, m := c.serve(t, Said{Text: "never asked"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := m.Generate(ctx, ask)
	judge(t, FaultCase{Codes: []marchwarden.Code{marchwarden.CodeCanceled}}, got, err)
	if n := len(srv.Turns()); n != 0 {
		t.Errorf("a call that was over before it began made %d requests", n)
	}
}

// within waits for something to become true.
func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("not in time: %s", what)
			return
		}
	}
}

// first is the first of two texts that is not empty.
func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
