// Package database is the researcher of a database: a search engine and a fetcher
// over one that is open, so that the ordinary loop, gate and record work on rows.
//
// A search is either a SELECT statement, as a model writes it, or words. Without a
// model each word of the question has to stand for a table, a column, a value, a
// number, or what is done with them (ask.go); one statement is built of that
// (grammar.go, build.go). If a word stands for nothing there are no rows, but a gap
// that names the word, the tables and the statement that was tried. Questions about two rows,
// or about the order of a table, are in special.go. A row is cited by table and key, the
// rows of a statement by its hash; the text that is stored holds the statement, so that
// it can be run again.
//
// Keeping statements from changing anything is package internal/database's work.
package database

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
)

// Name is the researcher's name in the network, in traces and in costs.
const Name = "database"

// Config is what the researcher works with. The caller closes what it passes in.
type Config struct {
	researcher.Lab
	DB      *database.DB
	Samples bool // lets a model see a few values of each table before it asks for any
}

// New makes the researcher that answers from the rows of a database. It is safe for concurrent use.
func New(cfg Config) marchwarden.Researcher {
	return researcher.Prepared{Lab: cfg.Lab, Name: Name, Prepare: cfg.setup}
}

// setup reads the schema, and what the question can find by it. A schema that cannot be read is a
// gap of the result.
func (cfg Config) setup(ctx context.Context, req marchwarden.Request) (researcher.Setup, error) {
	setup := researcher.Setup{Where: "the database " + cfg.DB.Name()}
	schema, err := cfg.DB.Schema(ctx)
	if err != nil {
		setup.Gaps = append(setup.Gaps, marchwarden.GapFor("the tables of "+cfg.DB.Name(), err))
	}
	asked := req.Question
	if cfg.Model != nil {
		asked = "" // a model says in its own words, or in SQL, what it wants
	}
	found := NewSource(cfg.DB, schema, dated(asked, cfg.Now()))
	setup.Gaps = append(setup.Gaps, found.Gaps(ctx)...)
	setup.Engine, setup.Fetcher = found, found.Fetcher(cfg.Blobs, cfg.Now)
	setup.Library = []string{cfg.DB.Name() + " (" + lexicon.Counted(len(schema.Tables), "table", "tables") + ")"}
	setup.Guide = Guide(cfg.DB, schema, cfg.Samples)
	return setup, nil
}

// past are the times that people name by today's date.
var past = regexp.MustCompile(`(?i)\b(?:this|last) (?:year|month)\b|\b(?:today|yesterday)\b`)

// dated is a question with those times written out: "last year" is 2025 in 2026.
func dated(question string, now time.Time) string {
	first := now.AddDate(0, 0, 1-now.Day())
	return past.ReplaceAllStringFunc(question, func(words string) string {
		return map[string]string{
			"this year": now.Format("2006"), "last year": now.AddDate(-1, 0, 0).Format("2006"),
			"this month": now.Format("January 2006"), "last month": first.AddDate(0, -1, 0).Format("January 2006"),
			"today": now.Format("2 January 2006"), "yesterday": now.AddDate(0, 0, -1).Format("2 January 2006"),
		}[strings.ToLower(words)]
	})
}

// The lengths of what is said of a schema, in characters.
const (
	maxScope = 300
	maxGuide = 1500
)

// Scope says in at most 300 characters what a database holds: "the database trials@localhost: tables patients (id, name,
// …), …". Without a schema it is the name alone.
func Scope(db *database.DB, s database.Schema) string {
	out := "the database " + db.Name()
	lead := ": tables "
	for _, t := range s.Tables {
		fits := func(most int) bool { return len([]rune(out+lead+short(t, most))) <= maxScope-2 }
		sizes := []int{12, 4, 0}
		i := slices.IndexFunc(sizes, fits)
		if i < 0 {
			return out + " …"
		}
		out += lead + short(t, sizes[i])
		lead = ", "
	}
	return out
}

func short(t database.Table, most int) string {
	if most == 0 || len(t.Columns) == 0 {
		return t.Display()
	}
	var names []string
	for _, c := range t.Columns[:min(most, len(t.Columns))] {
		names = append(names, c.Name)
	}
	if len(t.Columns) > most {
		names = append(names, "…")
	}
	return t.Display() + " (" + strings.Join(names, ", ") + ")"
}

// Guide tells a model what it may search for: the tables with types and keys, and that a search may be one SELECT
// statement; with samples a value of each column of text, too, in quotes: they are data, whatever they say.
func Guide(db *database.DB, s database.Schema, samples bool) string {
	head := fmt.Sprintf("A search may be one SELECT statement in the SQL of %s, read-only, up to 200 rows, common functions only; or plain words. Names with capitals or spaces need double quotes. Tables:\n", db.Dialect())
	var guide string
	for _, rich := range []bool{true, false} {
		guide = head
		for _, t := range s.Tables {
			guide += line(t, rich, rich && samples) + "\n"
		}
		if len([]rune(guide)) <= maxGuide {
			return guide
		}
	}
	return string([]rune(guide)[:maxGuide-1]) + "…"
}

func line(t database.Table, rich, samples bool) string {
	var cols []string
	for _, c := range t.Columns {
		col := database.Printable(c.Name)
		if rich {
			col += " " + c.Type
		}
		if samples && len(c.Samples) > 0 {
			col += fmt.Sprintf(" e.g. %.24q", c.Samples[0])
		}
		cols = append(cols, col)
	}
	out := database.Printable(t.Display()) + " (" + strings.Join(cols, ", ") + ")"
	for _, r := range t.Refs {
		out += fmt.Sprintf("; %s → %s", strings.Join(r.Columns, ", "), r.Table)
	}
	return out
}
