package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// A Keeper keeps bytes under references on some medium. It is what an
// implementation writes; Guard makes a Store of it. A Keeper is only ever
// called with valid references, must be safe for concurrent use, and need not
// hash anything nor name the reference in its errors: Guard does both.
type Keeper interface {
	// Keep makes content durable under ref. If exactly these bytes are there
	// already it only makes sure that they are durable; damaged ones it
	// replaces, at once or not at all. It does not retain content.
	Keep(ctx context.Context, ref Ref, content []byte) error
	// Read returns the bytes kept under ref, in memory that is the caller's alone. An
	// error for which errors.Is finds ErrNotFound or ErrCorrupt says that there
	// are none, or that they cannot be decoded.
	Read(ctx context.Context, ref Ref) ([]byte, error)
	// Size returns the length Read would return bytes of. Errors as for Read.
	Size(ctx context.Context, ref Ref) (int64, error)
}

// Guard returns the Store over keeper. It is the one door through which bytes
// enter and leave: the reference is computed here on the way in and checked
// here on the way out, so no Keeper can forget to.
func Guard(keeper Keeper) Store {
	return guard{keeper: keeper, maxSize: MaxSize}
}

type guard struct {
	keeper  Keeper
	maxSize int // MaxSize, except in tests
}

func (g guard) Put(ctx context.Context, content []byte) (Ref, error) {
	if len(content) > g.maxSize {
		return Ref{}, fmt.Errorf("blob put: %w: %d bytes, the limit is %d", ErrTooLarge, len(content), g.maxSize)
	}
	if err := ctx.Err(); err != nil {
		return Ref{}, fmt.Errorf("blob put: %w", err)
	}
	ref := Of(content)
	if err := g.keeper.Keep(ctx, ref, content); err != nil {
		return Ref{}, fmt.Errorf("blob put %s: %w", ref, err)
	}
	return ref, nil
}

func (g guard) Get(ctx context.Context, ref Ref) (content []byte, err error) {
	if err = admit(ctx, ref); err == nil {
		content, err = g.keeper.Read(ctx, ref)
	}
	if got := Of(content); err == nil && got != ref {
		err = fmt.Errorf("%w: they hash to %s", ErrCorrupt, got)
	}
	if err != nil {
		return nil, fmt.Errorf("blob get %s: %w", ref, err)
	}
	return content, nil
}

func (g guard) Stat(ctx context.Context, ref Ref) (Info, error) {
	size, err := int64(0), admit(ctx, ref)
	if err == nil {
		size, err = g.keeper.Size(ctx, ref)
	}
	if err != nil {
		return Info{}, fmt.Errorf("blob stat %s: %w", ref, err)
	}
	return Info{Ref: ref, Size: size}, nil
}

// admit refuses calls that no Keeper should see.
func admit(ctx context.Context, ref Ref) error {
	if !ref.Valid() {
		return fmt.Errorf("%w: it is empty", ErrInvalidRef)
	}
	return ctx.Err()
}

// NewMem returns an empty store in memory. Its content lasts as long as the
// process does; in everything else it keeps the promises of Store.
func NewMem() Store {
	return Guard(&memory{content: make(map[Ref][]byte)})
}

type memory struct {
	mu      sync.RWMutex
	content map[Ref][]byte // the slices are never written to nor handed out
}

func (m *memory) Keep(_ context.Context, ref Ref, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.content[ref]; !ok || !bytes.Equal(old, content) {
		m.content[ref] = bytes.Clone(content)
	}
	return nil
}

func (m *memory) Read(_ context.Context, ref Ref) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	content, ok := m.content[ref]
	if !ok {
		return nil, ErrNotFound
	}
	return bytes.Clone(content), nil
}

func (m *memory) Size(ctx context.Context, ref Ref) (int64, error) {
	content, err := m.Read(ctx, ref)
	return int64(len(content)), err
}

// NamesOnly is a store that reads from s and keeps nothing: Put only names its
// content. A rerun has it, whose outcomes are stored already.
func NamesOnly(s Store) Store { return namesOnly{s} }

type namesOnly struct{ Store }

func (namesOnly) Put(_ context.Context, content []byte) (Ref, error) { return Of(content), nil }

// maxRescued bounds what a rescue keeps in memory, in bytes.
const maxRescued = 512 << 20

// maxRecent bounds what is kept in memory although it was stored, in bytes.
const maxRecent = 8 << 20

// Rescue returns a store over s that keeps in memory what s cannot store, because
// its disk is full, read-only or broken, so that a run can still end with its
// answer. What it keeps that way is gone with the process: Settle says so. It also keeps
// what was stored last: a run reads that again at once, and a process that may open no more
// files could not.
func Rescue(s Store) Store {
	return &rescue{Store: s, unstored: map[Ref][]byte{}, recent: map[Ref][]byte{}}
}

type rescue struct {
	Store

	mu           sync.Mutex     // guards what follows
	unstored     map[Ref][]byte // what is in memory alone
	unstoredSize int
	recent       map[Ref][]byte
	recentSize   int
}

func (r *rescue) Put(ctx context.Context, content []byte) (Ref, error) {
	ref, err := r.Store.Put(ctx, content)
	if err != nil && (ctx.Err() != nil || errors.Is(err, ErrTooLarge)) {
		return ref, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && len(content) > maxRecent:
	case err == nil:
		if r.recentSize += len(content); r.recentSize > maxRecent {
			clear(r.recent)
			r.recentSize = len(content)
		}
		r.recent[ref] = slices.Clone(content)
	case r.unstoredSize+len(content) > maxRescued:
		return Ref{}, err
	default:
		ref = Of(content)
		r.unstoredSize += len(content) - len(r.unstored[ref])
		r.unstored[ref] = slices.Clone(content)
	}
	return ref, nil
}

func (r *rescue) Get(ctx context.Context, ref Ref) ([]byte, error) {
	content, err := r.Store.Get(ctx, ref)
	if err == nil || ctx.Err() != nil {
		return content, err
	}
	if content, ok := r.held(ref, err); ok {
		return content, nil
	}
	return nil, err
}

func (r *rescue) Stat(ctx context.Context, ref Ref) (Info, error) {
	info, err := r.Store.Stat(ctx, ref)
	if err == nil || ctx.Err() != nil {
		return info, err
	}
	if content, ok := r.held(ref, err); ok {
		return Info{Ref: ref, Size: int64(len(content))}, nil
	}
	return info, err
}

// held is what is in memory of what the store did not give, and why.
func (r *rescue) held(ref Ref, why error) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok := r.unstored[ref]
	if !ok && !errors.Is(why, ErrNotFound) && !errors.Is(why, ErrCorrupt) {
		content, ok = r.recent[ref]
	}
	return slices.Clone(content), ok
}

// Settle tries to store those of refs that are in memory alone.
func (r *rescue) Settle(ctx context.Context, refs ...Ref) error {
	for _, ref := range refs {
		r.mu.Lock()
		content, ok := r.unstored[ref]
		r.mu.Unlock()
		if !ok {
			continue
		}
		if _, err := r.Store.Put(ctx, content); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "store evidence")
		}
		r.mu.Lock()
		r.unstoredSize -= len(r.unstored[ref])
		delete(r.unstored, ref)
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
