package searchtest

import (
	"context"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Fake is a scripted search.Engine. Set its fields before the first search; the
// zero Fake finds nothing. It is safe for concurrent use.
type Fake struct {
	Title string                  // its name; "fake" when empty
	Hits  map[string][]search.Hit // by the text of the query, best first
	Errs  map[string]error        // by the text of the query, instead of hits
	Err   error                   // for every query that Errs does not name
	Delay time.Duration           // how long a search takes; a cancelled one ends at once

	mu      sync.Mutex
	queries []search.Query // guarded by mu
}

// Name implements search.Engine.
func (f *Fake) Name() string {
	if f.Title == "" {
		return "fake"
	}
	return f.Title
}

// Search implements search.Engine. It cuts the scripted hits to the limit and
// leaves the filter alone: what it is told to return, it returns.
func (f *Fake) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	f.mu.Lock()
	f.queries = append(f.queries, q)
	f.mu.Unlock()
	if f.Delay > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(f.Delay):
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeCanceled, "search")
	}
	if err, ok := f.Errs[q.Text]; ok {
		return nil, err
	}
	if f.Err != nil {
		return nil, f.Err
	}
	hits := f.Hits[q.Text]
	if q.Limit > 0 {
		hits = hits[:min(len(hits), q.Limit)]
	}
	return slices.Clone(hits), nil
}

// Queries returns what was searched so far, in the order the searches began.
func (f *Fake) Queries() []search.Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.queries)
}
