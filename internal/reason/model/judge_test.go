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
		{"all supported", verdicts("supported", "supported"), "supported partial unsupported unchecked"},
		{"unsupported", verdicts("unsupported", "unsupported"), "unsupported unsupported unsupported unchecked"},
		{"missing", verdicts("Supported "), "supported partial unsupported unchecked"},
		{"unknown words", verdicts("true", "very"), "unchecked partial unsupported unchecked"},
		{"two verdicts", llmtest.Answer{Text: `[{"claim":"1","support":"unsupported"},{"claim":1,"support":"supported"},{"claim":99,"support":"unsupported"},{"claim":0},7]`}, "unsupported partial unsupported unchecked"},
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
			in := m.Calls()[1].Input
			if !strings.Contains(in, "1. The Pineview Dam was completed in 1937. S1.1\n2. The dam cost 5 million dollars. S1.2\n[S1.1] The") || strings.Contains(in, "anana") {
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
	if err != nil || len(d.Claims) != 2 || d.Claims[0].Support != marchwarden.Unchecked || promptsOf(m) != "write" {
		t.Errorf("%+v, %v after %q", d.Claims, err, promptsOf(m))
	}
	if len(s.Meter.Usage().Exhausted) > 0 {
		t.Errorf("exhausted %v", s.Meter.Usage().Exhausted)
	}
}

func TestMissesNumber(t *testing.T) {
	for _, c := range []struct {
		sentence, text string
		want           bool
	}{
		{"It cost 1000 dollars.", "It cost 1,000 dollars.", false},
		{"It cost 1,200,000 dollars.", "It cost 1.2 million dollars.", false},
		{"It cost 1.2 million dollars.", "It cost $1,200,000.", false},
		{"It cost 1.2 million dollars.", "It cost 1.2 billion dollars.", true},
		{"It has 12 floors.", "It has twelve floors.", false},
		{"It has 21 floors.", "It has twenty-one floors.", false},
		{"It has 300 rooms.", "It has three hundred rooms.", false},
		{"It has 36 rooms.", "It has three dozen rooms.", false},
		{"It was the 22nd.", "It was the twenty-second.", false},
		{"It has 20 floors.", "It has twelve floors.", true},
		{"It was the 3rd.", "It was the third.", false},
		{"It was built in 1937.", "Work went on from 1934 to 1937.", false},
		{"It was built in 1938.", "Work went on from 1934 to 1937.", true},
		{"It fell by 10%.", "It fell by 10 percent.", false},
		{"It fell by 10%.", "It fell by 11 percent.", true},
		{"On 12 October 2020 it fell.", "October 12, 2020: it fell.", false},
		{"On 12 October 2020 it fell.", "It fell (2020-10-12).", false},
		{"On 13 October 2020 it fell.", "On 12 October 2020 it fell.", true},
		{"In the 1990s it grew.", "In the 1990s it grew.", false},
		{"It takes two weeks.", "It takes 2 weeks.", false},
		{"It takes three weeks.", "It takes 2 weeks.", true},
		{"COVID-19 spread.", "The disease spread.", false},
		{"No number here.", "", false},
		{"It holds 50% of it.", "It holds half of it.", false},
	} {
		if got := missesNumber(c.sentence, []string{c.text}); got != c.want {
			t.Errorf("missesNumber(%q, %q) = %v", c.sentence, c.text, got)
		}
	}
}
