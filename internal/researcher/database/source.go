package database

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Source is the search engine of one run over a database. It remembers its statements, because a locator holds only their
// hash. It is safe for concurrent use.
type Source struct {
	db     *database.DB
	schema database.Schema
	asked  string // the question of the run, for the templates; "" to use each search's own words

	once    sync.Once // guards what the templates make of the question
	answer  *plan
	because error

	mu    sync.Mutex // guards plans
	plans map[string]*plan
}

var _ search.Engine = (*Source)(nil)

// NewSource makes the engine of a run. asked is the question as the caller put it, for the templates, or "" with a
// reasoner that writes its own searches.
func NewSource(db *database.DB, schema database.Schema, asked string) *Source {
	return &Source{db: db, schema: schema, asked: asked, plans: map[string]*plan{}}
}

// Name is "database".
func (s *Source) Name() string { return Name }

// Gaps are what the templates cannot do about the question of the run: one gap of
// CodeUnsupported's kind if they have no answer, none if they have. Rows that Search
// finds are then no answer. Other failures are told by Search.
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

// Search runs a statement as it stands, or finds the rows that words ask for. Where
// the templates do not answer the question of the run, which Gaps tells, it finds
// rows that merely hold the words.
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

// plan is what the templates make of the question or, where there is none, of a search's own words.
func (s *Source) plan(ctx context.Context, text string) (*plan, error) {
	if s.asked == "" {
		return answerByTemplate(ctx, s.db, s.schema, text)
	}
	s.once.Do(func() { s.answer, s.because = answerByTemplate(ctx, s.db, s.schema, s.asked) })
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
