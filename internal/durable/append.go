package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// AppendLine appends a line, which ends with its newline, by one write to the file at
// path and syncs it. The file (mode 0600) and its folder (0700) are made when missing.
// Several processes may append to one file without a lock. A stump that a crash left
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
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	torn, err := endsTorn(f, info)
	if err != nil {
		return err
	}
	if torn {
		// Another process may be in the middle of its write. Then this makes a
		// blank line.
		line = append([]byte{'\n'}, line...)
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

// endsTorn reports whether the last byte of a file is no newline.
func endsTorn(f *os.File, info os.FileInfo) (bool, error) {
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}
