package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The folders that 'library add' added are kept apart from the index, which can
// be thrown away and made again. Each is a file of its own, so that several
// processes can add and remove at once without a lock:
//
//	library/folders/<hash of the path>.path    holds the absolute path
const folderSuffix = ".path"

func folderFile(dir, path string) string {
	return filepath.Join(dir, fmt.Sprintf("%x%s", sha256.Sum256([]byte("marchwarden/folder/v1\x00"+path)), folderSuffix))
}

// keepFolder remembers a folder by its absolute path. Doing it twice is harmless.
func keepFolder(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remember folder %q", path)
	}
	name := folderFile(dir, path)
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remember folder %q", path)
	}
	_, err = tmp.WriteString(path)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(tmp.Name()))
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remember folder %q", path)
}

// forgetFolder is the inverse of keepFolder; a folder that is not kept is
// CodeNotFound.
func forgetFolder(dir, path string) error {
	err := os.Remove(folderFile(dir, path))
	if errors.Is(err, fs.ErrNotExist) {
		return &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("folder %q is not in the library", path),
			Hint: "run 'marchwarden library list' for the folders there are"}
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "forget folder %q", path)
}

// keptFolders lists what is kept, in order of path.
func keptFolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "list the folders of the library")
	}
	var paths []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), folderSuffix) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by another process just now
		}
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "list the folders of the library")
		}
		if path := string(data); folderFile(dir, path) == filepath.Join(dir, e.Name()) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}
