package blob

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

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

// MustParse is Parse for references written in source code; it panics on a bad
// one.
func MustParse(s string) Ref {
	r, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return r
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
