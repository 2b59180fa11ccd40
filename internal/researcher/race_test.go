//go:build race

package researcher_test

func init() { raceEnabled = true }
