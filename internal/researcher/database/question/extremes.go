package question

import (
	"fmt"
	"slices"
	"strings"
)

var (
	most  = []string{"most", "highest", "largest", "biggest", "greatest", "maximum", "max", "longest", "tallest", "heaviest", "deepest", "oldest", "widest", "fastest", "larges", "richest"}
	least = []string{"least", "lowest", "smallest", "fewest", "minimum", "min", "shortest", "lightest", "youngest", "narrowest", "slowest"}
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
	if answer < 0 {
		return refused
	}
	if word == "oldest" || word == "youngest" {
		return rd.aged(answer, soft, word == "oldest", c)
	}
	where, words := rd.conditions(nil)
	way, fn := "largest", "MAX"
	if down {
		way, fn = "smallest", "MIN"
	}
	if c >= 0 {
		col := &rd.r.cols[c]
		if rd.bare() {
			answer, soft = c, 0
		}
		v := rd.r.value(col)
		all := both(both(where, rd.r.filledTest(col)), rd.r.noTotals())
		return &draft{what: rd.show(answer, c), where: both(all, fmt.Sprintf("%s = (SELECT %s(%s) FROM %s WHERE %s)", v, fn, v, rd.r.from, all)), tail: rd.listed(),
			meaning: fmt.Sprintf("the %s with the %s %s %s", rd.r.cols[answer].name, way, col.name, of(words)), soft: soft}
	}
	col := rd.r.cols[answer]
	if word != "most" && word != "least" && word != "fewest" || col.unique > 0.8 || soft > 0 || rd.bare() {
		return refused
	}
	all := both(where, col.expr+" IS NOT NULL")
	return &draft{what: col.expr + ", COUNT(*)", where: all,
		tail:    fmt.Sprintf(" GROUP BY %s HAVING COUNT(*) = (SELECT %s(n) FROM (SELECT COUNT(*) AS n FROM %s WHERE %s GROUP BY %s) AS counts)", col.expr, fn, rd.r.from, all, col.expr),
		meaning: fmt.Sprintf("the %s that stands in the %s rows %s", col.name, map[bool]string{false: "most", true: "fewest"}[down], of(words)), soft: soft}
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
	usable := func(c *column) bool { return c.number && !c.ordinal() }
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

// aged is the oldest or the youngest: by age, or by year.
func (rd *reading) aged(answer int, soft float64, oldest bool, age int) *draft {
	where, words := rd.conditions(nil)
	fn, way, c := "MIN", "earliest", rd.only(func(c *column) bool { return c.year != "" })
	if !oldest {
		fn, way = "MAX", "latest"
	}
	expr := ""
	switch {
	case age >= 0:
		c, expr = age, rd.r.value(&rd.r.cols[age])
		fn, way = "MAX", "largest"
		if !oldest {
			fn, way = "MIN", "smallest"
		}
	case c >= 0:
		expr = rd.r.cols[c].year
	default:
		return refused
	}
	inner := ""
	if where != "" {
		inner = " WHERE " + where
	}
	return &draft{what: rd.show(answer, c), where: both(where, fmt.Sprintf("%s = (SELECT %s(%s) FROM %s%s)", expr, fn, expr, rd.r.from, inner)), tail: rd.listed(),
		meaning: fmt.Sprintf("the %s with the %s %s %s", rd.r.cols[answer].name, way, rd.r.cols[c].name, of(words)), soft: soft}
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
		meaning: fmt.Sprintf("the %s of the %s row %s, %s", col.name, way, say, of(words)), soft: soft}
}
