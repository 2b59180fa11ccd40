package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
)

// relations are the tables, and the tables with what they refer to.
func relations(schema database.Schema, d database.Dialect) []*relation {
	var out []*relation
	for _, t := range schema.Tables {
		if len(t.Columns) > 0 && !t.Search {
			out = append(out, alone(t, d, ""))
		}
	}
	if len(out) == 1 {
		out[0].unnamed = !slices.ContainsFunc(tableStems(out[0].table), func(s string) bool { return !tellsNothing[s] })
	}
	for _, t := range schema.Tables {
		if r := withParents(t, schema, d); len(r.parents) > 0 && !t.Search {
			out = append(out, r)
		}
	}
	return out
}

// alone is a table without what it refers to. The prefix stands before the names of its columns in statements.
func alone(t database.Table, d database.Dialect, prefix string) *relation {
	r := &relation{dialect: d, table: t, from: t.SQL(), whole: t.Rows >= 0 && t.Rows <= wholeRows && !t.Many, order: t.Order()}
	if r.order == "" && d == database.SQLite && !t.View {
		r.order = "rowid"
	}
	for _, c := range t.Columns {
		col := column{name: c.Name, expr: prefix + database.Ident(c.Name), stems: nameStems(c.Name), number: c.Kind == database.Number, date: c.Kind == database.Date}
		col.typed = col.number || col.date
		col.key = col.number && (len(t.Key) == 1 && t.Key[0] == c.Name || refers(t, c.Name))
		r.cols = append(r.cols, col)
	}
	if expr := r.join(prefix); expr != "" { // the name of a person that stands in two columns
		r.cols = append(r.cols, column{name: "name", expr: expr, stems: nameStems("name"), label: true})
	}
	return r
}

// withParents is a table with the columns of those that it refers to.
func withParents(t database.Table, schema database.Schema, d database.Dialect) *relation {
	r := alone(t, d, "a.")
	r.from += " AS a"
	var order []string
	for _, k := range t.Key {
		order = append(order, "a."+database.Ident(k))
	}
	r.order = strings.Join(order, ", ")
	for _, ref := range t.Refs {
		at := slices.IndexFunc(schema.Tables, func(o database.Table) bool { return o.Name == ref.Table })
		if at >= 0 && len(ref.Columns) == 1 && len(ref.To) == 1 {
			r.addParent(schema.Tables[at], ref)
		}
	}
	return r
}

// addParent takes in the columns of a table that a foreign key refers to, and what its rows are called under the name
// of the key: "drug" for "drug_id".
func (r *relation) addParent(other database.Table, ref database.Ref) {
	r.parents = append(r.parents, other)
	of := alone(other, r.dialect, "b.")
	take := func(c column) {
		c.expr = fmt.Sprintf("(SELECT %s FROM %s AS b WHERE b.%s = a.%s)", c.expr, other.SQL(), database.Ident(ref.To[0]), database.Ident(ref.Columns[0]))
		c.parent, c.link = len(r.parents), ref.Columns[0]
		r.cols = append(r.cols, c)
	}
	for _, c := range of.cols {
		// Of a table that refers to itself, the words mean the row itself.
		if other.Name != r.table.Name && !c.label && !slices.Contains(other.Key, c.name) && !refers(other, c.name) {
			c.stems = append(c.stems, tableStems(other)...) // "the name of the drug" is the column name of the table drugs
			take(c)
		}
	}
	key, _ := r.table.Column(ref.Columns[0])
	if at := of.named(); at >= 0 && key.Kind == database.Number { // a number says nothing by itself
		name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(key.Name, "_id"), "_no"), "Id")
		take(column{name: name, expr: of.cols[at].expr, stems: nameStems(name), label: true})
	}
}

func refers(t database.Table, name string) bool {
	return slices.ContainsFunc(t.Refs, func(r database.Ref) bool { return slices.Contains(r.Columns, name) })
}

// join is the expression of a first and a last name; "" unless the table has both and no name of one piece.
func (r *relation) join(prefix string) string {
	first, last := "", ""
	for _, c := range r.table.Columns {
		switch strings.Join(nameWords(c.Name), " ") {
		case "first name", "firstname", "given name", "forename":
			first = prefix + database.Ident(c.Name)
		case "last name", "lastname", "family name", "surname":
			last = prefix + database.Ident(c.Name)
		case "name", "full name", "fullname":
			return ""
		}
	}
	if first == "" || last == "" {
		return ""
	}
	return database.Joined(r.dialect, first, last)
}

// noun is a place where the question names a table.
type noun struct {
	table    string // Display
	from, at int
}

// tableStems are the stems of a table's name, without what only says that it is one.
func tableStems(t database.Table) []string {
	words := nameStems(t.Name)
	if len(words) > 1 && tellsNothing[words[0]] {
		return words[1:]
	}
	return words
}

// nouns finds the tables that a question names, all words of a name in a row; of two that overlap the longer one.
func nouns(q *question, schema database.Schema) []noun {
	var found []noun
	for _, t := range schema.Tables {
		words := tableStems(t)
		for i := range q.toks {
			n := 0
			for n < len(words) && i+n < len(q.toks) && q.toks[i+n].Stem == words[n] {
				n++
			}
			if n == len(words) && n > 0 {
				found = append(found, noun{t.Display(), i, i + n})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b noun) int {
		return cmp.Or(cmp.Compare(b.at-b.from, a.at-a.from), cmp.Compare(a.from, b.from), cmp.Compare(a.table, b.table))
	})
	var out []noun
	for _, n := range found {
		if !slices.ContainsFunc(out, func(o noun) bool {
			return n.from < o.at && o.from < n.at && (n.from != o.from || n.at != o.at) // one name for two tables stands for both
		}) {
			out = append(out, n)
		}
	}
	return out
}

// self reports a word that names the table.
func (rd *reading) self(i int) bool { return rd.nounOf(i, rd.r.table.Display()) }

// kin is the place in parents, from 1, of a table that a word names; 0 for none.
func (rd *reading) kin(i int) int {
	return 1 + slices.IndexFunc(rd.r.parents, func(t database.Table) bool { return rd.nounOf(i, t.Display()) })
}

func (rd *reading) nounOf(i int, table string) bool {
	return slices.ContainsFunc(rd.q.nouns, func(n noun) bool { return n.table == table && n.from <= i && i < n.at })
}

// missing are the words of the question that stand for nothing in a statement, which then does not answer it.
func (rd *reading) missing() []string {
	var out []string
	for i, t := range rd.q.toks {
		if rd.used[i] || rd.names(i) || rd.self(i) || harmless[rd.q.low[i]] || slices.Contains(out, t.Text) {
			continue
		}
		if rd.r.unnamed && !operators[rd.q.low[i]] && (t.Stop || asking[t.Stem] || rowWords[t.Stem]) {
			continue
		}
		out = append(out, t.Text)
	}
	return out
}
