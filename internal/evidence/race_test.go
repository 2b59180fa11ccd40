//go:build race

package evidence

func init() { raceEnabled = true }
