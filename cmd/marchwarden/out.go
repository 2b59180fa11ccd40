package main

import (
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
	target := durable.Linked(path)
	probe, err := durable.TempBeside(target)
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
	return durable.Discard(probe)
}

// notFolder refuses a path that is a folder, or that can only be one.
func notFolder(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() || path != "" && os.IsPathSeparator(path[len(path)-1]) {
		return invalid("--out", "give the path of a file", fmt.Sprintf("%q is a folder", path))
	}
	return nil
}

// writeOut writes a file whole or not at all.
func writeOut(path string, write func(io.Writer) error) error {
	err := durable.WriteWhole(path, write)
	var at *fs.PathError
	if errors.As(err, &at) { // of a file that the user did not name
		err = at.Err
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write %s", path)
}
