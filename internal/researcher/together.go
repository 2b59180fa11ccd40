package researcher

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Together is an engine that asks all engines at the same time and takes their
// hits in turn, the first engine's best first: an index of preprints and one of
// journals have different papers to say about one question. A title that was taken
// is not taken again: it is most often the other version of one paper. Its name is
// theirs joined by "+".
//
// An engine that fails costs only its own hits; the error that comes with the
// others' names it. As in search.Chain, one that keeps failing is left alone for a
// while by the clock now.
func Together(now func() time.Time, engines ...search.Engine) search.Engine {
	t := &together{}
	names := make([]string, len(engines))
	for i, e := range engines {
		names[i] = e.Name()
		t.engines = append(t.engines, search.Chain([]search.Engine{e}, now))
	}
	t.name = strings.Join(names, "+")
	return t
}

type together struct {
	name    string
	engines []search.Engine
}

// Name implements search.Engine.
func (t *together) Name() string { return t.name }

// Search implements search.Engine.
func (t *together) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	found := make([][]search.Hit, len(t.engines))
	errs := make([]error, len(t.engines))
	var g sync.WaitGroup
	for i, e := range t.engines {
		g.Go(func() { found[i], errs[i] = e.Search(ctx, q) })
	}
	g.Wait()
	err := failure(errs)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	return interleave(found, q.Limit), err
}

// failure is one error, on one line, for those that failed; its code is the first one's.
func failure(errs []error) error {
	var out *marchwarden.Error
	for _, err := range errs {
		switch {
		case err == nil:
		case out == nil:
			out = &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: err.Error(), Hint: marchwarden.HintOf(err)}
		default:
			out.Message += "; " + err.Error()
			out.Hint = cmp.Or(out.Hint, marchwarden.HintOf(err))
		}
	}
	if out == nil {
		return nil
	}
	return out
}

// interleave takes the hits in turn, each locator and each title once, at most limit if there is one.
func interleave(found [][]search.Hit, limit int) []search.Hit {
	var hits []search.Hit
	seen := map[string]bool{}
	for rank := 0; ; rank++ {
		more := false
		for _, list := range found {
			if rank >= len(list) {
				continue
			}
			more = true
			h := list[rank]
			title := strings.Join(lexicon.Terms(h.Title), " ")
			if seen[h.Locator] || title != "" && seen[title] || limit > 0 && len(hits) >= limit {
				continue
			}
			seen[h.Locator], seen[title] = true, true
			h.Score = 1 / float64(1+len(hits))
			hits = append(hits, h)
		}
		if !more {
			return hits
		}
	}
}
