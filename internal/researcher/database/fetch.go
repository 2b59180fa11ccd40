package database

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// extractor names how rows become text; its number rises when the text changes.
const extractor = "rows/2"

// Fetcher reads what a Source offered, and no other locator.
type Fetcher struct {
	*Source
	blobs blob.Store
	now   func() time.Time
}

var _ fetch.Fetcher = (*Fetcher)(nil)

// Fetcher makes the fetcher of the run that the source searches for.
func (s *Source) Fetcher(blobs blob.Store, now func() time.Time) *Fetcher {
	return &Fetcher{s, blobs, now}
}

// Fetch runs the statement of a locator, or reads its row, and stores the rows as
// JSON and as sentences. A statement that this run did not offer is CodeDenied; a
// row that is gone is CodeNotFound.
func (f *Fetcher) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	p, err := f.load(ctx, locator)
	if err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeOf(err), "fetch %q", locator)
	}
	raw, err := rowsJSON(p.rows)
	if err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeInternal, "fetch %q", locator)
	}
	name := f.db.Name()
	text := p.text(f.db)
	page := fetch.Page{
		Locator: locator, Source: "database", Title: p.title(name), Origin: name, MediaType: "application/json", Extractor: extractor,
		RawBytes: len(raw), TextBytes: len(text), FetchedAt: f.now().UTC(),
	}
	if page.Raw, err = f.blobs.Put(ctx, raw); err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "store rows")
	}
	if page.Text, err = f.blobs.Put(ctx, []byte(text)); err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "store text")
	}
	return page, nil
}

func (f *Fetcher) load(ctx context.Context, locator string) (*plan, error) {
	f.mu.Lock()
	known := f.plans[locator]
	f.mu.Unlock()
	if known == nil {
		return rowPlan(ctx, f.db, f.schema, locator)
	}
	p := *known
	rows, err := f.db.Query(ctx, p.statement)
	if err != nil {
		return nil, err
	}
	p.rows = rows
	return &p, nil
}

// rowPlan reads the row that a locator names by its key.
func rowPlan(ctx context.Context, db *database.DB, schema database.Schema, locator string) (*plan, error) {
	t, where, key, err := rowOf(db, schema, locator)
	if err != nil {
		return nil, err
	}
	p := &plan{statement: t.Select() + " WHERE " + where, table: t.Display(), key: key}
	if p.rows, err = db.Query(ctx, p.statement); err != nil {
		return nil, err
	}
	if len(p.rows.Cells) == 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "table %s has no row %s", t.Display(), key)
	}
	return p, nil
}

func rowOf(db *database.DB, schema database.Schema, locator string) (t database.Table, where, key string, err error) {
	rest, ok := strings.CutPrefix(locator, "db:"+url.PathEscape(db.Name())+"/")
	path, query, found := strings.Cut(rest, "?")
	name, errPath := url.PathUnescape(path)
	at := slices.IndexFunc(schema.Tables, func(t database.Table) bool { return t.Display() == name })
	if !ok || !found || errPath != nil || at < 0 || len(schema.Tables[at].Key) == 0 {
		return t, "", "", marchwarden.Errorf(marchwarden.CodeDenied, "not a row or a statement of this run")
	}
	t = schema.Tables[at]
	values, err := url.ParseQuery(query)
	if err != nil {
		return t, "", "", marchwarden.Errorf(marchwarden.CodeDenied, "not a row of the table %s", name)
	}
	var tests, keys []string
	for _, k := range t.Key {
		if !values.Has(k) {
			return t, "", "", marchwarden.Errorf(marchwarden.CodeDenied, "not a row of the table %s", name)
		}
		tests = append(tests, database.Ident(k)+" = "+database.Literal(values.Get(k)))
		keys = append(keys, k+" "+values.Get(k))
	}
	return t, strings.Join(tests, " AND "), strings.Join(keys, ", "), nil
}

// rowsJSON is the raw form of rows: a list of columns and a list of rows, numbers as numbers.
func rowsJSON(rows database.Rows) ([]byte, error) {
	type out struct {
		Columns   []string `json:"columns"`
		Rows      [][]any  `json:"rows"`
		Truncated bool     `json:"truncated,omitempty"`
	}
	o := out{Columns: rows.Columns, Rows: make([][]any, len(rows.Cells)), Truncated: rows.Truncated}
	for i, r := range rows.Cells {
		for _, c := range r {
			switch {
			case c.Null:
				o.Rows[i] = append(o.Rows[i], nil)
			case c.Number && json.Valid([]byte(c.Text)):
				o.Rows[i] = append(o.Rows[i], json.Number(c.Text))
			default:
				o.Rows[i] = append(o.Rows[i], c.Text)
			}
		}
	}
	b, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write rows: %w", err)
	}
	return b, nil
}
