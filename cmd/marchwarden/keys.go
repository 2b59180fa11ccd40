package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
)

// publicSuffix ends the name of the file with the public half of a key.
const publicSuffix = ".pub"

// maxKeyBytes bounds a file with a key.
const maxKeyBytes = 64 << 10

// makeKey makes a pair of keys in two new files, and their folder for the user alone
// if it is missing.
func (a *app) makeKey(path string) error {
	for _, name := range []string{path, path + publicSuffix} {
		if _, err := os.Lstat(name); err == nil {
			return invalid("--new-key", "give another name: a key that is lost cannot be made again", fmt.Sprintf("%q exists", name))
		}
	}
	key, err := bundle.NewKey(rand.Reader)
	if err != nil {
		return err
	}
	private, err := key.PEM()
	if err != nil {
		return err
	}
	public, err := key.Public().PEM()
	if err != nil {
		return err
	}
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return invalid("--new-key", "", fmt.Sprintf("the folder of %q cannot be made: %s", path, durable.Cause(err)))
	}
	if err := newFile(path, private, 0o600); err != nil {
		return err
	}
	if err := newFile(path+publicSuffix, public, 0o644); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	a.note("wrote %s, which you keep to yourself, and %s for others", path, path+publicSuffix)
	_, err = fmt.Fprintln(a.stdout, key.Public().Fingerprint())
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the fingerprint")
}

// newFile makes a file that must not exist.
func newFile(path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return invalid("--new-key", "", fmt.Sprintf("%q cannot be written: %s", path, durable.Cause(err)))
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write %s", path), os.Remove(path))
	}
	return nil
}

// readKey reads the private key that --sign names.
func (a *app) readKey(path string) (bundle.Key, error) {
	data, err := readKeyFile("--sign", path)
	if err != nil {
		return bundle.Key{}, err
	}
	key, err := bundle.ParseKey(data)
	if err != nil {
		return bundle.Key{}, badKey("--sign", path, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		a.warn(fmt.Sprintf("others on this machine can read the key %s; chmod 600 makes it yours alone", path))
	}
	return key, nil
}

// readPublicKeys reads the keys that --by names.
func readPublicKeys(paths []string) ([]bundle.PublicKey, error) {
	var keys []bundle.PublicKey
	for _, path := range paths {
		data, err := readKeyFile("--by", path)
		if err != nil {
			return nil, err
		}
		key, err := bundle.ParsePublicKey(data)
		if err != nil {
			return nil, badKey("--by", path, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func readKeyFile(field, path string) ([]byte, error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, invalid(field, "'marchwarden export --new-key FILE' makes a key", fmt.Sprintf("%q cannot be read: %s", path, durable.Cause(err)))
	}
	defer f.Close()
	return network.ReadLimited(f, maxKeyBytes, "key")
}

func badKey(field, path string, err error) error {
	return invalid(field, marchwarden.HintOf(err), fmt.Sprintf("%q: %v", path, err))
}
