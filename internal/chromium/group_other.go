//go:build !unix

package chromium

import "os/exec"

// Supported tells whether a process can be given files besides the standard three.
const Supported = false

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// killGroup kills the browser; its children end when they lose it. A browser that is gone already is no error.
func killGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
}
