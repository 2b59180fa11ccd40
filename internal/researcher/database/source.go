package database

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Source is the search engine of one run over a database. It remembers its statements, because a locator holds only their
// hash. It is safe for concurrent use.
type Source struct {
	db     *database.DB
	schema database.Schema
	asked  string // the question of the run, "" with a model, which searches in its own words

	once    sync.Once // guards what is made of the question
	answer  *plan
	because error

	mu    sync.Mutex // guards plans
	plans map[string]*plan
}

var _ search.Engine = (*Source)(nil)

// NewSource makes the engine of a run. asked is the question as the caller put it, or "" with a reasoner that writes its own
// searches.
func NewSource(db *database.DB, schema database.Schema, asked string) *Source {
	return &Source{db: db, schema: schema, asked: asked, plans: map[string]*plan{}}
}

// Name is "database".
func (s *Source) Name() string { return Name }

// Gaps are what cannot be done about the question of the run without a model: one gap of CodeUnsupported's kind if it
// has no statement, none if it has. Other failures are told by Search.
func (s *Source) Gaps(ctx context.Context) []marchwarden.Gap {
	if s.asked == "" {
		return nil
	}
	if _, err := s.plan(ctx, s.asked); marchwarden.CodeOf(err) == marchwarden.CodeUnsupported {
		return []marchwarden.Gap{marchwarden.GapFor(plaintext.Clip(s.asked, maxTopic), err)}
	}
	return nil
}

// maxTopic is how much of a question names a gap, in characters.
const maxTopic = 200

// Search runs a statement as it stands, or finds the rows that words ask for. A model that searches by words alone
// is shown rows that hold them.
func (s *Source) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if err := ctx.Err(); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeCanceled, "search %s", s.db.Name())
	}
	if !q.Filter.Allows(s.db.Name()) {
		return nil, nil
	}
	if s.asked == "" && isStatement(q.Text) { // a reasoner without a model writes no SQL
		return s.statement(ctx, q.Text)
	}
	p, err := s.plan(ctx, q.Text)
	if err != nil && marchwarden.CodeOf(err) != marchwarden.CodeUnsupported {
		return nil, err
	}
	if p != nil {
		return s.offer(p), nil
	}
	if s.asked != "" { // rows that merely hold the words are no answer
		return nil, nil
	}
	return s.rows(ctx, q)
}

// isStatement reports a search that is SQL.
func isStatement(text string) bool {
	low := strings.ToLower(strings.TrimLeft(text, " \t\n("))
	return strings.HasPrefix(low, "select") || strings.HasPrefix(low, "values ") || strings.HasPrefix(low, "with ") && strings.Contains(low, "select")
}

// statement runs SQL that a reasoner wrote.
func (s *Source) statement(ctx context.Context, text string) ([]search.Hit, error) {
	clean, err := database.Check(text, s.db.Dialect())
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, clean)
	if err != nil {
		return nil, err
	}
	return s.offer(&plan{statement: clean, rows: rows}), nil
}

// plan is what is made of the question or, where there is none, of a search's own words.
func (s *Source) plan(ctx context.Context, text string) (*plan, error) {
	if s.asked == "" {
		return answer(ctx, s.db, s.schema, text)
	}
	s.once.Do(func() { s.answer, s.because = answer(ctx, s.db, s.schema, s.asked) })
	return s.answer, s.because
}

// offer remembers a statement and makes a hit of it.
func (s *Source) offer(p *plan) []search.Hit {
	loc := s.locator(p.statement)
	s.mu.Lock()
	s.plans[loc] = p
	s.mu.Unlock()
	return []search.Hit{{Locator: loc, Title: p.title(s.db.Name()), Snippet: plaintext.Clip(p.body(), 400), Score: 1}}
}

// locator names the rows of a statement.
func (s *Source) locator(statement string) string {
	return "db:" + url.PathEscape(s.db.Name()) + "?query=" + statementHash(statement)
}

// statementHash is the hash of a statement, framed and tagged.
func statementHash(statement string) string {
	h := sha256.New()
	for _, part := range []string{"marchwarden/database/statement/v1", statement} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func rowLocator(name string, t database.Table, key []string) string {
	var pairs []string
	for i, k := range t.Key {
		pairs = append(pairs, url.QueryEscape(k)+"="+url.QueryEscape(key[i]))
	}
	return "db:" + url.PathEscape(name) + "/" + url.PathEscape(t.Display()) + "?" + strings.Join(pairs, "&")
}

// The bounds of a search for words.
const (
	wordTables = 20 // tables that are looked through
	wordRows   = 40 // rows that are taken of one
)

// rows finds rows with a key that hold words of a search, those with most first.
func (s *Source) rows(ctx context.Context, q search.Query) ([]search.Hit, error) {
	var words []string
	for _, t := range lexicon.Tokens(q.Text) {
		if !t.Stop && len(t.Stem) > 1 && !slices.Contains(words, t.Stem) && len(words) < maxRowWords {
			words = append(words, t.Stem)
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	var hits []search.Hit
	for _, t := range s.schema.Tables[:min(wordTables, len(s.schema.Tables))] {
		found, err := s.rowsOf(ctx, t, words)
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	slices.SortStableFunc(hits, func(a, b search.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(cmp.Or(q.Limit, 10), len(hits))], nil
}

func (s *Source) rowsOf(ctx context.Context, t database.Table, words []string) ([]search.Hit, error) {
	if len(t.Key) == 0 || len(t.Columns) == 0 {
		return nil, nil // its rows have no name
	}
	var tests []string
	for _, c := range t.Columns {
		if c.Kind == database.Text {
			for _, w := range words {
				tests = append(tests, database.Contains(s.db.Dialect(), database.Ident(c.Name), w))
			}
		}
	}
	if len(tests) == 0 {
		return nil, nil
	}
	rows, err := s.db.QueryUpTo(ctx, t.Select()+" WHERE "+strings.Join(tests, " OR ")+fmt.Sprintf(" ORDER BY %s LIMIT %d", t.Order(), wordRows), wordRows)
	if err != nil {
		return nil, err
	}
	var hits []search.Hit
	for _, r := range rows.Cells {
		text := sentence(rows.Columns, r)
		held := 0
		stems := lexicon.Terms(text)
		for _, w := range words {
			if slices.Contains(stems, w) {
				held++
			}
		}
		if held == 0 {
			continue
		}
		key := keyOf(t, rows.Columns, r)
		hits = append(hits, search.Hit{
			Locator: rowLocator(s.db.Name(), t, key), Title: "table " + t.Display() + ", row " + strings.Join(key, ", "),
			Snippet: plaintext.Clip(text, 400), Score: float64(held) / float64(len(words)),
		})
	}
	return hits, nil
}

func keyOf(t database.Table, columns []string, row []database.Cell) []string {
	out := make([]string, len(t.Key))
	for n, k := range t.Key {
		if i := slices.Index(columns, database.Printable(k)); i >= 0 {
			out[n] = row[i].Text
		}
	}
	return out
}

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
	page, err := fetch.Keep(ctx, f.blobs, fetch.Page{
		Locator: locator, Source: "database", Title: p.title(name), Origin: name, MediaType: "application/json", Extractor: extractor, FetchedAt: f.now().UTC(),
	}, raw, p.text(f.db))
	if err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "store rows")
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
	rest, ok := strings.CutPrefix(locator, "db:"+url.PathEscape(db.Name())+"/")
	path, query, found := strings.Cut(rest, "?")
	name, errPath := url.PathUnescape(path)
	at := slices.IndexFunc(schema.Tables, func(t database.Table) bool { return t.Display() == name })
	if !ok || !found || errPath != nil || at < 0 || len(schema.Tables[at].Key) == 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "not a row or a statement of this run")
	}
	t := schema.Tables[at]
	values, err := url.ParseQuery(query)
	var tests, keys []string
	for _, k := range t.Key {
		if err != nil || !values.Has(k) {
			return nil, marchwarden.Errorf(marchwarden.CodeDenied, "not a row of the table %s", name)
		}
		tests = append(tests, database.Ident(k)+" = "+database.Literal(values.Get(k)))
		keys = append(keys, k+" "+values.Get(k))
	}
	p := &plan{statement: t.Select() + " WHERE " + strings.Join(tests, " AND "), table: t.Display(), key: strings.Join(keys, ", ")}
	if p.rows, err = db.Query(ctx, p.statement); err != nil {
		return nil, err
	}
	if len(p.rows.Cells) == 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "table %s has no row %s", p.table, p.key)
	}
	return p, nil
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
