package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	readers "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
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

// slowReader lets the judge without a model go on only when the model's judge has been asked.
type slowReader struct{ asked chan struct{} }

func (*slowReader) ID() string { return "slow" }

func (r *slowReader) Read(context.Context, string, []readers.Passage) ([]readers.Reading, error) {
	<-r.asked
	return nil, errors.New("it reads nothing")
}

func (r *slowReader) Relate(context.Context, []readers.Pair) ([]readers.Relation, error) {
	<-r.asked
	return nil, errors.New("it relates nothing")
}

type hears struct {
	llm.Model
	asked chan struct{}
}

func (h hears) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	if c.Prompt == "judge" {
		close(h.asked)
	}
	return h.Model.Generate(ctx, c)
}

// Many claims are judged side by side, and come to what a few come to one after the other.
func TestManyClaimsAreJudgedSideBySide(t *testing.T) {
	var many []obj
	for i := range fewClaims + 2 {
		many = append(many, claim("The canyon dam "+strings.Repeat("really ", i)+"cost 4 million dollars.", "S1.2"))
	}
	many = append(many, claim("Bananas ripen quickly in 1955.", "S1.1"))
	asked := make(chan struct{})
	m := scripted(script{"write": {{Text: encoded(answer(many...))}}, "judge": {verdicts(slices.Repeat([]string{"supported"}, len(many))...)}})
	s := stateOf(damQuestion, setOf(dam), deep, hears{m, asked})
	s.Reader = &slowReader{asked}
	d, err := New("m").Write(t.Context(), s)
	if err != nil || len(d.Claims) != len(many) {
		t.Fatalf("%+v, %v", d, err)
	}
	if last := d.Claims[len(many)-1]; last.Support != marchwarden.Unsupported || last.Judge != marchwarden.JudgeLocal {
		t.Errorf("the model made it better: %+v", last)
	}
	if first := d.Claims[0]; first.Judge != marchwarden.JudgeBoth {
		t.Errorf("one judge alone: %+v", first)
	}
}
