package answers

import (
	"fmt"
	"math"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// TestCalibration measures answers that are said with 0.9 and right half of the time:
// the error is 0.4. Refusals count nowhere.
func TestCalibration(t *testing.T) {
	rows := []eval.Row{{ID: "refused", Group: "0", Values: map[string]float64{"confidence": 0.1}}}
	for i := range 200 {
		rows = append(rows, eval.Row{ID: fmt.Sprint(i), Group: fmt.Sprint(i / 20), Values: map[string]float64{"confidence": 0.9, right: float64(i % 2)}})
	}
	if m := calibration(rows)[0]; m.Name != eceGiven || math.Abs(m.Value-0.4) > 1e-9 || m.N != 200 {
		t.Errorf("as given %+v, want 0.4 of 200", m)
	}
}
