// Package web is the researcher of the open web. It is assembly only: search
// engines and a guarded fetcher that the caller chose, on the ground that all
// researchers share. It reads no file and knows no folder, so that nothing
// private can leave through it except by the caller's own words.
package web

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Name is the researcher's name in the network, in traces and in costs.
const Name = "web"

// Scope says in a sentence what the researcher covers.
const Scope = "the open web: pages found by search engines, addresses in the question, and what those pages link to"

// Config is what the researcher works with. The caller closes what it passes in.
type Config struct {
	researcher.Lab
	Engine  search.Engine
	Fetcher fetch.Fetcher // takes http and https addresses only, and guards what it dials
	// Secrets are values that must never leave: a query or an address that holds
	// one is refused, and what a model says is taken without them.
	Secrets []string
}

// Researcher answers from the web. It is safe for concurrent use.
type Researcher struct {
	cfg  Config
	door customs
}

var _ marchwarden.Researcher = (*Researcher)(nil)

// New makes the researcher.
func New(cfg Config) *Researcher {
	door := newCustoms(cfg.Secrets)
	if cfg.Model != nil && len(door.forms) > 0 {
		cfg.Model = &discreet{cfg.Model, door}
	}
	return &Researcher{cfg, door}
}

// Research runs the loop under a new trace.
func (r *Researcher) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return r.cfg.Answer(ctx, researcher.Asked{Name: Name, Request: req, Sink: sink}, func(_ context.Context, req marchwarden.Request) (researcher.Setup, error) {
		return researcher.Setup{
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
