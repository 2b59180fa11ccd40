package network

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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// OpenLibrary opens what a research searches: the folders given here or by the
// setting, those added by 'library add', and the embedded library if asked for
// or if there is nothing else. The caller closes the folders.
func (a *Host) OpenLibrary(c *settings.Settings, given []string, embedded bool) ([]*fetch.Folder, error) {
	if len(given) == 0 {
		given = c.List(settings.Library)
	}
	var open []*fetch.Folder
	add := func(f *fetch.Folder) {
		if slices.ContainsFunc(open, func(o *fetch.Folder) bool { return o.Name == f.Name }) {
			_ = f.Close() // read-only, and open a second time
			return
		}
		open = append(open, f)
	}
	for _, path := range given {
		f, err := a.OpenFolder("--library", path)
		if err != nil {
			return nil, errors.Join(err, CloseFolders(open))
		}
		add(f)
	}
	kept, err := KeptFolders(c.FoldersPath())
	if err != nil {
		return nil, errors.Join(err, CloseFolders(open))
	}
	for _, path := range kept {
		f, err := fetch.OpenFolder(path)
		if err != nil {
			a.Say(fmt.Sprintf("%v; 'marchwarden library remove %s' forgets it", err, path))
			continue
		}
		add(f)
	}
	if len(open) == 0 && len(kept) > 0 && !embedded {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "none of the folders of the library can be opened",
			Hint: "use --embedded to search the embedded library"}
	}
	if embedded || len(open) == 0 {
		add(files.Embedded())
	}
	return open, nil
}

// OpenFolder opens a folder that the user named in field. A blank name is an
// error: it comes from a variable that is not set, and is not meant to be the
// working directory.
func (a *Host) OpenFolder(field, path string) (*fetch.Folder, error) {
	if strings.TrimSpace(path) == "" {
		return nil, settings.Invalid(field, "use . for the working directory", "must not be blank")
	}
	return fetch.OpenFolder(a.Source().Absolute(path, a.Dir))
}

func CloseFolders(fs []*fetch.Folder) error {
	var errs []error
	for _, f := range fs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// FolderSuffix ends the name of a file that names a folder. The folders that 'library add' added are kept apart from the index, which can
// be thrown away and made again. Each is a file of its own, so that several
// processes can add and remove at once without a lock:
//
//	library/folders/<hash of the path>.path    holds the absolute path
const FolderSuffix = ".path"

func FolderFile(dir, path string) string {
	return filepath.Join(dir, fmt.Sprintf("%x%s", sha256.Sum256([]byte("marchwarden/folder/v1\x00"+path)), FolderSuffix))
}

// KeepFolder remembers a folder by its absolute path. Doing it twice is harmless.
func KeepFolder(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remember folder %q", path)
	}
	name := FolderFile(dir, path)
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

// ForgetFolder is the inverse of keepFolder; a folder that is not kept is
// CodeNotFound.
func ForgetFolder(dir, path string) error {
	err := os.Remove(FolderFile(dir, path))
	if errors.Is(err, fs.ErrNotExist) {
		return &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("folder %q is not in the library", path),
			Hint: "run 'marchwarden library list' for the folders there are"}
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "forget folder %q", path)
}

// KeptFolders lists what is kept, in order of path.
func KeptFolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "list the folders of the library")
	}
	var paths []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), FolderSuffix) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by another process just now
		}
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "list the folders of the library")
		}
		if path := string(data); FolderFile(dir, path) == filepath.Join(dir, e.Name()) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}
