package database

import (
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
)

// This part reads questions on a table alone, whose rows may be called anything: a sheet of a workbook, a table of a
// page. Its templates are a value, a count, a sum, an average, an extreme, a difference, the first and the last, the
// row before and after. Of a table with a name it reads what no statement of several tables is made of: a difference,
// the greater of two, the row before and after, the first and the last.

// readSheet finds what the question says about a table.
func readSheet(q *question, r *relation, nouns []noun) *reading {
	rd := newReading(q, r, func(int) int { return r.entity() })
	rd.nouns = nouns
	rd.inMonth()
	rd.comparisons()
	rd.values(func(filter) bool { return true })
	return rd
}

// names reports that a word names a column which the statement rests on.
func (rd *reading) names(i int) bool {
	return slices.ContainsFunc(rd.cols[i], func(m mention) bool { return rd.touched[m.col] })
}

// draft tries the templates in their order: the narrower ones first.
func (rd *reading) draft() *draft {
	if len(rd.q.low) == 0 || asksTruth[rd.q.low[0]] && !rd.q.has("or") {
		return nil // it wants a yes or a no, and rows are none
	}
	templates := []func() *draft{rd.difference, rd.neighbour, rd.extreme, rd.ends}
	if rd.r.unnamed {
		templates = []func() *draft{rd.difference, rd.neighbour, rd.extreme, rd.average, rd.count, rd.ends, rd.lookup}
	}
	for _, template := range templates {
		if d := template(); d != nil {
			if d.what == "" {
				return nil // understood, and not answered
			}
			return d
		}
	}
	return nil
}

// refused is a question that no later template may take for another one.
var refused = &draft{}

// where says which rows are meant: "trials where city is Lyon".
func (r *relation) where(words string) string {
	if words == "" {
		return r.table.Display()
	}
	return r.table.Display() + " where " + words
}

// self reports a word that names the table.
func (rd *reading) self(i int) bool {
	return slices.ContainsFunc(rd.nouns, func(n noun) bool { return n.from <= i && i < n.at })
}

// missing are the words of the question that stand for nothing in a statement, which then does not answer it. Words
// that are known by more than their use are left out.
func (rd *reading) missing(known func(i int) bool) []string {
	var out []string
	for i, t := range rd.q.toks {
		// "Placed in May", but not "are placed".
		happened := !rd.r.unnamed && happens[rd.q.low[i]] && !(i == len(rd.q.toks)-1 && auxiliary[rd.q.low[max(0, i-1)]])
		if !rd.used[i] && !rd.names(i) && !harmless[rd.q.low[i]] && !happened && !slices.Contains(out, t.Text) && !known(i) {
			out = append(out, t.Text)
		}
	}
	return out
}

// known reports a word that names the table or, where its rows may be called anything, that asks for rows.
func (rd *reading) known(i int) bool {
	t := rd.q.toks[i]
	return rd.self(i) || rd.r.unnamed && !operators[rd.q.low[i]] && (t.Stop || askWords[t.Stem] || rowWords[t.Stem])
}

// computed is a number of the rows that pass a test.
func (rd *reading) computed(value, name, where, words string) *draft {
	return &draft{from: rd.r.from, what: value, where: both(where, rd.r.noTotals()), meaning: name + " of " + rd.r.where(words)}
}

// but are the filters but for some.
func (rd *reading) but(skip func(filter) bool) []filter {
	return slices.DeleteFunc(slices.Clone(rd.filters), skip)
}

// target is the column that a question asks for; -1 where there is none.
func (rd *reading) target() int {
	q := rd.q
	if why, _ := q.find("why"); why >= 0 {
		rd.used[why] = true
		return rd.only(func(c *column) bool { return c.hasWord(reasonLike) })
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
			next := min(i+1, len(q.toks)-1)
			kind := func(c *column) bool {
				return c.called(q.toks[next]) && !c.number && !c.iso && c.year == ""
			}
			if c := rd.take(next, kind); c >= 0 && !rd.r.unnamed {
				return c // "which payment method"
			}
			return rd.r.entity()
		}
		if c := rd.take(i, func(*column) bool { return true }); c >= 0 {
			return c
		}
		if rd.r.unnamed && !q.toks[i].Stop && !askWords[q.toks[i].Stem] && !rd.used[i] {
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
	where, words := rd.conditions(rd.filters)
	col := &rd.r.cols[c]
	return rd.computed(database.Rounded(rd.r.dialect, "AVG("+rd.r.value(col)+")"), "average "+col.name, both(where, rd.r.filledTest(col)), words)
}

// count is "how many", "the number of" and "the total": the sum of a column that is named, or the number of rows.
func (rd *reading) count() *draft {
	from, at := 0, 1
	if rd.q.low[0] != "total" {
		from, at = rd.q.find("how many", "total number of", "number of", "how much", "total of", "total amount of", "amount of", "count", "sum of", "the sum", "the total", "what number")
	}
	wh, _ := rd.q.find("which", "who", "where", "when", "name")
	if from < 0 || wh >= 0 && wh < from || rd.inValue(from) {
		return nil
	}
	if slices.ContainsFunc(rd.r.cols, func(c column) bool { return strings.EqualFold(c.name, "number") }) && slices.Contains(rd.q.low[from:at], "number") {
		return nil // a column of numbers is called so
	}
	rd.use(from, at)
	where, words := rd.conditions(rd.filters)
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
	all := both(where, rd.r.filledTest(col))
	if rd.single() {
		return &draft{from: rd.r.from, what: rd.show(c), where: both(all, rd.r.noTotals()), meaning: rd.r.where(words)}
	}
	return rd.computed(database.Rounded(rd.r.dialect, "SUM("+rd.r.value(col)+")"), col.summed(), all, words)
}

// number counts what the noun from token at on names: the rows of the table, or the different values of a column.
func (rd *reading) number(at int, where, words string) *draft {
	different := rd.q.has(distinct...)
	rd.useWords(distinct...)
	for i := at; i < min(at+3, len(rd.q.toks)) && !auxiliary[rd.q.low[i]] && !rd.self(i); i++ {
		if t := rd.q.toks[i]; t.Stop || askWords[t.Stem] || rd.used[i] {
			continue
		}
		c := rd.take(i, func(c *column) bool { return !c.number })
		if c >= 0 && different {
			col := &rd.r.cols[c]
			return &draft{from: rd.r.from, what: "COUNT(DISTINCT " + col.expr + ")", where: both(where, rd.r.noTotals()), meaning: "count of different " + col.name + " of " + rd.r.where(words)}
		}
		rd.used[i] = true // the rows, whatever they are called
		break
	}
	if rd.single() || different {
		return refused // a row that is named is there once, and rows are always different
	}
	return rd.computed("COUNT(*)", "count", where, words)
}

// single reports that the filters name one row, by what no other has.
func (rd *reading) single() bool {
	return slices.ContainsFunc(rd.filters, func(f filter) bool {
		c := &rd.r.cols[f.col]
		return f.op == "" && f.full && !f.not && len(f.values) == 1 && c.unique > 0.9
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
	where, words := rd.conditions(rd.filters)
	return &draft{from: rd.r.from, what: rd.show(answer), where: both(where, rd.r.cols[answer].expr+" IS NOT NULL"), tail: rd.r.listed(),
		meaning: rd.r.where(words)}
}
