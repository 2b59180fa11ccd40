package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// pair are the two filters on one column that a comparison is about.
func (rd *reading) pair() (a, b filter, ok bool) {
	for _, f := range rd.filters {
		same := slices.DeleteFunc(slices.Clone(rd.filters), func(g filter) bool { return g.col != f.col || g.op != "" || g.not })
		if len(same) == 2 {
			return same[0], same[1], true
		}
	}
	return filter{}, filter{}, false
}

// difference is "the difference in points between A and B" and "how many more points did A have than B".
func (rd *reading) difference() *draft {
	from, at := rd.q.find("difference", "how many more", "how much more", "how many fewer", "how many less", "how much less", "how much higher", "how much taller", "how much longer")
	if from < 0 {
		return nil
	}
	a, b, ok := rd.pair()
	if !ok {
		return refused
	}
	rd.use(from, at)
	rd.useWords("between", "and", "than", "more", "in")
	c := rd.near(at, len(rd.cols), len(rd.cols), measurable)
	if c < 0 {
		return refused
	}
	rest, words := rd.conditions(rd.but(func(f filter) bool { return f.col == a.col && f.op == "" }))
	v := rd.r.value(&rd.r.cols[c])
	ta, sa := rd.condition(a)
	tb, sb := rd.condition(b)
	sub := func(test string) string {
		return fmt.Sprintf("(SELECT SUM(%s) FROM %s WHERE %s)", v, rd.r.from, both(test, rest))
	}
	if words != "" {
		words = ", where " + words
	}
	name := rd.r.cols[c].name
	return &draft{from: rd.r.from, what: fmt.Sprintf("ABS(%s - %s)", sub(ta), sub(tb)), tail: " LIMIT 1",
		meaning: fmt.Sprintf("difference in %s of %s between %s and %s%s", name, rd.r.table.Display(), sa, sb, words)}
}

// neighbour is "who came after A" and "what is listed before B": the next row in the order of the table.
func (rd *reading) neighbour() *draft {
	if rd.r.order == "" || strings.Contains(rd.r.order, ",") {
		return nil
	}
	for k, f := range rd.filters {
		if f.op != "" || f.not {
			continue
		}
		step, from := rd.q.stepBefore(f.from)
		if step == 0 {
			continue
		}
		rd.use(from, f.from)
		answer := rd.target()
		if answer < 0 {
			answer = f.col
		}
		test, say := rd.condition(f)
		rest, words := rd.conditions(rd.but(func(g filter) bool { return g.from == rd.filters[k].from }))
		if words != "" {
			words = ", among those where " + words
		}
		beyond, fn, direction, meaning := ">", "MAX", "ASC", "next row of %s after the one where %s%s"
		if step < 0 {
			beyond, fn, direction, meaning = "<", "MIN", "DESC", "row of %s before the one where %s%s"
		}
		next := fmt.Sprintf("%s %s (SELECT %s(%s) FROM %s WHERE %s)", rd.r.order, beyond, fn, rd.r.order, rd.r.from, both(test, rest))
		return &draft{from: rd.r.from, what: rd.show(answer, f.col), where: both(next, rest), tail: fmt.Sprintf(" ORDER BY %s %s LIMIT 1", rd.r.order, direction),
			meaning: fmt.Sprintf(meaning, rd.r.table.Display(), say, words)}
	}
	return nil
}

// stepBefore reads the words before a value: 1 for after it, -1 for before it, 0 for neither, and where they begin.
func (q *question) stepBefore(at int) (step, from int) {
	for i := at - 1; i >= max(0, at-3); i-- {
		switch w := q.low[i]; {
		case later[w]:
			return 1, i
		case earlier[w]:
			return -1, i
		case !nearby[w]:
			return 0, 0
		}
	}
	return 0, 0
}

// extreme is "which X has the most Y", "what is the highest Y", "which X appears most often", "which is deeper, A or B".
func (rd *reading) extreme() *draft {
	words := slices.Concat(most, least)
	pair, _, two := rd.pair()
	if two = two && rd.q.has("or"); two {
		words = slices.Concat(words, more, less)
	}
	from, at := rd.q.find(words...)
	if from < 0 || rd.q.has("at most", "at least", "most recent") || rd.inValue(from) {
		return nil
	}
	word, fn := rd.q.low[from], "MAX"
	if slices.Contains(least, word) || slices.Contains(less, word) {
		fn = "MIN"
	}
	c := rd.near(from, 6, 3, measurable) // the superlative itself may name it: "longest"
	rd.use(from, at)
	answer := rd.target()
	// "The highest price" names the number itself, "the most expensive product" what has it.
	noun := at < len(rd.cols) && slices.ContainsFunc(rd.cols[at], func(m mention) bool { return rd.r.cols[m.col].called(rd.q.toks[at]) })
	if c >= 0 && rd.q.bare() && (rd.r.unnamed || noun) {
		answer = c
	}
	if two {
		answer = pair.col
	}
	switch {
	case answer < 0:
		return refused
	case c >= 0:
		col := &rd.r.cols[c]
		return rd.utmost(answer, c, fn, rd.r.value(col), both(rd.r.filledTest(col), rd.r.noTotals()), word+" by "+col.name)
	case word == "oldest" || word == "youngest":
		fn = map[string]string{"oldest": "MIN", "youngest": "MAX"}[word]
		return rd.dated(answer, rd.only(func(c *column) bool {
			return c.year != "" && (rd.r.unnamed || c.hasWord(ageLike))
		}), fn, word)
	}
	return rd.mostRows(answer, fn, word)
}

// utmost are the rows in which an expression of column c is the largest, or the smallest, of those that pass a test.
func (rd *reading) utmost(answer, c int, fn, expr, test, called string) *draft {
	where, words := rd.conditions(rd.filters)
	all := both(where, test)
	return &draft{from: rd.r.from, what: rd.show(answer, c), where: utmost(fn, expr, rd.r.from, all), tail: rd.r.listed(),
		meaning: rd.r.where(words) + ", the " + called}
}

// mostRows is "which city appears most often".
func (rd *reading) mostRows(answer int, fn, word string) *draft {
	col := &rd.r.cols[answer]
	if !slices.Contains([]string{"most", "least", "fewest"}, word) || col.unique > 0.8 || rd.q.bare() {
		return refused
	}
	where, words := rd.conditions(rd.filters)
	all := both(where, col.expr+" IS NOT NULL")
	return &draft{from: rd.r.from, what: rd.r.shown(answer) + ", COUNT(*) AS \"count\"", where: all,
		tail:    fmt.Sprintf(" GROUP BY %s HAVING COUNT(*) = (SELECT %s(n) FROM (SELECT COUNT(*) AS n FROM %s WHERE %s GROUP BY %s) AS counts)", col.expr, fn, rd.r.from, all, col.expr),
		meaning: fmt.Sprintf("%s, the %s in the %s rows", rd.r.where(words), col.name, word)}
}

// inValue reports that a token is part of a value or of a comparison.
func (rd *reading) inValue(i int) bool {
	return slices.ContainsFunc(rd.filters, func(f filter) bool { return f.from <= i && i < f.at })
}

// bare reports a question for a number itself, "what is the highest score", rather than for what has it.
func (q *question) bare() bool {
	_, at := q.find("what is the", "what was the", "what s the", "what's the", "what is", "what was")
	return at > 0 && at < len(q.low) && slices.Contains(slices.Concat(most, least), q.low[at])
}

// measurable reports a column whose numbers can be compared and added up: no places, names or years.
func measurable(c *column) bool {
	return c.number && !c.hasWord(ordinals) && c.year == ""
}

func (r *relation) listed() string {
	if r.order == "" {
		return ""
	}
	return " ORDER BY " + r.order
}

// ends is "the first", "the last", "at the top of the table".
func (rd *reading) ends() *draft {
	from, at := rd.q.find("first", "top", "earliest")
	last, lAt := rd.q.find("last", "bottom", "latest", "most recent", "final")
	if from >= 0 == (last >= 0) {
		return nil
	}
	fn, way := "MIN", "first"
	if last >= 0 {
		from, at, fn, way = last, lAt, "MAX", "last"
	}
	if rd.inValue(from) {
		return nil
	}
	if from > 0 && slices.Contains([]string{"placed", "finished", "came", "ranked", "place", "finish"}, rd.q.low[from-1]) {
		return refused // a place in a contest, not in the table
	}
	rd.use(from, at)
	answer := rd.target()
	if answer < 0 {
		return refused
	}
	if !rd.r.unnamed && !rd.q.has("table", "chart", "list", "listed", "bottom", "top") {
		dates := func(c *column) bool { return (c.iso || c.year != "" && c.number) }
		c := rd.namedBy(dates)
		if c < 0 && slices.Contains([]string{"earliest", "latest", "most"}, rd.q.low[from]) {
			c = rd.only(dates)
		}
		return rd.dated(answer, c, fn, way)
	}
	order, say := rd.r.order, "in the table"
	years := rd.only(func(c *column) bool { return c.year != "" })
	switch listed := rd.q.has("table", "chart", "list", "listed", "shown", "appears", "bottom", "top"); {
	case years >= 0 && !listed && fn == "MAX":
		return refused // the rows that the question means are often more than those with its words
	case years >= 0 && !listed:
		order, say = rd.r.cols[years].year+", "+cmp.Or(rd.r.order, rd.r.cols[years].expr), "by "+rd.r.cols[years].name
	case order == "":
		return refused
	case fn == "MAX":
		order = strings.ReplaceAll(order, ", ", " DESC, ") + " DESC"
	}
	where, words := rd.conditions(rd.filters)
	return &draft{from: rd.r.from, what: rd.show(answer), where: both(where, rd.r.cols[answer].expr+" IS NOT NULL"), tail: " ORDER BY " + order + " LIMIT 1",
		meaning: fmt.Sprintf("%s, the %s row %s", rd.r.where(words), way, say)}
}

// dated is the first or the last by a column of dates or years.
func (rd *reading) dated(answer, c int, fn, way string) *draft {
	if c < 0 {
		return refused // by what it is the first is not said
	}
	expr := rd.r.cols[c].when()
	return rd.utmost(answer, c, fn, expr, expr+" IS NOT NULL", way+" by "+rd.r.cols[c].name)
}
