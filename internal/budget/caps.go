package budget

import (
	"fmt"
	"strings"
	"time"
)

// What can run out, in the words that results and traces have for it. LimitOf reads
// them back, those of older traces included.

// TokenCap names a budget of n tokens.
func TokenCap(n int) string { return fmt.Sprintf("token budget of %d", n) }

// IterationCap names a cap of n iterations.
func IterationCap(n int) string { return fmt.Sprintf("cap of %d iterations", n) }

// SourceCap names a cap of n documents.
func SourceCap(n int) string { return fmt.Sprintf("cap of %d sources", n) }

// TryCap names the cap of n tries to read documents, which comes of the cap of
// documents.
func TryCap(n int) string { return fmt.Sprintf("cap of %d tries to read documents", n) }

// WallCap names a wall time.
func WallCap(d time.Duration) string { return fmt.Sprintf("wall time of %s", d) }

// TimeFor names the part of the wall time that something may take.
func TimeFor(what string) string { return "time for " + what }

// Limit is one of the limits of a run.
type Limit string

// The limits.
const (
	Tokens     Limit = "tokens"
	Iterations Limit = "iterations"
	Sources    Limit = "sources"
	Wall       Limit = "wall"
)

// LimitOf is the limit of which there would have to be more for what ran out; "" where
// it is none of them, such as the patience of the caller.
func LimitOf(what string) Limit {
	has := func(begin, end string) bool { return strings.HasPrefix(what, begin) && strings.HasSuffix(what, end) }
	switch {
	case has("token budget of ", ""):
		return Tokens
	case has("cap of ", " iterations"):
		return Iterations
	case has("cap of ", " sources"), has("cap of ", " tries to read documents"):
		return Sources
	case has("wall time of ", ""), has("time for ", ""):
		return Wall
	}
	return ""
}
