// Package dir is the evidence store in a directory. It owns the layout of that
// directory, the form of its files and the order of writes that makes them
// durable. What a store promises, and the check of the digest, are package
// blob's.
//
// Layout, below the directory given to Open:
//
//	sha256/ab/cdef…             a blob; "ab" and the 62 digits after it are its digest
//	sha256/ab/cdef….RANDOM.tmp  a write under way, or one that a crash cut short
//
// A file appears under its final name complete or not at all, so a reader never
// needs a lock and writers in several processes need none either: whoever
// renames last replaces a file by an equal one. Temporary files are never read;
// Sweep removes the old ones. Names of any other shape are ignored. Directories
// are 0700, files 0600.
//
// All access goes through os.Root: a symbolic link planted in the store cannot
// lead out of it, and one in place of a blob counts as damage.
package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	dirMode    = 0o700
	fileMode   = 0o600
	digestDir  = "sha256"
	tempSuffix = ".tmp"
)

// A Store is a blob.Store in a directory.
type Store struct {
	blob.Store // the guarded keeper below
	files      *files
}

// Open opens the store in the directory path and creates it, with its parents,
// if it is missing. Any number of processes may have the same store open. The
// caller closes it. Opening an existing store writes nothing, so a read-only
// one can be read.
func Open(path string) (*Store, error) {
	f, err := openFiles(path)
	if err != nil {
		return nil, fmt.Errorf("open blob store %s: %w", path, err)
	}
	return &Store{Store: blob.Guard(f), files: f}, nil
}

// Close releases the directory. Calls after it fail; calls under way may.
func (s *Store) Close() error {
	return s.files.root.Close()
}

// Sweep removes temporary files last written before the given time and returns
// how many. They are what crashes leave behind; choose a time long enough ago,
// an hour say, that no living writer can still own one: it would fail, with
// an error and without harm to the store.
func (s *Store) Sweep(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	err := s.files.each(func(name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !strings.HasSuffix(name, tempSuffix) {
			return nil
		}
		info, err := s.files.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its writer has finished
		}
		if err != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before) {
			return err
		}
		err = s.files.root.Remove(name)
		if err == nil {
			removed++
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return removed, fmt.Errorf("sweep blob store %s: %w", s.files.path, err)
	}
	return removed, nil
}

func openFiles(path string) (*files, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := makeDir(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	f := &files{path: path, root: root}
	if f.codec, err = newCodec(); err == nil {
		err = f.makeDigestDir()
	}
	if err != nil {
		_ = root.Close() // the first error is the one to report
		return nil, err
	}
	return f, nil
}

// makeDir creates path and its missing parents. Each new entry is synced before
// the next level is made, so that at most the last can be lost; the first write
// syncs that one (see files.settle).
func makeDir(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", path)
		}
		return nil
	}
	parent := filepath.Dir(path)
	if !errors.Is(err, fs.ErrNotExist) || parent == path {
		return err
	}
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.SyncDir(os.Open(parent))
}
