package mcpkit

import (
	"context"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// books are records of the test's own making, which note what they are asked for.
type books struct {
	fails  error // of every question
	trace  []byte
	result *marchwarden.Result
	sofar  func() *marchwarden.Result

	mu    sync.Mutex // guards asked
	asked []string
}

func (b *books) note(what string, id marchwarden.TraceID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, what+" "+id.String())
}

func (b *books) questions() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

func (b *books) Trace(_ context.Context, id marchwarden.TraceID) ([]byte, error) {
	b.note("trace", id)
	return b.trace, b.fails
}

func (b *books) Size(_ context.Context, id marchwarden.TraceID) (int64, bool, error) {
	b.note("size", id)
	return int64(len(b.trace)), true, b.fails
}

func (b *books) Result(_ context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	b.note("result", id)
	return b.result, b.fails
}

func (b *books) SoFar(_ context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	b.note("sofar", id)
	if b.sofar == nil {
		return nil, b.fails
	}
	return b.sofar(), b.fails
}
