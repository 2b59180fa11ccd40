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
	log := h.log(t, h.ask(t, marchwarden.Request{Question: "Which tomatoes ripen above 6,000 feet in Utah?"}).TraceID)
	start, err := log.Start()
	if err != nil || start.Gate != verify.Rules {
		t.Fatalf("the run has the rules %q: %v", start.Gate, err)
	}
	for rules, want := range map[string]bool{"gate/4": false, verify.Rules: true} {
		start.Gate = rules
		again, err := researcher.Again(t.Context(), log, h.blobs, nil)
		if err != nil || bytes.Contains(again.Got, []byte(`"blocks":[`)) != want || again.Same() != want {
			t.Errorf("by %q: %v\n%s", rules, err, again.Got)
		}
	}
	start.Gate = "gate/99"
	if _, err := researcher.Again(t.Context(), log, h.blobs, nil); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported {
		t.Errorf("rules that are not known: %v", err)
	}
}
