// Package durable makes new names in a folder survive a power loss. Writing and
// syncing a file makes its bytes durable; the name it was given, or renamed to,
// is an entry of the folder and has to be synced on its own. It also keeps
// processes apart that would write the same file, by advisory locks, and has files
// to which lines with checksums are appended, and files with secrets that only their owner
// may read (private.go), whose errors name a file and never quote it. What the lines and files
// say is their writers'.
package durable

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
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

// AppendLine appends a line, which ends with its newline, by one write to the file at
// path and syncs it. The file (mode 0600) and its folder (0700) are made when missing.
// Several processes may append to one file: each locks it. A stump that a crash left
// at the end of the file gets a newline of its own first, so that it costs no more than
// itself; readers pass over it and over blank lines.
func AppendLine(path string, line []byte) (err error) {
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, Release(f)) }()
	if err := Hold(f, lockLimit); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && info.Size() > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if info.Size() == 0 { // its name first: a line that is synced must not be lost with the file
		if err := SyncDir(os.Open(filepath.Dir(path))); err != nil {
			return err
		}
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Sync()
}

// Replace puts data under name in a folder as a whole: written under temp first, which
// must not exist, with mode 0600, synced and renamed, so that no crash leaves a part of
// it under name. If that fails the whole file is given up, and temp removed if it can be. To
// keep the name over a power loss, sync the folder then.
func Replace(root *os.Root, name, temp string, data []byte) error {
	return replace(root, name, temp, 0o600, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

func replace(root *os.Root, name, temp string, mode fs.FileMode, write func(*os.File) error) error {
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync() // not tried again if it fails: the kernel may have dropped what it could not write
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp) // what is wrong is said already
	}
	return err
}

// ReplaceFile replaces the file at path, and keeps that over a power loss. The caller has a lock
// that every writer of the file takes: the name beside it, path and ".new", is one for all, so that
// a crash leaves no more than one.
func ReplaceFile(path string, data []byte) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(path)
	temp := name + ".new"
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // a crash left it
		return err
	}
	if err := Replace(root, name, temp, data); err != nil {
		return err
	}
	return SyncDir(root.Open("."))
}

// WriteWhole writes a file whole or not at all: beside its place, synced, and then
// renamed. An existing file keeps its mode, a link keeps pointing to it.
func WriteWhole(path string, write func(io.Writer) error) error {
	path = Linked(path)
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(path)
	return replace(root, name, "."+name+"."+rand.Text()+".tmp", 0o666, func(f *os.File) error {
		buf := bufio.NewWriter(f)
		if err := write(buf); err != nil { // else flushing would only say it again
			return err
		}
		if info, err := os.Stat(path); err == nil {
			return errors.Join(buf.Flush(), f.Chmod(info.Mode().Perm()))
		}
		return buf.Flush()
	})
}

// Linked is where the links at path lead, whether or not a file is there yet.
func Linked(path string) string {
	const most = 40 // as the kernel; a loop was an error before
	for range most {
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			// Not filepath.Join: a ".." after a linked folder is that folder's parent.
			target = filepath.Dir(path) + string(filepath.Separator) + target
		}
		path = target
	}
	return path
}

// Discard closes and removes a file.
func Discard(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// lockLimit is how long others are waited for, who need milliseconds.
const lockLimit = 5 * time.Second

// ErrLocked says that another process has a lock.
var ErrLocked = errors.New("it is locked by another process")

// LockFile takes the file at path for the caller alone, as Own does. It waits a few seconds
// for others, as Hold does. The lock ends with unlock or with the process, and the file
// stays.
func LockFile(path string) (unlock func() error, err error) {
	f, err := Own(path, func(f *os.File) error { return Hold(f, lockLimit) })
	if err != nil {
		return nil, err
	}
	return func() error { return Release(f) }, nil
}

// Release gives the lock of an open file back and closes the file.
func Release(f *os.File) error {
	unlock(f)
	return f.Close()
}

// Own opens the file at path, which it makes (mode 0600) when it is missing, with its
// folder, and takes it by lock, such as Lock or Hold. It is the file of that name also
// when it is locked: one that its last owner removed or replaced meanwhile is none. What
// lock says is returned. The lock ends by Release, or with the process.
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
	if err := Wait(context.Background(), f, false, limit); errors.Is(err, ErrLocked) {
		return err
	}
	return nil
}

// Wait is Lock, and waits for others up to a limit, or until ctx ends. On a file system without locks
// that is its error.
func Wait(ctx context.Context, f *os.File, shared bool, limit time.Duration) error {
	const pause = 3 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		err := Lock(f, shared)
		switch {
		case !errors.Is(err, ErrLocked), waited >= limit:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		time.Sleep(pause)
	}
}
