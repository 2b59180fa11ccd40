// Package blob owns the evidence store: bytes kept under the hash of their
// content, so that a reference names exactly one sequence of bytes for ever.
//
// It holds the reference type, the promises every store makes, the guard that
// enforces them, the form of a blob on any medium, and a store in memory. The store on
// disk is in package dir; package blobtest checks any implementation against the promises.
//
// It does not know what the bytes mean (pages, extracted text, model replies),
// and it keeps no names for them. A Store never deletes; a Shelf, which is a store that files can
// be taken from, does so for a caller that knows what is needed.
package blob

import (
	"context"
	"errors"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// MaxSize is the largest content a store accepts, in bytes (1 GiB). It bounds
// what reading one blob can cost, whatever is found on disk.
const MaxSize = 1 << 30

// The errors of a store, to be compared with errors.Is. Errors about one blob
// always contain its full reference. A blob that should be there and is not is
// as much a damaged record as one with wrong bytes: both carry CodeCorrupt.
var (
	// ErrNotFound reports that nothing is stored under a reference.
	ErrNotFound error = marchwarden.Errorf(marchwarden.CodeCorrupt, "not stored")
	// ErrCorrupt reports that what is stored under a reference is not the
	// content it names. Putting the right bytes again repairs it.
	ErrCorrupt error = marchwarden.Errorf(marchwarden.CodeCorrupt, "stored bytes are damaged")
	// ErrInvalidRef reports a reference that is zero or badly written.
	ErrInvalidRef error = marchwarden.Errorf(marchwarden.CodeInvalid, "invalid blob reference")
	// ErrTooLarge reports content over MaxSize.
	ErrTooLarge error = marchwarden.Errorf(marchwarden.CodeUnavailable, "content too large")
)

// A Store keeps content under its hash.
//
// It is safe for concurrent use; a store on disk is so for several processes
// too. It shares no memory with its callers: what is passed in may be changed
// after the call, and what is handed out belongs to the caller. A cancelled
// context ends a call with the context's error before it changes anything.
//
// Stores are made by Guard, which is where the digest is checked.
type Store interface {
	// Put stores content and returns its reference. When it returns without
	// error the content survives a crash or power loss, as far as the medium
	// can promise that. Putting the same bytes again changes nothing and
	// returns the same reference; stored content is never replaced by other
	// content, but a damaged copy is repaired. Content over MaxSize gives
	// ErrTooLarge. Empty content is content.
	Put(ctx context.Context, content []byte) (Ref, error)

	// Get returns the content of ref. Every call hashes the bytes it read and
	// gives ErrCorrupt, never the bytes, when they are not what ref names.
	// ErrNotFound if nothing is stored; ErrInvalidRef for the zero Ref.
	Get(ctx context.Context, ref Ref) ([]byte, error)

	// Stat says whether ref is stored and how large its content is, without
	// reading the content: it is cheap, and only Get is proof. Its errors are
	// those of Get.
	Stat(ctx context.Context, ref Ref) (Info, error)
}

// Info describes a stored blob.
type Info struct {
	Ref  Ref
	Size int64 // of the content in bytes, however it is stored
}

// Evidence is the content that the hash of a citation names, for checks. What was never stored is
// CodeNotFound here, and no damage: the hash is the caller's. A malformed hash is CodeInvalid.
func Evidence(ctx context.Context, store Store, hash string) ([]byte, error) {
	ref, err := Parse(hash)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "read evidence")
	}
	content, err := store.Get(ctx, ref)
	if errors.Is(err, ErrNotFound) {
		return nil, marchwarden.Wrap(err, marchwarden.CodeNotFound, "read evidence")
	}
	return content, err
}

// A Shelf is the files behind a Store, for checking and clearing it.
type Shelf interface {
	// Files calls fn for every file of the store, leftovers of broken-off writes
	// included, in a fixed order. Files that come or go meanwhile may be met or not.
	// The first error of fn ends the walk and is returned as it is.
	Files(ctx context.Context, fn func(File) error) error
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
