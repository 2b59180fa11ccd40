package blob

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// maxRescued bounds what a rescue keeps in memory, in bytes.
const maxRescued = 512 << 20

// Rescue returns a store over s that keeps in memory what s cannot store, because
// its disk is full, read-only or broken, so that a run can still end with its
// answer. What it keeps that way is gone with the process: Settle says so.
func Rescue(s Store) Store { return &rescue{Store: s, content: map[Ref][]byte{}} }

type rescue struct {
	Store

	mu      sync.Mutex     // guards what follows
	content map[Ref][]byte // what is in memory alone
	size    int
}

func (r *rescue) Put(ctx context.Context, content []byte) (Ref, error) {
	ref, err := r.Store.Put(ctx, content)
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrTooLarge) {
		return ref, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ref = Of(content)
	if _, ok := r.content[ref]; !ok {
		if r.size+len(content) > maxRescued {
			return Ref{}, err
		}
		r.content[ref] = slices.Clone(content)
		r.size += len(content)
	}
	return ref, nil
}

func (r *rescue) Get(ctx context.Context, ref Ref) ([]byte, error) {
	if content, ok := r.held(ref); ok {
		return content, ctx.Err()
	}
	return r.Store.Get(ctx, ref)
}

func (r *rescue) Stat(ctx context.Context, ref Ref) (Info, error) {
	if content, ok := r.held(ref); ok {
		return Info{Ref: ref, Size: int64(len(content))}, ctx.Err()
	}
	return r.Store.Stat(ctx, ref)
}

func (r *rescue) held(ref Ref) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok := r.content[ref]
	return slices.Clone(content), ok
}

// Settle tries to store what is in memory alone.
func (r *rescue) Settle(ctx context.Context) error {
	r.mu.Lock()
	refs := slices.SortedFunc(maps.Keys(r.content), Ref.Compare)
	r.mu.Unlock()
	for _, ref := range refs {
		content, ok := r.held(ref)
		if !ok {
			continue // somebody else was faster
		}
		if _, err := r.Store.Put(ctx, content); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "store evidence")
		}
		r.mu.Lock()
		if _, ok := r.content[ref]; ok {
			delete(r.content, ref)
			r.size -= len(content)
		}
		r.mu.Unlock()
	}
	return nil
}

// Settle makes sure that everything that was put into a store is stored, and says
// what keeps it from that. Only a store made by Rescue, or one around it, has anything
// to settle.
func Settle(ctx context.Context, s Store) error {
	if r, ok := s.(interface{ Settle(context.Context) error }); ok {
		return r.Settle(ctx)
	}
	return nil
}
