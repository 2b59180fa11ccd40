package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
)

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
	if c >= 0 && rd.bare() && (rd.r.unnamed || noun) {
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
			return c.year != "" && c.parent == 0 && (rd.r.unnamed || c.hasWord(ageLike))
		}), fn, word)
	}
	return rd.mostRows(answer, fn, word)
}

// utmost are the rows in which an expression of column c is the largest, or the smallest, of those that pass a test.
func (rd *reading) utmost(answer, c int, fn, expr, test, called string) *draft {
	where, words := rd.conditions(nil)
	all := both(where, test)
	return &draft{what: rd.show(answer, c), where: both(all, fmt.Sprintf("%s = (SELECT %s(%s) FROM %s WHERE %s)", expr, fn, expr, rd.r.from, all)), tail: rd.listed(),
		meaning: rd.rows(words) + ", the " + called}
}

// mostRows is "which city appears most often" and "which customer has the most orders". Rows that refer to another
// table are counted by what they refer to: two customers may have one name.
func (rd *reading) mostRows(answer int, fn, word string) *draft {
	col := &rd.r.cols[answer]
	group := col.expr
	if col.parent > 0 && col.label && fn == "MAX" && rd.q.speaks(rd.r) {
		rd.touched[answer] = true
		group = "a." + database.Ident(col.link)
	} else if !slices.Contains([]string{"most", "least", "fewest"}, word) || col.unique > 0.8 || rd.bare() {
		return refused
	}
	where, words := rd.conditions(nil)
	all := both(where, group+" IS NOT NULL")
	return &draft{what: rd.shown(answer) + ", COUNT(*) AS \"count\"", where: all,
		tail:    fmt.Sprintf(" GROUP BY %s HAVING COUNT(*) = (SELECT %s(n) FROM (SELECT COUNT(*) AS n FROM %s WHERE %s GROUP BY %s) AS counts)", group, fn, rd.r.from, all, group),
		meaning: fmt.Sprintf("%s, the %s in the %s rows", rd.rows(words), col.name, word)}
}

// inValue reports that a token is part of a value or of a comparison.
func (rd *reading) inValue(i int) bool {
	return slices.ContainsFunc(rd.filters, func(f filter) bool { return f.from <= i && i < f.at })
}

// bare reports a question for a number itself, "what is the highest score", rather than for what has it.
func (rd *reading) bare() bool {
	_, at := rd.q.find("what is the", "what was the", "what s the", "what's the", "what is", "what was")
	return at > 0 && at < len(rd.q.low) && slices.Contains(slices.Concat(most, least), rd.q.low[at])
}

// measurable reports a column whose numbers can be compared and added up: no places, names or years.
func measurable(c *column) bool {
	return c.number && !c.hasWord(ordinals) && c.parent == 0 && c.year == ""
}

func (rd *reading) listed() string {
	if rd.r.order == "" {
		return ""
	}
	return " ORDER BY " + rd.r.order
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
		dates := func(c *column) bool { return (c.iso || c.year != "" && c.number) && c.parent == 0 }
		c := rd.named(dates)
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
	where, words := rd.conditions(nil)
	return &draft{what: rd.show(answer), where: both(where, rd.r.cols[answer].expr+" IS NOT NULL"), tail: " ORDER BY " + order + " LIMIT 1",
		meaning: fmt.Sprintf("%s, the %s row %s", rd.rows(words), way, say)}
}

// dated is the first or the last by a column of dates or years.
func (rd *reading) dated(answer, c int, fn, way string) *draft {
	if c < 0 {
		return refused // by what it is the first is not said
	}
	expr := rd.r.cols[c].year
	if rd.r.cols[c].iso {
		expr = rd.r.cols[c].expr
	}
	return rd.utmost(answer, c, fn, expr, expr+" IS NOT NULL", way+" by "+rd.r.cols[c].name)
}
