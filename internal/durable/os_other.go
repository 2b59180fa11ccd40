//go:build !windows

package durable

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Lock takes an advisory lock on an open file, for this open file alone or shared
// with others that share, and says ErrLocked at once when another has it. Release
// gives it back; so does the end of the process, however that comes.
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

// unlock gives the lock of an open file back at once. To close the file is not enough: a child
// that is being started holds every open file until its program begins.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// allowed is the most that the mode of a file with a secret may be. What root hands to a
// process that is not root, as orchestrators mount their secrets, is read by its group,
// and the process cannot change that.
func allowed(info fs.FileInfo) fs.FileMode {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && mounted(s.Uid, os.Geteuid()) {
		return 0o740
	}
	return 0o700
}

// mounted reports whether a file of an owner was handed to a user by root.
func mounted(owner uint32, user int) bool { return owner == 0 && user != 0 }
