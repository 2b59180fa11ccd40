package conform

import (
	"cmp"
	"context"
	"errors"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/connector"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// CheckConnector tells whether a server can be used by its own tools to search and to fetch, and
// what it lacks. It searches for the question and reads the first document that is found.
func CheckConnector(ctx context.Context, open func(context.Context) (*connector.Connector, error), o Options) Report {
	b := &bench{o: o}
	ctx, done := context.WithTimeout(ctx, cmp.Or(o.Limit, 2*time.Minute))
	defer done()
	c, err := open(ctx)
	if err != nil {
		b.note("tools", Fail, "%v", withHint(err))
		return b.done(ctx)
	}
	defer c.Close()
	card := c.Card()
	b.report.Server, b.report.Version, b.report.Protocol, b.report.ToolHash = card.Server, card.Version, card.Protocol, card.ToolHash
	b.note("tools", Pass, "%s", c.Tools())
	setup, err := c.Prepare(ctx, marchwarden.Request{})
	if err != nil {
		b.note("search", Fail, "%v", withHint(err))
		return b.done(ctx)
	}
	hits, err := setup.Engine.Search(ctx, search.Query{Text: o.Question})
	switch {
	case err != nil:
		b.note("search", Fail, "%v", withHint(err))
		return b.done(ctx)
	case len(hits) == 0:
		b.note("search", Skipped, "nothing was found for %q; --question gives words that it knows", o.Question)
		return b.done(ctx)
	}
	b.note("search", Pass, "%d found; the first is %s, %q", len(hits), hits[0].Locator, hits[0].Title)
	page, err := setup.Fetcher.Fetch(ctx, hits[0].Locator)
	if err != nil {
		b.note("fetch", Fail, "%v", withHint(err))
		return b.done(ctx)
	}
	b.note("fetch", Pass, "%q has %d bytes of text", page.Title, page.TextBytes)
	return b.done(ctx)
}

func (b *bench) done(ctx context.Context) Report {
	b.report.Complete = !errors.Is(ctx.Err(), context.Canceled) // what took too long has failed
	return b.report
}
