package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// CheckOut makes sure, before any work is done, that the file of --out can be written
// later. It leaves nothing behind.
func CheckOut(path string) error {
	if path == "" {
		return nil
	}
	if path == "-" {
		return Invalid("--out", "the result goes to stdout without it", "must name a file")
	}
	if err := NotFolder(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return Invalid("--out", "use a shell redirection instead", fmt.Sprintf("%q is not a regular file", path))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Invalid("--out", "", fmt.Sprintf("%q cannot be written: %s", path, durable.Cause(err)))
	}
	target := durable.Linked(path)
	probe, err := os.CreateTemp(filepath.Dir(target), ".marchwarden-*.tmp")
	if err != nil {
		hint, what := "give a path in a folder that can be written", fmt.Sprintf("%q", path)
		if target != path {
			what += fmt.Sprintf(" is a link to %q, which", target)
		}
		if errors.Is(err, fs.ErrNotExist) {
			hint = "make the folder " + filepath.Dir(target) + " first"
		}
		return Invalid("--out", hint, what+" cannot be written: "+durable.Cause(err))
	}
	return durable.Discard(probe)
}

// NotFolder refuses a path that is a folder, or that can only be one.
func NotFolder(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() || path != "" && os.IsPathSeparator(path[len(path)-1]) {
		return Invalid("--out", "give the path of a file", fmt.Sprintf("%q is a folder", path))
	}
	return nil
}

// WriteOut writes a file at once or not at all.
func WriteOut(path string, write func(io.Writer) error) error {
	err := durable.WriteWhole(path, write)
	var at *fs.PathError
	if errors.As(err, &at) { // of a file that the user did not name
		err = at.Err
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write %s", path)
}

// ReadLimited reads everything, or fails when it is more than most bytes.
func ReadLimited(r io.Reader, most int64, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", what)
	}
	if int64(len(data)) > most {
		return nil, Invalid(what, "", fmt.Sprintf("must be at most %d bytes", most))
	}
	return data, nil
}

// Invalid makes the error of an argument, flag or setting that is wrong.
func Invalid(field, hint, message string) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: message, Hint: hint}
}

// Renamed is an error with another name for the field that it is about, such as that of a flag;
// a field that is not in names keeps its own.
func Renamed(err error, names map[string]string) error {
	var e *marchwarden.Error
	if !errors.As(err, &e) || names[e.Field] == "" {
		return err
	}
	named := *e
	named.Field = names[e.Field]
	return &named
}
