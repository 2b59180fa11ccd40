package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteWhole writes a file whole or not at all: beside its place, synced, and then
// renamed. An existing file keeps its mode, a link keeps pointing to it.
func WriteWhole(path string, write func(io.Writer) error) (err error) {
	path = Linked(path)
	tmp, err := TempBeside(path)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(tmp)
	if err = write(buf); err == nil { // else flushing would only say it again
		err = buf.Flush()
	}
	if info, statErr := os.Stat(path); err == nil && statErr == nil {
		err = tmp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err != nil {
		return errors.Join(err, Discard(tmp))
	}
	if err := tmp.Close(); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
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

// TempBeside makes a new file in the folder of path, with the mode that the
// user's umask gives to new files.
func TempBeside(path string) (*os.File, error) {
	for i := 0; ; i++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), i))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) && i < 100 {
			continue
		}
		return f, err
	}
}

// Discard closes and removes a file.
func Discard(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }
