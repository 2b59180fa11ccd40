//go:build !windows

package pool

import (
	"errors"
	"os"
	"syscall"
)

// lock takes a file for this process, or says errLocked at once. The system gives
// it back when the process ends, however it ends.
func lock(path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file.Close, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		err = errLocked
	}
	return nil, errors.Join(err, file.Close())
}
