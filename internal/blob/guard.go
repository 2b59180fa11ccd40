package blob

import (
	"bytes"
	"context"
	"fmt"
	"sync"
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
