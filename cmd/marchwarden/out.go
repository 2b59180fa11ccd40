package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// printJSON writes v indented, with text as it is.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print JSON")
	}
	return nil
}

// checkOut makes sure, before any work is done, that the file can be written
// later. It leaves nothing behind.
func checkOut(path string) error {
	if path == "" {
		return nil
	}
	if path == "-" {
		return invalid("--out", "the result goes to stdout without it", "must name a file")
	}
	if err := notFolder(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return invalid("--out", "use a shell redirection instead", fmt.Sprintf("%q is not a regular file", path))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return invalid("--out", "", fmt.Sprintf("%q cannot be written: %s", path, durable.Cause(err)))
	}
	target := linked(path)
	probe, err := tempBeside(target)
	if err != nil {
		hint, what := "give a path in a folder that can be written", fmt.Sprintf("%q", path)
		if target != path {
			what += fmt.Sprintf(" is a link to %q, which", target)
		}
		if errors.Is(err, fs.ErrNotExist) {
			hint = "make the folder " + filepath.Dir(target) + " first"
		}
		return invalid("--out", hint, what+" cannot be written: "+durable.Cause(err))
	}
	return discard(probe)
}

// notFolder refuses a path that is a folder, or that can only be one.
func notFolder(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() || path != "" && os.IsPathSeparator(path[len(path)-1]) {
		return invalid("--out", "give the path of a file", fmt.Sprintf("%q is a folder", path))
	}
	return nil
}

// writeOut writes a file whole or not at all: beside its place, synced, and then
// renamed. An existing file keeps its mode, a link keeps pointing to it.
func writeOut(path string, write func(io.Writer) error) (err error) {
	defer func(path string) {
		var at *fs.PathError
		if errors.As(err, &at) { // of a file that the user did not name
			err = at.Err
		}
		err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write %s", path)
	}(path)
	path = linked(path)
	tmp, err := tempBeside(path)
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
		return errors.Join(err, discard(tmp))
	}
	if err := tmp.Close(); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// linked is where the links at path lead, whether or not a file is there yet.
func linked(path string) string {
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

// tempBeside makes a new file in the folder of path, with the mode that the
// user's umask gives to new files.
func tempBeside(path string) (*os.File, error) {
	for i := 0; ; i++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), i))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) && i < 100 {
			continue
		}
		return f, err
	}
}

func discard(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }
