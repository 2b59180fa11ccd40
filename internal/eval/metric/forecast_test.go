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
