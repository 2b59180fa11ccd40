package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked says that another process has a lock.
var ErrLocked = errors.New("it is locked by another process")

// LockFile takes the file at path for the caller alone, as Own does. It waits a few seconds
// for others, as Hold does. The lock ends with unlock or with the process, and the file
// stays.
func LockFile(path string) (unlock func() error, err error) {
	f, err := Own(path, func(f *os.File) error { return Hold(f, 5*time.Second) }) // others need milliseconds
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}

// Own opens the file at path, which it makes (mode 0600) when it is missing, with its
// folder, and takes it by lock, such as Lock or Hold. It is the file of that name also
// when it is locked: one that its last owner removed or replaced meanwhile is none. What
// lock says is returned. The lock ends when the file is closed, or with the process.
func Own(path string, lock func(*os.File) error) (*os.File, error) {
	for made := false; ; {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) && !made { // else it is a link that leads nowhere
			if err := MakeDir(filepath.Dir(path)); err != nil {
				return nil, err
			}
			made = true
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		here, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(here, there) {
			return f, nil
		}
		_ = f.Close() // nothing was written
	}
}

// Hold takes the lock of an open file for the caller alone. It waits for others up to
// a limit and then says ErrLocked. On a file system without locks there is none, and no process is
// kept out.
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
