package answers

import (
	"fmt"
	"math"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// TestCalibration measures answers that are said with 0.9 and right half of the time:
// the error as given is 0.4, and that of a curve from other articles is none. A sample
// that is too small for a curve has no second number, and refusals count nowhere.
func TestCalibration(t *testing.T) {
	rows := []eval.Row{{ID: "refused", Group: "0", Values: map[string]float64{"confidence": 0.1}}}
	for i := range 200 {
		rows = append(rows, eval.Row{ID: fmt.Sprint(i), Group: fmt.Sprint(i / 20), Values: map[string]float64{"confidence": 0.9, right: float64(i % 2)}})
	}
	value := func(rows []eval.Row, name string) (eval.Metric, bool) {
		for _, m := range calibration("made", rows) {
			if m.Name == name {
				return m, true
			}
		}
		return eval.Metric{}, false
	}
	if m, _ := value(rows, eceGiven); math.Abs(m.Value-0.4) > 1e-9 || m.N != 200 {
		t.Errorf("as given %+v, want 0.4 of 200", m)
	}
	if m, ok := value(rows, eceFitted); !ok || m.Value > 0.01 {
		t.Errorf("fitted to other articles %+v", m)
	}
	if m, ok := value(rows[:50], eceFitted); ok {
		t.Errorf("of 49 answers: %+v", m)
	}
}
