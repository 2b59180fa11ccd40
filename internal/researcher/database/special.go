package database

import (
	"fmt"
	"slices"
	"strings"
)

// special is a statement for a question about two rows, or about the order of a table: the difference between two, the
// greater of two, the row before and after, the first and the last. Of several tables only a difference is looked for.
func (a drafting) special() *draft {
	templates := []func() *draft{a.difference, a.neighbour, a.greater, a.ends}
	if len(a.w.tables) > 1 {
		templates = templates[:1]
	}
	for _, template := range templates {
		if d := template(); d != nil {
			return d
		}
	}
	return nil
}

// pair are the two filters on one column that a comparison is about.
func (a drafting) pair() (x, y filter, ok bool) {
	for _, f := range a.filters {
		same := slices.DeleteFunc(slices.Clone(a.filters), func(g filter) bool { return g.col != f.col || g.op != "" || g.not })
		if len(same) == 2 {
			return same[0], same[1], true
		}
	}
	return filter{}, filter{}, false
}

// besides are the rows of a table that pass the filters but for some; false where other tables are needed for it.
func (a drafting) besides(of int, skip func(filter) bool) (rows, bool) {
	a.main, a.filters = of, slices.DeleteFunc(a.filters, skip)
	r, ok := a.rowsOf(of)
	return r, ok && r.from == a.w.tables[of].from
}

// difference is "the difference in points between A and B" and "how many more points did A have than B".
func (a drafting) difference() *draft {
	from, at := a.q.find("difference", "how many more", "how much more", "how many fewer", "how many less", "how much less", "how much higher", "how much taller", "how much longer")
	x, y, ok := a.pair()
	if from < 0 || !ok {
		return nil
	}
	of := a.r.cols[x.col].of
	a.use(from, at)
	a.useWords("between", "and", "than", "more", "in")
	c := a.near(at, len(a.cols), len(a.cols), func(c *column) bool { return measurable(c) && c.of == of })
	if c < 0 {
		return nil
	}
	r, ok := a.besides(of, func(f filter) bool { return f.col == x.col && f.op == "" })
	if !ok {
		return nil
	}
	testX, saidX := a.condition(x)
	testY, saidY := a.condition(y)
	sum := func(test string) string {
		return fmt.Sprintf("(SELECT SUM(%s) FROM %s WHERE %s)", a.r.value(&a.r.cols[c]), r.from, both(test, r.where))
	}
	words := ""
	if r.words != "" {
		words = ", where " + r.words
	}
	return &draft{from: r.from, what: fmt.Sprintf("ABS(%s - %s)", sum(testX), sum(testY)), tail: " LIMIT 1",
		meaning: fmt.Sprintf("difference in %s of %s between %s and %s%s", a.r.cols[c].name, a.w.tables[of].table.Display(), saidX, saidY, words)}
}

// neighbour is "who came after A" and "what is listed before B": the next row in the order of the table.
func (a drafting) neighbour() *draft {
	order := a.w.tables[0].order
	if order == "" || strings.Contains(order, ",") {
		return nil
	}
	for _, f := range a.filters {
		step, from := a.q.stepBefore(f.from)
		if f.op != "" || f.not || step == 0 {
			continue
		}
		a.use(from, f.from)
		answer := a.target()
		if answer < 0 {
			answer = f.col
		}
		test, said := a.condition(f)
		r, ok := a.besides(0, func(g filter) bool { return g.from == f.from })
		if !ok {
			return nil
		}
		words := ""
		if r.words != "" {
			words = ", among those where " + r.words
		}
		beyond, fn, direction, meaning := ">", "MAX", "ASC", "next row of %s after the one where %s%s"
		if step < 0 {
			beyond, fn, direction, meaning = "<", "MIN", "DESC", "row of %s before the one where %s%s"
		}
		next := fmt.Sprintf("%s %s (SELECT %s(%s) FROM %s WHERE %s)", order, beyond, fn, order, r.from, both(test, r.where))
		return &draft{from: r.from, what: a.show(answer, f.col), where: both(next, r.where), tail: fmt.Sprintf(" ORDER BY %s %s LIMIT 1", order, direction),
			meaning: fmt.Sprintf(meaning, a.w.tables[0].table.Display(), said, words)}
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

// greater is "which is deeper, A or B".
func (a drafting) greater() *draft {
	x, _, two := a.pair()
	from, at := a.q.find(slices.Concat(most, least, more, less)...)
	if !two || from < 0 || !a.q.has("or") || a.q.has("at most", "at least", "most recent") || a.inValue(from) {
		return nil
	}
	word := a.q.low[from]
	s := superlative{way: "DESC", word: word}
	if slices.Contains(least, word) || slices.Contains(less, word) {
		s.way = "ASC"
	}
	c := a.near(from, 6, 3, measurable) // the word itself may name it: "longer"
	if c < 0 {
		return nil
	}
	a.use(from, at)
	return a.extreme(x.col, c, a.r.value(&a.r.cols[c]), a.r.filledTest(&a.r.cols[c]), s)
}

// ends is "the first", "the last", "at the top of the table". Of a table whose name tells what its rows are the question
// has to say that it means the order of the table.
func (a drafting) ends() *draft {
	r := a.w.tables[0]
	listed := a.q.has("table", "chart", "list", "listed", "shown", "appears", "bottom", "top")
	from, at := a.q.find("first", "top", "earliest")
	last, lastAt := a.q.find("last", "bottom", "latest", "most recent", "final")
	if from >= 0 == (last >= 0) || !r.unnamed && !listed {
		return nil
	}
	order, way, say := r.order, "first", "in the table"
	if last >= 0 {
		from, at, way = last, lastAt, "last"
		order = strings.ReplaceAll(order, ", ", " DESC, ") + " DESC"
	}
	if r.order == "" || a.inValue(from) || from > 0 && slices.Contains([]string{"placed", "finished", "came", "ranked", "place", "finish"}, a.q.low[from-1]) {
		return nil
	}
	if years := a.only(func(c *column) bool { return c.year != "" }); years >= 0 && !listed {
		if last >= 0 {
			return nil // the rows that the question means are often more than those with its words
		}
		order, say = a.r.cols[years].year+", "+order, "by "+a.r.cols[years].name
	}
	a.use(from, at)
	answer := a.target()
	if answer < 0 {
		return nil
	}
	rows, ok := a.besides(0, func(filter) bool { return false })
	if !ok {
		return nil
	}
	return &draft{from: rows.from, what: a.show(answer), where: both(rows.where, a.r.cols[answer].expr+" IS NOT NULL"), tail: " ORDER BY " + order + " LIMIT 1",
		meaning: fmt.Sprintf("%s, the %s row %s", r.where(rows.words), way, say)}
}
