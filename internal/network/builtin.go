package network

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	dbresearcher "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// builtin is a researcher of this program.
type builtin struct {
	scope     string // that of a database is what is in it
	openWorld bool   // what it is asked leaves this machine
	// off says why it is not in the network unasked; "" if it is.
	off  func(c *settings.Settings, o Options) string
	open func(h *Host, c *settings.Settings, o Options, lab researcher.Lab) (*Runner, error)
}

var builtins = map[string]builtin{
	researcher.FilesName: {researcher.FilesScope, false, noFolders, (*Host).openFiles},
	dbresearcher.Name:    {"the user's database", false, noDatabase, (*Host).openDatabaseRunner},
	researcher.WebName:   {researcher.WebScope, true, offline, (*Host).openWeb},
	researcher.ArxivName: {researcher.ArxivScope, true, offline, (*Host).openArxiv},
}

// Entry is a researcher that the settings name, in the network or not.
type Entry struct {
	Name, Scope, Transport string
	OpenWorld, Private     bool
	Off                    string // why it is not in the network; "" if it is
}

// Roster are all researchers that there could be, as the options have them.
func Roster(c *settings.Settings, o Options) (all []Entry) {
	for _, name := range c.MemberNames() {
		m := c.MemberNamed(name)
		e := Entry{name, m.Scope, m.Transport(), true, m.Private, WhyOff(c, o, name)}
		if b, own := builtins[name]; own {
			e.Scope, e.Transport, e.OpenWorld = b.scope, "marchwarden serve "+name, b.openWorld
		}
		all = append(all, e)
	}
	return all
}

// hasFolders reports whether the files researcher reads anything but what ships
// with the program.
func hasFolders(c *settings.Settings, o Options) bool {
	if len(o.Library) > 0 || len(c.List(settings.Library)) > 0 {
		return true
	}
	kept, err := KeptFolders(c.FoldersPath())
	return err != nil || len(kept) > 0
}

// noFolders says why no files are searched: what ships with the program is there for
// a network in which there is nothing else to ask.
func noFolders(c *settings.Settings, o Options) string {
	alone := offline(c, o) != "" && noDatabase(c, o) != "" && !slices.ContainsFunc(c.Members, func(m settings.Member) bool { return m.External() && !m.Off })
	if hasFolders(c, o) || o.Embedded || slices.Contains(o.Researchers, researcher.FilesName) || alone {
		return ""
	}
	return "no folder of yours is set; --library DIR brings one in, --embedded the embedded library"
}

// Examples are questions that what ships with the program has answers to; none where that is not
// all that is searched.
func Examples(c *settings.Settings, o Options) []string {
	if hasFolders(c, o) || noFolders(c, o) != "" {
		return nil
	}
	return []string{"Which crops grow well in a garden in Utah?", "How does Marchwarden verify an answer?", "How many regions does France have?", "What is Casgevy approved for?"}
}

func noDatabase(c *settings.Settings, o Options) string {
	if databaseURL(c, o) == "" {
		return "no database is set; --db or " + settings.EnvOf(settings.DB) + " names one"
	}
	return ""
}

// offline says why nothing leaves this machine: it was not asked for, in so many
// words or by naming a search engine. A key asks for nothing: it may be in the
// environment for another program, since hosts pass on all of theirs.
func offline(c *settings.Settings, o Options) string {
	asked := o.Online || o.Search != "" || slices.Contains(o.Researchers, researcher.WebName) || slices.Contains(o.Researchers, researcher.ArxivName)
	if c.Given(settings.Online) && !c.On(settings.Online) && !asked {
		return c.Label(settings.Online) + " is false"
	}
	for _, name := range []string{settings.SearxngURL, settings.Search} {
		// One in .env is used when the network is, and does not switch it on: the folder
		// may be another's.
		asked = asked || c.Given(name) && c.Text(name) != "" && c.Origin(name) != settings.FromDotEnv
	}
	if asked || c.On(settings.Online) {
		return ""
	}
	return "nothing leaves this machine unasked; --online, " + settings.EnvOf(settings.Online) + "=1 or a search engine that is named switches it on"
}

// databaseURL is the database that the flag or the setting names.
func databaseURL(c *settings.Settings, o Options) string {
	return cmp.Or(o.DB, c.Text(settings.DB))
}

// scopeTime bounds how long a database may take to say what is in it.
const scopeTime = 3 * time.Second

// databaseScope says what is in the database. One that does not answer is asked all the same, and
// what goes wrong then is a gap: a user who names a database wants to know that it is not there. An
// address that cannot be one of a database is an error.
func (h *Host) databaseScope(c *settings.Settings, o Options) (string, error) {
	ctx, done := context.WithTimeout(context.Background(), scopeTime)
	defer done()
	db, err := h.OpenDatabase(ctx, c, o)
	if errors.Is(err, marchwarden.CodeInvalid) {
		return "", err
	}
	if err != nil {
		return "anything: it has not said what is in it", nil
	}
	defer db.Close()
	schema, _ := db.Schema(ctx) // without one the name says what there is to say
	return dbresearcher.Scope(db, schema), nil
}

// openArxiv opens the researcher of papers.
func (h *Host) openArxiv(c *settings.Settings, o Options, lab researcher.Lab) (*Runner, error) {
	d, pages, err := h.newPagesRunner(c, o, &lab)
	if err != nil {
		return nil, err
	}
	api, indexes, papers := h.openPapers(c, d.Records.Blobs, pages)
	d.Name, d.Scope, d.OpenWorld = researcher.ArxivName, researcher.ArxivScope, true
	d.Researcher = researcher.NewArxiv(researcher.ArxivConfig{Lab: lab, Engine: researcher.Together(api, indexes), Fetcher: papers})
	return d, nil
}

// openPapers makes the fetcher of papers, and the clients that it asks.
func (h *Host) openPapers(c *settings.Settings, store blob.Store, pages *webfetch.Fetcher) (*scholar.Arxiv, *scholar.Service, *researcher.Papers) {
	api, indexes := h.openIndexes(c)
	return api, indexes, researcher.NewPapers(researcher.PapersConfig{Store: store, API: api, Scholar: indexes, Web: pages, Site: c.Text(settings.ArxivSite), Now: h.Now})
}

// openIndexes makes the clients of the services that know papers.
func (h *Host) openIndexes(c *settings.Settings) (*scholar.Arxiv, *scholar.Service) {
	api := scholar.NewArxiv(scholar.ArxivConfig{BaseURL: c.Text(settings.ArxivURL), HTTP: h.sharedClient("arxiv"), UserAgent: h.UserAgent(), Now: h.Now})
	indexes := scholar.New(scholar.Config{
		CrossrefURL: c.Text(settings.CrossrefURL), OpenAlexURL: c.Text(settings.OpenAlexURL), SemanticScholarURL: c.Text(settings.ScholarURL),
		Mailto: c.Text(settings.Mailto), SemanticScholarKey: c.Text(settings.ScholarKey), OpenAlexKey: c.Text(settings.OpenAlexKey), HTTP: h.sharedClient("scholar"), UserAgent: h.UserAgent(),
	})
	return api, indexes
}

// OpenDatabase opens the database that the options or the settings name.
func (h *Host) OpenDatabase(ctx context.Context, c *settings.Settings, o Options) (*database.DB, error) {
	address := databaseURL(c, o)
	if address == "" {
		return nil, settings.Invalid("--db", "for example postgres://user@localhost/trials or ~/data.sqlite", "is missing")
	}
	if database.IsFile(address) {
		address = h.Source().Absolute(address, h.Dir)
	}
	db, err := database.Open(ctx, address, database.Options{})
	e, is := errors.AsType[*marchwarden.Error](err)
	if !is || !slices.Contains([]marchwarden.Code{marchwarden.CodeInvalid, marchwarden.CodeNotFound, marchwarden.CodeUnsupported, marchwarden.CodeDenied}, e.Code) {
		return db, err
	}
	field := "--db"
	if o.DB == "" {
		field = c.Label(settings.DB)
	}
	return nil, settings.Invalid(field, e.Hint, e.Message) // what was given is wrong, and not the database
}

// openDatabaseRunner opens the researcher of a database.
func (h *Host) openDatabaseRunner(c *settings.Settings, o Options, lab researcher.Lab) (*Runner, error) {
	ctx, done := context.WithTimeout(context.Background(), scopeTime)
	defer done()
	db, err := h.OpenDatabase(ctx, c, o)
	if err != nil {
		return nil, err
	}
	d, err := h.newRunner(c, o, &lab)
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
