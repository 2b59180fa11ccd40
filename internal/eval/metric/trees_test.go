package metric

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

// made are rows whose outcome depends on the first column, on the second against it, and
// not on the third, with a fourth that never varies.
func made(n int, rule func(a, b float64) float64) (x [][]float64, y []float64) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range n {
		a, b := rng.NormFloat64(), 5+2*rng.NormFloat64()
		x = append(x, []float64{a, b, rng.NormFloat64(), 3})
		y = append(y, number(rng.Float64() < stat.Sigmoid(rule(a, b))))
	}
	return x, y
}

var columns = []string{"a", "b", "noise", "constant"}

func area(score func([]float64) float64, x [][]float64, y []float64) float64 {
	var pos, neg []float64
	for i := range x {
		if y[i] > 0.5 {
			pos = append(pos, score(x[i]))
		} else {
			neg = append(neg, score(x[i]))
		}
	}
	return AUROC(pos, neg)
}

func TestTrees(t *testing.T) {
	// What no straight line can tell apart: the outcome is the sign of a product.
	x, y := made(3000, func(a, b float64) float64 { return 3 * a * (b - 5) })
	trees := FitTrees(x, y, columns, TreeOptions{Seed: 1})
	if s := area(trees.Score, x[:1000], y[:1000]); s < 0.8 {
		t.Errorf("AUROC of the trees %.3f", s)
	}
	if again := FitTrees(x, y, columns, TreeOptions{Seed: 1}); !reflect.DeepEqual(again, trees) {
		t.Error("the same rows give other trees")
	}
	b, err := json.Marshal(trees)
	if err != nil {
		t.Fatal(err)
	}
	var again stat.Trees
	if err := json.Unmarshal(b, &again); err != nil || !reflect.DeepEqual(again, trees) {
		t.Fatalf("read back: %v", err)
	}
	none := FitTrees(nil, nil, columns, TreeOptions{})
	close(t, "without rows", none.Score([]float64{1, 2, 3, 4}), 0.5, 0)
}
