package stat

import (
	"encoding/json"
	"testing"
)

func TestScore(t *testing.T) {
	var m Trees
	if err := json.Unmarshal([]byte(`{"names":["a"],"base":-2,"trees":[[{"f":0,"at":1,"l":1,"r":2},{"add":1},{"add":4}]]}`), &m); err != nil {
		t.Fatal(err)
	}
	if low, high := m.Score([]float64{0}), m.Score([]float64{2}); low != Sigmoid(-1) || high != Sigmoid(2) {
		t.Errorf("scores %v and %v", low, high)
	}
}
