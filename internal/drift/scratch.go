package drift

import (
	"context"
	"errors"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// Scratch is a store for what a check fetches: it reads what the record holds, and
// keeps what is put in memory, so that a check leaves nothing behind. It makes the
// promises of blob.Store but that content does not survive the process.
type Scratch struct{ kept, fetched blob.Store }

var _ blob.Store = (*Scratch)(nil)

// NewScratch makes a store above the record's, which is never written to.
func NewScratch(kept blob.Store) *Scratch { return &Scratch{kept: kept, fetched: blob.NewMem()} }

// Put keeps content in memory.
func (s *Scratch) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	return s.fetched.Put(ctx, content)
}

// Get returns what was put, or what the record holds.
func (s *Scratch) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	content, err := s.fetched.Get(ctx, ref)
	if errors.Is(err, blob.ErrNotFound) {
		return s.kept.Get(ctx, ref)
	}
	return content, err
}

// Stat is for what Get returns.
func (s *Scratch) Stat(ctx context.Context, ref blob.Ref) (blob.Info, error) {
	info, err := s.fetched.Stat(ctx, ref)
	if errors.Is(err, blob.ErrNotFound) {
		return s.kept.Stat(ctx, ref)
	}
	return info, err
}
