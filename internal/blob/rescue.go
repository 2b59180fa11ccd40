package blob

import (
	"context"
	"errors"
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// maxRescued bounds what a rescue keeps in memory, in bytes.
const maxRescued = 512 << 20

// Rescue returns a store over s that keeps in memory what s cannot store, because
// its disk is full, read-only or broken, so that a run can still end with its
// answer. What it keeps that way is gone with the process: Settle says so.
func Rescue(s Store) Store {
	return &rescue{Store: s, content: map[Ref][]byte{}, recent: map[Ref][]byte{}}
}

type rescue struct {
	Store

	mu      sync.Mutex     // guards what follows
	content map[Ref][]byte // what is in memory alone
	size    int
	recent  map[Ref][]byte // what was stored last, should it not be read again
	kept    int            // the bytes of recent
}

// maxRecent bounds what is kept in memory although it was stored, in bytes.
const maxRecent = 8 << 20

// remember keeps what was stored for a while: a run reads it again at once, and a
// process that may open no more files could not.
func (r *rescue) remember(ref Ref, content []byte) {
	if len(content) > maxRecent {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept += len(content); r.kept > maxRecent {
		clear(r.recent)
		r.kept = len(content)
	}
	r.recent[ref] = slices.Clone(content)
}

// instead is what was stored lately, if err keeps the store from giving what it has.
func (r *rescue) instead(ctx context.Context, ref Ref, err error) ([]byte, bool) {
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok := r.recent[ref]
	return slices.Clone(content), ok
}

func (r *rescue) Put(ctx context.Context, content []byte) (Ref, error) {
	ref, err := r.Store.Put(ctx, content)
	if err == nil {
		r.remember(ref, content)
	}
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
	content, err := r.Store.Get(ctx, ref)
	if kept, ok := r.instead(ctx, ref, err); ok {
		return kept, nil
	}
	return content, err
}

func (r *rescue) Stat(ctx context.Context, ref Ref) (Info, error) {
	if content, ok := r.held(ref); ok {
		return Info{Ref: ref, Size: int64(len(content))}, ctx.Err()
	}
	info, err := r.Store.Stat(ctx, ref)
	if kept, ok := r.instead(ctx, ref, err); ok {
		return Info{Ref: ref, Size: int64(len(kept))}, nil
	}
	return info, err
}

func (r *rescue) held(ref Ref) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok := r.content[ref]
	return slices.Clone(content), ok
}

// Settle tries to store those of refs that are in memory alone.
func (r *rescue) Settle(ctx context.Context, refs ...Ref) error {
	for _, ref := range refs {
		content, ok := r.held(ref)
		if !ok {
			continue
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

// Settle makes sure that what was put into a store under refs is stored, and says what
// keeps it from that. Only a store made by Rescue, or one around it, has anything to
// settle.
func Settle(ctx context.Context, s Store, refs ...Ref) error {
	if r, ok := s.(interface {
		Settle(context.Context, ...Ref) error
	}); ok {
		return r.Settle(ctx, refs...)
	}
	return nil
}
