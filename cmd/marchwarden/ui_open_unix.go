//go:build !windows

package main

import (
	"os/signal"
	"syscall"
)

// onItsOwn starts a program that Ctrl-C in this terminal does not end.
func onItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// readInBackground has reading from a terminal fail while the program is in the background, as
// after 'marchwarden ui &'. Unasked, the system would stop all of it for that.
func readInBackground() { signal.Ignore(syscall.SIGTTIN) }
