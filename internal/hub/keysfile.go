package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	maxFileBytes = 1 << 20 // 1,000 keys with all they can have need less
	maxSeedBytes = 1 << 10
	fileVersion  = 1
	fileKind     = "keys file" // as errors call it
)

// The form of the file. Keys are in the order of their names.
type fileForm struct {
	Version int   `json:"version"`
	Keys    []Key `json:"keys"`
}

func format(list []Key) ([]byte, error) {
	if list == nil {
		list = []Key{}
	}
	text, err := json.MarshalIndent(fileForm{fileVersion, list}, "", "  ")
	return append(text, '\n'), err
}

// ReadKeys is what a keys file has, by name, and whether there is a file. CodeDenied if
// others than its owner can write or read it, CodeCorrupt if it is no keys file,
// CodeUnavailable if it cannot be read.
func ReadKeys(path string) (list []Key, exists bool, err error) {
	text, err := durable.ReadPrivate(path, fileKind, maxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, true, err
	}
	list, err = parse(path, text)
	return list, true, err
}

// parse reads the text of the file at path. Its errors quote nothing of it but names of keys
// that are sound.
func parse(path string, text []byte) (list []Key, err error) {
	defer func() { err = marchwarden.Wrap(err, marchwarden.CodeCorrupt, "%s is no keys file", path) }()
	var form fileForm
	if err := durable.DecodeStrict(text, &form); err != nil {
		return nil, err
	}
	if form.Version != fileVersion {
		return nil, fmt.Errorf("its version is %d, not %d", form.Version, fileVersion)
	}
	if len(form.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys, over the limit of %d", len(form.Keys), maxKeys)
	}
	public := map[string]bool{}
	for i, k := range form.Keys {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if !nkeys.IsValidPublicUserKey(k.Public) {
			return nil, fmt.Errorf("key %q: public must be the public half of a user's key", k.Name)
		}
		if public[k.Public] {
			return nil, fmt.Errorf("key %q: another has the same public half", k.Name)
		}
		public[k.Public] = true
	}
	slices.SortStableFunc(form.Keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(form.Keys); i++ {
		if form.Keys[i].Name == form.Keys[i-1].Name {
			return nil, fmt.Errorf("there are two keys %q", form.Keys[i].Name)
		}
	}
	return form.Keys, nil
}

// ReadSeed is the seed in a file that only its owner can read: one line, with blanks
// around it if need be. The errors name the file and never what is in it.
func ReadSeed(path string) ([]byte, error) {
	text, err := ReadSecret(path, "key file")
	if err != nil {
		return nil, err
	}
	if _, err := Inbox(text); err != nil {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the key file %s does not have a key: one line that begins with SU", path)
	}
	return text, nil
}

// ReadSecret is the one line in a file that only its owner can read, without the blanks
// around it. CodeInvalid if there is none.
func ReadSecret(path, what string) ([]byte, error) {
	text, err := durable.ReadPrivate(path, what, maxSeedBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "there is no %s %s", what, path)
	}
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || bytes.ContainsAny(text, "\r\n\x00") {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the %s %s must have one line that is not blank", what, path)
	}
	return text, nil
}
