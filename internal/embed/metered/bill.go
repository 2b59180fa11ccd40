package metered

import (
	"context"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

// bill is what one effect has cost. What was set aside for it stays so until it is
// paid by what is recorded, so that a run and its rerun pay the same.
type bill struct {
	meter *budget.Meter

	mu     sync.Mutex // guards what follows
	open   []*budget.Reservation
	used   int
	failed error // of the embedder
	closed error // why nothing is granted
}

// Reserve sets tokens aside.
func (b *bill) Reserve(tokens int) (settle func(used int), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		return nil, b.closed
	}
	r, err := b.meter.Spare(tokens)
	if err != nil {
		return nil, err
	}
	b.open = append(b.open, r)
	return func(used int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used += max(0, used)
	}, nil
}

// pay settles everything that was set aside with what the record says was used.
func (b *bill) pay(tokens int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) == 0 {
		r, err := b.meter.Spare(0)
		if err != nil {
			return // nothing always fits
		}
		b.open = append(b.open, r)
	}
	for _, r := range b.open[1:] {
		r.Settle(0)
	}
	b.open[0].Settle(tokens)
	b.open, b.used = nil, 0
}

func (b *bill) total() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func (b *bill) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// refuse grants nothing from now on.
func (b *bill) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = err
}

// Heard is an embedder for an engine, which goes on without vectors when they fail and
// says nothing: the bill of the search hears of it. One that is nil or needs no bill
// is given back as it is.
func Heard(e embed.Embedder) embed.Embedder {
	if _, pure := e.(embed.Pure); e == nil || pure {
		return e
	}
	return heard{e}
}

type heard struct{ embed.Embedder }

func (h heard) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	vs, err := h.Embedder.Embed(ctx, texts)
	if b, ok := embed.AccountOf(ctx).(*bill); ok && err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.failed == nil {
			b.failed = err
		}
	}
	return vs, err
}
