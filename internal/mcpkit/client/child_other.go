//go:build !unix

package client

import "os/exec"

const (
	term = iota
	kill
)

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// signalGroup kills the program: there are no signals.
func signalGroup(cmd *exec.Cmd, _ int) { _ = cmd.Process.Kill() }
