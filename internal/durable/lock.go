package durable

import (
	"errors"
	"os"
	"time"
)

// ErrLocked says that somebody else has a lock.
var ErrLocked = errors.New("it is locked by another process")

// How long LockFile waits for others, each of which needs a few milliseconds.
const lockLimit = 5 * time.Second

// LockFile takes the file at path, which it makes (mode 0600) when it is missing
// and which stays, for the caller alone. It waits a few seconds for others, as Hold
// does. The lock ends with unlock or with the process.
func LockFile(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := Hold(f, lockLimit); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// Hold takes the lock of an open file for the caller alone. It waits for others up to
// a limit and then says ErrLocked. Where a file system has no locks there is none, and
// nobody is kept out.
func Hold(f *os.File, limit time.Duration) error {
	const pause = 5 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		err := Lock(f, false)
		switch {
		case !errors.Is(err, ErrLocked):
			return nil
		case waited >= limit:
			return err
		}
		time.Sleep(pause)
	}
}
