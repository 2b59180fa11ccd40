package model

import (
	"context"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
)

func TestVerdicts(t *testing.T) {
	claims := answer(claim("The Pineview Dam was completed in 1937.", "S1.1"), claim("The dam cost 5 million dollars.", "S1.2"), claim("Bananas ripen quickly.", "S1.1"), claim("The canyon is narrow.", "S9.9"))
	for _, c := range []struct {
		name  string
		judge llmtest.Answer
		want  string
	}{
		{"all supported", verdicts("supported", "supported"), "supported unsupported unsupported unchecked"},
		{"unsupported", verdicts("unsupported", "unsupported"), "unsupported unsupported unsupported unchecked"},
		{"missing", verdicts("Supported "), "supported unsupported unsupported unchecked"},
		{"unknown words", verdicts("true", "very"), "supported unsupported unsupported unchecked"},
		{"two verdicts", llmtest.Answer{Text: `[{"claim":"1","support":"unsupported"},{"claim":1,"support":"supported"},{"claim":99,"support":"unsupported"},{"claim":0},7]`}, "unsupported unsupported unsupported unchecked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _, m, err := write(t, balanced, script{"write": {{Text: encoded(claims)}}, "judge": {c.judge}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, cl := range d.Claims {
				got = append(got, string(cl.Support))
			}
			diff(t, "support", strings.Join(got, " "), c.want)
			in := m.Calls()[1].Shown()
			if !strings.Contains(in, "1. The Pineview Dam was completed in 1937. S1.1\n[S1.1] The") || strings.Contains(in, "anana") || strings.Contains(in, "million") {
				t.Errorf("the judge is shown\n%s", in)
			}
		})
	}
}

func TestJudgeWithoutRoom(t *testing.T) {
	m := scripted(script{"write": {{Text: encoded(twoClaims)}}})
	s := stateOf(damQuestion, setOf(dam), shallow, m)
	res, err := s.Meter.Reserve(shallow.TokenBudget - 1450)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Settle(0)
	d, err := New("m").Write(context.Background(), s)
	if err != nil || len(d.Claims) != 2 || d.Claims[0].Support != marchwarden.Supported || d.Judged != 0 || promptsOf(m) != "write" { // by its words
		t.Errorf("%+v, %v after %q", d.Claims, err, promptsOf(m))
	}
	if len(s.Meter.Usage().Exhausted) > 0 {
		t.Errorf("exhausted %v", s.Meter.Usage().Exhausted)
	}
}

// TestTwoJudges: the model can make a verdict worse and never better, the judge without
// one gives it where the model gave none, and what both say is counted.
func TestTwoJudges(t *testing.T) {
	claims := answer(claim("It was completed in 1937 by the Bureau of Reclamation.", "S1.1"), claim("It was not completed in 1937 by the Bureau of Reclamation.", "S1.1"),
		claim("Sheep graze on the meadows of the valley in spring.", "S1.1"))
	for _, c := range []struct {
		name                  string
		judge                 llmtest.Answer
		stands, denied, other marchwarden.Support
		judged, agreed        int
	}{
		{"the model likes all", verdicts("supported", "supported", "supported"), marchwarden.Supported, marchwarden.Unsupported, marchwarden.Unsupported, 1, 1},
		{"the model says nothing", verdicts(), marchwarden.Supported, marchwarden.Unsupported, marchwarden.Unsupported, 0, 0},
		{"the model likes nothing", verdicts("unsupported", "unsupported", "unsupported"), marchwarden.Unsupported, marchwarden.Unsupported, marchwarden.Unsupported, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _, _, _ := write(t, balanced, script{"write": {{Text: encoded(claims)}}, "judge": {c.judge}})
			if len(d.Claims) != 3 {
				t.Fatalf("claims %+v", d.Claims)
			}
			for i, want := range []marchwarden.Support{c.stands, c.denied, c.other} {
				if d.Claims[i].Support != want || (d.Claims[i].Conflict != "") != (i == 1) {
					t.Errorf("%+v, want %s", d.Claims[i], want)
				}
			}
			if d.Judged != c.judged || d.Agreed != c.agreed {
				t.Errorf("agreed on %d of %d, want %d of %d", d.Agreed, d.Judged, c.agreed, c.judged)
			}
		})
	}
}

// TestJudgeIsIsolated: what judges sees the claims and the passages they name, and
// neither the question nor anything else of the run.
func TestJudgeIsIsolated(t *testing.T) {
	_, s, m, err := write(t, balanced, script{"write": {{Text: encoded(twoClaims)}}, "judge": {verdicts("supported", "supported")}})
	if err != nil {
		t.Fatal(err)
	}
	call := m.Calls()[1]
	for _, secret := range []string{s.Request.Question, "a.example", "Water of Ogden", "110,000", "Limestone"} {
		if strings.Contains(call.System+call.Shown(), secret) {
			t.Errorf("the judge is shown %q", secret)
		}
	}
}
