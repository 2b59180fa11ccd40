package squadtest

import "testing"

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
	} {
		if got := AUROC(tt.pos, tt.neg); got != tt.want {
			t.Errorf("AUROC(%v, %v) = %v, want %v", tt.pos, tt.neg, got, tt.want)
		}
	}
}
