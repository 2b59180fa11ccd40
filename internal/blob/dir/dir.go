// Package dir is the evidence store in a directory. It owns the layout of that
// directory and the order of writes that makes them durable. The form of a file, what a
// store promises, and the check of the digest are package blob's.
//
// Layout, below the directory given to Open:
//
//	sha256/ab/cdef…             a blob; "ab" and the 62 digits after it are its digest
//	sha256/ab/cdef….RANDOM.tmp  a write under way, or one that a crash cut short
//	lock                        kept by writers together, or by one that removes alone
//
// A file appears under its final name complete or not at all, so a reader never
// needs a lock and writers need none against each other: the last rename replaces a file by an
// equal one. Temporary files are never read, except to restore what is missing; Sweep removes the
// old ones. Names of any other shape are left alone, and Strays lists them. Directories are 0700,
// files 0600.
//
// # Removing
//
// Remove may run while others write, in this process and in others, and must not
// take away what they rely on. A writer relies on a blob from the moment when Put
// or Get answered for it until a trace names it, and this cannot be seen.
// So use leaves a mark: the time of a file is when its blob was last used. Put
// sets it always, Get when it is older than ten minutes. Remove spares what was
// used since a time that its caller gives, which lies further back than those ten
// minutes and than the start of every run that is going on.
//
// Between looking at the time and removing the file no process may use it: it would be told that
// the blob is there a moment before it is not. Hence the lock: Put, and a Get that sets the time,
// hold it together with others; Remove holds it alone, looks at each time again when it has it, and
// gives it back after every few files. Then either the use came first, and Remove sees its mark, or
// the removal did: Put then finds nothing and writes the file, and Get says that nothing is stored.
// A Get of a blob used less than ten minutes ago needs no lock, because Remove spares that. Where
// there are no locks, writers go on without and Remove refuses to work.
//
// The times are those of the file system, which may be another machine's.
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

// A Store is a blob.Store, and a blob.Shelf, in a directory.
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
	return s.files.close()
}

// Sweep removes temporary files last written before the given time and returns
// how many. They are what crashes leave behind; choose a time long enough ago,
// an hour say, that no living writer can still own one: it would fail, with
// an error and without harm to the store.
func (s *Store) Sweep(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	err := s.Files(ctx, func(file blob.File) error {
		if !file.Leftover || !file.Used.Before(before) {
			return nil
		}
		err := s.files.root.Remove(file.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its writer has finished
		}
		if err == nil {
			removed++
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
	if err := durable.MakeDir(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	f := &files{path: path, root: root, lock: sharedLock{root: root}}
	if f.codec, err = blob.NewCodec(); err == nil {
		err = f.makeDigestDir()
	}
	if err != nil {
		_ = root.Close() // the first error is the one to report
		return nil, err
	}
	return f, nil
}
