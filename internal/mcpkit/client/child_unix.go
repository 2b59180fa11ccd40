//go:build unix

package client

import (
	"os"
	"os/exec"
	"syscall"
)

const (
	term = syscall.SIGTERM
	kill = syscall.SIGKILL
)

// ownGroup puts the program into a process group of its own, so that an interrupt
// at the terminal is ours to handle and all of it can be ended together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// signalGroup tells the program and its children. A group that is gone is no
// error, and no other can have its number yet: they are given out in turn.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }

func terminate(p *os.Process) error { return p.Signal(term) }
