package durable

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

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
	var info fs.FileInfo
	if err == nil {
		defer f.Close()
		info, err = f.Stat()
	}
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

// Named is a file for its owner alone, with entries that have names, such as tokens:
//
//	{"version": 1, "tokens": [{"name": …}, …]}
//
// Entries are in the order of their names, and no two have the same. A field that is not known is
// an error: what a later version says there may be that an entry is not good any more. So is a
// version that is not known, and fields must not change their meaning within one. Several
// processes may change one file.
type Named[T any] struct {
	What  string // an entry, as "token"
	Name  func(T) string
	Check func(list []T, i int) error // whether an entry is sound, by itself and beside those before it
}

// The most entries, and the most bytes that a file may have: so many entries need less.
const (
	mostNamed    = 1000
	namedBytes   = 1 << 20
	namedVersion = 1
)

// Read gives the entries by name, and whether there is a file. What is no such file is
// CodeCorrupt; the others are the errors of ReadPrivate.
func (n Named[T]) Read(path string) (list []T, exists bool, err error) {
	text, err := ReadPrivate(path, n.What+"s file", namedBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil {
		list, err = n.Parse(path, text)
	}
	return list, true, err
}

// Parse reads the text of the file at path. Its errors quote nothing of it but names that are
// sound.
func (n Named[T]) Parse(path string, text []byte) (list []T, err error) {
	defer func() { err = marchwarden.Wrap(err, marchwarden.CodeCorrupt, "%s is no %ss file", path, n.What) }()
	var form map[string]json.RawMessage
	if err := DecodeStrict(text, &form); err != nil {
		return nil, err
	}
	var version int
	if DecodeStrict(form["version"], &version) != nil || version != namedVersion {
		return nil, fmt.Errorf("its version is %d, not %d", version, namedVersion)
	}
	if delete(form, "version"); form[n.What+"s"] != nil {
		err = DecodeStrict(form[n.What+"s"], &list)
		delete(form, n.What+"s")
	}
	switch {
	case err != nil || len(form) > 0:
		return nil, cmp.Or(err, errNotJSON)
	case len(list) > mostNamed:
		return nil, fmt.Errorf("it has %d %ss, over the limit of %d", len(list), n.What, mostNamed)
	}
	for i := range list {
		if err := n.Check(list, i); err != nil {
			return nil, fmt.Errorf("%s %d: %w", n.What, i+1, err)
		}
	}
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(n.Name(a), n.Name(b)) })
	for i := 1; i < len(list); i++ {
		if n.Name(list[i]) == n.Name(list[i-1]) {
			return nil, fmt.Errorf("there are two %ss %q", n.What, n.Name(list[i]))
		}
	}
	return list, nil
}

// Add keeps one more entry; the file is made if it is missing, and is on the disk when Add
// returns. CodeInvalid if the name is taken, or there are 1,000 entries.
func (n Named[T]) Add(path string, added T) error {
	return n.Edit(path, func(list []T) ([]T, error) {
		if len(list) >= mostNamed {
			return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("there are %d %ss, which is the limit", mostNamed, n.What), Hint: "remove those that are not used"}
		}
		i, found := n.find(list, n.Name(added))
		if found {
			return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "name", Message: fmt.Sprintf("there is a %s %q already", n.What, n.Name(added)), Hint: "choose another name, or remove that " + n.What + " first"}
		}
		return slices.Insert(list, i, added), nil
	})
}

// Remove forgets an entry. CodeNotFound if there is none of that name.
func (n Named[T]) Remove(path, name string) error {
	return n.Edit(path, func(list []T) ([]T, error) {
		i, found := n.find(list, name)
		if !found {
			return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "there is no %s %.64q", n.What, name)
		}
		return slices.Delete(list, i, i+1), nil
	})
}

// find is where a name is, or would be.
func (n Named[T]) find(list []T, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(e T, name string) int { return strings.Compare(n.Name(e), name) })
}

// Edit replaces the entries by what change makes of them, while no other process does.
func (n Named[T]) Edit(path string, change func([]T) ([]T, error)) error {
	return EditPrivate(path, n.What+"s file", namedBytes, func(old []byte, _ bool) (text []byte, err error) {
		var list []T
		if len(old) > 0 {
			if list, err = n.Parse(path, old); err != nil {
				return nil, err
			}
		}
		if list, err = change(list); err != nil {
			return nil, err
		}
		if text, err = json.MarshalIndent(append([]T{}, list...), "  ", "  "); err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the %ss file", n.What)
		}
		return fmt.Appendf(nil, "{\n  \"version\": %d,\n  %q: %s\n}\n", namedVersion, n.What+"s", text), nil
	})
}
