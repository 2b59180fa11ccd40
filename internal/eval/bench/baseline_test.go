package bench

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	_ "modernc.org/sqlite"
)

// newPlainBM25 is the index that everybody writes first: a map from the stem of a
// word to the passages it stands in, in memory.
func newPlainBM25(l *library) *metric.BM25 {
	return metric.NewBM25(slices.Concat(l.docs...), lexicon.Terms)
}

// fts is full text by SQLite, the best engine in Go that needs no C compiler: one
// table of words as written, or two, of words and of stems, as the index of this
// program was before.
type fts struct {
	db     *sql.DB
	tables []string
}

func newFTS(t testing.TB, l *library, tables ...string) *fts {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "fts.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=cache_size(-16000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	x := &fts{db: db, tables: tables}
	exec := func(query string, args ...any) {
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE chunks (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
	for _, name := range tables {
		tokenize := map[string]string{"words": "unicode61", "stems": "porter unicode61"}[name]
		exec("CREATE VIRTUAL TABLE " + name + ` USING fts5(body, content='', tokenize="` + tokenize + `")`)
	}
	id := 0
	for docs := range slices.Chunk(l.docs, 50) {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		insert := []*sql.Stmt{}
		for _, q := range append([]string{"chunks (id, body)"}, tables...) {
			if !strings.Contains(q, "(") {
				q += " (rowid, body)"
			}
			s, err := tx.Prepare("INSERT INTO " + q + " VALUES (?, ?)")
			if err != nil {
				t.Fatal(err)
			}
			insert = append(insert, s)
		}
		for _, d := range docs {
			for _, text := range d {
				id++
				for _, s := range insert {
					if _, err := s.Exec(id, text); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func (x *fts) search(t testing.TB, query string, n int) {
	match := `"` + strings.Join(strings.Fields(query), `" OR "`) + `"`
	for _, name := range x.tables {
		rows, err := x.db.Query("SELECT t.rowid, t.rank, c.body FROM "+name+" t JOIN chunks c ON c.id = t.rowid WHERE "+name+" MATCH ? ORDER BY t.rank LIMIT ?", match, n)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id int
			var rank float64
			var body string
			if err := rows.Scan(&id, &rank, &body); err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
}

// sequential does one thing after another, as the plainest loop would.
func sequential[T any](items []T, do func(T) error) error {
	for _, i := range items {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}
