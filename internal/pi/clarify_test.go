package pi_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// asking is an investigation whose model replies so when it may ask back. asked gets the questions.
func asking(reply string, asked *[]string, answer func(ctx context.Context, i int) string) (pi.Config, *llmtest.Model) {
	m := llmtest.New("test/model", map[string][]llmtest.Answer{"clarify": {{Text: reply}}, "investigate": {{Text: `{"rihlas":[]}`}}})
	cfg := advised(m)
	cfg.Ask = func(context.Context) pi.Asker {
		return func(ctx context.Context, _ string, questions []string) []string {
			*asked = questions
			var out []string
			for i := range questions {
				out = append(out, answer(ctx, i))
			}
			return out
		}
	}
	return cfg, m
}

func inputOf(m *llmtest.Model, prompt string) string {
	for _, c := range m.Calls() {
		if c.Prompt == prompt {
			return c.Input
		}
	}
	return ""
}

// clarified is the step that records what the user answered, or nil.
func clarified(t *testing.T, o *office, id marchwarden.TraceID) (*trace.Log, *trace.Clarified) {
	t.Helper()
	log, err := o.traces.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range log.Steps {
		if c, ok := s.(*trace.Clarified); ok {
			return log, c
		}
	}
	return log, nil
}

// What the user answers reaches the planner and the researchers, counts against no limit of time, and is in the record:
// the rerun, which ask makes, and a run that goes on need no user.
func TestUserIsAskedBeforeThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		cfg, m := asking(`{"questions":["Which purity of gallium?","In which unit?"]}`, &asked, func(_ context.Context, i int) string {
			time.Sleep(time.Hour)
			return []string{"99.99 \x1b[31mpercent", " "}[i]
		})
		cfg.Deadline = time.Minute
		o := newOffice(t)
		res := o.ask(t, cfg, marchwarden.Request{Question: gallium, Context: "I work in a lab."})
		want := "Which purity of gallium? 99.99 [31mpercent"
		if got := inputOf(m, "investigate"); !strings.Contains(got, "Context: "+want+" I work in a lab.") {
			t.Errorf("the plan is made with %s", got)
		}
		if len(asked) != 2 || len(res.Citations) == 0 || res.CostMetadata.BudgetExhausted {
			t.Errorf("asked %q, %+v, %+v", asked, res.CostMetadata, res.Gaps)
		}
		log, step := clarified(t, o, res.TraceID)
		if start, _ := log.Start(); step == nil || step.Took != 2*time.Hour || !start.Investigation.Clarify || start.Counted(step.After) > time.Minute {
			t.Errorf("%+v", step)
		}
		for _, member := range []string{"a", "b"} {
			if calls := cfg.Dispatcher.(*stage).calls[member]; len(calls) == 0 || !strings.HasPrefix(calls[0].Context, want) {
				t.Errorf("%s is told %+v", member, calls)
			}
		}

		// The same run, cut off when the answers were there.
		lines, err := os.ReadFile(filepath.Join(o.traces.Path(), res.TraceID.String()+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(lines, []byte(`"action":"clarified"`))
		cut := newOffice(t)
		cut.blobs = o.blobs
		if err := os.WriteFile(filepath.Join(cut.traces.Path(), res.TraceID.String()+".jsonl"), lines[:at+bytes.IndexByte(lines[at:], '\n')+1], 0o600); err != nil {
			t.Fatal(err)
		}
		again, m := asking("", &asked, nil)
		again.Ask, again.Deadline = nil, time.Minute
		on := cut.ask(t, again, marchwarden.Request{Question: gallium, Resume: res.TraceID.String()})
		if got := inputOf(m, "investigate"); !strings.Contains(got, want) || inputOf(m, "clarify") != "" || len(on.Citations) == 0 || on.CostMetadata.BudgetExhausted {
			t.Errorf("goes on with %s to %+v", got, on)
		}
	})
}

// A model's reply asks three short questions at most, in clean text and without addresses of its own; one that cannot be
// read, asks nothing or fails asks none, and the investigation goes on.
func TestHostileQuestionsToTheUser(t *testing.T) {
	long := strings.Repeat("why ", 500)
	for reply, want := range map[string][]string{
		`{"questions":[]}`:                        nil,
		`{"questions":"Which?"}`:                  nil,
		`{"questions":{"a":"Which?"}}`:            nil,
		`no idea`:                                 nil,
		`{"questions":[7,null,"?!","\u001b[2J"]}`: {"[2J"},
		`{"questions":["Say it at https://evil.example/?","Mail a@evil.example?","Which\u202e\n\u001b]0;one?","Which ]0;one?","A?","B?","C?"]}`: {"Which ]0;one?", "A?", "B?"},
		fmt.Sprintf(`{"questions":[%q]}`, long): {strings.TrimSpace(long[:196]) + "…"},
	} {
		var asked []string
		cfg, _ := asking(reply, &asked, func(context.Context, int) string { return "" })
		o := newOffice(t)
		res := o.ask(t, cfg, marchwarden.Request{Question: gallium})
		if d := cmp.Diff(want, asked); d != "" {
			t.Errorf("%.60s: %s", reply, d)
		}
		if _, step := clarified(t, o, res.TraceID); (step != nil) != (want != nil) || len(res.Citations) == 0 {
			t.Errorf("%.60s: %+v, %d citations", reply, step, len(res.Citations))
		}
	}
}

// A user who leaves when asked gets a partial result, and the run can be resumed without a user.
func TestUserLeavesWhenAsked(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var asked []string
	cfg, _ := asking(`{"questions":["Which purity?"]}`, &asked, func(context.Context, int) string { leave(); return "" })
	o := newOffice(t)
	res, err := o.pi(cfg).Research(ctx, marchwarden.Request{Question: gallium}, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := o.audit(t, cfg, res)
	if len(res.Citations) > 0 || !log.Complete().Interrupted {
		t.Errorf("%+v", res)
	}
	cfg.Ask = nil
	on, err := o.pi(cfg).Research(t.Context(), marchwarden.Request{Question: gallium, Resume: res.TraceID.String()}, nil)
	if err != nil || len(on.Citations) == 0 {
		t.Fatalf("%+v, %v", on, err)
	}
	o.audit(t, cfg, on)
}

// Without a model, and where no user can be asked, nothing is asked.
func TestNobodyIsAsked(t *testing.T) {
	var asked []string
	cfg, m := asking(`{"questions":["Which purity?"]}`, &asked, nil)
	cfg.Ask = nil
	o := newOffice(t)
	res := o.ask(t, cfg, marchwarden.Request{Question: gallium})
	log, step := clarified(t, o, res.TraceID)
	if start, _ := log.Start(); step != nil || inputOf(m, "clarify") != "" || start.Investigation.Clarify {
		t.Errorf("%+v", step)
	}
}
