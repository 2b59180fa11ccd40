package blob

import (
	"context"
	"time"
)

// A Shelf is the files behind a Store, for checking and clearing it.
type Shelf interface {
	// Files calls fn for every file of the store, leftovers of broken-off writes
	// included, in a fixed order. Files that come or go meanwhile may be met or not.
	// The first error of fn ends the walk and is returned as it is.
	Files(ctx context.Context, fn func(File) error) error
	// Strays are the paths of what is in the store and is none of its files, in a fixed
	// order. Nothing of it is ever read or removed.
	Strays(ctx context.Context) ([]string, error)
	// Inspect is Get, for a file and without a mark that the blob was used. Of a
	// leftover it gives the content if all of it is there.
	Inspect(ctx context.Context, file File) ([]byte, error)
	// Remove removes those of refs that were last used before a time and that
	// needed, asked again when no other process can write, does not name; needed may be
	// nil. It is safe beside writers. It returns what is gone, also with an error.
	Remove(ctx context.Context, refs []Ref, before time.Time, needed func(Ref) (bool, error)) ([]File, error)
	// SetAside moves the file of a blob that is damaged to path, on the same file
	// system, and changes nothing if the blob is sound by now.
	SetAside(ctx context.Context, ref Ref, path string) (moved bool, err error)
	// Sweep removes leftovers that were last written before a time and returns how
	// many.
	Sweep(ctx context.Context, before time.Time) (int, error)
}

// File is one file of a store.
type File struct {
	// Ref is the blob, or the blob that was being written.
	Ref Ref
	// Name is the file's path in the store, with slashes.
	Name string
	// Leftover says that the file is no blob: its writer is at work or was broken off.
	Leftover bool
	Size     int64     // on the medium
	Used     time.Time // when it was written or last used
}
