package settings

import (
	"testing"
	"time"
)

func TestParseTerm(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90d": 90 * day, "1d": day, " 2d ": 2 * day, "12h": 12 * time.Hour, "1h30m": 90 * time.Minute, "36500d": 36500 * day,
		"": 0, "d": 0, "0d": 0, "-1d": 0, "1.5d": 0, "36501d": 0, "99999999d": 0, "0s": 0, "1ns": 0, "-1h": 0, "90": 0, "90 d": 0, "1w": 0, "2000000h": 0,
	} {
		got, problem := ParseTerm(text)
		if got != want || (problem == "") != (want > 0) {
			t.Errorf("%q: %v, %s", text, got, problem)
		}
	}
}
