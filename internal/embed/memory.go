package embed

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// entryBytes is what an entry of a memory store costs beside its numbers: the key
// twice, list element, map slot and slice header, rounded up.
const entryBytes = 256

// NewMemory is a store in memory that holds at most about maxBytes and forgets what
// was asked for longest ago. Its methods never fail.
func NewMemory(maxBytes int) Store {
	return &memory{left: maxBytes, entries: map[[sha256.Size]byte]*list.Element{}}
}

type memory struct {
	mu      sync.Mutex
	left    int       // bytes that may still be filled
	order   list.List // of *entry, the latest asked for in front
	entries map[[sha256.Size]byte]*list.Element
}

type entry struct {
	key    [sha256.Size]byte
	vector Vector
}

func (e *entry) size() int { return 4*len(e.vector) + entryBytes }

// Get gives the vectors that are held.
func (m *memory) Get(model string, texts []string) ([]Vector, error) {
	out := make([]Vector, len(texts))
	for i, t := range texts {
		key := memoryKey(model, t)
		m.mu.Lock()
		if el := m.entries[key]; el != nil {
			m.order.MoveToFront(el)
			out[i] = el.Value.(*entry).vector
		}
		m.mu.Unlock()
	}
	return out, nil
}

// Put holds the vectors and makes room for them.
func (m *memory) Put(model string, texts []string, vectors []Vector) error {
	for i, t := range texts[:min(len(texts), len(vectors))] {
		m.put(&entry{memoryKey(model, t), vectors[i]})
	}
	return nil
}

func (m *memory) put(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.vector == nil || m.entries[e.key] != nil {
		return
	}
	m.entries[e.key] = m.order.PushFront(e)
	m.left -= e.size()
	for m.left < 0 {
		last := m.order.Back()
		old := m.order.Remove(last).(*entry)
		delete(m.entries, old.key)
		m.left += old.size()
	}
}

// memoryKey is the hash of model and text, each with its length before it.
func memoryKey(model, text string) [sha256.Size]byte {
	b := make([]byte, 0, 32+len(model)+len(text))
	b = append(b, "marchwarden vector 1\x00"...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(model)))
	b = append(b, model...)
	b = append(b, text...)
	return sha256.Sum256(b)
}
