// Package blob owns the evidence store: bytes kept under the hash of their
// content, so that a reference names exactly one sequence of bytes for ever.
//
// It holds the reference type, the promises every store makes, the guard that
// enforces them, the form of a blob on any medium, and a store in memory. The store on
// disk is in package dir; package blobtest checks any implementation against the promises.
//
// It does not know what the bytes mean (pages, extracted text, model replies),
// and it keeps no names for them. A Store never deletes; the one on
// disk gives its files to a caller that knows what is needed.
package blob

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

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

// Text is the content of ref as a string. It is not copied: a store hands out what is the caller's alone.
func Text(ctx context.Context, store Store, ref Ref) (string, error) {
	content, err := store.Get(ctx, ref)
	return unsafe.String(unsafe.SliceData(content), len(content)), err
}

// Bytes is a text as content. It is not copied, so it must not be changed.
func Bytes(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// File is one file of a store.
type File struct {
	Ref  Ref    // of a leftover it is zero
	Name string // the file's path in the store, with slashes
	// Leftover says that the file is no blob: its writer is at work or was broken off.
	Leftover bool
	Size     int64     // on the medium
	Used     time.Time // when it was written or last used
}

const (
	refPrefix = "sha256:"
	refLen    = len(refPrefix) + 2*sha256.Size
)

// A Ref names content by its SHA-256. It is a comparable value: two Refs are ==
// exactly if they name the same content, and a Ref can be a map key. The zero
// Ref is invalid and names nothing.
type Ref struct {
	sum [sha256.Size]byte
	ok  bool // tells the zero Ref from a digest of all zero bits
}

// Of returns the reference of content.
func Of(content []byte) Ref {
	return Ref{sum: sha256.Sum256(content), ok: true}
}

// Parse reads the form that String writes: "sha256:" and 64 lower-case hex
// digits. Anything else gives ErrInvalidRef, so that a reference has one
// spelling only.
func Parse(s string) (Ref, error) {
	if len(s) != refLen {
		return Ref{}, fmt.Errorf("%w: want %q and 64 hex digits, got %d bytes", ErrInvalidRef, refPrefix, len(s))
	}
	digits, ok := strings.CutPrefix(s, refPrefix)
	if !ok || strings.ContainsAny(digits, "ABCDEF") {
		return Ref{}, fmt.Errorf("%w: %q: want %q and 64 lower-case hex digits", ErrInvalidRef, s, refPrefix)
	}
	r := Ref{ok: true}
	if _, err := hex.Decode(r.sum[:], []byte(digits)); err != nil {
		return Ref{}, fmt.Errorf("%w: %q: %w", ErrInvalidRef, s, err)
	}
	return r, nil
}

// Valid reports whether r names content, that is, whether it is not zero.
func (r Ref) Valid() bool { return r.ok }

// String returns "sha256:" and 64 lower-case hex digits, or "" for the zero Ref.
func (r Ref) String() string {
	if !r.ok {
		return ""
	}
	return refPrefix + hex.EncodeToString(r.sum[:])
}

// Hex returns the 64 hex digits alone, or "" for the zero Ref.
func (r Ref) Hex() string {
	return strings.TrimPrefix(r.String(), refPrefix)
}

// Compare orders references as their strings are ordered: negative if r comes
// before other, 0 if they are equal. The zero Ref comes first.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(bytes.Compare(r.sum[:], other.sum[:]), len(r.String())-len(other.String()))
}

// MarshalText writes what String returns, so the zero Ref is the empty text.
func (r Ref) MarshalText() ([]byte, error) {
	return []byte(r.String()), nil
}

// UnmarshalText reads what MarshalText writes; the empty text gives the zero
// Ref. On error r is left as it was.
func (r *Ref) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*r = Ref{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
