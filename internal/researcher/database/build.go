package database

import (
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
)

// drafting is a question that a statement is made of.
type drafting struct{ *asking }

// draft is a statement in its parts, and what its rows mean.
type draft struct {
	what    string // the list after SELECT; the answer first
	from    string
	where   string
	tail    string // GROUP BY, ORDER BY and LIMIT
	meaning string
	most    int // rows that still answer the question; 0 is manyAnswers
}

func (d *draft) sql() string {
	out := "SELECT " + d.what + " FROM " + d.from
	if d.where != "" {
		out += " WHERE " + d.where
	}
	return out + d.tail
}

// group is what rows are put together by: "per category", "in each country", "by year".
type group struct {
	expr  string // after GROUP BY
	shown string // in the list after SELECT
	name  string
	table int
	time  bool // a year or a month: listed in their order, and not by size
}

// rows says which rows a statement reads: those of a table, or of one that refers to it, that pass the conditions.
type rows struct {
	base        int
	from, where string
	words       string // the conditions, for people
}

// rowsOf are the rows of a table that the question's conditions leave, with some tables beside it. Conditions on rows
// that refer to the table, or only belong to it by others, are asked of it by its key: a join would count rows more
// than once.
func (a drafting) rowsOf(main int, beside ...int) (rows, bool) {
	out := rows{base: main}
	for _, t := range beside {
		if _, ok := a.w.path(out.base, t); !ok {
			base, ok := a.between(append([]int{main}, beside...)...)
			if !ok {
				return out, false
			}
			out.base = base
		}
	}
	var outer, inner []filter
	tables := append([]int{main}, beside...)
	var within []int
	for _, f := range a.filters {
		t := a.r.cols[f.col].of
		if _, ok := a.w.path(out.base, t); ok {
			outer, tables = append(outer, f), append(tables, t)
		} else {
			inner, within = append(inner, f), append(within, t)
		}
	}
	a.reads(out.base, tables)
	test, words := a.conditions(outer)
	tests, said := []string{test, a.w.tables[out.base].noTotals()}, []string{words}
	for _, n := range a.nouns { // "customers who ordered": there is an order
		_, up := a.w.path(out.base, n.table)
		if !a.tables[n.table] && !slices.Contains(within, n.table) && !up && n.strength > 1 && !slices.ContainsFunc(a.exists, func(e existence) bool { return e.table == n.table }) {
			within = append(within, n.table)
		}
		if up && n.strength == 1 {
			a.tables[n.table] = true
		}
	}
	if len(within) > 0 {
		innerTest, innerWords := a.conditions(inner)
		if len(inner) == 0 {
			innerWords = "there are " + a.w.tables[within[0]].table.Display()
		}
		test, ok := a.belonging(out.base, main, within, innerTest, "", false)
		if !ok {
			return out, false
		}
		tests, said = append(tests, test), append(said, innerWords)
	}
	for _, e := range a.exists {
		test, words, ok := a.existing(out.base, main, e)
		if !ok {
			return out, false
		}
		tests, said = append(tests, test), append(said, words)
	}
	empty := func(s string) bool { return s == "" }
	out.from, out.where, out.words = a.w.from(out.base, tables), strings.Join(slices.DeleteFunc(tests, empty), " AND "), strings.Join(slices.DeleteFunc(said, empty), " and ")
	return out, true
}

// reads notes the tables of a statement.
func (a drafting) reads(base int, tables []int) {
	a.tables[base] = true
	for _, t := range tables {
		way, _ := a.w.path(base, t)
		for _, l := range way {
			a.tables[l.to] = true
		}
	}
	a.joined = a.joined || len(a.tables) > 1
}

// belonging is the condition that a row has, or has not, rows of other tables that belong to it.
func (a drafting) belonging(base, main int, tables []int, test, tail string, not bool) (string, bool) {
	of, ok := a.between(append([]int{main}, tables...)...)
	own, keyed := a.w.keyTo(base, main)
	if !ok || !keyed || of == main {
		return "", false
	}
	key, _ := a.w.keyTo(of, main)
	way, _ := a.w.path(of, main)
	for _, l := range way[:len(way)-1] {
		tables = append(slices.Clone(tables), l.to)
	}
	a.reads(of, append([]int{main}, tables...))
	in := " IN "
	if not {
		in = " NOT IN "
	}
	return fmt.Sprintf("%s%s(SELECT %s FROM %s WHERE %s%s)", own, in, key, a.w.from(of, tables), both(test, key+" IS NOT NULL"), strings.ReplaceAll(tail, "?", key)), true
}

// existing is an existence as SQL and in words.
func (a drafting) existing(base, main int, e existence) (test, words string, ok bool) {
	name := a.w.tables[e.table].table.Display()
	tail, not := "", e.not
	words = "there are " + name
	switch {
	case e.said != "":
		words = e.said
	case e.not:
		words = "there are no " + name
	}
	if e.op != "" {
		op := e.op
		words = "the number of " + name + " " + op + " " + number(e.n)
		if opposite := map[string]string{"<": ">=", "<=": ">"}[op]; opposite != "" { // rows without any count, too
			op, not = opposite, true
		}
		tail = fmt.Sprintf(" GROUP BY ? HAVING COUNT(*) %s %s", op, number(e.n))
	}
	test, ok = a.belonging(base, main, []int{e.table}, e.test, tail, not)
	return test, words, ok
}

// groupAt is the group that the words from token i on name: a year or a month, the rows of a table, or a column.
func (a drafting) groupAt(i int) (*group, int) {
	for i < len(a.q.low) && (a.q.low[i] == "the" || a.q.low[i] == "of") {
		i++
	}
	if i >= len(a.q.toks) {
		return nil, i
	}
	stem := a.q.toks[i].Stem
	if length := map[string]int{"year": 4, "month": 7, "dai": 10, "day": 10}[stem]; length > 0 && !a.fully(i) {
		if c := a.only(func(c *column) bool { return c.iso }); c >= 0 {
			a.touched[c] = true
			expr := a.r.prefixOf(c, length)
			return &group{expr: expr, shown: expr + " AS " + database.Ident(a.q.low[i]), name: a.q.low[i], table: a.r.cols[c].of, time: true}, i + 1
		}
	}
	t, c, at := a.thing(i)
	switch {
	case c >= 0:
		a.touched[c] = true
		return &group{expr: a.r.cols[c].expr, shown: a.r.shown(c), name: a.r.cols[c].name, table: a.r.cols[c].of, time: a.r.cols[c].year != ""}, at
	case t >= 0:
		label := a.w.labelOf(t)
		key, ok := a.w.key(t)
		if label < 0 || !ok {
			return nil, at
		}
		a.touched[label] = true
		word := strings.Join(a.q.low[i:at], " ")
		return &group{expr: key, shown: a.r.cols[label].expr + " AS " + database.Ident(word), name: word, table: t}, at
	}
	return nil, i
}

// thing is what the words from token i on name: a table or, also after the name of its table, a column that tells the
// rows apart: "payment method".
func (a drafting) thing(i int) (table, col, at int) {
	kind := func(c *column) bool { return !measurable(c) && (!c.date || c.year != "") }
	n, ok := a.nounAt(i)
	if !ok {
		m, named := a.best(i, kind)
		if !named {
			return -1, -1, i
		}
		return -1, m.col, m.at
	}
	if n.at < len(a.q.toks) && !a.q.toks[n.at].Stop {
		of := func(c *column) bool { return kind(c) && c.of == n.table && !c.iso && c.called(a.q.toks[n.at]) }
		if m, named := a.best(n.at, of); named {
			return -1, m.col, m.at
		}
	}
	return n.table, -1, n.at
}

// grouping finds what the rows are put together by; nil if the question does not say so.
func (a drafting) grouping() *group {
	for i := range a.q.toks {
		for _, words := range grouped {
			end, ok := a.q.phraseAt(i, words)
			if !ok || !a.free(i, end) {
				continue
			}
			if g, at := a.groupAt(end); g != nil {
				a.use(i, at)
				return g
			}
		}
	}
	return nil
}

// value is a number that is computed of the rows of a table: their count, or a sum or an average of a column.
type value struct {
	expr, name string
	main       int
	test       string // of the rows that have it
}

// computed is the number fn of column c, or the count of the rows of a table.
func (a drafting) computed(fn string, c, table int) value {
	if c < 0 {
		return value{expr: "COUNT(*)", name: "count", main: table}
	}
	col := &a.r.cols[c]
	a.touched[c] = true
	v := value{expr: database.Rounded(a.w.dialect, fn+"("+a.r.value(col)+")"), name: col.summed(), main: col.of, test: a.r.filledTest(col)}
	if fn == "AVG" {
		v.name = "average " + col.name
	}
	return v
}

// over takes the rows that a value is computed of, beside those of a group.
func (a drafting) over(v *value, g *group) (rows, bool) {
	var beside []int
	if g != nil {
		beside = append(beside, g.table)
	}
	r, ok := a.rowsOf(v.main, beside...)
	if ok && r.base != v.main {
		key, keyed := a.w.keyTo(r.base, v.main)
		if ok = keyed && v.expr == "COUNT(*)"; ok { // a sum would add a row up more than once
			v.expr = "COUNT(DISTINCT " + key + ")"
		}
	}
	r.where = both(r.where, v.test)
	return r, ok
}

// each is a computed number, or one for each group that the question names.
func (a drafting) each(v value) *draft {
	g := a.grouping()
	r, ok := a.over(&v, g)
	if !ok {
		return nil
	}
	d := &draft{what: v.expr, from: r.from, where: r.where, meaning: v.name + " of " + a.w.tables[v.main].where(r.words)}
	if g != nil {
		d.what = g.shown + ", " + v.expr + " AS " + database.Ident(v.name)
		d.where = both(d.where, g.expr+" IS NOT NULL")
		d.tail = " GROUP BY " + g.expr + " ORDER BY 2 DESC, 1"
		if g.time {
			d.tail = " GROUP BY " + g.expr + " ORDER BY 1"
		}
		d.meaning, d.most = d.meaning+forEach+g.name, manyGroups
	}
	return d
}

// mostOf are the groups with the largest, or the smallest, number: the first n, or all that have it.
func (a drafting) mostOf(v value, g *group, s superlative) *draft {
	r, ok := a.over(&v, g)
	if !ok {
		return nil
	}
	d := &draft{what: g.shown + ", " + v.expr + " AS " + database.Ident(v.name), from: r.from, where: both(r.where, g.expr+" IS NOT NULL"), most: manyGroups}
	d.meaning = fmt.Sprintf("%s of %s%s%d by %s", g.name, a.w.tables[v.main].where(r.words), ranking, s.n, v.name)
	if s.n > 0 {
		d.tail = fmt.Sprintf(" GROUP BY %s ORDER BY 2 %s, 1 LIMIT %d", g.expr, s.way, s.n)
		return d
	}
	if s.way == "ASC" && v.name == "count" && g.table != v.main { // the fewest may be none at all
		key, _ := a.w.keyTo(r.base, g.table)
		if way, _ := a.w.path(r.base, g.table); len(way) != 1 || r.where != "" {
			return nil
		}
		v.expr = "COUNT(" + key + ")"
		d.what, d.where = g.shown+", "+v.expr+" AS "+database.Ident(v.name), ""
		d.from = a.w.tables[g.table].table.SQL() + " LEFT JOIN " + a.w.tables[r.base].table.SQL() + " ON " + key + " = " + g.expr
	}
	fn := map[string]string{"DESC": "MAX", "ASC": "MIN"}[s.way]
	inner := draft{what: v.expr + " AS n", from: d.from, where: d.where, tail: " GROUP BY " + g.expr}
	d.tail = fmt.Sprintf(" GROUP BY %s HAVING %s = (SELECT %s(n) FROM (%s) AS numbers)", g.expr, v.expr, fn, inner.sql())
	d.meaning = fmt.Sprintf("%s of %s, the %s by %s", g.name, a.w.tables[v.main].where(r.words), s.word, v.name)
	return d
}

// extreme are the rows of a table in which an expression is the largest, or the smallest: the first n, or all that
// have it. They show a column, and the one that the expression is of.
func (a drafting) extreme(shown, c int, expr, test string, s superlative) *draft {
	main := a.r.cols[c].of
	a.touched[shown], a.touched[c] = true, true
	r, ok := a.rowsOf(main, a.r.cols[shown].of)
	if !ok || r.base != main {
		return nil
	}
	where := both(r.where, test)
	d := &draft{what: a.show(shown, c), from: r.from, where: where, most: manyGroups, meaning: a.w.tables[main].where(r.words)}
	if s.n > 0 {
		d.what = a.r.shown(shown) + ", " + a.r.shown(c)
		d.tail = fmt.Sprintf(" ORDER BY 2 %s, 1 LIMIT %d", s.way, s.n)
		d.meaning += fmt.Sprintf("%s%d by %s", ranking, s.n, a.r.cols[c].name)
		return d
	}
	fn := map[string]string{"DESC": "MAX", "ASC": "MIN"}[s.way]
	d.where = utmost(fn, expr, r.from, where)
	d.meaning += ", the " + s.word + " by " + a.r.cols[c].name
	return d
}

// show is the list after SELECT: the answer, and what a reader wants beside it.
func (a drafting) show(cols ...int) string {
	main := a.r.cols[cols[0]].of
	for _, c := range cols {
		a.touched[c] = true
	}
	cols = append(cols, a.w.labelOf(main))
	for _, f := range a.filters {
		if a.r.cols[f.col].of == main && f.op != "is" {
			cols = append(cols, f.col)
		}
	}
	var out []string
	for i, c := range cols {
		if c >= 0 && !slices.Contains(cols[:i], c) {
			out = append(out, a.r.shown(c))
		}
	}
	return strings.Join(out, ", ")
}

// utmost is a test that leaves those rows in which an expression is the largest, or the smallest.
func utmost(fn, expr, from, where string) string {
	return both(where, fmt.Sprintf("%s = (SELECT %s(%s) FROM %s WHERE %s)", expr, fn, expr, from, where))
}

func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " AND " + b
}
