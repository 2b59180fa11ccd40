package metric

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func close(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > within {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestRankings(t *testing.T) {
	ranked := []string{"a", "x", "b", "y"}
	rel := map[string]bool{"a": true, "b": true, "c": true, "y": false}
	// a at 1, b at 3: (1 + 2/3) / 3
	close(t, "AveragePrecision", AveragePrecision(ranked, rel), (1+2.0/3)/3, 1e-12)
	close(t, "RecallAt 2", RecallAt(ranked, rel, 2), 1.0/3, 1e-12)
	close(t, "RecallAt 9", RecallAt(ranked, rel, 9), 2.0/3, 1e-12)
	gain := map[string]float64{"a": 1, "b": 2, "c": 1}
	dcg := 1 + 3/math.Log2(4)
	ideal := 3 + 1/math.Log2(3) + 1/math.Log2(4)
	close(t, "NDCG", NDCG(ranked, gain, 10), dcg/ideal, 1e-12)
	close(t, "NDCG at 1", NDCG(ranked, gain, 1), 1.0/3, 1e-12)
	for _, v := range []float64{NDCG(nil, nil, 10), AveragePrecision(nil, nil), RecallAt(ranked, nil, 5)} {
		close(t, "nothing relevant", v, 0, 0)
	}
}

func TestAUROC(t *testing.T) {
	for _, tt := range []struct {
		pos, neg []float64
		want     float64
	}{
		{[]float64{3, 4}, []float64{1, 2}, 1},
		{[]float64{1, 2}, []float64{3, 4}, 0},
		{[]float64{1, 1}, []float64{1, 1}, 0.5},
		{[]float64{1, 3}, []float64{2}, 0.5},
		{[]float64{2, 3}, []float64{2, 1}, 0.875},
		{nil, []float64{1}, 0},
	} {
		close(t, "AUROC", AUROC(tt.pos, tt.neg), tt.want, 1e-12)
	}
}

func TestClasses(t *testing.T) {
	p, r, f := PrecisionRecall([]bool{true, true, false, false}, []bool{true, false, true, false})
	close(t, "precision", p, 0.5, 0)
	close(t, "recall", r, 0.5, 0)
	close(t, "F1", f, 0.5, 0)
	// class 0: P 1, R 1/2, F 2/3; class 1: P 2/3, R 1, F 4/5; class 2 never occurs
	close(t, "MacroF1", MacroF1([]int{0, 0, 1, 1}, []int{0, 1, 1, 1}, 3), (2.0/3+4.0/5)/2, 1e-12)
}

func TestRiskCoverage(t *testing.T) {
	curve, area := RiskCoverage([]float64{.9, .5, .5, .1}, []bool{true, false, true, false})
	want := []Point{{.25, 0}, {.75, 1.0 / 3}, {1, .5}}
	if len(curve) != len(want) {
		t.Fatalf("curve %v, want %v", curve, want)
	}
	for i := range want {
		close(t, "coverage", curve[i].Coverage, want[i].Coverage, 1e-12)
		close(t, "risk", curve[i].Risk, want[i].Risk, 1e-12)
	}
	close(t, "area", area, .5/3+.25*.5, 1e-12)
}

func TestFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.SliceOfN(rapid.StringMatching(`[a-h]`), 1, 80).Draw(t, "groups")
		seed := rapid.Uint64().Draw(t, "seed")
		folds := Folds(groups, 3, seed)
		of, sizes := map[string]int{}, make([]int, 3)
		largest := map[string]int{}
		for i, g := range groups {
			if f, ok := of[g]; ok && f != folds[i] {
				t.Fatalf("group %s is in two folds", g)
			}
			of[g] = folds[i]
			sizes[folds[i]]++
			largest[g]++
		}
		most := 0
		for _, n := range largest {
			most = max(most, n)
		}
		if lo, hi := min(sizes[0], sizes[1], sizes[2]), max(sizes[0], sizes[1], sizes[2]); hi-lo > most {
			t.Fatalf("folds of %v rows, though no group is larger than %d", sizes, most)
		}
	})
}

func TestBootstrap(t *testing.T) {
	var a, better, noise []float64
	for i := range 200 {
		a = append(a, float64(i%2))
		better = append(better, math.Min(1, float64(i%2)+float64(i%5/4)))
		noise = append(noise, float64((i/2)%2))
	}
	d := Bootstrap(a, better, 2000, 1)
	close(t, "planted difference", d.Mean, 0.1, 1e-9)
	if d.P > 0.01 || d.Low <= 0 || d.High < d.Mean {
		t.Errorf("a difference of 20 in 200 is not seen: %+v", d)
	}
	if d := Bootstrap(a, noise, 2000, 1); d.P < 0.2 || d.Low > 0 || d.High < 0 {
		t.Errorf("noise is taken for a difference: %+v", d)
	}
	if d := Bootstrap(nil, nil, 100, 1); d.P != 1 {
		t.Errorf("nothing to compare: %+v", d)
	}
}
