package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/arxiv"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// researcherParts are the members of the network as the settings make it. None is started or
// dialled: 'marchwarden researchers' does that.
func (a *app) researcherParts(c *settings.Settings) []partRow {
	var rows []partRow
	for _, name := range settings.Builtin {
		row := partRow{"researcher " + name, partOK, network.BuiltinNamed(name).Outline()}
		if why := a.WhyOff(c, network.Options{}, name); why != "" {
			row.State, row.Detail = partOff, why
		}
		rows = append(rows, row)
	}
	for _, m := range c.Members {
		if m.External() {
			rows = append(rows, a.memberPart(c, m))
		}
	}
	return rows
}

// memberPart is an external researcher.
func (a *app) memberPart(c *settings.Settings, m settings.Member) partRow {
	row := partRow{"researcher " + m.Name, partOK, m.Transport() + "; 'marchwarden researchers' tries it"}
	_, wrong := a.Target(c, m)
	var missing error
	if len(m.Command) > 0 {
		_, missing = exec.LookPath(m.Command[0])
	}
	var e *marchwarden.Error
	switch {
	case m.Off:
		row.State, row.Detail = partOff, network.OffInFile
	case errors.As(wrong, &e):
		row.State, row.Detail = partBroken, e.Message+"; "+e.Hint
	case errors.Is(missing, exec.ErrNotFound):
		row.State, row.Detail = partBroken, m.Command[0]+" is not in PATH ("+m.At+")"
	case missing != nil:
		row.State, row.Detail = partBroken, m.Command[0]+" cannot be run: "+durable.Cause(errors.Unwrap(missing))+" ("+m.At+")"
	}
	return row
}

// databasePart is the database of the settings, whose address is not shown: it may
// hold a password.
func (a *app) databasePart(c *settings.Settings) servicePart {
	const name = "database"
	address := network.DatabaseURL(c, network.Options{})
	if address == "" {
		return servicePart{partRow: partRow{name, partOff, settings.EnvOf(settings.DB) + " is not set"}}
	}
	scheme, _, _ := strings.Cut(address, ":")
	row := partRow{name, partOK, "set by " + c.Label(settings.DB) + ", of kind " + strings.ToLower(plaintext.Clip(scheme, 20))}
	if database.IsFile(address) {
		row.Detail = "set by " + c.Label(settings.DB) + ", an SQLite file"
		if _, err := os.Stat(a.Source().Absolute(address, a.Dir)); err != nil {
			return servicePart{partRow: partRow{name, partBroken, row.Detail + " that cannot be opened: " + durable.Cause(err)}}
		}
	}
	return servicePart{partRow: row, try: func(ctx context.Context) (string, error) {
		ctx, done := context.WithTimeout(ctx, network.ScopeTime)
		defer done()
		db, err := a.OpenDatabase(ctx, c, network.Options{})
		if err != nil {
			return "", err
		}
		return db.Name() + " can be read", db.Close()
	}}
}

// knownPaper is a paper that every index of papers has.
const knownPaper = "10.1038/s41586-021-03819-2"

// paperParts are the services that know papers.
func (a *app) paperParts(c *settings.Settings) []servicePart {
	api, indexes := a.OpenPapers(c)
	parts := []servicePart{
		{partRow: partRow{"papers by arXiv", partOK, "needs no key"}, try: func(ctx context.Context) (string, error) {
			_, err := api.Search(ctx, search.Query{Text: "attention", Limit: 1})
			return "", err
		}},
	}
	// One question goes to all indexes, so the first check asks for all of them.
	var once sync.Once
	var work scholar.Work
	ask := func(ctx context.Context) {
		id, _ := scholar.ParseID(knownPaper) // it is one
		work, _ = indexes.Look(ctx, id)      // what each of them said is in the work
	}
	for _, s := range []struct{ index, key string }{{scholar.Crossref, ""}, {scholar.OpenAlex, settings.OpenAlexKey}, {scholar.SemanticScholar, settings.ScholarKey}} {
		row := partRow{"papers by " + s.index, partOK, "needs no key"}
		if s.key != "" && c.Text(s.key) != "" {
			row.Detail = "with the key of " + c.Label(s.key)
		}
		parts = append(parts, servicePart{partRow: row, crowded: row.Detail == "needs no key", try: func(ctx context.Context) (string, error) {
			once.Do(func() { ask(ctx) })
			return answerOf(work, s.index)
		}})
	}
	if c.MemberNamed(arxiv.Name).Off {
		for i := range parts {
			parts[i].State, parts[i].Detail, parts[i].try = partOff, "the researcher arxiv is "+network.OffInFile, nil
		}
	}
	return parts
}

// answerOf is what an index said about the paper, or why it did not answer.
func answerOf(w scholar.Work, index string) (said string, err error) {
	i := slices.IndexFunc(w.Asked, func(s scholar.Answer) bool { return s.Index == index })
	switch {
	case i < 0:
		return "", marchwarden.Errorf(marchwarden.CodeTimeout, "did not answer in time")
	case w.Asked[i].Code != "":
		return "", marchwarden.Errorf(w.Asked[i].Code, "%s", w.Asked[i].Fault)
	case !w.Asked[i].Known:
		return "answered, and does not have the paper " + knownPaper, nil
	}
	return "answered", nil
}
