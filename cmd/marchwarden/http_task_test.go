//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// taskAnswer is a task on the wire.
type taskAnswer struct {
	ResultType    string          `json:"resultType"`
	TaskID        string          `json:"taskId"`
	Status        string          `json:"status"`
	StatusMessage string          `json:"statusMessage"`
	Result        json.RawMessage `json:"result"`
}

// beginTask asks as a client that knows tasks.
func (c *hostClient) beginTask(t *testing.T, question string) string {
	t.Helper()
	a, err := c.do(t.Context(), "tools/call", map[string]any{"name": "research", "arguments": map[string]any{"question": question}})
	if err != nil {
		t.Fatal(err)
	}
	var task taskAnswer
	if err := json.Unmarshal(a.result, &task); err != nil || task.ResultType != "task" || task.Status != "working" {
		t.Fatalf("%v: no task: %s", err, a.body)
	}
	if id, err := marchwarden.ParseTraceID(task.TaskID); err != nil || id.String() != task.TaskID {
		t.Errorf("the task %q has not the id of a trace: %v", task.TaskID, err)
	}
	return task.TaskID
}

// task asks how a task is.
func (c *hostClient) task(t *testing.T, id string) taskAnswer {
	t.Helper()
	a, err := c.do(t.Context(), "tasks/get", map[string]any{"taskId": id})
	if err != nil {
		t.Fatal(err)
	}
	var task taskAnswer
	if err := json.Unmarshal(a.result, &task); err != nil || task.TaskID != id {
		t.Fatalf("%v: %s", err, a.body)
	}
	return task
}

// finish polls a task until it has ended, and decodes what it gave.
func (c *hostClient) finish(t *testing.T, id string) *marchwarden.Result {
	t.Helper()
	var task taskAnswer
	eventually(t, "the task "+id+" ends", func() bool {
		time.Sleep(50 * time.Millisecond) // a server limits requests a second
		task = c.task(t, id)
		return task.Status != "working"
	})
	res, err := decodeTool(task.Result)
	if task.Status != "completed" || err != nil {
		t.Fatalf("the task ended as %s (%s): %v", task.Status, task.StatusMessage, err)
	}
	if res.TraceID.String() != id {
		t.Errorf("the task %s gave the result of %s", id, res.TraceID)
	}
	return res
}

// essenceOf is what must be the same however a run got there.
func (w *httpWorld) essenceOf(t *testing.T, res *marchwarden.Result) string {
	t.Helper()
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := w.essence(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// deserted waits until no process of this world is left.
func (w *httpWorld) deserted(t *testing.T) {
	t.Helper()
	eventually(t, "nobody is left", func() bool {
		left, _ := lines(w.dir)
		return len(left) == 0
	})
}

// verified checks that a run of a home verifies.
func (w *httpWorld) verified(t *testing.T, home, id string) {
	t.Helper()
	out, err := w.spec(home, "verify", id).run(0)
	if err != nil || out.code != exitOK {
		t.Errorf("verify %s: exit code %d, %v\n%s%s", id, out.code, err, out.stdout, out.stderr)
	}
}

// servings are the servers that are tried: the investigator with researchers in processes
// of their own, and one that is alone.
var servings = map[string][]string{
	"pi":  {"pi", "--researchers", "files,web", "--library", "notes", "--model", "openai/gpt-test"},
	"web": {"web", "--model", "openai/gpt-test"},
}

// TestRestartInTheMiddleOfATask ends the server while its model thinks. The next one resumes the
// task, pays for nothing twice that had been answered, and comes to what an undisturbed task came
// to.
func TestRestartInTheMiddleOfATask(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	whos := []string{"pi"}
	if longTests() {
		whos = append(whos, "web")
	}
	for _, who := range whos {
		w := newHTTPWorld(t)
		calm, turns := w.calmTask(t, servings[who])
		at := []int{turns/2 + 1}
		if longTests() {
			at = nil
			for n := range turns {
				at = append(at, n+1)
			}
		}
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			for _, n := range at {
				t.Run(fmt.Sprintf("%s/%v/%d", who, sig, n), func(t *testing.T) { w.restartTask(t, servings[who], sig, n, calm, turns) })
			}
		}
	}
}

// calmTask is an undisturbed task: what it comes to and how many turns of the
// model it takes.
func (w *httpWorld) calmTask(t *testing.T, args []string) (essence string, turns int) {
	t.Helper()
	before := len(w.models.Turns())
	s := w.serve(t, w.home(t), args...)
	c := newHost(t, s.url, "", eraModern)
	c.tasks = true
	res := c.finish(t, c.beginTask(t, webtest.Startups))
	s.endBy(t, syscall.SIGTERM)
	return w.essenceOf(t, res), len(w.models.Turns()) - before
}

func (w *httpWorld) restartTask(t *testing.T, args []string, sig syscall.Signal, at int, calm string, turns int) {
	before, home := len(w.models.Turns()), w.home(t)
	held := w.hold(at)
	first := w.serve(t, home, args...)
	c := newHost(t, first.url, "", eraModern)
	c.tasks = true
	id := c.beginTask(t, webtest.Startups)
	arrives(t, held)
	w.paidFor(60) // nothing more comes, on a busy machine either: what was asked besides is answered and recorded
	first.endBy(t, sig)
	w.deserted(t)
	cut := len(w.models.Turns())

	held = w.hold(1)
	began := time.Now()
	second := w.serve(t, home, args...)
	c = newHost(t, second.url, "", eraModern)
	c.tasks = true
	arrives(t, held)
	if task := c.task(t, id); task.Status != "working" {
		t.Errorf("after the restart the task is %s: %s", task.Status, task.StatusMessage)
	}
	w.hold(0)
	res := c.finish(t, id)
	took := time.Since(began)
	paid := len(w.models.Turns()) - before
	// One turn was cut off, and is asked again. A run that was told to end has ended with
	// what it had: what it writes when it goes on, it writes anew.
	again := w.repeated(before, cut, at)
	if sig == syscall.SIGKILL {
		if got := w.essenceOf(t, res); got != calm {
			t.Errorf("the task came to something else:\n%s\nundisturbed:\n%s", got, calm)
		}
		if paid > turns+1 || len(again) > 0 {
			t.Errorf("%d turns of the model, of which one was cut off; an undisturbed task takes %d; asked twice: %q", paid, turns, again)
		}
	} else if i := slices.IndexFunc(again, func(site string) bool { return site != webtest.SiteWrite }); i >= 0 || len(res.Citations) == 0 {
		t.Errorf("answered before and asked again: %q; %d citations", again, len(res.Citations))
	}
	second.endBy(t, syscall.SIGTERM)
	w.verified(t, home, id)
	t.Logf("%v at turn %d of %d: %d turns before, %d in all, %q again; done %v after the restart; %d citations", sig, at, turns, cut-before, paid, again, took.Round(time.Millisecond), len(res.Citations))
}

// repeated are the call sites of the turns that were asked after a cut though they were
// answered before it. The one that was held at the cut was not.
func (w *httpWorld) repeated(from, cut, held int) (sites []string) {
	asked := func(turn llmtest.Turn) string { return turn.System + "\x00" + turn.Input }
	answered := map[string]int{}
	all := w.models.Turns()
	for i, turn := range all[from:cut] {
		if i+1 != held {
			answered[asked(turn)]++
		}
	}
	for i, turn := range all[from:cut] {
		if i+1 == held {
			answered[asked(turn)] = 0 // two researchers may ask the same
		}
	}
	for _, turn := range all[cut:] {
		if answered[asked(turn)] > 0 {
			answered[asked(turn)]--
			sites = append(sites, webtest.SiteOf(turn))
		}
	}
	return sites
}

// TestHandedOver lets a call hand over what there is, and asks for the rest: by resume,
// by the resource, and after the server was killed.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	w := newHTTPWorld(t)
	for _, era := range bothEras {
		for _, killed := range []bool{false, true} {
			if killed == (era == eraLegacy) && !longTests() {
				continue
			}
			t.Run(fmt.Sprintf("%s/killed=%v", era, killed), func(t *testing.T) { w.handOver(t, era, killed) })
		}
	}
}

func (w *httpWorld) handOver(t *testing.T, era string, killed bool) {
	args := append(slices.Clone(servings["web"]), "--max-wall", "1s")
	before, home := len(w.models.Turns()), w.home(t)
	held := w.hold(2)
	s := w.serve(t, home, args...)
	c := newHost(t, s.url, "", era)
	a, err := c.do(t.Context(), "tools/call", map[string]any{"name": "research", "arguments": map[string]any{"question": webtest.Startups}})
	if err != nil {
		t.Fatal(err)
	}
	part, err := a.research()
	if err != nil {
		t.Fatal(err)
	}
	id := part.TraceID.String()
	if len(part.Gaps) == 0 || !strings.Contains(string(a.result), `"resource_link"`) || !strings.Contains(string(a.result), "resume") {
		t.Errorf("what is handed over does not say how to go on: %s", a.result)
	}
	arrives(t, held)
	sofar, err := c.read(t.Context(), "marchwarden://result/"+id)
	if err != nil || !strings.Contains(sofar, id) {
		t.Errorf("%v: what there is reads %s", err, sofar)
	}
	if killed {
		s.endBy(t, syscall.SIGKILL)
		held = w.hold(1)
		s = w.serve(t, home, args...)
		c = newHost(t, s.url, "", era)
		arrives(t, held)
	}
	again, err := c.research(t.Context(), map[string]any{"resume": id}) // too early
	if err != nil || again.TraceID.String() != id || len(again.Citations) > 0 {
		t.Errorf("%v: too early there is %+v", err, again)
	}
	w.hold(0)
	var res *marchwarden.Result
	tries := 0
	eventually(t, "the answer", func() bool {
		tries++
		if res, err = c.research(t.Context(), map[string]any{"resume": id}); err != nil {
			t.Fatal(err)
		}
		return len(res.Citations) > 0
	})
	text, err := c.read(t.Context(), "marchwarden://result/"+id)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := marchwarden.DecodeResult([]byte(text))
	if err != nil || stored.Answer != res.Answer || stored.TraceID.String() != id || res.TraceID.String() != id {
		t.Errorf("%v: the resource has %.300s, the call gave %q", err, text, res.Answer)
	}
	s.endBy(t, syscall.SIGTERM)
	w.verified(t, home, id)
	t.Logf("handed over with %d gaps; %d calls of resume; %d turns of the model", len(part.Gaps), tries, len(w.models.Turns())-before)
}
