package local

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// ftsTables are the two ways words are indexed: as written, which finds the very
// thing that was asked for, and by their stems, which finds its other forms.
var ftsTables = []string{"exact", "stems"}

// ftsWeight is what a score by each table counts. Half for exact gave the best
// ranking on CACM, Cranfield, SciFact and SQuAD among 0, ½ and 1, though by
// little: nDCG@10 .490, .386, .838 and .911.
var ftsWeight = map[string]float64{"exact": 0.5, "stems": 1}

// The ranking. A document is as good as its best chunk; the next few add a
// little, so that of two equal ones the document that says more comes first.
const (
	defaultLimit = 10
	minChunks    = 200  // chunks looked at per table and folder, at least
	chunksPerHit = 20   // and for every hit asked for
	moreChunks   = 4    // further chunks that count
	moreWeight   = 0.05 // what each of them adds of its score
)

// Engine returns a search engine over these folders, which should have been
// given to Update before: one that the index does not hold has no hits. The
// engine is called "local"; a limit below 1 means 10. Of a document, the
// filter looks at the host it declares and at its file name: one must match.
// Ties are broken by locator.
func (ix *Index) Engine(folders ...*fetch.Folder) search.Engine {
	sorted := slices.SortedFunc(slices.Values(folders), func(a, b *fetch.Folder) int { return strings.Compare(a.Name, b.Name) })
	once := slices.CompactFunc(sorted, func(a, b *fetch.Folder) bool { return a.Name == b.Name })
	return &engine{ix: ix, folders: once}
}

type engine struct {
	ix      *Index
	folders []*fetch.Folder
}

// Name implements search.Engine.
func (e *engine) Name() string { return "local" }

// Search implements search.Engine.
func (e *engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if err := ctx.Err(); err != nil {
		return nil, coded(ctx, err, "search the library")
	}
	if q.Limit < 1 {
		q.Limit = defaultLimit
	}
	words := terms(q.Text)
	if len(words) == 0 {
		return nil, nil
	}
	var hits []search.Hit
	err := e.ix.use(func() error {
		tx, err := e.ix.r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one state of the index throughout
		if err != nil {
			return fmt.Errorf("begin search: %w", err)
		}
		defer tx.Rollback()
		s := &searcher{ctx: ctx, tx: tx, q: q, terms: words, docs: map[int64]*found{}}
		hits, err = s.run(e.folders)
		return err
	})
	if damaged(err) && ctx.Err() == nil {
		return nil, e.ix.reportDamage(err)
	}
	if err != nil {
		return nil, coded(ctx, err, "search the library")
	}
	return hits, nil
}

// reportDamage leaves a mark that makes the next Open start the index anew. Here
// and now an empty index would only look like an answer.
func (ix *Index) reportDamage(err error) error {
	if ix.path != "" {
		if markErr := os.WriteFile(ix.marker(), nil, 0o600); markErr != nil {
			err = errors.Join(err, markErr)
		}
	}
	return &marchwarden.Error{
		Code: marchwarden.CodeUnavailable, Message: "the library index is damaged",
		Hint: "ask again: the index is made anew", Err: err,
	}
}

// found is a document with matching chunks.
type found struct {
	title   string
	locator string
	allowed bool
	chunks  map[int64]float64 // score by chunk, added over the tables
	best    int64
	score   float64
}

// searcher is one search.
type searcher struct {
	ctx   context.Context
	tx    *sql.Tx
	q     search.Query
	terms []string
	docs  map[int64]*found
}

func (s *searcher) run(folders []*fetch.Folder) ([]search.Hit, error) {
	for _, f := range folders {
		var id int64
		err := s.tx.QueryRowContext(s.ctx, "SELECT id FROM folders WHERE name = ?", f.Name).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up folder: %w", err)
		}
		for _, table := range ftsTables {
			if err := s.match(f, id, table); err != nil {
				return nil, err
			}
		}
	}
	ranked := s.rank()
	hits := make([]search.Hit, 0, len(ranked))
	for _, d := range ranked {
		var body string
		if err := s.tx.QueryRowContext(s.ctx, "SELECT body FROM chunks WHERE id = ?", d.best).Scan(&body); err != nil {
			return nil, fmt.Errorf("read chunk: %w", err)
		}
		hits = append(hits, search.Hit{Locator: d.locator, Title: d.title, Snippet: snippet(body, s.terms), Score: d.score})
	}
	return hits, nil
}

// match collects the best chunks of one folder by one table. Rows come in order
// of rank and are read only as far as needed; chunks that tie with the last one
// are taken too, so that the outcome does not depend on the order of indexing.
func (s *searcher) match(f *fetch.Folder, folder int64, table string) error {
	rows, err := s.tx.QueryContext(s.ctx, `SELECT t.rowid, -t.rank, d.id, d.name, d.title, d.host
		FROM `+table+` t CROSS JOIN chunks c ON c.id = t.rowid CROSS JOIN docs d ON d.id = c.doc
		WHERE `+table+` MATCH ? AND t.rowid BETWEEN ? AND ? ORDER BY t.rank`,
		matchExpr(s.terms), folder<<32, folder<<32+1<<32-1)
	if err != nil {
		return fmt.Errorf("match %s: %w", table, err)
	}
	defer rows.Close()
	want, last := max(minChunks, chunksPerHit*s.q.Limit), 0.0
	for n := 0; rows.Next(); {
		var chunk, doc int64
		var score float64
		var name, title, host string
		if err := rows.Scan(&chunk, &score, &doc, &name, &title, &host); err != nil {
			return fmt.Errorf("match %s: %w", table, err)
		}
		if n >= want && score < last {
			break
		}
		d := s.docs[doc]
		if d == nil {
			d = &found{
				title: title, locator: f.Locator(name),
				allowed: s.q.Filter.Allows(host, path.Base(name)), chunks: map[int64]float64{},
			}
			s.docs[doc] = d
		}
		if !d.allowed {
			continue
		}
		d.chunks[chunk] += score * ftsWeight[table]
		last = score
		n++
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("match %s: %w", table, err)
	}
	return nil
}

// rank scores the documents and returns the best of them, best first.
func (s *searcher) rank() []*found {
	var ranked []*found
	for _, d := range s.docs {
		if len(d.chunks) == 0 {
			continue
		}
		d.scoreUp()
		ranked = append(ranked, d)
	}
	slices.SortFunc(ranked, func(a, b *found) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.locator, b.locator))
	})
	// Of two folders, one may lie inside the other.
	seen := map[string]bool{}
	ranked = slices.DeleteFunc(ranked, func(d *found) bool {
		again := seen[d.locator]
		seen[d.locator] = true
		return again
	})
	return ranked[:min(len(ranked), s.q.Limit)]
}

func (d *found) scoreUp() {
	ids := make([]int64, 0, len(d.chunks))
	for id := range d.chunks {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int64) int {
		return cmp.Or(cmp.Compare(d.chunks[b], d.chunks[a]), cmp.Compare(a, b))
	})
	d.best, d.score = ids[0], d.chunks[ids[0]]
	for _, id := range ids[1:min(len(ids), 1+moreChunks)] {
		d.score += moreWeight * d.chunks[id]
	}
}
