package researcher

// The researcher of the open web: search engines and a guarded fetcher that the caller chose.
// It reads no file and knows no folder, so that nothing private can leave through it except by
// the caller's own words.

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
	// Secrets are values that must never leave: a query or an address that holds
	// one is refused, and what a model says is taken without them.
	Secrets []string
}

// Web answers from the web. It is safe for concurrent use.
type Web struct {
	cfg  WebConfig
	door customs
}

var _ marchwarden.Researcher = (*Web)(nil)

// NewWeb makes the researcher.
func NewWeb(cfg WebConfig) *Web {
	door := newCustoms(cfg.Secrets)
	if cfg.Model != nil && len(door.forms) > 0 {
		cfg.Model = &discreet{cfg.Model, door}
	}
	return &Web{cfg, door}
}

// Research runs the loop under a new trace.
func (r *Web) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return r.cfg.Answer(ctx, Asked{Name: WebName, Request: req, Sink: sink}, func(_ context.Context, req marchwarden.Request) (Setup, error) {
		return Setup{
			Where:   "the web by " + r.cfg.Engine.Name(),
			Engine:  &engine{r.cfg.Engine, r.door},
			Fetcher: &fetcher{r.cfg.Fetcher, r.door},
			// The context may hold what a caller read in private sources, and an address
			// may carry it out: only the question's own addresses are read.
			Given:   locator.InText(req.Question),
			Library: []string{"the web by " + r.cfg.Engine.Name()},
		}, nil
	})
}
