package main

import "syscall"

// onItsOwn starts a program that Ctrl-C in this terminal does not end.
func onItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
