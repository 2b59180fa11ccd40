package client

import "syscall"

// dieWithParent has the kernel kill the program when this process dies, however it does.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
