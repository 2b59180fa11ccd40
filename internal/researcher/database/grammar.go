package database

import (
	"slices"
)

// draft makes a statement of a question, by what it asks for: an extreme, a number, or rows.
func (a drafting) draft() *draft {
	if len(a.q.low) == 0 || asksTruth[a.q.low[0]] {
		return nil // it wants a yes or a no, and rows are none
	}
	if a.utmost != nil {
		return a.ranked(*a.utmost)
	}
	if from, at := a.q.find("average", "mean"); from >= 0 && !a.inValue(from) {
		a.use(from, at)
		if c := a.near(at, len(a.cols)-at, at, measurable); c >= 0 {
			return a.each(a.computed("AVG", c, 0))
		}
		return nil
	}
	if d, asked := a.counted(); asked {
		return d
	}
	return a.listed()
}

// counted is "how many", "the number of", "how much" and "the total": the sum of a column, the number of rows of a
// table, or that of different values.
func (a drafting) counted() (*draft, bool) {
	from, at := a.q.find("how many", "the total number of", "the number of", "the total amount of", "total number of", "number of", "how much", "total of", "total amount of", "amount of", "count", "sum of", "the sum", "the total", "what number", "how often", "total")
	wh, _ := a.q.find("which", "who", "where", "when")
	if from < 0 || wh >= 0 && wh < from || a.inValue(from) {
		return nil, false
	}
	a.use(from, at)
	a.useWords(distinct...)
	different := a.q.has(distinct...)
	for at < len(a.q.toks) && (a.used[at] || len(a.cols[at]) == 0 && (a.q.toks[at].Stop || a.r.unnamed && a.asks(at))) {
		at++
	}
	if at == len(a.q.toks) {
		return a.rowCount(), true
	}
	if slices.Contains(a.q.low[from:at], "much") {
		c := a.near(at, len(a.cols)-at, 0, measurable)
		if c < 0 && a.main >= 0 { // a word that only says what was done, as "paid" does
			c = a.only(func(c *column) bool { return measurable(c) && c.of == a.main })
		}
		return a.sum(c), true
	}
	if n, ok := a.nounAt(at + 1); ok && n.from == at+1 && len(a.cols[at]) == 0 && !a.self(at) {
		at++ // an adjective that stands for nothing: the statement is tried without it
	}
	n, isTable := a.nounAt(at)
	m, isColumn := a.best(at, measurable)
	// "Rooms" are the rows of a table of that name before they are a column "rooms_total".
	if isColumn && (!isTable || m.words > n.at-n.from || n.strength < 3 && m.share == 1) {
		return a.sum(a.take(at, measurable)), true
	}
	if isTable {
		if c := a.measureAfter(n.at); c >= 0 {
			return a.sum(c), true
		}
		if words := a.q.low[from:at]; (slices.Contains(words, "total") || slices.Contains(words, "sum")) && !slices.Contains(words, "number") {
			// "The total sales" are money, not rows.
			return a.sum(a.only(func(c *column) bool { return measurable(c) && c.of == n.table && c.hasWord(sums) })), true
		}
	}
	t, c, _ := a.thing(at)
	switch {
	case a.r.unnamed && (c < 0 || !different): // what its rows are called may also be a column
		a.use(at, at+1)
		return a.rowCount(), true
	case c >= 0:
		return a.different(c), true
	case t < 0:
		return nil, true
	}
	if label := a.w.labelOf(t); slices.ContainsFunc(a.filters, func(f filter) bool { return f.col == label && f.full && !f.not }) {
		return nil, true // a row that is named is there once
	}
	return a.each(a.computed("", -1, t)), true
}

// rowCount counts the rows of a table that may be called anything.
func (a drafting) rowCount() *draft {
	if !a.r.unnamed || a.single(0) {
		return nil // a row that is named is there once
	}
	return a.each(a.computed("", -1, 0))
}

// measureAfter is the column of numbers right after the name of its table: "order total"; -1 for none.
func (a drafting) measureAfter(i int) int {
	if i < len(a.q.toks) && !a.q.toks[i].Stop {
		return a.take(i, measurable)
	}
	return -1
}

// sum adds up a column, or tells its value in the one row that is named.
func (a drafting) sum(c int) *draft {
	if c < 0 {
		return nil
	}
	a.useWords(having...)
	if a.single(c) {
		return a.list(c)
	}
	return a.each(a.computed("SUM", c, 0))
}

// single reports that the conditions name one row of the table of a column by what it is called.
func (a drafting) single(c int) bool {
	return slices.ContainsFunc(a.filters, func(f filter) bool {
		of := a.r.cols[f.col].of
		return f.op == "" && f.full && !f.not && len(f.values) == 1 && of == a.r.cols[c].of && (f.col == a.w.labelOf(of) || a.r.cols[f.col].key || a.r.unnamed && a.r.cols[f.col].unique > 0.9)
	})
}

// different counts the values of a column.
func (a drafting) different(c int) *draft {
	col := &a.r.cols[c]
	a.touched[c] = true
	for i := range a.q.toks {
		if m, ok := a.best(i, func(*column) bool { return true }); ok && m.col == c {
			a.use(i, m.at)
		}
	}
	r, ok := a.rowsOf(col.of)
	if !ok || a.grouping() != nil {
		return nil
	}
	return &draft{what: "COUNT(DISTINCT " + col.expr + ")", from: r.from, where: r.where, meaning: "count of different " + col.name + " of " + a.w.tables[col.of].where(r.words)}
}

// listed are the rows, or the values of a column, that the question asks for by its conditions.
func (a drafting) listed() *draft {
	if len(a.filters)+len(a.exists) == 0 && len(a.named()) < 2 || a.q.has("how") && !a.q.has("how old") {
		return nil
	}
	if c := a.target(); c >= 0 {
		return a.list(c)
	}
	return nil
}

// list shows a column of the rows that the conditions leave.
func (a drafting) list(c int) *draft {
	if slices.ContainsFunc(a.filters, func(f filter) bool { return f.col == c && !f.not && f.op == "" }) {
		return nil // it would answer with what was asked
	}
	main := a.r.cols[c].of
	a.touched[c] = true
	r, ok := a.rowsOf(main)
	if !ok || r.where == "" {
		return nil
	}
	d := &draft{what: a.show(c), from: r.from, where: both(r.where, a.r.cols[c].expr+" IS NOT NULL"), meaning: a.w.tables[main].where(r.words), most: wholeRows}
	if key, ok := a.w.key(main); ok {
		d.tail = " ORDER BY " + key
	}
	return d
}

// target is the column that a question asks for; -1 where there is none.
func (a drafting) target() int {
	q := a.q
	wh, at := q.find("which", "what", "whose", "who", "whom", "when", "where", "why", "name", "list", "give", "show")
	if wh < 0 {
		return -1 // words without a question
	}
	of := -1 // the table of the row that is named
	for _, f := range a.filters {
		of = a.r.cols[f.col].of
	}
	mine := func(ok func(*column) bool) int {
		return a.only(func(c *column) bool { return (c.of == of || c.of == a.main) && !c.role && ok(c) })
	}
	switch q.low[wh] {
	case "who", "whom":
		return a.person(at, of)
	case "when":
		return mine(func(c *column) bool { return c.iso || c.year != "" })
	case "where":
		return mine(placeNamed)
	case "why":
		a.used[wh] = true
		return mine(func(c *column) bool { return c.hasWord(reasonLike) })
	case "what":
		if at < len(q.low) && slices.Contains([]string{"do", "does", "did", "has", "have"}, q.low[at]) {
			return -1 // a deed is no column's name
		}
	}
	for at < len(q.low) && (a.asks(at) || q.low[at] == "name" || q.low[at] == "names") && len(a.cols[at]) == 0 || at+1 < len(q.low) && called[q.toks[at].Stem] && q.low[at+1] == "of" && a.main >= 0 && of != a.main {
		at++
	}
	return a.wanted(at)
}

// wanted is the column that the words from token at on ask for: one that they name, or what the rows of a table are
// called.
func (a drafting) wanted(at int) int {
	if at >= len(a.q.toks) {
		return a.anything()
	}
	if n, ok := a.nounAt(at); ok {
		if c := a.measureAfter(n.at); c >= 0 {
			return c
		}
		t, c, end := a.thing(at)
		if c >= 0 {
			a.use(at, end)
			return c
		}
		return a.w.labelOf(t)
	}
	if slices.Contains(more, a.q.low[at]) || slices.Contains(less, a.q.low[at]) {
		return -1 // "which is deeper"
	}
	if c := a.take(at, func(*column) bool { return true }); c >= 0 {
		return c
	}
	return a.anything()
}

// anything is what the rows are called of a table that may be called anything, or -1.
func (a drafting) anything() int {
	if a.r.unnamed {
		return a.w.labelOf(0)
	}
	return -1
}

// person is the column that answers "who": by the noun ("the maker of X"), the verb ("who makes X"), or what the rows
// are called that the question names by something else.
func (a drafting) person(at, of int) int {
	for i := at; i < min(at+4, len(a.q.low)); i++ {
		if n, ok := a.nounAt(i); ok && (i == at || a.q.toks[i-1].Stop) && !a.used[i] {
			return a.w.labelOf(n.table)
		}
		if c := a.take(i, func(c *column) bool { return !c.number && !c.date && c.year == "" && !placeNamed(c) && c.of != -1 }); c >= 0 {
			return c
		}
		if !a.asks(i) {
			break
		}
	}
	return a.called(of)
}

// called is the column that tells who: what people call the rows of a table by or, where they may be called anything, a
// column of persons.
func (a drafting) called(of int) int {
	label := a.w.labelOf(of)
	named := func(c column) bool { return !c.number && c.hasWord(personLike) }
	if a.r.unnamed && (label < 0 || !named(a.r.cols[label])) {
		if at := slices.IndexFunc(a.r.cols, named); at >= 0 {
			return at
		}
	}
	return label
}
