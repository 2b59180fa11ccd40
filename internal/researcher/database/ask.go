package database

import (
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// asking is a question held against all tables of a database: what each of its words stands for.
type asking struct {
	q       *question
	w       *world
	r       *relation   // the columns of all tables
	used    []bool      // tokens that are understood
	cols    [][]mention // per token: the columns that it names
	nouns   []noun      // the tables that it names
	main    int         // the table that it is about; -1 for none
	place   int         // the token whose column is looked for
	filters []filter
	exists  []existence
	utmost  *superlative // nil if the question asks for no extreme
	touched map[int]bool // columns that the statement rests on
	tables  map[int]bool // that it reads
	joined  bool         // it reads several
	guessed bool         // it rests on values of which there may be more than were seen
	seen    bool         // the question writes out values of the tables
}

// existence is a condition on the rows of another table that belong to a row: there are none, some, or so many.
type existence struct {
	table int
	not   bool
	op    string // compares their number with n; "" for any
	n     float64
	test  string // that they pass; "" for all
	said  string // in words; "" for "there are no orders"
}

// ask finds what the words of a question stand for.
func (w *world) ask(q *question) *asking {
	a := &asking{q: q, w: w, r: w.all, used: make([]bool, len(q.toks)), main: -1, touched: map[int]bool{}, tables: map[int]bool{}}
	a.mentions()
	a.findNouns()
	a.main = a.subject()
	a.utmost = a.superlative()
	a.values(func(f filter) bool { return f.full && f.at-f.from > 1 })
	a.numbered()
	a.inMonth()
	a.howMany()
	a.comparisons()
	a.values(func(filter) bool { return true })
	if a.r.unnamed {
		a.main = 0
		a.rowNoun()
	}
	if a.main < 0 && len(a.filters) > 0 {
		a.main = a.r.cols[a.filters[0].col].of
	}
	for k := len(a.filters) - 1; k >= 0; k-- {
		if a.filters[k].not && !a.above(a.filters[k]) {
			a.none(k)
		}
	}
	a.without()
	a.states()
	return a
}

// numbered finds rows that are named by their key: "order 7".
func (a *asking) numbered() {
	for i, t := range a.q.toks {
		n, ok := a.nounAt(i - 1)
		if !ok || n.strength == 1 || a.used[i] || !t.Number || !figure.MatchString(t.Text) || strings.TrimSpace(a.q.text[a.q.toks[i-1].End:t.Start]) != "" {
			continue
		}
		r := a.w.tables[n.table]
		if c := slices.IndexFunc(r.cols, func(c column) bool { return c.key && len(r.table.Key) == 1 && c.name == r.table.Key[0] }); c >= 0 {
			a.put(filter{col: r.first + c, values: []string{t.Text}, full: true, from: i, at: i + 1})
		}
	}
}

// howMany finds "more than 3 orders": so many rows of another table.
func (a *asking) howMany() {
	for i := range a.q.toks {
		op, n, _, end, ok := a.q.comparedAt(i)
		if !ok || op == "between" || !a.free(i, end) {
			continue
		}
		if of, ok := a.nounAt(end); ok && of.table != a.main && a.main >= 0 {
			a.exists = append(a.exists, existence{table: of.table, op: op, n: n})
			a.use(i, of.at)
		}
	}
}

// without finds "have no orders", "without reviews", "never ordered" and "out of stock".
func (a *asking) without() {
	for i, w := range a.q.low {
		if end, ok := a.q.phraseAt(i, "out of stock"); ok && a.free(i, end) {
			a.outOfStock(i, end)
		}
		if !slices.Contains([]string{"no", "without", "never", "not"}, w) || a.used[i] {
			continue
		}
		a.deny(i)
	}
}

// deny finds what the "not" at token i is about: rows of another table, or a value.
func (a *asking) deny(i int) {
	for at := i + 1; at < min(i+6, len(a.q.low)); at++ {
		n, ok := a.nounAt(at)
		k := slices.IndexFunc(a.filters, func(f filter) bool { return f.from == at && f.op == "" && !f.not })
		if ok && n.table != a.main && k < 0 { // "never ordered the kettle" is about the kettle
			k = slices.IndexFunc(a.filters, func(f filter) bool { return f.from >= n.at && f.from < n.at+4 && f.op == "" && !f.not && !a.above(f) })
		}
		switch {
		case k >= 0 && a.above(a.filters[k]):
			a.filters[k].not = true
			a.use(i, at)
			return
		case k >= 0:
			a.use(i, a.filters[k].from)
			a.none(k)
			return
		case ok && n.table != a.main:
			a.exists = append(a.exists, existence{table: n.table, not: true})
			a.use(i, n.at)
			return
		case a.used[at], !harmless[a.q.low[at]] && a.q.low[at] != "single" && !a.binds(at) && len(a.cols[at]) == 0:
			return
		}
	}
}

// none makes of a condition on the rows of another table that no row passes it.
func (a *asking) none(k int) {
	f := a.filters[k]
	f.not = false
	test, words := a.condition(f)
	a.filters = slices.Delete(a.filters, k, k+1)
	a.exists = append(a.exists, existence{table: a.r.cols[f.col].of, not: true, test: test, said: "there is none where " + words})
}

// above reports a condition on the rows that the question is about, or on those that they refer to.
func (a *asking) above(f filter) bool {
	_, up := a.w.path(max(a.main, 0), a.r.cols[f.col].of)
	return up
}

// outOfStock is a condition that no piece is left, where one column tells how many are there.
func (a *asking) outOfStock(from, at int) {
	var held []int
	for c := range a.r.cols {
		col := &a.r.cols[c]
		stocks := col.hasWord(stocked)
		in := slices.ContainsFunc(tableStems(a.w.tables[col.of].table), func(s string) bool { return stocked[s] }) && col.hasWord(pieces)
		if measurable(col) && (stocks || in) && (col.of == a.main || a.main < 0 || a.distance(col) < far) {
			held = append(held, c)
		}
	}
	if len(held) != 1 {
		return
	}
	of := a.r.cols[held[0]].of
	if of == a.main || a.main < 0 {
		a.put(filter{col: held[0], op: "<=", from: from, at: at})
		return
	}
	col := &a.r.cols[held[0]]
	a.touched[held[0]] = true
	a.exists = append(a.exists, existence{table: of, not: true, test: a.r.value(col) + " > 0", said: "no " + col.name + " is left"})
	a.use(from, at)
}

// states finds what rows are, or are not yet: "discontinued" of a column that says yes or no, "not shipped" of a
// column of dates.
func (a *asking) states() {
	for i, t := range a.q.toks {
		if a.used[i] || t.Stop {
			continue
		}
		best := -1
		for c := range a.r.cols {
			col := &a.r.cols[c]
			if _, up := a.w.path(max(a.main, 0), col.of); !up {
				continue
			}
			if (col.flag || col.iso && col.typed) && slices.Equal(col.state(), []string{t.Stem}) && (best < 0 || a.distance(col) < a.distance(&a.r.cols[best])) {
				best = c
			}
		}
		if best < 0 || a.distance(&a.r.cols[best]) >= far || slices.ContainsFunc(a.filters, func(f filter) bool { return f.col == best }) {
			continue
		}
		from := i
		for from > 0 && i-from < 2 && slices.Contains([]string{"yet", "been", "still"}, a.q.low[from-1]) {
			from--
		}
		not := from > 0 && slices.Contains([]string{"not", "never", "without", "un"}, a.q.low[from-1])
		if not {
			from--
		}
		at := i + 1
		if at < len(a.q.low) && a.q.low[at] == "yet" {
			at++
		}
		switch col := &a.r.cols[best]; {
		case col.flag:
			a.put(filter{col: best, op: "is", not: not, from: from, at: at})
		case not:
			a.put(filter{col: best, op: "null", from: from, at: at})
		case i > 0 && auxiliary[a.q.low[i-1]] && i == len(a.q.toks)-1:
			a.put(filter{col: best, op: "null", not: true, from: from, at: at})
		}
	}
}

// state is the name of a column that says yes or no, or when, without the words that only say so.
func (c *column) state() []string {
	return slices.DeleteFunc(slices.Clone(c.stems), func(s string) bool { return said[s] })
}

// binds reports a verb that only says that rows of two tables belong together, where no column or value of the tables
// that are read is called so: what "deliver" stands for between suppliers and products is the foreign key.
func (a *asking) binds(i int) bool {
	t := a.q.toks[i]
	if _, ok := a.nounAt(i); ok || !binding[t.Stem] || t.Capital && i > 0 {
		return false
	}
	for c := range a.r.cols {
		col := &a.r.cols[c]
		if !a.tables[col.of] && col.of != a.main {
			continue
		}
		if slices.ContainsFunc(col.stems, func(s string) bool { return alike(s, t.Stem) }) {
			return false
		}
		if col.number || col.date {
			continue
		}
		for _, v := range col.values {
			if words := lexicon.Tokens(v); len(words) <= 3 && slices.ContainsFunc(words, func(o lexicon.Token) bool { return o.Stem == t.Stem || alike(o.Stem, t.Stem) }) {
				return false
			}
		}
	}
	return true
}

// names reports that a word names a column which the statement rests on.
func (a *asking) names(i int) bool {
	return slices.ContainsFunc(a.cols[i], func(m mention) bool { return a.touched[m.col] })
}

// self reports a word that names a table.
func (a *asking) self(i int) bool {
	_, ok := a.nounAt(i)
	return ok
}

// inValue reports that a token is part of a value or of a comparison.
func (a *asking) inValue(i int) bool {
	return slices.ContainsFunc(a.filters, func(f filter) bool { return f.from <= i && i < f.at })
}

// missing are the words of the question that stand for nothing in a statement, which then does not answer it.
func (a *asking) missing() []string {
	var out []string
	for i, t := range a.q.toks {
		// "Placed in May", but not "are placed".
		happened := !a.r.unnamed && happens[a.q.low[i]] && !(i == len(a.q.toks)-1 && auxiliary[a.q.low[max(0, i-1)]])
		if !a.used[i] && !a.names(i) && !harmless[a.q.low[i]] && !happened && !slices.Contains(out, t.Text) && !a.known(i) {
			out = append(out, t.Text)
		}
	}
	return out
}

// known reports a word that names a table of the statement, only joins what others name or, where rows may be called
// anything, asks for rows.
func (a *asking) known(i int) bool {
	if t := a.q.toks[i]; a.r.unnamed && !operators[a.q.low[i]] && (t.Stop || askWords[t.Stem] || rowWords[t.Stem]) {
		return true
	}
	n, noun := a.nounAt(i)
	reasons := func(f filter) bool { return a.r.cols[f.col].hasWord(reasonLike) }
	because := a.q.low[i] == "because" && slices.ContainsFunc(a.filters, reasons)
	return because || idle[a.q.low[i]] && !noun || noun && a.tables[n.table] || a.joined && a.binds(i)
}
