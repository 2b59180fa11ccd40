package database

import (
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
	rest, words := rd.conditions(func(f filter) bool { return f.col == a.col && f.op == "" })
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
	return &draft{what: fmt.Sprintf("ABS(%s - %s)", sub(ta), sub(tb)), tail: " LIMIT 1",
		meaning: fmt.Sprintf("difference in %s of %s between %s and %s%s", name, rd.r.table.Display(), sa, sb, words)}
}

// useWords takes words for understood, wherever they stand.
func (rd *reading) useWords(list ...string) {
	for i, w := range rd.q.low {
		if slices.Contains(list, w) {
			rd.used[i] = true
		}
	}
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
		step, from := rd.stepBefore(f.from)
		if step == 0 {
			continue
		}
		rd.use(from, f.from)
		answer := rd.target()
		if answer < 0 {
			answer = f.col
		}
		test, say := rd.condition(f)
		rest, words := rd.conditions(func(g filter) bool { return g.from == rd.filters[k].from })
		if words != "" {
			words = ", among those where " + words
		}
		beyond, fn, direction, meaning := ">", "MAX", "ASC", "next row of %s after the one where %s%s"
		if step < 0 {
			beyond, fn, direction, meaning = "<", "MIN", "DESC", "row of %s before the one where %s%s"
		}
		next := fmt.Sprintf("%s %s (SELECT %s(%s) FROM %s WHERE %s)", rd.r.order, beyond, fn, rd.r.order, rd.r.from, both(test, rest))
		return &draft{what: rd.show(answer, f.col), where: both(next, rest), tail: fmt.Sprintf(" ORDER BY %s %s LIMIT 1", rd.r.order, direction),
			meaning: fmt.Sprintf(meaning, rd.r.table.Display(), say, words)}
	}
	return nil
}

// stepBefore reads the words before a value: 1 for after it, -1 for before it, 0 for neither, and where they begin.
func (rd *reading) stepBefore(at int) (step, from int) {
	for i := at - 1; i >= max(0, at-3); i-- {
		switch w := rd.q.low[i]; {
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
