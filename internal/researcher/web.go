package researcher

// The researcher of the open web: search engines and a guarded fetcher that the caller chose. It reads no file, so that
// nothing private can leave through it except by the caller's own words.

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// WebName is the researcher's name in the network, in traces and in costs.
const WebName = "web"

// WebScope says in a sentence what the researcher covers.
const WebScope = "the open web: pages found by search engines, addresses in the question, and what those pages link to"

// WebConfig is what the researcher works with. The caller closes what it passes in.
type WebConfig struct {
	Lab
	Engine  search.Engine
	Fetcher fetch.Fetcher // takes http and https addresses only, and guards what it dials
	Secrets []string      // must never leave: a query or an address that holds one is refused, and replies are taken without
}

// NewWeb makes the researcher that answers from the web. It is safe for concurrent use.
func NewWeb(cfg WebConfig) marchwarden.Researcher {
	door := newCustoms(cfg.Secrets)
	if cfg.Model != nil && len(door.forms) > 0 {
		cfg.Model = &discreet{cfg.Model, door}
	}
	where := "the web by " + cfg.Engine.Name()
	return Prepared{cfg.Lab, WebName, func(_ context.Context, req marchwarden.Request) (Setup, error) {
		// The context may hold what is private, and an address may carry it out: only the question's own are read.
		return Setup{Where: where, Outside: true, Engine: &engine{cfg.Engine, door}, Fetcher: &fetcher{cfg.Fetcher, door}, Given: locator.InText(req.Question), Library: []string{where}}, nil
	}}
}
