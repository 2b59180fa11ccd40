package chromium

import (
	"os/exec"
	"syscall"
)

// Supported tells whether a process can be given files besides the standard three.
const Supported = true

// ownGroup puts the browser into a process group of its own, and has the kernel kill it should this process die without a chance to do so. Its children see their
// channel to it close, and end.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills the browser with all its children. A group that is gone already is no error, and no other can have its number yet: they are given out in turn.
func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
