package stat

import (
	"encoding/json"
	"testing"
)

// Trees that lead nowhere are told from those that can score.
func TestSound(t *testing.T) {
	var good Trees
	if err := json.Unmarshal([]byte(`{"names":["a"],"base":-2,"trees":[[{"f":0,"at":1,"l":1,"r":2},{"add":1},{"add":4}]]}`), &good); err != nil || good.Sound() != nil {
		t.Fatalf("%v, %v", err, good.Sound())
	}
	if low, high := good.Score([]float64{0}), good.Score([]float64{2}); low != Sigmoid(-1) || high != Sigmoid(2) {
		t.Errorf("scores %v and %v", low, high)
	}
	for name, bad := range map[string]string{
		"a circle":     `{"names":["a"],"trees":[[{"f":0,"l":0,"r":1},{"add":1}]]}`,
		"beyond":       `{"names":["a"],"trees":[[{"f":0,"l":1,"r":2},{"add":1}]]}`,
		"no feature":   `{"names":["a"],"trees":[[{"f":1,"l":1,"r":2},{"add":1},{"add":2}]]}`,
		"an empty one": `{"names":["a"],"trees":[[]]}`,
	} {
		var m Trees
		if err := json.Unmarshal([]byte(bad), &m); err != nil || m.Sound() == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
