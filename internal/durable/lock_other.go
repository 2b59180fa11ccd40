//go:build !windows

package durable

import (
	"errors"
	"os"
	"syscall"
)

// Lock takes an advisory lock on an open file, for this open file alone or shared
// with others that share, and says ErrLocked at once when another has it. It is
// given back when the file is closed, also by the end of the process, however that
// comes.
func Lock(f *os.File, shared bool) error {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		case err != nil:
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		default:
			return nil
		}
	}
}
