package web

import (
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// reportBytes is how large the reports that are kept are together. One that is larger is
	// read each time.
	reportBytes = 64 << 20
	// maxTallies is of how many runs the stages are kept: those of several principals.
	maxTallies = 20 * maxBoards
)

// cache keeps what was made of runs, those that were asked for last. A run that went on is
// another one, so the length of its trace is part of the key.
type cache[T any] struct {
	room int // for the sizes of all

	mu   sync.Mutex  // guards what follows
	kept []cached[T] // the latest last
	held int
}

type cached[T any] struct {
	id    marchwarden.TraceID
	bytes int64 // of its trace
	value T
	size  int
}

func (c *cache[T]) find(id marchwarden.TraceID, bytes int64) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(k cached[T]) bool { return k.id == id && k.bytes == bytes })
	if i < 0 {
		return value, false
	}
	k := c.kept[i]
	c.kept = append(slices.Delete(c.kept, i, i+1), k)
	return k.value, true
}

// put keeps a value, if it has room, and drops as many old ones as it takes.
func (c *cache[T]) put(id marchwarden.TraceID, bytes int64, value T, size int) {
	c.forget(id)
	if size > c.room {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, cached[T]{id, bytes, value, size})
	for c.held += size; c.held > c.room; c.kept = slices.Delete(c.kept, 0, 1) {
		c.held -= c.kept[0].size
	}
}

func (c *cache[T]) forget(id marchwarden.TraceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(k cached[T]) bool {
		if k.id == id {
			c.held -= k.size
		}
		return k.id == id
	})
}
