// Package connector is the researcher of any MCP server that has tools to search and to fetch: a
// search engine and a fetcher over them, so that the ordinary loop, gate and record work on what
// the server has. It stands apart from the other researchers because it alone speaks MCP to a
// server of another maker.
//
// The tools are found by their names and schemas, or named in config.yaml (tools.go). What they
// answer is read without trust (answer.go): a text counts once it is stored, and what a tool says
// of itself reaches no model.
package connector

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
)

// Config is what the researcher works with. The caller closes what it passes in.
type Config struct {
	researcher.Lab
	Name          string // in the network
	Search, Fetch Mapping
	Dial          func(context.Context) (*client.Session, error) // for a server's own tools
	Extractor     *extract.Extractor
	Quote         bool // lets errors hold words of the server, for those who run it
}

// Connector answers from the documents of one server. It is safe for concurrent use.
type Connector struct {
	researcher.Prepared
	cfg  Config
	plan plan
	card client.Card

	mu    sync.Mutex // guards what follows
	s     *client.Session
	known map[string]hit // by id, what searches gave
}

// Open connects to the server and finds its tools. A server without a tool to search is
// CodeUnsupported, and the error says what is missing.
func Open(ctx context.Context, cfg Config) (*Connector, error) {
	s, err := cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &Connector{cfg: cfg, s: s, card: s.Card(), known: map[string]hit{}}
	if c.plan, err = planOf(s.Tools(), cfg.Search, cfg.Fetch); err != nil {
		_ = s.Close() // what is wrong is said
		return nil, marchwarden.Wrap(err, marchwarden.CodeOf(err), "use %s as a connector", cfg.Name)
	}
	c.Prepared = researcher.Prepared{Lab: cfg.Lab, Name: cfg.Name, Prepare: func(context.Context, marchwarden.Request) (researcher.Setup, error) {
		return researcher.Setup{Where: cfg.Name, Engine: c, Fetcher: c, Library: []string{cfg.Name + " (" + c.plan.String() + ")"}}, nil
	}}
	return c, nil
}

// Card is what the server said of itself when it was first reached.
func (c *Connector) Card() client.Card { return c.card }

// Tools says which tools are used, for people.
func (c *Connector) Tools() string { return c.plan.String() }

// Close ends the connection.
func (c *Connector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.Close()
}

// use calls a tool, over a new connection if the last one is over. A server that describes its
// tools otherwise than before is not asked.
func (c *Connector) use(ctx context.Context, t tool, value string) (client.Found, error) {
	c.mu.Lock()
	s := c.s
	select {
	case <-s.Done():
		again, err := c.cfg.Dial(ctx)
		if err == nil && again.Card().ToolHash != c.card.ToolHash {
			err = marchwarden.Errorf(marchwarden.CodeDenied, "the tools of %s are described otherwise than before", c.cfg.Name)
			_ = again.Close()
		}
		if err != nil {
			c.mu.Unlock()
			return client.Found{}, err
		}
		_ = s.Close() // it is over
		c.s, s = again, again
	default:
	}
	c.mu.Unlock()
	args := maps.Clone(t.always)
	args[t.argument] = value
	found, err := s.Use(ctx, t.name, args)
	if said, ok := errors.AsType[*dispatch.Said](err); ok && !c.cfg.Quote {
		err = said.Plain
	}
	return found, err
}

// maxKnown bounds what is remembered of searches.
const maxKnown = 10_000

// remember keeps what a search said of its hits, for when they are fetched.
func (c *Connector) remember(hits []hit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) > maxKnown {
		clear(c.known)
	}
	for _, h := range hits {
		c.known[h.id] = h
	}
}

// scheme begins the locator of a document: "mcp:notion/ID".
const scheme = "mcp:"

func (c *Connector) locator(id string) string {
	return scheme + c.cfg.Name + "/" + url.PathEscape(id)
}

func (c *Connector) id(locator string) (string, bool) {
	rest, ok := strings.CutPrefix(locator, scheme+c.cfg.Name+"/")
	id, err := url.PathUnescape(rest)
	return id, ok && err == nil && id != ""
}
