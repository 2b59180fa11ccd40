//go:build race

package bench

// The race detector slows one thing down more than another: nothing is compared
// under it.
func init() { raced = true }
