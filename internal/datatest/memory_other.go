//go:build !linux

package datatest

// memory is a folder in memory in which programs can be run, or "" for none.
func memory() string { return "" }
