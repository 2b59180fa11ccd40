//go:build unix && !(linux && amd64)

package main

import "errors"

// canTrace says why processes cannot be traced here.
func canTrace(string) string { return "there is no tracer for this system" }

func runTraced(runSpec, func(*sysCall) deed) (runOutcome, error) {
	return runOutcome{}, errors.New("there is no tracer for this system")
}
