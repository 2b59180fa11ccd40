package network

import (
	"context"
	"errors"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/arxiv"
	dbresearcher "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	arxivapi "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/arxiv"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// openArxiv opens the researcher of papers.
func (a *Host) openArxiv(c *settings.Settings, o Options, lab researcher.Lab) (*Runner, error) {
	d, pages, err := a.newPagesRunner(c, o, &lab, settings.RenderNever)
	if err != nil {
		return nil, err
	}
	api, indexes := a.OpenPapers(c)
	papers := arxiv.NewPapers(arxiv.PapersConfig{Store: d.Records.Blobs, API: api, Scholar: indexes, Web: pages, Site: c.Text(settings.ArxivSite), Now: a.Now})
	d.Name, d.Scope, d.OpenWorld = arxiv.Name, arxiv.Scope, true
	d.Researcher = arxiv.New(arxiv.Config{Lab: lab, Engine: arxiv.Together(a.Now, api, indexes.Engine()), Fetcher: papers})
	return d, nil
}

// OpenPapers makes the clients of the services that know papers.
func (a *Host) OpenPapers(c *settings.Settings) (*arxivapi.Client, *scholar.Service) {
	api := arxivapi.New(arxivapi.Config{BaseURL: c.Text(settings.ArxivURL), HTTP: a.sharedClient("arxiv"), UserAgent: a.UserAgent(), Now: a.Now})
	indexes := scholar.New(scholar.Config{
		CrossrefURL: c.Text(settings.CrossrefURL), OpenAlexURL: c.Text(settings.OpenAlexURL), SemanticScholarURL: c.Text(settings.ScholarURL),
		Mailto: c.Text(settings.Mailto), SemanticScholarKey: c.Text(settings.ScholarKey), OpenAlexKey: c.Text(settings.OpenAlexKey), HTTP: a.sharedClient("scholar"), UserAgent: a.UserAgent(),
	})
	return api, indexes
}

// OpenDatabase opens the database that the options or the settings name.
func (a *Host) OpenDatabase(ctx context.Context, c *settings.Settings, o Options) (*database.DB, error) {
	address := DatabaseURL(c, o)
	if address == "" {
		return nil, settings.Invalid("--db", "for example postgres://user@localhost/trials or ~/data.sqlite", "is missing")
	}
	if database.IsFile(address) {
		address = a.Source().Absolute(address, a.Dir)
	}
	db, err := database.Open(ctx, address, database.Options{})
	var e *marchwarden.Error
	if errors.As(err, &e) && slices.Contains([]marchwarden.Code{marchwarden.CodeInvalid, marchwarden.CodeNotFound, marchwarden.CodeUnsupported, marchwarden.CodeDenied}, e.Code) {
		field := "--db"
		if o.DB == "" {
			field = c.Label(settings.DB)
		}
		return nil, settings.Invalid(field, e.Hint, e.Message) // what was given is wrong, and not the database
	}
	return db, err
}

// openDatabaseRunner opens the researcher of a database.
func (a *Host) openDatabaseRunner(c *settings.Settings, o Options, lab researcher.Lab) (*Runner, error) {
	ctx, done := context.WithTimeout(context.Background(), ScopeTime)
	defer done()
	db, err := a.OpenDatabase(ctx, c, o)
	if err != nil {
		return nil, err
	}
	d, err := a.newRunner(c, o, &lab)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if warning := db.Warning(ctx); warning != "" {
		o.Warn(warning)
	}
	schema, _ := db.Schema(ctx) // a database that does not answer is a gap of each research
	d.Name, d.Scope, d.Private = dbresearcher.Name, dbresearcher.Scope(db, schema), true
	d.Researcher = dbresearcher.New(dbresearcher.Config{Lab: lab, DB: db, Samples: o.AllowSamples})
	d.Closers = []func() error{db.Close}
	return d, nil
}
