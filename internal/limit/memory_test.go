package limit

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Memory is a store for all in one process, by the process's clock.
func Memory(now func() time.Time) Store { return &memory{now: now} }

type memory struct {
	now func() time.Time

	mu    sync.Mutex // guards what follows
	state []byte
	rev   uint64
}

func (m *memory) Load(context.Context) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.state), m.rev, nil
}

func (m *memory) Swap(_ context.Context, state []byte, rev uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rev != m.rev {
		return ErrConflict
	}
	m.state = bytes.Clone(state)
	m.rev++
	return nil
}

func (m *memory) Now() time.Time { return m.now() }
