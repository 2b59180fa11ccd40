package bundle

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

// PublicSuffix ends the name of the file with the public half of a key.
const PublicSuffix = ".pub"

// maxKeyBytes bounds a file with a key.
const maxKeyBytes = 64 << 10

// badFile is the error of a file that cannot be used; field names the option that it comes from.
func badFile(field, hint, format string, args ...any) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// MakeKeyFiles makes a pair of keys from random bytes in two new files, path and path with
// PublicSuffix, and their folder for the user alone if it is missing. CodeInvalid names the field
// if a file exists or cannot be made.
func MakeKeyFiles(field, path string, random io.Reader) (PublicKey, error) {
	for _, name := range []string{path, path + PublicSuffix} {
		if _, err := os.Lstat(name); err == nil {
			return PublicKey{}, badFile(field, "give another name: a key that is lost cannot be made again", "%q exists", name)
		}
	}
	key, err := NewKey(random)
	if err != nil {
		return PublicKey{}, err
	}
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return PublicKey{}, badFile(field, "", "the folder of %q cannot be made: %s", path, durable.Cause(err))
	}
	if err := newFile(field, path, key.PEM(), 0o600); err != nil {
		return PublicKey{}, err
	}
	if err := newFile(field, path+PublicSuffix, key.Public().PEM(), 0o644); err != nil {
		return PublicKey{}, errors.Join(err, os.Remove(path))
	}
	return key.Public(), nil
}

// newFile makes a file that must not exist.
func newFile(field, path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return badFile(field, "", "%q cannot be written: %s", path, durable.Cause(err))
	}
	if err := durable.Fill(f, content); err != nil {
		return errors.Join(marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write %s", path), os.Remove(path))
	}
	return nil
}

// ReadKeyFile reads a private key. CodeInvalid names the field if there is none.
func ReadKeyFile(field, path string) (Key, error) { return readKeyFile(field, path, ParseKey) }

// ReadPublicKeyFiles reads public keys. CodeInvalid names the field if a file has none.
func ReadPublicKeyFiles(field string, paths []string) ([]PublicKey, error) {
	var keys []PublicKey
	for _, path := range paths {
		key, err := readKeyFile(field, path, ParsePublicKey)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func readKeyFile[K any](field, path string, parse func([]byte) (K, error)) (key K, err error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return key, badFile(field, "'marchwarden export --new-key FILE' makes a key", "%q cannot be read: %s", path, durable.Cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyBytes+1))
	if err != nil {
		return key, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", path)
	}
	if len(data) > maxKeyBytes {
		return key, badFile(field, "", "%q must be at most %d bytes", path, maxKeyBytes)
	}
	if key, err = parse(data); err != nil {
		return key, badFile(field, marchwarden.HintOf(err), "%q: %v", path, err)
	}
	return key, nil
}
