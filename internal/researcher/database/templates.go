package database

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// find is the first place of one of several phrases, and where it ends; -1 if none is there.
func (q *question) find(phrases ...string) (from, at int) {
	for i := range q.low {
		for _, p := range phrases {
			if end, ok := q.phraseAt(i, p); ok {
				return i, end
			}
		}
	}
	return -1, -1
}

func (q *question) has(phrases ...string) bool {
	from, _ := q.find(phrases...)
	return from >= 0
}

// target is the column that a question asks for; -1 where there is none.
func (rd *reading) target() int {
	q := rd.q
	if why, _ := q.find("why"); why >= 0 {
		rd.used[why] = true
		return rd.only(func(c *column) bool { return c.parent == 0 && c.hasWord(reasonLike) })
	}
	wh, at := q.find("which", "what", "whose", "who", "whom", "when", "where", "name", "list", "give", "show", "tell")
	if wh < 0 {
		return -1 // words without a question
	}
	switch q.low[wh] {
	case "who", "whom":
		return rd.person(at)
	case "when":
		return rd.only(func(c *column) bool { return c.year != "" || c.date || slices.Contains(c.stems, "date") })
	case "where":
		return rd.only(placeNamed)
	}
	if !rd.r.unnamed && q.low[wh] == "what" && at < len(q.low) && slices.Contains([]string{"do", "does", "did"}, q.low[at]) {
		return -1 // a deed is no column's name
	}
	return rd.noun(at)
}

// person is the column that answers "who": by the noun ("the maker of X"), the verb ("who makes X"), or the rows' name.
func (rd *reading) person(at int) int {
	for _, is := range []string{"is the", "was the", "were the"} {
		end, ok := rd.q.phraseAt(at, is)
		for i := end; ok && i < min(end+3, len(rd.q.low)) && !auxiliary[rd.q.low[i]]; i++ {
			if rd.self(i) {
				return rd.r.entity()
			}
			if c := rd.take(i, func(c *column) bool { return !c.number }); c >= 0 {
				return c
			}
		}
	}
	if c := rd.take(at, func(c *column) bool { return !c.number && !c.date && c.year == "" && !placeNamed(c) }); c >= 0 {
		return c
	}
	entity := rd.r.entity()
	named := func(c column) bool { return !c.number && c.hasWord(personLike) }
	if c := slices.IndexFunc(rd.r.cols, named); rd.r.unnamed && c >= 0 && (entity < 0 || !named(rd.r.cols[entity])) {
		return c
	}
	return entity
}

func placeNamed(c *column) bool { return c.hasWord(placeLike) }

// noun is the column that the noun after "which" or "what" names; one of no column's name is what the rows are.
func (rd *reading) noun(at int) int {
	q := rd.q
	for at < len(q.low) && (q.toks[at].Stop || q.low[at] == "name" || q.low[at] == "names" || q.low[at] == "s") && len(rd.cols[at]) == 0 {
		at++
	}
	for i := at; i < min(at+5, len(q.low)) && (i == at || !auxiliary[q.low[i]]); i++ {
		if rd.self(i) {
			return rd.r.entity()
		}
		if kin := rd.kin(i); kin > 0 {
			return slices.IndexFunc(rd.r.cols, func(c column) bool { return c.parent == kin && c.label })
		}
		if c := rd.take(i, func(*column) bool { return true }); c >= 0 {
			return c
		}
		if rd.r.unnamed && !q.toks[i].Stop && !asking[q.toks[i].Stem] && !rd.used[i] {
			rd.used[i] = true // what the rows are called
			break
		}
	}
	if !rd.r.unnamed {
		return -1
	}
	return rd.r.entity()
}

func (rd *reading) average() *draft {
	from, at := rd.q.find("average", "mean")
	if from < 0 || rd.inValue(from) {
		return nil
	}
	rd.use(from, at)
	c := rd.near(at, len(rd.cols), len(rd.cols), measurable)
	if c < 0 {
		return refused
	}
	where, words := rd.conditions(nil)
	col := &rd.r.cols[c]
	return &draft{what: "AVG(" + rd.r.value(col) + ")", where: both(both(where, rd.r.filledTest(col)), rd.r.noTotals()), meaning: "average " + col.name + " of " + rd.rows(words)}
}

// count is "how many", "the number of" and "the total": the sum of a column that is named, or the number of rows.
func (rd *reading) count() *draft {
	from, at := rd.q.find("how many", "total number of", "number of", "how much", "total of", "total amount of", "amount of", "count", "sum of", "the sum", "the total", "what number")
	wh, _ := rd.q.find("which", "who", "where", "when", "name")
	if from < 0 || wh >= 0 && wh < from || rd.inValue(from) {
		return nil
	}
	if slices.ContainsFunc(rd.r.cols, func(c column) bool { return strings.EqualFold(c.name, "number") }) && slices.Contains(rd.q.low[from:at], "number") {
		return nil // a column of numbers is called so
	}
	rd.use(from, at)
	where, words := rd.conditions(nil)
	for i := at; i < min(at+6, len(rd.cols)) && (i == at || !auxiliary[rd.q.low[i]]); i++ {
		if c := rd.take(i, measurable); c >= 0 {
			return rd.sum(c, where, words)
		}
	}
	return rd.number(at, where, words)
}

// sum adds up a column, or tells its value in the one row that is named.
func (rd *reading) sum(c int, where, words string) *draft {
	col := &rd.r.cols[c]
	rd.useWords(having...)
	all := both(both(where, rd.r.filledTest(col)), rd.r.noTotals())
	if rd.single() {
		return &draft{what: rd.show(c), where: all, meaning: rd.rows(words)}
	}
	return &draft{what: "SUM(" + rd.r.value(col) + ")", where: all, meaning: "total " + col.name + " of " + rd.rows(words)}
}

// number counts what the noun from token at on names: the rows of the table, or the different values of a column.
func (rd *reading) number(at int, where, words string) *draft {
	different := rd.q.has(distinct...)
	rd.useWords(distinct...)
	met := false
	for i := at; i < min(at+3, len(rd.q.toks)) && !auxiliary[rd.q.low[i]]; i++ {
		if met = rd.self(i); met {
			break
		}
		if t := rd.q.toks[i]; t.Stop || asking[t.Stem] || rd.used[i] {
			continue
		}
		c := rd.take(i, func(c *column) bool { return !c.number })
		switch {
		case c >= 0 && rd.r.cols[c].parent > 0:
			return refused
		case c >= 0 && (different || !rd.r.unnamed):
			col := &rd.r.cols[c]
			return &draft{what: "COUNT(DISTINCT " + col.expr + ")", where: both(where, rd.r.noTotals()), meaning: "count of different " + col.name + " of " + rd.rows(words)}
		case c < 0: // the rows, whatever they are called
			rd.used[i] = rd.r.unnamed
		}
		break
	}
	switch {
	case !met && !rd.r.unnamed, rd.single():
		return refused // what is counted is not this table; or a row that is named is there once
	case different:
		return refused // rows are always different
	}
	return &draft{what: "COUNT(*)", where: both(where, rd.r.noTotals()), meaning: "count of " + rd.rows(words)}
}

// single reports that the filters name one row: by what it is called or, in an unnamed table, by what no other has.
func (rd *reading) single() bool {
	return slices.ContainsFunc(rd.filters, func(f filter) bool {
		c := &rd.r.cols[f.col]
		return f.op == "" && f.full && !f.not && len(f.values) == 1 && c.unique > 0.9 && c.parent == 0 && (rd.r.unnamed || f.col == rd.r.entity())
	})
}

// lookup is the value of a column in the rows that the question names.
func (rd *reading) lookup() *draft {
	if len(rd.filters) == 0 {
		return nil
	}
	answer := rd.target()
	if answer < 0 || rd.q.has("how") {
		return refused
	}
	if slices.ContainsFunc(rd.filters, func(f filter) bool { return f.col == answer && !f.not && f.op == "" }) {
		return refused // it would answer with what was asked
	}
	where, words := rd.conditions(nil)
	return &draft{what: rd.show(answer), where: both(where, rd.r.cols[answer].expr+" IS NOT NULL"), tail: rd.listed(),
		meaning: rd.rows(words)}
}

// What each list holds is said in its file.
var (
	asking       = lexicon.StemSet("table asking")
	harmless     = lexicon.WordSet("table harmless")
	operators    = lexicon.WordSet("table operators")
	auxiliary    = lexicon.WordSet("table auxiliary")
	asksTruth    = lexicon.WordSet("yes or no")
	rowWords     = lexicon.StemSet("table rows")
	tellsNothing = lexicon.StemSet("table plain names")
	called       = lexicon.StemSet("table names")
	ordinals     = lexicon.StemSet("table ordinals")
	ageLike      = lexicon.StemSet("table ages")
	reasonLike   = lexicon.StemSet("table reasons")
	placeLike    = lexicon.StemSet("table places")
	personLike   = lexicon.StemSet("table persons")

	most     = strings.Fields(lexicon.WordList("table most"))
	least    = strings.Fields(lexicon.WordList("table least"))
	more     = strings.Fields(lexicon.WordList("table more"))
	less     = strings.Fields(lexicon.WordList("table less"))
	having   = strings.Fields(lexicon.WordList("table having"))
	distinct = strings.Fields(lexicon.WordList("table distinct"))

	later   = lexicon.WordSet("table after")
	earlier = lexicon.WordSet("table before")
	nearby  = lexicon.WordSet("table between")
)

// synonyms are pairs of stems that may name the same column.
var synonyms = sync.OnceValue(func() map[[2]string]bool {
	out := map[[2]string]bool{}
	for group := range strings.SplitSeq(lexicon.WordList("table synonyms"), ";") {
		words := strings.Fields(group)
		for _, a := range words {
			for _, b := range words {
				out[[2]string{lexicon.Stem(a), lexicon.Stem(b)}] = true
			}
		}
	}
	return out
})

// comparing are the phrases before, or after, a number that compare with it.
var comparing = sync.OnceValue(func() (out []comparison) {
	for _, name := range []string{"before >=", "before <=", "before >", "before <", "after >=", "after <="} {
		side, op, _ := strings.Cut(name, " ")
		for words := range strings.SplitSeq(lexicon.WordList("table "+name), ";") {
			out = append(out, comparison{strings.TrimSpace(words), op, side == "after"})
		}
	}
	return out
})

// comparison is a phrase that compares with a number.
type comparison struct {
	words, op string
	after     bool // it follows the number
}

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
