package blob

import (
	"bytes"
	"context"
	"sync"
)

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

func (m *memory) Size(_ context.Context, ref Ref) (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	content, ok := m.content[ref]
	if !ok {
		return 0, ErrNotFound
	}
	return int64(len(content)), nil
}
