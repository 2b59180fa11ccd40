package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// made are rows whose outcome depends on the first column, on the second against it, and
// not on the third, with a fourth that never varies.
func made(n int, rule func(a, b float64) float64) (x [][]float64, y []float64) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range n {
		a, b := rng.NormFloat64(), 5+2*rng.NormFloat64()
		x = append(x, []float64{a, b, rng.NormFloat64(), 3})
		y = append(y, number(rng.Float64() < sigmoid(rule(a, b))))
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

func TestLogistic(t *testing.T) {
	x, y := made(2000, func(a, b float64) float64 { return 2*a - 0.5*(b-5) })
	m := FitLogistic(x, y, columns, 1e-4)
	close(t, "weight of a", m.Features[0].Weight, 2, 0.3)
	close(t, "weight of b", m.Features[1].Weight, -1, 0.3)
	close(t, "weight of noise", m.Features[2].Weight, 0, 0.15)
	close(t, "weight of a constant", m.Features[3].Weight, 0, 1e-6)
	if strong := FitLogistic(x, y, columns, 10); math.Abs(strong.Features[0].Weight) > 0.1 {
		t.Errorf("a strong l2 leaves the weight %v", strong.Features[0].Weight)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseLogistic(b)
	if err != nil || !reflect.DeepEqual(*again, m) {
		t.Fatalf("read back: %v %+v", err, again)
	}
	close(t, "a missing value is average", m.Score(x[0][:2]), m.Score([]float64{x[0][0], x[0][1], m.Features[2].Mean, 3}), 1e-12)
	for _, bad := range []string{`{`, `{"features":[]}`, `{"features":[{"name":"a","scale":0}]}`, `{"features":[{"name":"","scale":1}]}`,
		`{"features":[{"name":"a","scale":1},{"name":"a","scale":1}]}`} {
		if _, err := ParseLogistic([]byte(bad)); err == nil {
			t.Errorf("%s is taken for a model", bad)
		}
	}
}

func TestTrees(t *testing.T) {
	// What no straight line can tell apart: the outcome is the sign of a product.
	x, y := made(3000, func(a, b float64) float64 { return 3 * a * (b - 5) })
	line, trees := FitLogistic(x, y, columns, 1e-4), FitTrees(x, y, columns, TreeOptions{Seed: 1})
	xt, yt := x[:1000], y[:1000]
	if l, s := area(line.Score, xt, yt), area(trees.Score, xt, yt); l > 0.6 || s < 0.8 {
		t.Errorf("AUROC of the line %.3f, of the trees %.3f", l, s)
	}
	if again := FitTrees(x, y, columns, TreeOptions{Seed: 1}); !reflect.DeepEqual(again, trees) {
		t.Error("the same rows give other trees")
	}
	b, err := json.Marshal(trees)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTrees(b)
	if err != nil || !reflect.DeepEqual(*again, trees) {
		t.Fatalf("read back: %v", err)
	}
	for name, bad := range map[string]string{
		"a circle":     `{"names":["a"],"trees":[[{"f":0,"l":0,"r":1},{"add":1}]]}`,
		"beyond":       `{"names":["a"],"trees":[[{"f":0,"l":1,"r":2},{"add":1}]]}`,
		"no feature":   `{"names":["a"],"trees":[[{"f":1,"l":1,"r":2},{"add":1},{"add":2}]]}`,
		"an empty one": `{"names":["a"],"trees":[[]]}`,
		"no JSON":      `[`,
	} {
		if _, err := ParseTrees([]byte(bad)); err == nil || !strings.Contains(err.Error(), "read trees") {
			t.Errorf("%s: %v", name, err)
		}
	}
	none := FitTrees(nil, nil, columns, TreeOptions{})
	close(t, "without rows", none.Score([]float64{1, 2, 3, 4}), 0.5, 0)
}
