package metric_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
	"pgregory.net/rapid"
)

// forecasts reads the games of one league: what was said of the first team, and
// whether it won.
func forecasts(t *testing.T, league string) (p []float64, y []bool) {
	t.Helper()
	file := datatest.Files(t, "calibration/538.tar.gz", func(name string) bool { return name == "./"+league || name == league })[0]
	rows, err := csv.NewReader(bytes.NewReader(file.Data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	said, came := slices.Index(rows[0], "prob1"), slices.Index(rows[0], "prob1_outcome")
	for _, r := range rows[1:] {
		v, err := strconv.ParseFloat(r[said], 64)
		if err != nil {
			t.Fatal(err)
		}
		p, y = append(p, v), append(y, r[came] == "1" || r[came] == "1.0")
	}
	return p, y
}

// TestPublishedForecasts holds the measures against figures known for thousands of
// real forecasts.
func TestPublishedForecasts(t *testing.T) {
	for _, tt := range []struct {
		league     string
		ece, brier float64
	}{
		{"nba_games.csv", 0.048, 0.215},
		{"mlb_games.csv", 0.007, math.NaN()},
	} {
		p, y := forecasts(t, tt.league)
		if got := metric.ECE(p, y, 10); math.Abs(got-tt.ece) > 0.0006 {
			t.Errorf("%s: ECE %.4f, known %.3f", tt.league, got, tt.ece)
		}
		if got := metric.Brier(p, y); !math.IsNaN(tt.brier) && math.Abs(got-tt.brier) > 0.0006 {
			t.Errorf("%s: Brier %.4f, known %.3f", tt.league, got, tt.brier)
		}
		// What is fitted on one half must be better calibrated than what was said, on
		// the other, and never worse than a little.
		half := len(p) / 2
		before := metric.ECE(p[half:], y[half:], 10)
		for name, at := range map[string]func(float64) float64{
			"isotonic": metric.FitIsotonic(p[:half], y[:half]).At, "Platt": metric.FitPlatt(p[:half], y[:half]).At,
		} {
			mapped := make([]float64, 0, half)
			for _, v := range p[half:] {
				mapped = append(mapped, at(v))
			}
			after := metric.ECE(mapped, y[half:], 10)
			t.Logf("%s: ECE %.4f, after %s %.4f", tt.league, before, name, after)
			if after > before+0.015 {
				t.Errorf("%s: %s makes the calibration worse: %.4f after %.4f", tt.league, name, after, before)
			}
		}
	}
}

func TestBins(t *testing.T) {
	p, y := []float64{0, 0.1, 0.1000001, 0.95, 1}, []bool{false, true, true, true, false}
	bins := metric.Bins(p, y, 10)
	if len(bins) != 10 || bins[0].N != 2 || bins[1].N != 1 || bins[9].N != 2 {
		t.Fatalf("bins %+v", bins)
	}
	if bins[9].True != 0.5 || math.Abs(bins[9].Said-0.975) > 1e-12 {
		t.Errorf("last bin %+v", bins[9])
	}
	want := (2*math.Abs(0.05-0.5) + math.Abs(0.1000001-1) + 2*math.Abs(0.975-0.5)) / 5
	if got := metric.ECE(p, y, 10); math.Abs(got-want) > 1e-9 {
		t.Errorf("ECE %v, want %v", got, want)
	}
	if got := metric.Brier([]float64{1, 0.5}, []bool{false, true}); got != 0.625 {
		t.Errorf("Brier %v", got)
	}
}

// TestIsotonicIsBest holds the fit against the formula of the best curve that never
// falls: at each point the greatest, over starts before it, of the least mean, over ends
// after it.
func TestIsotonicIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(t, "n")
		x, y := make([]float64, n), make([]bool, n)
		for i := range x {
			x[i], y[i] = float64(i), rapid.Bool().Draw(t, "y")
		}
		fit := metric.FitIsotonic(x, y)
		for i := range x {
			best := math.Inf(-1)
			for j := 0; j <= i; j++ {
				least := math.Inf(1)
				for k := i; k < n; k++ {
					sum := 0.0
					for _, v := range y[j : k+1] {
						if v {
							sum++
						}
					}
					least = min(least, sum/float64(k-j+1))
				}
				best = max(best, least)
			}
			if math.Abs(fit.At(x[i])-best) > 1e-9 {
				t.Fatalf("at %v: %v, want %v of %v", x[i], fit.At(x[i]), best, y)
			}
		}
		if last := fit.At(1e9); last != fit.At(x[n-1]) {
			t.Fatalf("beyond the end %v, at the end %v", last, fit.At(x[n-1]))
		}
	})
}

func TestIsotonicTies(t *testing.T) {
	fit := metric.FitIsotonic([]float64{1, 0, 1, 0, 2}, []bool{true, false, false, false, true})
	for x, want := range map[float64]float64{0: 0, 1: 0.5, 2: 1, 0.5: 0.25, -3: 0, 7: 1} {
		if got := fit.At(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %v: %v, want %v", x, got, want)
		}
	}
	if got := (stat.Isotonic{}).At(0.3); got != 0.3 {
		t.Errorf("no curve: %v", got)
	}
}

// TestPlattFindsTheSigmoid fits outcomes that come from a known one.
func TestPlattFindsTheSigmoid(t *testing.T) {
	truth := stat.Platt{A: -4, B: 1}
	var x []float64
	var y []bool
	for i := range 400 {
		v := float64(i%40) / 20
		x, y = append(x, v), append(y, float64(i/40)+0.5 < 10*truth.At(v))
	}
	got := metric.FitPlatt(x, y)
	if math.Abs(got.A-truth.A) > 0.5 || math.Abs(got.B-truth.B) > 0.3 {
		t.Errorf("fitted %+v, made by %+v", got, truth)
	}
	if p := metric.FitPlatt(nil, nil); p.At(1) != 0.5 {
		t.Errorf("without rows %v", p.At(1))
	}
}
