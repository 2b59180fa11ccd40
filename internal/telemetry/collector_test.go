package telemetry_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What follows is OTLP/JSON as its specification has it, read strictly.
type (
	exportRequest struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []attr }
			ScopeSpans []struct {
				Scope     struct{ Name, Version string }
				Spans     []*spanJSON
				SchemaURL string
			}
		}
	}
	spanJSON struct {
		TraceID, SpanID, ParentSpanID, TraceState, Name string
		Flags                                           uint32
		Kind                                            int
		StartTimeUnixNano, EndTimeUnixNano              string
		Attributes                                      []attr
		DroppedAttributesCount                          int
		Links                                           []struct {
			TraceID, SpanID, TraceState string
			Flags                       uint32
		}
		Status struct{ Code int }

		got map[string]any
	}
	attr struct {
		Key   string
		Value value
	}
	value struct {
		StringValue *string
		BoolValue   *bool
		IntValue    *string
		DoubleValue *float64
		ArrayValue  *struct{ Values []value }
	}
)

// goValue is the value with its type; a number without one of the types of OTLP fails.
func (v value) goValue(t *testing.T) any {
	t.Helper()
	switch {
	case v.StringValue != nil:
		return *v.StringValue
	case v.BoolValue != nil:
		return *v.BoolValue
	case v.IntValue != nil:
		n, err := strconv.ParseInt(*v.IntValue, 10, 64)
		if err != nil {
			t.Errorf("intValue %q: %v", *v.IntValue, err)
		}
		return int(n)
	case v.DoubleValue != nil:
		return *v.DoubleValue
	case v.ArrayValue != nil:
		var list []any
		for _, e := range v.ArrayValue.Values {
			list = append(list, e.goValue(t))
		}
		return list
	}
	t.Error("an attribute without a value")
	return nil
}

func values(t *testing.T, list []attr) map[string]any {
	t.Helper()
	m := map[string]any{}
	for _, a := range list {
		if _, twice := m[a.Key]; twice {
			t.Errorf("attribute %s twice", a.Key)
		}
		m[a.Key] = a.Value.goValue(t)
	}
	return m
}

// collector is an OTLP collector on the loopback.
type collector struct {
	*httptest.Server
	t    *testing.T
	says string // the answer to what is taken, if not {}

	mu       sync.Mutex // guards what follows
	spans    []*spanJSON
	raw      bytes.Buffer // all that ever came
	heads    []http.Header
	paths    []string
	resource map[string]any
	scope    string
	schema   string
}

// collect starts a collector. answer, if there is one, answers the nth request, from
// 1; what it leaves unanswered is taken.
func collect(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int) bool) *collector {
	t.Helper()
	c := &collector{t: t}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Errorf("gzip: %v", err)
				return
			}
			from = z
		}
		raw, err := io.ReadAll(from)
		if err != nil {
			return // the client went away
		}
		c.mu.Lock()
		c.raw.Write(raw)
		c.heads, c.paths = append(c.heads, r.Header.Clone()), append(c.paths, r.Method+" "+r.URL.RequestURI())
		n := len(c.heads)
		c.mu.Unlock()
		if answer != nil && answer(w, r, n) {
			return
		}
		c.take(raw)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, cmp.Or(c.says, "{}"))
	}))
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

var (
	hex32 = regexp.MustCompile(`^[0-9a-f]{32}$`)
	hex16 = regexp.MustCompile(`^[0-9a-f]{16}$`)
	nanos = regexp.MustCompile(`^[0-9]{19}$`)
)

// take reads a request and checks what holds for all.
func (c *collector) take(raw []byte) {
	t := c.t
	var r exportRequest
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Errorf("the request is no OTLP: %v\n%s", err, raw)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range r.ResourceSpans {
		c.resource = values(t, rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			c.scope, c.schema = ss.Scope.Name+" "+ss.Scope.Version, ss.SchemaURL
			for _, s := range ss.Spans {
				s.got = values(t, s.Attributes)
				if !hex32.MatchString(s.TraceID) || !hex16.MatchString(s.SpanID) || s.ParentSpanID != "" && !hex16.MatchString(s.ParentSpanID) {
					t.Errorf("ids of %s: %q %q %q", s.Name, s.TraceID, s.SpanID, s.ParentSpanID)
				}
				if !nanos.MatchString(s.StartTimeUnixNano) || !nanos.MatchString(s.EndTimeUnixNano) || s.EndTimeUnixNano < s.StartTimeUnixNano {
					t.Errorf("times of %s: %q %q", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
				}
				if s.DroppedAttributesCount > 0 {
					t.Errorf("%s lost %d attributes", s.Name, s.DroppedAttributesCount)
				}
				c.spans = append(c.spans, s)
			}
		}
	}
}

// named is the only span of a name.
func (c *collector) named(name string) *spanJSON {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *spanJSON
	var all []string
	for _, s := range c.spans {
		all = append(all, s.Name)
		if s.Name == name {
			found = s
		}
	}
	if found == nil {
		c.t.Fatalf("no span %q among %q", name, all)
	}
	return found
}

func (c *collector) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.heads)
}

// clock is a clock that stands still until it is moved.
type clock struct {
	mu sync.Mutex // guards what follows
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// lines is a log in memory.
type lines struct {
	mu  sync.Mutex // guards what follows
	buf bytes.Buffer
	n   int
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return l.buf.Write(p)
}

func (l *lines) text() (string, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String(), l.n
}

// rig is a tracer with its surroundings.
type rig struct {
	*telemetry.Tracer
	clock *clock
	log   *lines
}

// start starts a tracer with settings; it is closed with the test.
func start(t *testing.T, env map[string]string) rig {
	t.Helper()
	r := rig{clock: newClock(), log: &lines{}}
	tracer, err := telemetry.Start(telemetry.Config{
		Env:     func(k string) string { return env[k] },
		Version: "v1.2.3",
		Now:     r.clock.now,
		Log:     slog.New(slog.NewTextHandler(r.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if tracer == nil {
		t.Fatal("no tracer")
	}
	r.Tracer = tracer
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = tracer.Close(ctx)
	})
	return r
}

// flush closes the tracer and waits for what it sends.
func (r rig) flush(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func at(c *collector) map[string]string {
	return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}
}
