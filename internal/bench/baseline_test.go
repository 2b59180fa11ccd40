package bench

import (
	"cmp"
	"database/sql"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	_ "modernc.org/sqlite"
)

// plainBM25 is the index that everybody writes first: a map from the stem of a
// word to the passages it stands in, in memory.
type plainBM25 struct {
	postings map[string][]posting
	sizes    []int
	words    int
}

type posting struct{ passage, count int }

func newPlainBM25(l *library) *plainBM25 {
	ix := &plainBM25{postings: map[string][]posting{}}
	for _, d := range l.docs {
		for _, text := range d {
			terms := lexicon.Terms(text)
			counts := map[string]int{}
			for _, t := range terms {
				counts[t]++
			}
			for t, n := range counts {
				ix.postings[t] = append(ix.postings[t], posting{len(ix.sizes), n})
			}
			ix.sizes = append(ix.sizes, len(terms))
			ix.words += len(terms)
		}
	}
	return ix
}

func (ix *plainBM25) search(query string, n int) []int {
	const k1, b = 1.2, 0.75
	scores := map[int]float64{}
	mean := float64(ix.words) / float64(len(ix.sizes))
	for _, t := range lexicon.Terms(query) {
		found := ix.postings[t]
		idf := math.Log(1 + (float64(len(ix.sizes)-len(found))+0.5)/(float64(len(found))+0.5))
		for _, p := range found {
			c := float64(p.count)
			scores[p.passage] += idf * c * (k1 + 1) / (c + k1*(1-b+b*float64(ix.sizes[p.passage])/mean))
		}
	}
	best := make([]int, 0, len(scores))
	for p := range scores {
		best = append(best, p)
	}
	slices.SortFunc(best, func(x, y int) int { return cmp.Or(cmp.Compare(scores[y], scores[x]), cmp.Compare(x, y)) })
	return best[:min(n, len(best))]
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
