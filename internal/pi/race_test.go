//go:build race

package pi_test

func init() { raceEnabled = true }
