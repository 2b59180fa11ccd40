package researcher_test

import (
	"bytes"
	"strings"
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

// A run that an earlier version scored with a table of calibration is run again where the
// table left scores as they are, and refused by name where it did not.
func TestARerunOfARunWithATable(t *testing.T) {
	h := newHome(t)
	log := h.log(t, h.ask(t, marchwarden.Request{Question: "Which tomatoes ripen above 6,000 feet in Utah?"}).TraceID)
	start, err := log.Start()
	if err != nil || len(start.Calibration) != 0 {
		t.Fatalf("the run has the table %q: %v", start.Calibration, err)
	}
	start.Calibration = []byte(`{"made":"2026-11-17","isotonic":{"x":[0,1],"y":[0,1]}}`)
	if again, err := researcher.Again(t.Context(), log, h.blobs, nil); err != nil || !again.Same() {
		t.Errorf("with the table of the version before: %v", err)
	}
	for _, own := range []string{`{"isotonic":{"x":[0,1],"y":[0,0.3]}}`, `{"platt":{"a":-4,"b":1}}`, `{"isotonic":7}`} {
		start.Calibration = []byte(own)
		if _, err := researcher.Again(t.Context(), log, h.blobs, nil); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported || !strings.Contains(err.Error(), "table of calibration of its own") {
			t.Errorf("with the table %s: %v", own, err)
		}
	}
}
