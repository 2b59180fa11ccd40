package researcher_test

import (
	"bytes"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// A run that began under earlier rules of the gate is run again by them: its answer has no blocks.
func TestARerunKeepsTheRulesOfItsRun(t *testing.T) {
	h := newHome(t)
	for question, mark := range map[string]string{
		"Which tomatoes ripen above 6,000 feet in Utah?": `"support":"quoted"`,
		"Who won the 1987 Zorblax regatta?":              `"short_answer":{"kind":"unknown"}`,
	} {
		log := h.log(t, h.ask(t, marchwarden.Request{Question: question}).TraceID)
		start, err := log.Start()
		if err != nil || start.Gate != verify.Rules {
			t.Fatalf("the run has the rules %q: %v", start.Gate, err)
		}
		for _, rules := range []string{"gate/3", verify.Rules} {
			start.Gate = rules
			again, err := researcher.Again(t.Context(), log, h.blobs, nil)
			if err != nil || !bytes.Contains(again.Got, []byte(mark)) || rules == verify.Rules && !again.Same() {
				t.Errorf("%q by %q: %v\n%s", question, rules, err, again.Got)
			}
		}
		for _, rules := range []string{"", "gate/4", "gate/99"} {
			start.Gate = rules
			if _, err := researcher.Again(t.Context(), log, h.blobs, nil); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported {
				t.Errorf("rules %q, which are not known: %v", rules, err)
			}
		}
	}
}
