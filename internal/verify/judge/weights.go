package judge

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

//go:embed weights.json
var weightsJSON []byte

// Weights are what was fitted: one set for words alone, one with vectors.
type Weights struct {
	Made    string `json:"made"`    // the day
	Command string `json:"command"` // what made them
	Data    string `json:"data"`    // from what
	Words   Models `json:"words"`
	Vectors Models `json:"vectors"`
}

// Models are those of one set of features.
type Models struct {
	Support  *stat.Trees `json:"support"`
	Conflict *stat.Trees `json:"conflict"`
	Cuts     Cuts        `json:"cuts"`
}

// Cuts are where a probability becomes a verdict: from Supported on, up to
// Unsupported, from Contradicted on. They were read off predictions for claims that
// the models had not seen.
type Cuts struct {
	Supported    float64 `json:"supported"`
	Unsupported  float64 `json:"unsupported"`
	Contradicted float64 `json:"contradicted"`
}

// shipped are the weights in the binary. That they can be read is tested; a judge
// without any leaves every claim unchecked.
var shipped = sync.OnceValue(func() *Weights {
	w, err := Parse(weightsJSON)
	if err != nil {
		return nil
	}
	return w
})

// Parse reads weights and refuses those that were fitted on other features.
func Parse(b []byte) (*Weights, error) {
	var w Weights
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("read weights of the judge: %w", err)
	}
	for _, side := range []struct {
		name   string
		models Models
		names  []string
	}{{"words", w.Words, Names(false)}, {"vectors", w.Vectors, Names(true)}} {
		for _, m := range []*stat.Trees{side.models.Support, side.models.Conflict} {
			if m == nil || !slices.Equal(m.Names, side.names) {
				return nil, fmt.Errorf("read weights of the judge: %s: they were not fitted on its features", side.name)
			}
			if err := sound(m); err != nil {
				return nil, fmt.Errorf("read weights of the judge: %s: %w", side.name, err)
			}
		}
		if c := side.models.Cuts; !(0 <= c.Unsupported && c.Unsupported < c.Supported && c.Supported <= 1) || c.Contradicted <= 0 {
			return nil, fmt.Errorf("read weights of the judge: %s: cuts: they are not in order", side.name)
		}
	}
	return &w, nil
}

// sound holds trees against what package stat asks of them.
func sound(m *stat.Trees) error {
	b, err := json.Marshal(m)
	if err != nil {
		return errors.New("numbers that are none")
	}
	_, err = stat.ParseTrees(b)
	return err
}
