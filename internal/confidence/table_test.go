package confidence_test

import (
	"encoding/json"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

// The table in the program says when, how and on what it was made. It leaves scores as
// they are: the reasoner's are fitted already.
func TestShippedTable(t *testing.T) {
	table, err := confidence.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	if table.Made == "" || table.Command == "" || table.Data == "" || table.Answers == 0 {
		t.Errorf("made %q by %q on %q, %d answers", table.Made, table.Command, table.Data, table.Answers)
	}
	for s, last := 0.0, 0.0; s <= 1; s += 0.01 {
		p := table.At(s)
		if p < last || p < 0 || p > 1 {
			t.Fatalf("at %.2f: %v after %v", s, p, last)
		}
		last = p
	}
}

func TestTableOfARecord(t *testing.T) {
	none, err := confidence.TableOf(nil)
	if none != nil || err != nil || none.At(0.3) != 0.3 {
		t.Errorf("of a record without one: %v %v", none, err)
	}
	for name, bad := range map[string]string{
		"no JSON":     `{`,
		"no curve":    `{}`,
		"two curves":  `{"platt":{"a":-1,"b":0},"isotonic":{"x":[0],"y":[0]}}`,
		"it falls":    `{"isotonic":{"x":[0,1],"y":[0.5,0.4]}}`,
		"x falls":     `{"isotonic":{"x":[1,0],"y":[0.4,0.5]}}`,
		"over one":    `{"isotonic":{"x":[0,1],"y":[0.4,1.5]}}`,
		"no points":   `{"isotonic":{"x":[],"y":[]}}`,
		"other sizes": `{"isotonic":{"x":[0,1],"y":[0.4]}}`,
		"upside down": `{"platt":{"a":2,"b":0}}`,
	} {
		if _, err := confidence.TableOf(json.RawMessage(bad)); err == nil || !strings.Contains(err.Error(), "calibration table") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a table says, one origin, a contradiction and a spent budget keep their
// bounds, and what cites nothing is not lifted.
func TestTableKeepsTheBounds(t *testing.T) {
	sure := &confidence.Table{Isotonic: &stat.Isotonic{X: []float64{0}, Y: []float64{1}}}
	one := cited(doc{"a.org", words("w", 50), ""})
	quarrel, spent, nothing := one, one, confidence.Input{Match: 0.4, Now: now}
	quarrel.Grounded.Contradictions = []marchwarden.Contradiction{{}}
	spent.BudgetExhausted = true
	for name, c := range map[string]struct {
		in   confidence.Input
		want marchwarden.Unit
	}{"one origin": {one, 0.89}, "a contradiction": {quarrel, 0.69}, "a spent budget": {spent, 0.79}, "nothing cited": {nothing, 0.1}} {
		c.in.Table = sure
		if _, got := confidence.Assess(c.in); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	half := &confidence.Table{Isotonic: &stat.Isotonic{X: []float64{0}, Y: []float64{0.5}}}
	one.Table = half
	f, got := confidence.Assess(one)
	one.Table = nil
	if plain, raw := confidence.Assess(one); got != 0.5 || raw == got || plain != f {
		t.Errorf("calibrated %v, raw %v; factors %+v and %+v", got, raw, f, plain)
	}
}
