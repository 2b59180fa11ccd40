package network

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/arxiv"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// builtin is a researcher of this program.
type builtin struct {
	// fixed is its scope, or "" if that depends on what it is given; scope asks.
	fixed     string
	scope     func(a *Host, c *settings.Settings, o Options) (string, error)
	OpenWorld bool // what it is asked leaves this machine
	// off says why it is not in the network unasked; "" if it is.
	off func(a *Host, c *settings.Settings, o Options) string
	// private says whether what it finds is the user's own.
	private func(a *Host, c *settings.Settings, o Options) bool
	open    func(a *Host, c *settings.Settings, o Options, lab researcher.Lab) (*Runner, error)
}

// BuiltinNamed is one of them. Asking for another is a bug.
func BuiltinNamed(name string) builtin {
	yes := func(*Host, *settings.Settings, Options) bool { return true }
	no := func(*Host, *settings.Settings, Options) bool { return false }
	switch name {
	case files.Name:
		return builtin{files.Scope, nil, false, noFolders, (*Host).hasFolders, (*Host).openFiles}
	case database.Name:
		return builtin{"", (*Host).databaseScope, false, noDatabase, yes, (*Host).openDatabaseRunner}
	case web.Name:
		return builtin{web.Scope, nil, true, offline, no, (*Host).openWeb}
	default:
		return builtin{arxiv.Scope, nil, true, offline, no, (*Host).openArxiv}
	}
}

// Outline says what the researcher covers before it is asked.
func (b builtin) Outline() string {
	if b.fixed != "" {
		return b.fixed
	}
	return "the user's database"
}

// unknownDatabase is the scope of a database that does not say what is in it. It makes a planner
// ask it all the same, and what goes wrong then is a gap: a user who names a database wants to know
// that it is not there.
const unknownDatabase = "anything: it has not said what is in it"

// hasFolders reports whether the files researcher reads anything but what ships
// with the program.
func (a *Host) hasFolders(c *settings.Settings, o Options) bool {
	if len(o.Library) > 0 || len(c.List(settings.Library)) > 0 {
		return true
	}
	kept, err := KeptFolders(c.FoldersPath())
	return err != nil || len(kept) > 0
}

// noFolders says why no files are searched: what ships with the program is there for
// a network in which there is nothing else to ask.
func noFolders(a *Host, c *settings.Settings, o Options) string {
	alone := offline(a, c, o) != "" && noDatabase(a, c, o) != "" && !slices.ContainsFunc(c.Members, func(m settings.Member) bool { return m.External() && !m.Off })
	if a.hasFolders(c, o) || o.Embedded || slices.Contains(o.Researchers, files.Name) || alone {
		return ""
	}
	return "no folder of yours is set; --library DIR brings one in, --embedded the embedded library"
}

func noDatabase(_ *Host, c *settings.Settings, o Options) string {
	if DatabaseURL(c, o) == "" {
		return "no database is set; --db or " + settings.EnvOf(settings.DB) + " names one"
	}
	return ""
}

// offline says why nothing leaves this machine: it was not asked for, in so many
// words or by naming a search engine. A key asks for nothing: it may be in the
// environment for another program, since hosts pass on all of theirs.
func offline(_ *Host, c *settings.Settings, o Options) string {
	asked := o.Online || o.Search != "" || slices.Contains(o.Researchers, web.Name) || slices.Contains(o.Researchers, arxiv.Name)
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

// DatabaseURL is the database that the flag or the setting names.
func DatabaseURL(c *settings.Settings, o Options) string {
	return cmp.Or(o.DB, c.Text(settings.DB))
}

// ScopeTime bounds how long a database may take to say what is in it.
const ScopeTime = 3 * time.Second

// databaseScope says what is in the database. One that does not answer has no
// tables to name; asking it will say why. An address that cannot be one of a
// database is an error.
func (a *Host) databaseScope(c *settings.Settings, o Options) (string, error) {
	ctx, done := context.WithTimeout(context.Background(), ScopeTime)
	defer done()
	db, err := a.OpenDatabase(ctx, c, o)
	if errors.Is(err, marchwarden.CodeInvalid) {
		return "", err
	}
	if err != nil {
		return unknownDatabase, nil
	}
	defer db.Close()
	schema, _ := db.Schema(ctx) // without one the name says what there is to say
	return database.Scope(db, schema), nil
}
