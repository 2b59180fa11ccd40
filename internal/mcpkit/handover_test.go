package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// labour is a researcher that takes its time, and says how it ended.
type labour struct {
	takes time.Duration

	begun, resumed, stopped, finished atomic.Int32
}

func (l *labour) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	res := sample("the whole answer [1]")
	res.TraceID, _ = marchwarden.ChosenTraceID(ctx)
	if req.Resume != "" {
		l.resumed.Add(1)
		var err error
		if res.TraceID, err = marchwarden.ParseTraceID(req.Resume); err != nil {
			return nil, err
		}
		return res, nil
	}
	l.begun.Add(1)
	if sink != nil {
		sink(marchwarden.Event{Stage: marchwarden.StageFetch, Message: "reading \x1b[31mutah.md"})
	}
	select {
	case <-ctx.Done():
		l.stopped.Add(1)
		res.Answer = "as far as it came [1]"
		res.Claims = nil
	case <-time.After(l.takes):
		l.finished.Add(1)
	}
	return res, nil
}

// outing is a call and what became of it.
type outing struct {
	done chan struct{}
	res  *mcp.CallToolResult
	err  error
	took time.Duration
}

// ask calls research in the background. meta goes with the call.
func ask(ctx context.Context, cs *mcp.ClientSession, args map[string]any, meta mcp.Meta) *outing {
	a := &outing{done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(a.done)
		a.res, a.err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "research", Arguments: args, Meta: maps.Clone(meta)})
		a.took = time.Since(began)
	}()
	return a
}

// result waits for a call that must succeed.
func (a *outing) result(t *testing.T) *marchwarden.Result {
	t.Helper()
	<-a.done
	if a.err != nil || a.res.IsError {
		t.Fatalf("%+v, %v", a.res, a.err)
	}
	return resultIn(t, a.res.StructuredContent)
}

func resultIn(t *testing.T, structured any) *marchwarden.Result {
	t.Helper()
	encoded, err := json.Marshal(structured)
	if err != nil {
		t.Fatal(err)
	}
	res, err := marchwarden.DecodeResult(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// unfinished tells whether a result says that there is more to come.
func unfinished(r *marchwarden.Result) bool {
	return strings.HasPrefix(r.Answer, "The research goes on and this is not the answer yet: ")
}

// bubbles runs a test under both eras, each in a bubble of its own.
func bubbles(t *testing.T, test func(t *testing.T, era string)) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, era) })
		})
	}
}

// A call that hears nothing of its research hands over in time; one that does, or that
// says how long it waits, does not, unless the server was told to.
func TestWhenACallIsHandedOver(t *testing.T) {
	const work = 10 * time.Minute
	token, wait := mcp.Meta{"progressToken": "p"}, mcp.Meta{MetaWall: 60_000}
	both := mcp.Meta{"progressToken": "p", MetaWall: 60_000}
	for name, tc := range map[string]struct {
		wall    time.Duration
		meta    mcp.Meta
		after   time.Duration
		partial bool
	}{
		"nothing said":                {0, nil, DefaultMaxWall, true},
		"progress":                    {0, token, work, false},
		"a wall":                      {20 * time.Second, nil, 20 * time.Second, true},
		"a wall and progress":         {20 * time.Second, token, 20 * time.Second, true},
		"a wall after the end":        {time.Hour, nil, work, false},
		"never":                       {-1, nil, work, false},
		"never, with progress":        {-1, token, work, false},
		"the caller's wait":           {0, wait, time.Minute, false},
		"the caller's wait and wall":  {20 * time.Second, wait, time.Minute, false},
		"the caller's wait, progress": {20 * time.Second, both, time.Minute, false},
		"the caller's, never":         {-1, wait, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubbles(t, func(t *testing.T, era string) {
				l := &labour{takes: work}
				s, _ := newTestServer(t, l, func(c *Config) { c.MaxWall = tc.wall })
				cs := dialMemory(t, s, era, nil)
				a := ask(t.Context(), cs, map[string]any{"question": "q"}, tc.meta)
				res := a.result(t)
				if a.took != tc.after || unfinished(res) != tc.partial {
					t.Errorf("after %v, want %v: %q", a.took, tc.after, res.Answer)
				}
				time.Sleep(work)
				synctest.Wait()
				if whole := l.finished.Load() == 1; whole != (tc.after == work || tc.partial) {
					t.Errorf("the research: %d finished, %d stopped", l.finished.Load(), l.stopped.Load())
				}
			})
		})
	}
}

// What is handed over keeps the contract and says how to get the rest; both ways get it,
// for as many as wait, during the research and after it.
func TestHandedOverWorkGoesOn(t *testing.T) {
	bubbles(t, func(t *testing.T, era string) {
		l := &labour{takes: 10 * time.Minute}
		kept := &books{sofar: func() *marchwarden.Result {
			res := sample("Peas are green. [1]")
			res.Warnings, res.Blocks = []string{"of the run's own"}, []marchwarden.Block{{Type: marchwarden.Paragraph, Claims: res.Claims}}
			return res
		}}
		s, _ := newTestServer(t, l, func(c *Config) { c.Records = kept })
		cs := dialMemory(t, s, era, nil)
		tools, err := cs.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := ask(t.Context(), cs, map[string]any{"question": "q"}, nil)
		partial := a.result(t)
		id := partial.TraceID.String()
		validateAs(t, tools.Tools[0].OutputSchema, a.res.StructuredContent)
		for _, part := range []string{`call research with nothing but resume "` + id + `"`, "marchwarden://result/" + id, "Last step: reading [31mutah.md.", "\n\nFound so far:\n\nPeas are green. [1]"} {
			if !strings.Contains(partial.Answer, part) {
				t.Errorf("the answer lacks %q:\n%s", part, partial.Answer)
			}
		}
		if len(partial.Citations) != 1 || len(partial.Blocks) > 0 || partial.CostMetadata.WallTimeSec != 50 || len(partial.Warnings) != 2 || !strings.HasPrefix(partial.Warnings[1], "unfinished") {
			t.Errorf("%+v", partial)
		}
		if last := partial.Gaps[len(partial.Gaps)-1]; last.Category != marchwarden.BudgetExhausted || !strings.Contains(last.Detail, "after 50s") || !strings.Contains(last.Detail, id) {
			t.Errorf("the gap: %+v", last)
		}
		if got := linked(a.res); got != "result marchwarden://result/"+id+" trace marchwarden://trace/"+id {
			t.Errorf("the links: %s", got)
		}

		// While it goes on.
		now, fault := read(t, cs, "marchwarden://result/"+id)
		if fault != nil {
			t.Fatal(fault)
		}
		during, err := marchwarden.DecodeResult([]byte(now.Contents[0].Text))
		if err != nil || !unfinished(during) || during.TraceID.String() != id {
			t.Errorf("the result meanwhile: %+v, %v", during, err)
		}
		resume := map[string]any{"resume": id}
		waiting := []*outing{ask(t.Context(), cs, resume, mcp.Meta{"progressToken": 1}), ask(t.Context(), cs, resume, mcp.Meta{"progressToken": 2}), ask(t.Context(), cs, resume, mcp.Meta{MetaWall: 3_600_000})}
		again := ask(t.Context(), cs, resume, nil)
		if res := again.result(t); !unfinished(res) || res.TraceID.String() != id || again.took != DefaultMaxWall {
			t.Errorf("a second wait: after %v, %q", again.took, res.Answer)
		}
		short := ask(t.Context(), cs, resume, mcp.Meta{MetaWall: 5000})
		if res := short.result(t); !unfinished(res) || short.took != 5*time.Second {
			t.Errorf("a short wait: after %v, %q", short.took, res.Answer)
		}
		more := ask(t.Context(), cs, map[string]any{"resume": id, "constraints": map[string]any{"token_budget": 5000}}, nil)
		if <-more.done; more.err != nil || !more.res.IsError || !strings.Contains(textOf(t, more.res), "is still going on") {
			t.Errorf("with more: %+v, %v", more.res, more.err)
		}
		for _, w := range waiting {
			if res := w.result(t); res.Answer != "the whole answer [1]" || res.TraceID.String() != id || len(w.res.Content) != 1 {
				t.Errorf("who waited got %q", res.Answer)
			}
		}

		// After it.
		ended, fault := read(t, cs, "marchwarden://result/"+id)
		if fault != nil || !strings.Contains(ended.Contents[0].Text, "the whole answer [1]") {
			t.Errorf("the result in the end: %+v, %v", ended, fault)
		}
		if res := ask(t.Context(), cs, resume, nil).result(t); res.Answer != "the whole answer [1]" {
			t.Errorf("resumed in the end: %q", res.Answer)
		}
		if l.begun.Load() != 1 || l.finished.Load() != 1 || l.stopped.Load() != 0 || l.resumed.Load() != 1 {
			t.Errorf("the research was begun %d times, stopped %d, resumed %d", l.begun.Load(), l.stopped.Load(), l.resumed.Load())
		}
	})
}

// linked are the links in a tool result.
func linked(res *mcp.CallToolResult) string {
	var out []string
	for _, c := range res.Content {
		if l, ok := c.(*mcp.ResourceLink); ok {
			out = append(out, l.Name+" "+l.URI)
		}
	}
	return strings.Join(out, " ")
}

// A server without records hands over all the same.
func TestHandOverWithoutRecords(t *testing.T) {
	bubbles(t, func(t *testing.T, era string) {
		for _, records := range []Records{nil, noRecords{}, &books{fails: fmt.Errorf("disk on fire")}} {
			s, log := newTestServer(t, &labour{takes: time.Hour}, func(c *Config) { c.Records = records })
			cs := dialMemory(t, s, era, nil)
			tools, err := cs.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			a := ask(t.Context(), cs, map[string]any{"question": "q"}, nil)
			res := a.result(t)
			validateAs(t, tools.Tools[0].OutputSchema, a.res.StructuredContent)
			links := "result marchwarden://result/" + res.TraceID.String()
			if records != nil {
				links += " trace marchwarden://trace/" + res.TraceID.String()
			}
			if !unfinished(res) || strings.Contains(res.Answer, "Found so far") || linked(a.res) != links {
				t.Errorf("%q, %s", res.Answer, linked(a.res))
			}
			if _, broken := records.(*books); broken != strings.Contains(log.String(), "disk on fire") {
				t.Errorf("the log: %s", log)
			}
		}
	})
}

// Whose run it is cannot be found out by trying to resume it.
func TestResumeOfOthersRuns(t *testing.T) {
	bubbles(t, func(t *testing.T, era string) {
		l := &labour{takes: time.Hour}
		s, _ := newTestServer(t, l)
		id := ask(t.Context(), dialAs(t, s, alice, era, nil), map[string]any{"question": "q"}, nil).result(t).TraceID.String()
		cs := dialAs(t, s, bob, era, nil)
		answers := map[string]int{}
		for _, try := range []string{id, strings.ToUpper(id), sample("").TraceID.String(), "00000000-0000-0000-0000-000000000000"} {
			a := ask(t.Context(), cs, map[string]any{"resume": try}, nil)
			<-a.done
			if a.err != nil || !a.res.IsError || a.took != 0 {
				t.Fatalf("%s: %+v, %v after %v", try, a.res, a.err, a.took)
			}
			facts, _ := json.Marshal(a.res.Meta)
			answers[strings.ReplaceAll(textOf(t, a.res), try, "ID")+string(facts)]++
		}
		if len(answers) != 1 {
			t.Errorf("the answers differ: %v", answers)
		}
		clear(answers)
		for _, try := range []string{id, sample("").TraceID.String()} { // nor by trying to follow it
			a := ask(t.Context(), cs, map[string]any{"question": "and in Utah?", "follow": try}, nil)
			<-a.done
			facts, _ := json.Marshal(a.res.Meta)
			answers[strings.ReplaceAll(textOf(t, a.res), try, "ID")+string(facts)]++
			if a.err != nil || !a.res.IsError || !strings.Contains(string(facts), `"field":"follow"`) || !strings.Contains(string(facts), "not_found") {
				t.Errorf("%s: %s %v", try, facts, a.err)
			}
		}
		if len(answers) != 1 {
			t.Errorf("the answers differ: %v", answers)
		}
		for _, try := range foreign {
			a := ask(t.Context(), cs, map[string]any{"resume": try}, nil)
			<-a.done
			if a.err != nil || !a.res.IsError || len(textOf(t, a.res)) > 2000 || strings.Contains(textOf(t, a.res), "\x1b") {
				t.Errorf("%.80q: %+v, %v", try, a.res, a.err)
			}
		}
		if l.resumed.Load() > 0 || l.begun.Load() != 1 {
			t.Error("the researcher was asked")
		}
	})
}

// Where a run cannot be kept its call waits for it.
func TestAKeepThatFails(t *testing.T) {
	bubbles(t, func(t *testing.T, era string) {
		dir := filepath.Join(t.TempDir(), "runs")
		l := &labour{takes: 10 * time.Minute}
		s, log := newTestServer(t, l, func(c *Config) { c.RunsDir = dir })
		defer s.Close()
		cs := dialMemory(t, s, era, nil)
		a := ask(t.Context(), cs, map[string]any{"question": "q"}, nil)
		time.Sleep(time.Second)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if res := a.result(t); res.Answer != "the whole answer [1]" || a.took != 10*time.Minute {
			t.Errorf("after %v: %q", a.took, res.Answer)
		}
		if !strings.Contains(log.String(), "a run cannot be handed over, so its call goes on") {
			t.Errorf("the log: %s", log)
		}
	})
}

// A caller that waits for work that was handed over may stop waiting, and the work continues.
func TestACancelledResumeStopsNothing(t *testing.T) {
	bubbles(t, func(t *testing.T, era string) {
		l := &labour{takes: 10 * time.Minute}
		s, _ := newTestServer(t, l)
		cs := dialMemory(t, s, era, nil)
		id := ask(t.Context(), cs, map[string]any{"question": "q"}, nil).result(t).TraceID.String()
		ctx, cancel := context.WithCancel(t.Context())
		a := ask(ctx, cs, map[string]any{"resume": id}, nil)
		time.Sleep(time.Second)
		cancel()
		if <-a.done; a.err == nil {
			t.Errorf("a call that was cancelled gives %+v", a.res)
		}
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if l.finished.Load() != 1 || l.stopped.Load() != 0 {
			t.Fatalf("%d finished, %d stopped", l.finished.Load(), l.stopped.Load())
		}
		if res := ask(t.Context(), dialMemory(t, s, era, nil), map[string]any{"resume": id}, nil).result(t); res.Answer != "the whole answer [1]" {
			t.Errorf("in the end: %q", res.Answer)
		}
	})
}

// A run that is not kept ends with the last caller that waits for it, and not before.
func TestTheLastCallerStopsTheRun(t *testing.T) {
	bubbles(t, func(t *testing.T, era string) {
		for _, firstGoes := range []bool{true, false} {
			l := &labour{takes: time.Hour}
			s, _ := newTestServer(t, l, func(c *Config) { c.MaxWall = -1 })
			cs := dialMemory(t, s, era, nil)
			id := sample("").TraceID.String()
			first, leave1 := context.WithCancel(t.Context())
			second, leave2 := context.WithCancel(t.Context())
			a := ask(first, cs, map[string]any{"question": "q"}, mcp.Meta{MetaTrace: id})
			synctest.Wait()
			b := ask(second, cs, map[string]any{"resume": id}, nil)
			synctest.Wait()
			leaves := []context.CancelFunc{leave1, leave2}
			waits := []*outing{a, b}
			i := 0
			if !firstGoes {
				i = 1
			}
			leaves[i]()
			<-waits[i].done
			time.Sleep(time.Minute)
			synctest.Wait()
			if l.stopped.Load() != 0 {
				t.Fatal("the first who goes stops the run")
			}
			leaves[1-i]()
			<-waits[1-i].done
			synctest.Wait()
			if l.stopped.Load() != 1 || l.finished.Load() != 0 || l.begun.Load() != 1 || l.resumed.Load() != 0 {
				t.Errorf("in the end: %d stopped, %d finished, %d begun, %d resumed", l.stopped.Load(), l.finished.Load(), l.begun.Load(), l.resumed.Load())
			}
		}
	})
}

// An id that another than the local user chooses is not taken.
func TestOnlyTheLocalUserChoosesIDs(t *testing.T) {
	id := sample("").TraceID.String()
	for _, who := range []access.Principal{access.Local(), alice, access.Anonymous()} {
		var mu sync.Mutex
		var got marchwarden.TraceID
		s, _ := newTestServer(t, scripted(func(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			got, _ = marchwarden.ChosenTraceID(ctx)
			return sample("yes [1]"), nil
		}))
		cs := dialAs(t, s, who, "2026-07-28", nil)
		ask(t.Context(), cs, map[string]any{"question": "q"}, mcp.Meta{MetaTrace: id}).result(t)
		if (got.String() == id) != who.SeesAll() || !got.Valid() {
			t.Errorf("%s: the run is %s", who.ID, got)
		}
	}
}
