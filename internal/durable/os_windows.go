package durable

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

// What LockFileEx is told and what it says.
const (
	failAtOnce    = 1
	exclusively   = 2
	lockViolation = syscall.Errno(33)
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// Lock takes a lock on an open file, for this open file alone or shared with
// others that share, and says ErrLocked at once when another has it. Release gives it
// back; so does the end of the process, however that comes.
// Windows keeps others from reading what is locked; so one byte far beyond the end
// is.
func Lock(f *os.File, shared bool) error {
	how := uintptr(failAtOnce | exclusively)
	if shared {
		how = failAtOnce
	}
	at := syscall.Overlapped{OffsetHigh: 1 << 30}
	ok, _, err := lockFileEx.Call(f.Fd(), how, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, lockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return ErrLocked
	}
	return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
}

// unlock does nothing: children inherit no files, so the lock ends when the file is closed.
func unlock(*os.File) {}

// allowed is every mode: Windows has none that would say who can get at a file.
func allowed(fs.FileInfo) fs.FileMode { return fs.ModePerm }
