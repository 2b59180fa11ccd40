//go:build race

package local

// The race detector slows SQLite down some twentyfold.
func init() { manyFiles = 1000 }
