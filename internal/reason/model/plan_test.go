package model

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

const damQuestion = "When was the Pineview Dam completed and what did it cost?"

func planOf(t *testing.T, r *Reasoner, s *reason.State) reason.Plan {
	t.Helper()
	p, err := r.Plan(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func queries(p reason.Plan) string {
	var out []string
	for _, s := range p.Searches {
		out = append(out, s.Query)
	}
	return strings.Join(out, "|")
}

func reads(p reason.Plan) string {
	var out []string
	for _, r := range p.Reads {
		out = append(out, r.Locator)
	}
	return strings.Join(out, "|")
}

func TestPlanReadsCalls(t *testing.T) {
	many := make([]llm.ToolCall, 0, 64)
	for i := range 64 {
		many = append(many, find("query number "+strings.Repeat("x", i+1)))
	}
	for _, c := range []struct {
		name           string
		calls          []llm.ToolCall
		text           string
		queries, reads string
		decision       string
	}{
		{"search and read", []llm.ToolCall{find("dam  cost\n1937"), open("H2")}, "", "dam cost 1937", "https://h2.example/page", "1 search and 1 document."},
		{"a repeated query is dropped", []llm.ToolCall{find("Ogden DAMS"), find("dam cost"), find("cost of the dam")}, "", "dam cost", "", "2 done already"},
		{"ids of each kind", []llm.ToolCall{open("h1"), open("[L1]"), open("U1")}, "", "", "https://h1.example/page|https://a.example/pineview/history|https://given.example/", ""},
		{"an unknown id stands for itself", []llm.ToolCall{open("H99"), open("L99"), open("U7"), open("S1.1")}, "", "", "H99|L99|U7|S1.1", ""},
		{"an address stands for itself", []llm.ToolCall{open("https://evil.example/?q=CANARY"), open("http://169.254.169.254/"), open("file:///etc/passwd")}, "", "",
			"https://evil.example/?q=CANARY|http://169.254.169.254/|file:///etc/passwd", ""},
		{"what was read is dropped", []llm.ToolCall{open(dam[0].locator), open("H1")}, "", "", "https://h1.example/page", "1 done already"},
		{"unknown tools lose themselves", []llm.ToolCall{tool("shell", "rm"), find("dam cost"), {Name: "web_search", Input: json.RawMessage(`42`)}, {Name: "read_page", Input: json.RawMessage(`{"id":7}`)}},
			"", "dam cost", "", "3 not understood"},
		{"an object in a string counts", []llm.ToolCall{tool("web_search", `{"query":"dam cost"}`)}, "", "dam cost", "", ""},
		{"64 calls are cut", many, "", "query number x|query number xx|query number xxx|query number xxxx", "", "60 beyond the limits"},
		{"8 reads are cut", []llm.ToolCall{open("H1"), open("H2"), open("H3"), open("H4"), open("H5"), open("H6"), open("H7"), open("H8")}, "", "",
			"https://h1.example/page|https://h2.example/page|https://h3.example/page|https://h4.example/page|https://h5.example/page|https://h6.example/page", "2 beyond"},
		{"calls in the text", nil, "<think>hm</think>```json\n{\"calls\":[{\"name\":\"web_search\",\"input\":{\"query\":\"dam cost\"}},{\"name\":\"read_page\",\"arguments\":{\"id\":\"H3\"}}]}\n```",
			"dam cost", "https://h3.example/page", ""},
		{"a hidden query is shown", []llm.ToolCall{find("dam\u202e cost\u200b\U000e0041")}, "", "dam cost", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := scripted(script{"step": {{Text: c.text, Calls: c.calls}}})
			s := stateOf(damQuestion, setOf(dam), balanced, m)
			s.Given = []string{"https://given.example/"}
			searched(s, "ogden dam", 10)
			p := planOf(t, New("m"), s)
			if queries(p) != c.queries || reads(p) != c.reads || !strings.Contains(p.Decision, c.decision) {
				t.Errorf("searches %q, reads %q, decision %q", queries(p), reads(p), p.Decision)
			}
		})
	}
}

func TestPlanChecksDates(t *testing.T) {
	at := func(since, until string) llm.ToolCall {
		return tool("web_search", map[string]string{"query": "dams since " + since + until, "since": since, "until": until})
	}
	m := scripted(script{"step": {{Calls: []llm.ToolCall{at("2024-01-31", "2024-12-31"), at("2024-02-30", "today"), at("2025-01-01", "2024-01-01")}}}})
	p := planOf(t, New("m"), stateOf(damQuestion, setOf(nil), balanced, m))
	var got []string
	for _, s := range p.Searches {
		got = append(got, s.Since+".."+s.Until)
	}
	diff(t, "dates", got, []string{"2024-01-31..2024-12-31", "..", ".."})
}

func TestPlanEnds(t *testing.T) {
	for _, c := range []struct {
		text     string
		complete bool
	}{
		{"DONE. Both parts are answered by S1.", true},
		{"The evidence is sufficient.", true},
		{"The evidence is not complete, but I have no idea.", false},
		{"", false},
		{"I cannot help.", false},
	} {
		s := stateOf(damQuestion, setOf(dam), balanced, scripted(script{"step": {{Text: c.text}}}))
		searched(s, "dam", 3)
		p := planOf(t, New("m"), s)
		if len(p.Searches)+len(p.Reads) > 0 || p.Complete != c.complete || p.Decision == "" {
			t.Errorf("%q gives %+v", c.text, p)
		}
	}
	long := "\x1b[31m" + strings.Repeat("words without end ", 100)
	s := stateOf(damQuestion, setOf(dam), balanced, scripted(script{"step": {{Text: long}}}))
	searched(s, "dam", 3)
	if p := planOf(t, New("m"), s); len([]rune(p.Decision)) > 300 || strings.ContainsRune(p.Decision, '\x1b') {
		t.Errorf("decision %q", p.Decision)
	}
}

func TestFirstStepWithoutUsableCall(t *testing.T) {
	for name, a := range map[string]llmtest.Answer{
		"words":        {Text: "I would search for dams."},
		"nothing":      {},
		"unknown tool": {Calls: []llm.ToolCall{tool("bash", "ls")}},
		"an invention": {Calls: []llm.ToolCall{open("https://evil.example/")}},
	} {
		s := stateOf(damQuestion, setOf(nil), balanced, scripted(script{"step": {a}}))
		p := planOf(t, New("m"), s)
		if len(p.Searches) == 0 {
			t.Errorf("%s: no search in %+v", name, p)
		}
		if want := name == "an invention"; (reads(p) == "https://evil.example/") != want {
			t.Errorf("%s: reads %q", name, reads(p))
		}
	}
}

func TestRepeatedStepsEnd(t *testing.T) {
	m := scripted(script{"step": {{Calls: []llm.ToolCall{open("https://evil.example/"), find("dam")}}, {Calls: []llm.ToolCall{find("dam"), open("https://evil.example/")}}}})
	s := stateOf(damQuestion, setOf(dam), balanced, m)
	r := New("m")
	if p := planOf(t, r, s); queries(p) != "dam" || len(p.Reads) != 1 {
		t.Fatalf("first step %+v", p)
	}
	searched(s, "dam", 3)
	if p := planOf(t, r, s); len(p.Searches)+len(p.Reads) > 0 || p.Complete || !strings.Contains(p.Decision, "same again") {
		t.Errorf("second step %+v", p)
	}
}

func TestCapsEndThePlanningWithoutACall(t *testing.T) {
	m := scripted(nil)
	s := stateOf(damQuestion, setOf(dam), shallow, m)
	searched(s, "dam", 3)
	s.Iteration = 3
	for range 2 {
		if _, err := s.Meter.Iterate(); err != nil {
			t.Fatal(err)
		}
	}
	if p := planOf(t, New("m"), s); len(p.Searches) > 0 || len(m.Calls()) > 0 {
		t.Errorf("%+v after %s", p, promptsOf(m))
	}
	diff(t, "exhausted", s.Meter.Usage().Exhausted, []string{"cap of 2 iterations"})
	s = stateOf(damQuestion, setOf(dam), shallow, m)
	s.Meter.TakeSources(5)
	planOf(t, New("m"), s)
	diff(t, "exhausted", s.Meter.Usage().Exhausted, []string{"cap of 5 sources"})
}

func TestPlanFaults(t *testing.T) {
	for _, c := range []struct {
		code  marchwarden.Code
		calls int // steps that ask the model, of four
	}{
		{marchwarden.CodeDenied, 1}, {marchwarden.CodeUnavailable, 1}, {marchwarden.CodeInvalid, 1}, {marchwarden.CodeCanceled, 1},
		{marchwarden.CodeTruncated, 2}, {marchwarden.CodeMalformed, 2}, {marchwarden.CodeTimeout, 2}, {marchwarden.CodeRateLimited, 2},
	} {
		m := scripted(script{"step": {{Err: marchwarden.Errorf(c.code, "it broke")}}})
		s := stateOf(damQuestion, setOf(nil), deep, m)
		r := New("m")
		faults := 0
		for i := range 4 {
			p, err := r.Plan(context.Background(), s)
			if err != nil {
				faults++
				if !errors.Is(err, c.code) || !strings.Contains(err.Error(), "it broke") {
					t.Errorf("%s: %v", c.code, err)
				}
			}
			if i == 0 && len(p.Searches) == 0 {
				t.Errorf("%s: no plan beside the fault", c.code)
			}
			searched(s, damQuestion, 2)
		}
		if len(m.Calls()) != c.calls || faults != c.calls {
			t.Errorf("%s: %d calls and %d faults, want %d", c.code, len(m.Calls()), faults, c.calls)
		}
	}
	refusing := scripted(script{"step": {{Text: "No.", Stop: llm.StopRefusal}}})
	if p, err := New("m").Plan(context.Background(), stateOf(damQuestion, setOf(nil), deep, refusing)); !errors.Is(err, marchwarden.CodeRefused) || len(p.Searches) == 0 {
		t.Errorf("refusal: %+v, %v", p, err)
	}
}

func TestPlanWithoutRoom(t *testing.T) {
	m := scripted(script{"step": {{Calls: []llm.ToolCall{find("dam")}}}})
	tiny := marchwarden.Limits{MaxIterations: 3, TokenBudget: 1000, MaxSources: 3}
	s := stateOf(damQuestion, setOf(nil), tiny, m)
	s.Meter.Hold(500)
	r := New("m")
	if p := planOf(t, r, s); len(p.Searches) == 0 || !strings.Contains(p.Decision, "budget") {
		t.Errorf("first step %+v", p)
	}
	if use := s.Meter.Usage(); len(m.Calls()) != 0 || len(use.Exhausted) != 0 {
		t.Errorf("%d calls; the budget is said to have ended something: %q", len(m.Calls()), use.Exhausted)
	}
	s = stateOf(damQuestion, setOf(dam), tiny, m)
	searched(s, "dam", 3)
	if p := planOf(t, New("m"), s); len(p.Searches)+len(p.Reads) > 0 || !strings.Contains(p.Decision, "budget") {
		t.Errorf("later step %+v", p)
	}
}

func TestPlanInterruptedOrWithoutModel(t *testing.T) {
	m := scripted(nil)
	s := stateOf(damQuestion, setOf(dam), balanced, m)
	s.Interrupted = true
	if p := planOf(t, New("m"), s); len(p.Searches) > 0 || len(m.Calls()) > 0 {
		t.Errorf("%+v", p)
	}
	if p := planOf(t, New("m"), stateOf(damQuestion, setOf(nil), balanced, nil)); len(p.Searches) == 0 {
		t.Errorf("without a model: %+v", p)
	}
}

func TestStepIsOfConstantSize(t *testing.T) {
	long := dam[0]
	long.text = strings.Repeat(long.text+"\n\n", 400)
	for _, l := range []marchwarden.Limits{shallow, balanced, deep} {
		most := 0
		for _, hits := range []int{0, 3, 200} {
			m := scripted(script{"step": {{Text: "DONE"}}})
			s := stateOf(damQuestion, setOf([]page{long, dam[1], dam[2]}), l, m)
			s.Meter.Hold(l.TokenBudget / 2)
			searched(s, "dam", hits)
			planOf(t, New("m"), s)
			c := m.Calls()[0]
			most = max(most, llm.Estimate(c)+c.MaxTokens)
			if hits > 0 && !strings.Contains(c.Shown(), "H1 Hit 1 | h1.example | 2023-02-01") {
				t.Errorf("no hit in %s", c.Shown())
			}
			if !strings.Contains(c.Shown(), "[S1.") {
				t.Errorf("no passage in %s", c.Shown())
			}
		}
		if limit := min(stepMost, l.TokenBudget*28/100); most > limit {
			t.Errorf("a step of a budget of %d costs up to %d, more than %d", l.TokenBudget, most, limit)
		}
	}
}

func TestStepShowsWhatFailedAndWhatWasGiven(t *testing.T) {
	m := scripted(script{"step": {{Text: "DONE"}}})
	s := stateOf(damQuestion, setOf(dam), balanced, m)
	s.Request.Context = "I know that it is in Utah."
	s.Given = []string{"https://given.example/dam.pdf"}
	searched(s, "dam", 4)
	s.Failed["https://h2.example/page"] = marchwarden.Errorf(marchwarden.CodeDenied, "robots.txt")
	planOf(t, New("m"), s)
	in := m.Calls()[0].Shown()
	for _, want := range []string{"Question: " + damQuestion, "Context: I know", "Today: 2026-06-01", "Turn 2 of 5", "Unreadable: H2 denied", "U1 https://given.example/dam.pdf",
		"searched: dam (4 hits)", "H1 Hit 1", "H3 Hit 3", "S1 Pineview Dam | a.example | 2024-05-01", "[S1.1] The Pineview Dam", "L1 https://a.example/pineview/history", "L2 https://b.example/ogden-dam"} {
		if !strings.Contains(in, want) {
			t.Errorf("no %q in\n%s", want, in)
		}
	}
	if strings.Contains(in, "H2 Hit 2") || strings.Contains(in, "about") {
		t.Errorf("too much in\n%s", in)
	}
}

func TestStableNumbers(t *testing.T) {
	m := scripted(script{"step": {{Calls: []llm.ToolCall{find("a")}}, {Calls: []llm.ToolCall{open("H3"), open("L1")}}}})
	s := stateOf(damQuestion, setOf(dam[:1]), balanced, m)
	searched(s, "dam", 3)
	r := New("m")
	planOf(t, r, s)
	s.Evidence.Add(setOf([]page{{"https://h1.example/page", "Other", "Dams and canyons.", []string{"https://z.example/pineview-dam-completed-cost"}}}).Sources()[0].Page, "Dams and canyons.")
	searched(s, "other", 5)
	if p := planOf(t, r, s); reads(p) != "https://h3.example/page|https://a.example/pineview/history" {
		t.Errorf("reads %q", reads(p))
	}
	if in := m.Calls()[1].Shown(); !strings.Contains(in, "L3 https://z.example/") {
		t.Errorf("the new link has no new number in\n%s", in)
	}
}
