package embed

import "sync"

// NewMemory is a store in memory. It holds at most maxBytes of
// numbers, and forgets all when it is full. Its methods never fail.
func NewMemory(maxBytes int) Store { return &memory{most: maxBytes, held: map[memoryKey]Vector{}} }

type memory struct {
	most int

	mu   sync.Mutex // guards what follows
	size int        // bytes of what is held
	held map[memoryKey]Vector
}

type memoryKey struct{ model, text string }

// Get gives the vectors that are held.
func (m *memory) Get(model string, texts []string) ([]Vector, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Vector, len(texts))
	for i, t := range texts {
		out[i] = m.held[memoryKey{model, t}]
	}
	return out, nil
}

// Put holds the vectors.
func (m *memory) Put(model string, texts []string, vectors []Vector) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, t := range texts[:min(len(texts), len(vectors))] {
		size := 4 * len(vectors[i])
		if m.size += size; m.size > m.most {
			clear(m.held)
			m.size = size
		}
		if size > 0 && size <= m.most {
			m.held[memoryKey{model, t}] = vectors[i]
		}
	}
	return nil
}
