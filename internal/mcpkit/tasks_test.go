package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// seenTask is a task as a client sees it.
type seenTask struct {
	ResultType     string
	TaskID         string
	Status         string
	StatusMessage  string
	CreatedAt      time.Time
	LastUpdatedAt  time.Time
	TTLMs          *int64
	PollIntervalMs int64
	Result         *mcp.CallToolResult
	Error          json.RawMessage
	Meta           struct {
		Event *marchwarden.Event `json:"marchwarden/event"`
	} `json:"_meta"`
}

func (l *link) begin(arguments string) seenTask {
	l.t.Helper()
	var task seenTask
	l.get(&task, "tools/call", modern(tasksDeclared, `"name":"research","arguments":`+arguments))
	return task
}

func (l *link) task(id string) seenTask {
	l.t.Helper()
	var task seenTask
	l.get(&task, "tasks/get", modern(tasksDeclared, `"taskId":"`+id+`"`))
	return task
}

// A call of a client that knows tasks is one: it tells what it does, and in the end what
// the call would have given.
func TestATaskFromBeginningToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &labour{takes: 10 * time.Minute}
		s, _ := newTestServer(t, l, func(c *Config) { c.MaxWall = time.Second })
		conn := linkAs(t, s, alice)
		began := time.Now()
		made := conn.begin(`{"question":"q"}`)
		if time.Since(began) != 0 || made.ResultType != "task" || made.Status != "working" || made.Result != nil || !made.CreatedAt.Equal(began) || made.PollIntervalMs != 200 || *made.TTLMs != time.Hour.Milliseconds() {
			t.Errorf("it begins as %+v", made)
		}
		if _, err := marchwarden.ParseTraceID(made.TaskID); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		going := conn.task(made.TaskID)
		if going.ResultType != "complete" || going.TaskID != made.TaskID || going.Status != "working" || going.StatusMessage != "reading [31mutah.md" || going.Result != nil || !going.CreatedAt.Equal(began) {
			t.Errorf("it goes on as %+v", going)
		}
		if e := going.Meta.Event; e == nil || e.Stage != marchwarden.StageFetch {
			t.Errorf("its event is %+v", e)
		}
		time.Sleep(5*time.Minute + time.Second)
		done := conn.task(made.TaskID)
		if done.Status != "completed" || done.Result == nil || done.Result.IsError || done.Error != nil || done.PollIntervalMs != 2000 || done.LastUpdatedAt.Sub(began) != 10*time.Minute {
			t.Fatalf("it ends as %+v", done)
		}
		got := resultIn(t, done.Result.StructuredContent)
		if got.Answer != "the whole answer [1]" || got.TraceID.String() != made.TaskID || !strings.Contains(textOf(t, done.Result), "the whole answer [1]") {
			t.Errorf("its result is %+v", got)
		}
		var twice [2]json.RawMessage
		for i := range twice {
			conn.get(&twice[i], "tasks/get", modern(tasksDeclared, `"taskId":"`+made.TaskID+`"`))
		}
		if diff := cmp.Diff(string(twice[0]), string(twice[1])); diff != "" {
			t.Errorf("it changes after its end:\n%s", diff)
		}
		res, fault := conn.say("resources/read", modern(`{}`, `"uri":"marchwarden://result/`+made.TaskID+`"`))
		if fault != nil || !strings.Contains(string(res), "the whole answer [1]") {
			t.Errorf("the resource: %s, %v", res, fault)
		}
		if l.begun.Load() != 1 || l.stopped.Load() != 0 {
			t.Errorf("%d begun, %d stopped", l.begun.Load(), l.stopped.Load())
		}
	})
}

// What fails in research is a result that says so, as it is without a task.
func TestTasksThatFail(t *testing.T) {
	s, _ := newTestServer(t, scripted(func(_ context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		if req.Question == "panic" {
			panic("secret")
		}
		return nil, &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "no entry", Hint: "knock"}
	}))
	l := linkAs(t, s, alice)
	for question, want := range map[string]string{"q": "no entry\nhint: knock", "panic": "internal error: this call failed, others are not affected\nhint: the server's log has the details"} {
		task := l.task(l.begin(`{"question":"` + question + `"}`).TaskID)
		for task.Status == "working" {
			task = l.task(task.TaskID)
		}
		if task.Status != "completed" || task.Result == nil || !task.Result.IsError || task.Error != nil || textOf(t, task.Result) != want || strings.Contains(task.StatusMessage, "secret") {
			t.Errorf("%s: %+v", question, task)
		}
	}
	// Arguments that no research is begun with are a tool error at once, and a tool that
	// there is not is an error of the protocol.
	for _, args := range []string{`{}`, `7`, `{"question":""}`, `{"resume":"x"}`, `{"resume":"` + sample("").TraceID.String() + `"}`} {
		var res mcp.CallToolResult
		l.get(&res, "tools/call", modern(tasksDeclared, `"name":"research","arguments":`+args))
		if !res.IsError || res.Meta[MetaError] == nil {
			t.Errorf("%s: %+v", args, res)
		}
	}
	if _, wrong := l.say("tools/call", modern(tasksDeclared, `"name":"search","arguments":{}`)); wrong == nil || wrong.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("another tool: %v", wrong)
	}
}

func TestCancellingTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &labour{takes: time.Hour}
		s, _ := newTestServer(t, l)
		conn := linkAs(t, s, alice)
		ended, task := conn.begin(`{"question":"q"}`), conn.begin(`{"question":"q"}`)
		time.Sleep(time.Minute)
		for range 2 { // a second time changes nothing
			var ack struct{ ResultType string }
			conn.get(&ack, "tasks/cancel", modern(tasksDeclared, `"taskId":"`+task.TaskID+`"`))
			if ack.ResultType != "complete" {
				t.Errorf("%+v", ack)
			}
			synctest.Wait()
			if got := conn.task(task.TaskID); got.Status != "cancelled" || got.Result != nil || got.Error != nil || l.stopped.Load() != 1 {
				t.Errorf("%+v, %d stopped", got, l.stopped.Load())
			}
		}
		time.Sleep(time.Hour)
		conn.get(&struct{}{}, "tasks/cancel", modern(tasksDeclared, `"taskId":"`+ended.TaskID+`"`))
		if got := conn.task(ended.TaskID); got.Status != "completed" || got.Result == nil {
			t.Errorf("what had ended is %+v", got)
		}
		conn.get(&struct{}{}, "tasks/update", modern(tasksDeclared, `"taskId":"`+ended.TaskID+`","inputResponses":{"a":{}}`))
	})
}

// Tasks of others are as tasks that there are not, for every method.
func TestTasksOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &labour{takes: time.Hour}
		s, _ := newTestServer(t, l)
		owner := linkAs(t, s, alice)
		id := owner.begin(`{"question":"q"}`).TaskID
		if _, wrong := owner.say("tasks/get", modern(tasksDeclared, `"taskId":"`+strings.ToUpper(id)+`"`)); wrong == nil || wrong.Message != "no such task" {
			t.Errorf("an id in another form than it was given in: %v", wrong)
		}
		other := linkAs(t, s, bob)
		forms := []string{id, sample("").TraceID.String(), strings.ToUpper(id), " " + id, id + " ", "{" + id + "}", strings.ReplaceAll(id, "-", "")}
		for _, f := range foreign {
			if quoted, err := json.Marshal(f); err == nil {
				forms = append(forms, string(quoted[1:len(quoted)-1]))
			}
		}
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
			for _, form := range forms {
				_, wrong := other.say(method, modern(tasksDeclared, `"taskId":"`+form+`"`))
				if wrong == nil || wrong.Code != jsonrpc.CodeInvalidParams || wrong.Message != "no such task" || wrong.Data != nil {
					t.Errorf("%s of %.60q: %v", method, form, wrong)
				}
			}
		}
		synctest.Wait()
		if l.stopped.Load() != 0 {
			t.Error("somebody else has stopped it")
		}
		if got := linkAs(t, s, access.Local()).task(id); got.Status != "working" {
			t.Errorf("the local user sees %+v", got)
		}
	})
}

// A client that does not say with each request that it knows tasks has none.
func TestTasksUndeclared(t *testing.T) {
	s, _ := newTestServer(t, echo)
	l := linkAs(t, s, alice)
	id := l.begin(`{"question":"q"}`).TaskID
	for _, capabilities := range []string{`{}`, `{"extensions":{}}`, `{"extensions":{"io.modelcontextprotocol/ui":{}}}`, `{"tasks":{}}`} {
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
			_, wrong := l.say(method, modern(capabilities, `"taskId":"`+id+`"`))
			if wrong == nil || wrong.Code != -32021 || string(wrong.Data) != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}` {
				t.Errorf("%s with %s: %v", method, capabilities, wrong)
			}
		}
		var res mcp.CallToolResult
		l.get(&res, "tools/call", modern(capabilities, `"name":"research","arguments":{"question":"q"}`))
		if res.IsError || resultIn(t, res.StructuredContent).Answer != "q [1]" {
			t.Errorf("a call with %s: %+v", capabilities, res)
		}
	}
	// That a session of the earlier protocol declared something is of no weight.
	earlier := linkAs(t, s, alice)
	earlier.get(&struct{}{}, "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+tasksDeclared+`,"clientInfo":{"name":"raw","version":"1"}}`)
	var res mcp.CallToolResult
	earlier.get(&res, "tools/call", `{"name":"research","arguments":{"question":"q"}}`)
	if res.StructuredContent == nil {
		t.Errorf("an earlier client: %+v", res)
	}
}

// A task continues after a restart, for the caller that began it.
func TestTasksSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		serve := func(l *labour) (*Server, *runs.Desk) {
			s, _ := newTestServer(t, l, func(c *Config) { c.RunsDir, c.Grace = dir, time.Second })
			return s, s.runs
		}
		before := &labour{takes: time.Hour}
		s, desk := serve(before)
		made := linkAs(t, s, alice).begin(`{"question":"q"}`)
		if *made.TTLMs != 7*24*3600*1000 {
			t.Errorf("it is kept for %d ms", *made.TTLMs)
		}
		time.Sleep(time.Minute)
		if err := desk.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if before.stopped.Load() != 1 {
			t.Error("the research went on in a closed desk")
		}
		time.Sleep(time.Minute)

		after := &labour{takes: time.Hour}
		s, desk = serve(after)
		defer desk.Close(context.Background())
		conn := linkAs(t, s, alice)
		if _, wrong := linkAs(t, s, bob).say("tasks/get", modern(tasksDeclared, `"taskId":"`+made.TaskID+`"`)); wrong == nil || wrong.Message != "no such task" || after.resumed.Load() != 0 {
			t.Errorf("somebody else: %v", wrong)
		}
		if got := conn.task(made.TaskID); got.Status != "working" || !got.CreatedAt.Equal(made.CreatedAt) {
			t.Errorf("after the restart: %+v", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		done := conn.task(made.TaskID)
		if done.Status != "completed" || resultIn(t, done.Result.StructuredContent).TraceID.String() != made.TaskID || after.resumed.Load() != 1 || after.begun.Load() != 0 {
			t.Errorf("in the end: %+v, %d resumed, %d begun", done, after.resumed.Load(), after.begun.Load())
		}
	})
}

// How often to look depends on how long the task has gone on; for ever is null.
func TestTasksOnTheWire(t *testing.T) {
	began := time.Date(2026, 3, 1, 9, 0, 0, 0, time.FixedZone("", 3600))
	for _, tc := range []struct{ age, poll time.Duration }{
		{0, 200 * time.Millisecond}, {time.Second, 200 * time.Millisecond}, {5 * time.Second, 500 * time.Millisecond}, {20 * time.Second, 2 * time.Second}, {time.Hour, 2 * time.Second}, {-time.Hour, 200 * time.Millisecond},
	} {
		w := newTask("task", "x", runs.State{Created: began, Updated: began.Add(tc.age)})
		if w.PollIntervalMs != tc.poll.Milliseconds() || w.TTLMs != nil || w.CreatedAt != "2026-03-01T08:00:00Z" {
			t.Errorf("%v: %+v", tc.age, w)
		}
		if encoded, err := json.Marshal(w); err != nil || !strings.Contains(string(encoded), `"ttlMs":null`) || strings.Contains(string(encoded), "statusMessage") {
			t.Errorf("%s, %v", encoded, err)
		}
	}
}

// Two clients that begin the same are two tasks, and their ids say nothing of each other.
func TestTaskIDsCannotBeGuessed(t *testing.T) {
	var ran atomic.Int32
	s, _ := newTestServer(t, scripted(func(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		ran.Add(1)
		return sample("yes [1]"), nil
	}), func(c *Config) { c.MaxConcurrent = 100 })
	l := linkAs(t, s, alice)
	seen := map[string]bool{}
	for range 50 {
		id := l.begin(`{"question":"q"}`).TaskID
		for _, at := range []string{id[:13], id[19:]} { // a version and a variant stand between
			if seen[at] {
				t.Errorf("%s has a part of another", id)
			}
			seen[at] = true
		}
	}
	if len(seen) != 100 {
		t.Error(fmt.Sprint(len(seen), " parts"))
	}
}
