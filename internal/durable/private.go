package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// ReadPrivate is what is in a file that only its owner can read and write, or, if root owns it
// and this process is not root, a group can read, too. What is how errors call it. It
// never waits, as for a pipe. The error of a missing file is fs.ErrNotExist; CodeDenied
// if others can get at it, CodeCorrupt if it has more bytes than most, CodeUnavailable if
// it cannot be read.
func ReadPrivate(path, what string, most int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the %s", what)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the %s", what)
	}
	if mode := info.Mode().Perm(); mode&^allowed(info) != 0 {
		return nil, &marchwarden.Error{Code: marchwarden.CodeDenied, Hint: "run: chmod 600 " + path,
			Message: fmt.Sprintf("the %s %s has mode %#o: others than its owner can get at it", what, path, mode)}
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the %s", what)
	}
	if int64(len(text)) > most {
		return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the %s %s is larger than %d bytes", what, path, most)
	}
	return text, nil
}

var errNotJSON = errors.New("it is not JSON with the fields that it must have")

// DecodeStrict puts the one JSON value of a text into what into points to. A field that is not
// known is an error: what a later version says there may be that something is not good
// any more.
func DecodeStrict(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return errNotJSON
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	return nil
}

// EditPrivate replaces what is in a file by what edit makes of it, while no other process does.
// A file that does not exist is made, with its folder; links to one stay links. What is
// there now is on the disk when EditPrivate returns. The error of edit is that of EditPrivate, and the
// file stays as it is; the others are those of ReadPrivate, and CodeUnavailable if the file
// cannot be locked or written.
func EditPrivate(path, what string, most int64, edit func(old []byte, exists bool) ([]byte, error)) (err error) {
	path = Linked(path)
	unlock, err := LockFile(path + ".lock")
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "lock the %s", what)
	}
	defer func() {
		if unlockErr := unlock(); err == nil { // else the first says more
			err = marchwarden.Wrap(unlockErr, marchwarden.CodeUnavailable, "unlock the %s", what)
		}
	}()
	text, err := ReadPrivate(path, what, most)
	exists := !errors.Is(err, fs.ErrNotExist)
	if err != nil && exists {
		return err
	}
	if text, err = edit(text, exists); err != nil {
		return err
	}
	return marchwarden.Wrap(ReplaceFile(path, text), marchwarden.CodeUnavailable, "write the %s", what)
}
