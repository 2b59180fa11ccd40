package question

import (
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

var (
	most  = []string{"most", "highest", "largest", "biggest", "greatest", "maximum", "max", "longest", "tallest", "heaviest", "deepest", "oldest", "widest", "fastest", "larges", "richest", "dearest"}
	least = []string{"least", "lowest", "smallest", "fewest", "minimum", "min", "shortest", "lightest", "youngest", "narrowest", "slowest", "cheapest"}
)

// extreme is "which X has the most Y", "what is the highest Y" and "which X appears
// most often".
func (rd *reading) extreme() *draft {
	from, at := rd.q.find(append(slices.Clone(most), least...)...)
	if from < 0 || rd.q.has("at most", "at least") || rd.q.has("most recent") || rd.inValue(from) {
		return nil
	}
	word := rd.q.low[from]
	down := slices.Contains(least, word)
	rd.use(from, at)
	c := rd.measureNear(from)
	answer, soft := rd.target()
	if c >= 0 && rd.bare() && (rd.r.unnamed || rd.nounAfter(at)) {
		answer, soft = c, 0
	}
	if answer < 0 {
		return refused
	}
	if word == "oldest" || word == "youngest" {
		return rd.aged(answer, soft, word == "oldest", c)
	}
	where, words := rd.conditions(nil)
	fn := "MAX"
	if down {
		fn = "MIN"
	}
	if c >= 0 {
		col := &rd.r.cols[c]
		v := rd.r.value(col)
		all := both(both(where, rd.r.filledTest(col)), rd.r.noTotals())
		return &draft{what: rd.show(answer, c), where: both(all, fmt.Sprintf("%s = (SELECT %s(%s) FROM %s WHERE %s)", v, fn, v, rd.r.from, all)), tail: rd.listed(),
			meaning: rd.rows(words) + ", the " + by(rd.degree(word, at), col.name), soft: soft}
	}
	if d := rd.mostRows(answer, fn, where, words); d != nil {
		return d
	}
	col := rd.r.cols[answer]
	if word != "most" && word != "least" && word != "fewest" || col.unique > 0.8 || soft > 0 || rd.bare() {
		return refused
	}
	all := both(where, col.expr+" IS NOT NULL")
	return &draft{what: rd.shown(answer) + ", COUNT(*) AS \"count\"", where: all,
		tail:    fmt.Sprintf(" GROUP BY %s HAVING COUNT(*) = (SELECT %s(n) FROM (SELECT COUNT(*) AS n FROM %s WHERE %s GROUP BY %s) AS counts)", col.expr, fn, rd.r.from, all, col.expr),
		meaning: fmt.Sprintf("%s, the %s in the %s rows", rd.rows(words), col.name, map[bool]string{false: "most", true: "fewest"}[down]), soft: soft}
}

// mostRows is "which customer has the most orders": the row referred to by most, or
// fewest, rows of the table. Those that nothing refers to have no rows to count.
func (rd *reading) mostRows(answer int, fn, where, words string) *draft {
	col := &rd.r.cols[answer]
	if col.parent == 0 || !col.label || fn != "MAX" || !rd.q.speaks(rd.r) {
		return nil
	}
	rd.touched[answer] = true
	link := "a." + database.Ident(col.link)
	all := both(where, link+" IS NOT NULL")
	return &draft{what: rd.shown(answer) + ", COUNT(*) AS \"count\"", where: all,
		tail:    fmt.Sprintf(" GROUP BY %s HAVING COUNT(*) = (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM %s WHERE %s GROUP BY %s) AS counts)", link, rd.r.from, all, link),
		meaning: rd.rows(words) + ", the most by " + col.name}
}

// degree is a superlative as the question has it: "most expensive" where "most" alone
// does not name the column.
func (rd *reading) degree(word string, at int) string {
	if !rd.r.unnamed && plainly[word] && at < len(rd.q.low) && len(rd.cols[at]) > 0 && !rd.nounAfter(at) {
		return word + " " + rd.q.low[at]
	}
	return word
}

// by says of which column something is the most: "highest price", "cheapest by price".
func by(word, column string) string {
	if plainly[word] {
		return word + " " + column
	}
	return word + " by " + column
}

var plainly = lexicon.WordSet("most highest largest biggest greatest maximum max least lowest smallest fewest minimum min")

// nounAfter reports that the question names the number itself behind a superlative,
// "the highest price", rather than what has it, "the most expensive product".
func (rd *reading) nounAfter(at int) bool {
	return at < len(rd.q.toks) && slices.ContainsFunc(rd.cols[at], func(m mention) bool { return rd.r.cols[m.col].called(rd.q.toks[at]) })
}

// inValue reports that a token is part of a value, of a comparison, or of the name
// of a column that has several words.
func (rd *reading) inValue(i int) bool {
	for k := range rd.cols[:i+1] {
		if slices.ContainsFunc(rd.cols[k], func(m mention) bool { return i < m.at && m.words > 1 && m.share == 1 }) {
			return true
		}
	}
	return slices.ContainsFunc(rd.filters, func(f filter) bool { return f.from <= i && i < f.at })
}

// bare reports a question for a number itself, "what is the highest score", rather
// than for what has it.
func (rd *reading) bare() bool {
	q := rd.q
	if _, at := q.find("what is the", "what was the", "what s the", "what's the", "what is", "what was"); at > 0 && at < len(q.low) && q.low[0] != "who" {
		return slices.Contains(most, q.low[at]) || slices.Contains(least, q.low[at])
	}
	return false
}

// measureNear is the column of numbers that is named after a superlative, or that
// the superlative itself means ("longest"), or named just before it.
func (rd *reading) measureNear(from int) int {
	usable := func(c *column) bool { return c.number && !c.ordinal() && c.parent == 0 }
	for i := from; i < min(from+6, len(rd.cols)); i++ {
		if m, ok := rd.best(i, usable); ok && (i == from || !rd.used[i]) {
			rd.use(i, m.at)
			rd.touched[m.col] = true
			return m.col
		}
	}
	for i := from - 1; i >= max(0, from-3); i-- {
		if m, ok := rd.best(i, usable); ok && !rd.used[i] {
			rd.use(i, m.at)
			rd.touched[m.col] = true
			return m.col
		}
	}
	return -1
}

// ageLike are words in the names of columns that tell how old something is.
var ageLike = lexicon.StemSet("age birth born dob birthday birthdate built founded established constructed year")

// aged is the oldest or the youngest: by age, or by a date of birth.
func (rd *reading) aged(answer int, soft float64, oldest bool, age int) *draft {
	where, words := rd.conditions(nil)
	fn, way := "MIN", "oldest"
	if !oldest {
		fn, way = "MAX", "youngest"
	}
	c := rd.only(func(c *column) bool {
		return c.year != "" && c.parent == 0 && (rd.r.unnamed || slices.ContainsFunc(c.stems, func(s string) bool { return ageLike[s] }))
	})
	expr := ""
	switch {
	case age >= 0:
		c, expr = age, rd.r.value(&rd.r.cols[age])
		fn = map[bool]string{true: "MAX", false: "MIN"}[oldest]
	case c >= 0 && rd.r.cols[c].iso:
		expr = rd.r.cols[c].expr
	case c >= 0:
		expr = rd.r.cols[c].year
	default:
		return refused
	}
	all := both(where, expr+" IS NOT NULL")
	return &draft{what: rd.show(answer, c), where: both(all, fmt.Sprintf("%s = (SELECT %s(%s) FROM %s WHERE %s)", expr, fn, expr, rd.r.from, all)), tail: rd.listed(),
		meaning: rd.rows(words) + ", the " + by(way, rd.r.cols[c].name), soft: soft}
}

// listed orders rows as the table lists them.
func (rd *reading) listed() string {
	if rd.r.order == "" {
		return ""
	}
	return " ORDER BY " + rd.r.order
}

// ends is "the first", "the last", "at the top of the table".
func (rd *reading) ends() *draft {
	first, fAt := rd.q.find("first", "top", "earliest")
	last, lAt := rd.q.find("last", "bottom", "latest", "most recent", "final")
	if first >= 0 == (last >= 0) {
		return nil
	}
	from, at, up := first, fAt, true
	if first < 0 {
		from, at, up = last, lAt, false
	}
	if rd.inValue(from) {
		return nil
	}
	if from > 0 && slices.Contains([]string{"placed", "finished", "came", "ranked", "place", "finish"}, rd.q.low[from-1]) {
		return refused // a place in a contest, not in the table
	}
	rd.use(from, at)
	answer, soft := rd.target()
	if answer < 0 {
		return refused
	}
	if !rd.r.unnamed {
		if d := rd.dated(answer, from, up); d != nil {
			return d
		}
	}
	where, words := rd.conditions(nil)
	place := rd.q.has("table", "chart", "list", "listed", "shown", "appears", "bottom", "top")
	if i, _ := rd.q.find("chart", "table", "list"); i >= 0 && len(rd.cols[i]) > 0 {
		return refused // the order of a column is meant, not that of the table
	}
	order, say := rd.r.order, "in the table"
	if c := rd.only(func(c *column) bool { return c.year != "" }); c >= 0 && !place && rd.r.cols[c].date {
		order, say = rd.r.cols[c].expr, "by "+rd.r.cols[c].name
	} else if c >= 0 && !place {
		order, say = rd.r.cols[c].year+", "+cmpOr(rd.r.order, rd.r.cols[c].expr), "by "+rd.r.cols[c].name
	}
	if order == "" {
		return refused
	}
	col := rd.r.cols[answer]
	way := "first"
	if !up {
		way = "last"
		parts := strings.Split(order, ", ")
		for i := range parts {
			parts[i] += " DESC"
		}
		order = strings.Join(parts, ", ")
	}
	return &draft{what: rd.show(answer), where: both(where, col.expr+" IS NOT NULL"), tail: " ORDER BY " + order + " LIMIT 1",
		meaning: fmt.Sprintf("%s, the %s row %s", rd.rows(words), way, say), soft: soft}
}

// dated is the first or the last by a column of dates that the question names, or by
// the only one where the word itself speaks of time; nil if the place in the table
// is meant.
func (rd *reading) dated(answer, from int, up bool) *draft {
	if rd.q.has("table", "chart", "list", "listed", "bottom", "top") {
		return nil
	}
	dates := func(c *column) bool { return (c.iso || c.year != "" && c.number) && c.parent == 0 }
	c := rd.named(dates)
	if c < 0 && slices.Contains([]string{"earliest", "latest", "most"}, rd.q.low[from]) {
		c = rd.only(dates)
	}
	if c < 0 {
		return refused // by what it is the first is not said
	}
	where, words := rd.conditions(nil)
	fn, way := "MIN", "first"
	if !up {
		fn, way = "MAX", "last"
	}
	col := &rd.r.cols[c]
	all := both(where, col.expr+" IS NOT NULL")
	return &draft{what: rd.show(answer, c), where: both(all, fmt.Sprintf("%s = (SELECT %s(%s) FROM %s WHERE %s)", col.expr, fn, col.expr, rd.r.from, all)), tail: rd.listed(),
		meaning: rd.rows(words) + ", the " + by(way, col.name)}
}
