package database

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// world is the tables of a database and how their rows refer to each other.
type world struct {
	dialect database.Dialect
	tables  []*relation
	links   [][]link  // by table
	all     *relation // the columns of all tables
}

// link is a foreign key of one column.
type link struct {
	to       int
	own, key string // the column that refers, and the one that it refers to, in SQL
	name     string // of what it refers to: "drug" of "drug_id"
}

// readWorld reads the tables, the rows of small ones and those of large ones that hold words of the question.
func readWorld(ctx context.Context, db *database.DB, schema database.Schema, words []string) (*world, error) {
	w := &world{dialect: db.Dialect(), all: &relation{dialect: db.Dialect()}}
	tables := slices.DeleteFunc(slices.Clone(schema.Tables), func(t database.Table) bool { return len(t.Columns) == 0 || t.Search })
	slow := 0
	for _, t := range tables[:min(maxRelations, len(tables))] {
		prefix := ""
		if len(tables) > 1 {
			prefix = t.SQL() + "."
		}
		r := alone(t, db.Dialect(), prefix)
		r.unnamed = len(tables) == 1 && !slices.ContainsFunc(tableStems(t), func(s string) bool { return !tellsNothing[s] })
		if err := r.load(ctx, db, words); err != nil {
			switch marchwarden.CodeOf(err) {
			case marchwarden.CodeInvalid, marchwarden.CodeDenied, marchwarden.CodeMalformed:
				continue // this table cannot be looked through
			case marchwarden.CodeTimeout:
				if slow++; slow < maxSlow {
					continue
				}
			}
			return nil, err
		}
		w.tables = append(w.tables, r)
	}
	w.all.unnamed = len(w.tables) == 1 && w.tables[0].unnamed
	w.connect()
	return w, nil
}

// connect finds the foreign keys, and puts the columns of all tables side by side.
func (w *world) connect() {
	w.links = make([][]link, len(w.tables))
	for i, r := range w.tables {
		for _, ref := range r.table.Refs {
			to := slices.IndexFunc(w.tables, func(o *relation) bool { return o.table.Name == ref.Table })
			if to < 0 || len(ref.Columns) != 1 || len(ref.To) != 1 {
				continue
			}
			parent := w.tables[to]
			l := link{to, r.prefix + database.Ident(ref.Columns[0]), parent.prefix + database.Ident(ref.To[0]), keyName(ref.Columns[0])}
			w.links[i] = append(w.links[i], l)
			// "The manager of" an employee: what the key calls a row that has another name in its own table.
			if label := parent.named(); label >= 0 && (to == i || !within(nameStems(l.name), tableStems(parent.table))) {
				bare := alone(parent.table, w.dialect, "b.")
				expr := fmt.Sprintf("(SELECT %s FROM %s AS b WHERE b.%s = %s)", bare.cols[label].expr, parent.table.SQL(), database.Ident(ref.To[0]), l.own)
				r.cols = append(r.cols, column{name: l.name, expr: expr, stems: nameStems(l.name), label: true, role: true})
			}
		}
	}
	for _, r := range w.tables {
		r.multiply()
	}
	for i, r := range w.tables {
		r.first = len(w.all.cols)
		for _, c := range r.cols {
			c.of = i
			w.all.cols = append(w.all.cols, c)
		}
	}
}

// within reports that all words of a name stand in another: "order" in "sales order".
func within(words, name []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(name, w) })
}

// multiply adds what the lines of an order come to: how many pieces, times the price of one.
func (r *relation) multiply() {
	var counts, prices []string
	for _, c := range r.cols {
		switch last := len(c.stems) - 1; {
		case last < 0 || !measurable(&c):
		case c.hasWord(pieces):
			counts = append(counts, c.expr)
		case c.stems[last] == "price" || c.stems[last] == "cost":
			prices = append(prices, c.expr)
		case c.hasWord(reduced):
			return
		}
	}
	if len(counts) == 1 && len(prices) == 1 {
		r.cols = append(r.cols, column{name: "revenue", expr: counts[0] + " * " + prices[0], stems: nameStems("revenue"), number: true, typed: true, role: true, in: r.table.Display()})
	}
}

// path is the shortest way from the rows of a table to those that they refer to, over any number of tables; false
// without one, or with two of the same length.
func (w *world) path(from, to int) ([]link, bool) {
	ways := [][]link{nil}
	for range w.tables {
		var next, found [][]link
		for _, way := range ways {
			at := from
			if len(way) > 0 {
				at = way[len(way)-1].to
			}
			if at == to {
				found = append(found, way)
			}
			for _, l := range w.links[at] {
				if l.to != from && !slices.ContainsFunc(way, func(o link) bool { return o.to == l.to }) {
					next = append(next, append(slices.Clone(way), l))
				}
			}
		}
		if len(found) > 0 {
			return found[0], len(found) == 1
		}
		ways = next
	}
	return nil, false
}

// between is the table whose rows refer to those of all of some tables. Where several do, one is meant that the
// question names, or whose name holds one of its words, or whose way leads over a table that is named; false where it
// may be either.
func (w *world) between(tables []int, named map[int]bool, words map[string]bool) (int, bool) {
	type found struct{ table, named, hops int }
	var all []found
	for b := range w.tables {
		f := found{table: b}
		fits := true
		over := map[int]bool{}
		for _, t := range tables {
			way, ok := w.path(b, t)
			fits = fits && ok
			f.hops += len(way)
			for _, l := range way {
				over[l.to] = true
			}
		}
		for t := range over {
			if named[t] && !slices.Contains(tables, t) {
				f.named = 1
			}
		}
		if slices.ContainsFunc(tableStems(w.tables[b].table), func(s string) bool { return words[s] }) {
			f.named = 2
		}
		if named[b] {
			f.named = 3
		}
		if fits {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(b.named, a.named), cmp.Compare(a.hops, b.hops)) })
	if len(all) == 0 {
		return 0, false
	}
	for _, f := range all[1:] {
		// Rows that refer to the table that was found say nothing of their own; others may.
		if _, below := w.path(f.table, all[0].table); f.named == all[0].named && !below {
			return 0, false
		}
	}
	return all[0].table, true
}

// from is what follows FROM: a table and those that its rows refer to.
func (w *world) from(base int, tables []int) string {
	out := w.tables[base].table.SQL()
	joined := map[int]bool{base: true}
	for _, t := range tables {
		way, _ := w.path(base, t)
		for _, l := range way {
			if !joined[l.to] {
				joined[l.to] = true
				out += " JOIN " + w.tables[l.to].table.SQL() + " ON " + l.key + " = " + l.own
			}
		}
	}
	return out
}

// keyTo is the column, of a table or one that it refers to, that names the rows of another.
func (w *world) keyTo(base, t int) (string, bool) {
	way, ok := w.path(base, t)
	if ok && len(way) > 0 {
		return way[len(way)-1].own, true
	}
	return w.key(t)
}

// key is the column that tells the rows of a table apart.
func (w *world) key(t int) (string, bool) {
	if r := w.tables[t]; len(r.table.Key) == 1 {
		return r.prefix + database.Ident(r.table.Key[0]), true
	}
	return "", false
}

// where says which rows of a table are meant: "trials where city is Lyon".
func (r *relation) where(words string) string {
	if words == "" {
		return r.table.Display()
	}
	return r.table.Display() + " where " + words
}

// labelOf is the column, of those of all tables, that people call the rows of a table by; -1 for none.
func (w *world) labelOf(t int) int {
	if t < 0 || w.tables[t].entity() < 0 {
		return -1
	}
	return w.tables[t].first + w.tables[t].entity()
}

// alike reports two stems of one family of words: "teach" and "teacher", "absenc" and "absent".
func alike(a, b string) bool {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	ends := func(rest string) bool { return rest == "" || endings[rest] }
	return n >= 4 && ends(a[n:]) && ends(b[n:])
}

// endings are what the words of one family end on, after their stems are cut.
var endings = lexicon.WordSet("table endings")

// keyName is what a foreign key refers to: "drug" of "drug_id".
func keyName(column string) string {
	for _, end := range []string{"_id", "_no", "_code", "Id"} {
		if short, ok := strings.CutSuffix(column, end); ok {
			return short
		}
	}
	return column
}
