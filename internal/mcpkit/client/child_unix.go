//go:build unix

package client

import (
	"os/exec"
	"syscall"
)

const (
	term = syscall.SIGTERM
	kill = syscall.SIGKILL
)

// ownGroup gives the program a process group of its own: it is ended as a whole, and by us alone.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// signalGroup tells the program and its children. A group that is gone is no error.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }
