// Package durable makes new names in a folder survive a power loss. Writing and
// syncing a file makes its bytes durable; the name it was given, or renamed to,
// is an entry of the folder and has to be synced on its own. It also keeps
// processes apart that would write the same file, by advisory locks, and has files
// to which lines with checksums are appended, and files with secrets that only their owner
// may read (private.go), whose errors name a file and never quote it. What the lines and files
// say is their writers'.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// SyncDir syncs an opened folder and closes it. It takes the two results of
// Open, so that callers can pass them on: SyncDir(root.Open(".")).
func SyncDir(d *os.File, err error) error {
	if err != nil {
		return err
	}
	// Windows has no way to flush a directory; NTFS journals renames itself.
	if runtime.GOOS != "windows" {
		err = d.Sync()
	}
	return errors.Join(err, d.Close())
}

// MakeDir makes a folder (mode 0700), with its parents, when it is missing, and
// syncs the names of all that it made.
func MakeDir(path string) error {
	info, err := os.Stat(path)
	switch parent := filepath.Dir(path); {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist) || parent == path:
		return err
	default:
		if err := MakeDir(parent); err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// A parent that may not be read was not made by us or our like.
		if err := SyncDir(os.Open(parent)); !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	}
}

// OpenRegular opens a file for reading. Anything else, such as a named pipe that
// has no writer, is an error at once: opening it could block for ever.
func OpenRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is not a regular file")}
	}
	return os.Open(path)
}

// Cause is the reason of a failure without the path, which the message has.
func Cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
