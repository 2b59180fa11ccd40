package verify

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

//go:embed weights.json
var weightsJSON []byte

// Weights are what was fitted: once for words alone, once with a reader.
type Weights struct {
	Made    string       `json:"made"`    // the day
	Command string       `json:"command"` // what made them
	Data    string       `json:"data"`    // from what
	ReadBy  string       `json:"read_by"` // the reader
	Words   WeightsModel `json:"words"`
	Reader  WeightsModel `json:"reader"`
}

// WeightsModel is that of one set of features.
type WeightsModel struct {
	Support *stat.Trees `json:"support"`
	Cuts    Cuts        `json:"cuts"`
}

// Cuts are where a probability becomes a verdict: from Supported on, if the reader finds
// the claim Entailed, and from Contradicted on. They were read off predictions for claims
// that the model had not seen.
type Cuts struct {
	Entailed     float64 `json:"entailed"`
	Supported    float64 `json:"supported"`
	Contradicted float64 `json:"contradicted"`
}

// shipped are the weights in the binary. That they can be read is tested; a judge
// without any leaves every claim unchecked.
var shipped = sync.OnceValue(func() *Weights {
	w, err := ParseWeights(weightsJSON)
	if err != nil {
		return nil
	}
	return w
})

// ParseWeights reads weights and refuses those that were fitted on other features.
func ParseWeights(b []byte) (*Weights, error) {
	var w Weights
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("read weights of the judge: %w", err)
	}
	for name, m := range map[string]WeightsModel{"words": w.Words, "reader": w.Reader} {
		if m.Support == nil || !slices.Equal(m.Support.Names, FeatureNames(name == "reader")) {
			return nil, fmt.Errorf("read weights of the judge: %s: they were not fitted on its features", name)
		}
		if err := m.Support.Sound(); err != nil {
			return nil, fmt.Errorf("read weights of the judge: %s: %w", name, err)
		}
		if c := m.Cuts; min(c.Entailed, c.Supported, c.Contradicted) <= 0 {
			return nil, fmt.Errorf("read weights of the judge: %s: cuts: one is missing", name)
		}
	}
	return &w, nil
}
