package pool

import (
	"errors"
	"os"
	"syscall"
)

// sharingViolation is the error of opening a file that somebody has for himself.
const sharingViolation = syscall.Errno(32)

// lock takes a file for this process, or says errLocked at once. The system gives
// it back when the process ends, however it ends.
func lock(path string) (unlock func() error, err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	// Shared with nobody: opening is locking.
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, errLocked
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() error { return syscall.CloseHandle(handle) }, nil
}
