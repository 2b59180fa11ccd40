package loop

import (
	"context"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// The doors to the world, each with its panics turned into failures.
type (
	safeEngine  struct{ search.Engine }
	safeFetcher struct{ fetch.Fetcher }
)

func (e safeEngine) Search(ctx context.Context, q search.Query) (hits []search.Hit, err error) {
	defer panics.Caught(&err, "a search")
	return e.Engine.Search(ctx, q)
}

func (f safeFetcher) Fetch(ctx context.Context, locator string) (page fetch.Page, err error) {
	defer panics.Caught(&err, "a fetch")
	return f.Fetcher.Fetch(ctx, locator)
}

func (e safeEngine) Free() bool { return replay.IsFree(e.Engine) }

func (f safeFetcher) Free() bool { return replay.IsFree(f.Fetcher) }

// safe guards the doors that are there.
func safe(cfg Config) Config {
	if cfg.Engine != nil {
		cfg.Engine = safeEngine{cfg.Engine}
	}
	if cfg.Fetcher != nil {
		cfg.Fetcher = safeFetcher{cfg.Fetcher}
	}
	cfg.Model = llm.Safe(cfg.Model)
	return cfg
}
