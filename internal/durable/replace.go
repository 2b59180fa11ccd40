package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace puts data under name in a folder as a whole: written under temp first, which
// must not exist, with mode 0600, synced and renamed, so that no crash leaves a part of
// it under name. A failed sync is not tried again, because the kernel may have dropped
// what it could not write: the whole file is given up, and temp removed if it can be. To
// keep the name over a power loss, sync the folder then.
func Replace(root *os.Root, name, temp string, data []byte) error {
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
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
