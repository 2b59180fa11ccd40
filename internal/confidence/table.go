package confidence

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

// Table says how often answers with a score of the rubric were right, when this was
// measured. It is data: dated, with the command that made it. A run's record holds the
// table that it was scored with.
type Table struct {
	Made    string `json:"made"`    // the day
	Command string `json:"command"` // what made it
	Data    string `json:"data"`    // on answers to which questions
	Answers int    `json:"answers"` // how many
	// Exactly one of the two curves is there.
	Platt    *stat.Platt    `json:"platt,omitempty"`
	Isotonic *stat.Isotonic `json:"isotonic,omitempty"`
	// Before is how well the rubric's own score was calibrated, After how well the
	// curve is on answers that it was not fitted to.
	Before Measured `json:"before"`
	After  Measured `json:"after"`
}

// Measured is how well scores are calibrated.
type Measured struct {
	ECE   float64 `json:"ece"`
	Brier float64 `json:"brier"`
}

//go:embed table.json
var shipped []byte

// Shipped is the table that comes with the program.
func Shipped() (*Table, error) { return ParseTable(shipped) }

// TableOf is the table that a run's record holds: none of a record without one.
func TableOf(record json.RawMessage) (*Table, error) {
	if len(record) == 0 {
		return nil, nil
	}
	return ParseTable(record)
}

// ParseTable reads a table, and refuses one that is no calibration: the curve must lie
// between 0 and 1 and never fall.
func ParseTable(b []byte) (*Table, error) {
	var t Table
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("read calibration table: %w", err)
	}
	switch {
	case (t.Platt == nil) == (t.Isotonic == nil):
		return nil, errors.New("read calibration table: it must have one of platt and isotonic")
	case t.Platt != nil && (math.IsNaN(t.Platt.A) || math.IsNaN(t.Platt.B) || t.Platt.A > 0):
		return nil, errors.New("read calibration table: platt: a must be a number of at most 0, b a number")
	case t.Isotonic != nil && !rises(*t.Isotonic):
		return nil, errors.New("read calibration table: isotonic: x must rise, and y must lie between 0 and 1 and never fall")
	}
	return &t, nil
}

func rises(c stat.Isotonic) bool {
	inside := func(v float64) bool { return v >= 0 && v <= 1 }
	for i := range c.X {
		if i > 0 && c.X[i] <= c.X[i-1] {
			return false
		}
	}
	return len(c.X) > 0 && len(c.X) == len(c.Y) && slices.IsSorted(c.Y) && inside(c.Y[0]) && inside(c.Y[len(c.Y)-1])
}

// At is how likely an answer with that score is right. Without a table it is the score.
func (t *Table) At(score float64) float64 {
	switch {
	case t == nil:
		return score
	case t.Platt != nil:
		return t.Platt.At(score)
	}
	return t.Isotonic.At(score)
}
