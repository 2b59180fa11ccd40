package main

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

// openArxivDesk opens the researcher of papers.
func (a *app) openArxivDesk(c *settings.Settings, o deskOptions, lab researcher.Lab) (*desk, error) {
	d, pages, err := a.newPagesDesk(c, o, &lab, settings.RenderNever)
	if err != nil {
		return nil, err
	}
	api, indexes := a.openPapers(c)
	papers := arxiv.NewPapers(arxiv.PapersConfig{Store: d.records.blobs, API: api, Scholar: indexes, Web: pages, Site: c.Text(settings.ArxivSite), Now: a.now})
	d.name, d.scope, d.openWorld = arxiv.Name, arxiv.Scope, true
	d.researcher = arxiv.New(arxiv.Config{Lab: lab, Engine: arxiv.Together(a.now, api, indexes.Engine()), Fetcher: papers})
	return d, nil
}

// openPapers makes the clients of the services that know papers.
func (a *app) openPapers(c *settings.Settings) (*arxivapi.Client, *scholar.Service) {
	api := arxivapi.New(arxivapi.Config{BaseURL: c.Text(settings.ArxivURL), HTTP: a.sharedClient("arxiv"), UserAgent: userAgent(), Now: a.now})
	indexes := scholar.New(scholar.Config{
		CrossrefURL: c.Text(settings.CrossrefURL), OpenAlexURL: c.Text(settings.OpenAlexURL), SemanticScholarURL: c.Text(settings.ScholarURL),
		Mailto: c.Text(settings.Mailto), SemanticScholarKey: c.Text(settings.ScholarKey), OpenAlexKey: c.Text(settings.OpenAlexKey), HTTP: a.sharedClient("scholar"), UserAgent: userAgent(),
	})
	return api, indexes
}

// openDatabase opens the database that the options or the settings name.
func (a *app) openDatabase(ctx context.Context, c *settings.Settings, o deskOptions) (*database.DB, error) {
	address := databaseURL(c, o)
	if address == "" {
		return nil, invalid("--db", "for example postgres://user@localhost/trials or ~/data.sqlite", "is missing")
	}
	if database.IsFile(address) {
		address = a.source().Absolute(address, a.dir)
	}
	db, err := database.Open(ctx, address, database.Options{})
	var e *marchwarden.Error
	if errors.As(err, &e) && slices.Contains([]marchwarden.Code{marchwarden.CodeInvalid, marchwarden.CodeNotFound, marchwarden.CodeUnsupported, marchwarden.CodeDenied}, e.Code) {
		field := "--db"
		if o.db == "" {
			field = c.Label(settings.DB)
		}
		return nil, invalid(field, e.Hint, e.Message) // what was given is wrong, and not the database
	}
	return db, err
}

// openDatabaseDesk opens the researcher of a database.
func (a *app) openDatabaseDesk(c *settings.Settings, o deskOptions, lab researcher.Lab) (*desk, error) {
	ctx, done := context.WithTimeout(context.Background(), scopeTime)
	defer done()
	db, err := a.openDatabase(ctx, c, o)
	if err != nil {
		return nil, err
	}
	d, err := a.newDesk(c, o, &lab)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if warning := db.Warning(ctx); warning != "" {
		o.warn(warning)
	}
	schema, _ := db.Schema(ctx) // a database that does not answer is a gap of each research
	d.name, d.scope, d.private = dbresearcher.Name, dbresearcher.Scope(db, schema), true
	d.researcher = dbresearcher.New(dbresearcher.Config{Lab: lab, DB: db, Samples: o.allowSamples})
	d.close = []func() error{db.Close}
	return d, nil
}
