//go:build !windows

package main

import "syscall"

// onItsOwn starts a program that Ctrl-C in this terminal does not end.
func onItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
