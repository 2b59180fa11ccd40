package llm

import (
	"context"
	"sync"
)

// GenerateAll makes calls side by side and gives their outcomes in order. All are
// reserved, in order, before the first is made, and settled, in order, when all are
// back: which of them is faster changes nothing. What broke off is repeated as
// Generate does it, one after another.
func (m *Metered) GenerateAll(ctx context.Context, calls []Call) ([]Reply, []error) {
	replies, errs := make([]Reply, len(calls)), make([]error, len(calls))
	ends := make([]func(Reply, error) (Reply, error), len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		ends[i], errs[i] = m.begin(c)
	}
	for i, c := range calls {
		if errs[i] == nil {
			m.live(c.Prompt)
			all.Go(func() { replies[i], errs[i] = m.inner.Generate(ctx, c) })
		}
	}
	all.Wait()
	for i := range calls {
		if ends[i] != nil {
			replies[i], errs[i] = ends[i](replies[i], errs[i])
		}
	}
	for i, c := range calls {
		replies[i], errs[i] = m.again(ctx, c, replies[i], errs[i])
	}
	return replies, errs
}
