package database

import (
	"cmp"
	"slices"
	"strings"
)

// noun is a place where the question names a table.
type noun struct {
	table    int
	from, at int
	strength int // 3 for its whole name, 2 for the last word of it, 1 for a word of the same family
}

// findNouns finds the tables that the question names; of two names that overlap the longer one, and none of those in a
// value that is written out.
func (a *asking) findNouns() {
	var found []noun
	for t, r := range a.w.tables {
		words := tableStems(r.table)
		head := words[len(words)-1]
		for i, tok := range a.q.toks {
			n := 0
			for n < len(words) && i+n < len(a.q.toks) && a.q.toks[i+n].Stem == words[n] {
				n++
			}
			switch {
			case n == 1 && len(words) == 1 && strings.HasSuffix(a.q.low[i], "ed") && a.tells(i, t):
				found = append(found, noun{t, i, i + n, 1})
			case n == len(words):
				found = append(found, noun{t, i, i + n, 3})
			case tok.Stop || harmless[a.q.low[i]]:
			case tok.Stem == head && !a.fully(i):
				found = append(found, noun{t, i, i + 1, 2})
			case (alike(tok.Stem, head) || deeds()[[2]string{tok.Stem, head}]) && !slices.ContainsFunc(a.cols[i], func(m mention) bool { return a.r.cols[m.col].of != t }):
				found = append(found, noun{t, i, i + 1, 1})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y noun) int {
		return cmp.Or(cmp.Compare(y.at-y.from, x.at-x.from), cmp.Compare(y.strength, x.strength), cmp.Compare(x.from, y.from))
	})
	written := a.written()
	for _, n := range found {
		hides := func(o noun) bool {
			return n.from < o.at && o.from < n.at && (o.at-o.from > n.at-n.from || o.strength > n.strength)
		}
		if !slices.ContainsFunc(a.nouns, hides) && !slices.ContainsFunc(written, func(f filter) bool { return f.from <= n.from && n.at <= f.at && f.at-f.from > n.at-n.from }) {
			a.nouns = append(a.nouns, n)
		}
	}
	// A word that stands for two tables alike stands for none.
	a.nouns = slices.DeleteFunc(a.nouns, func(n noun) bool {
		return slices.ContainsFunc(a.nouns, func(o noun) bool { return o.from == n.from && o.table != n.table && n.strength > 1 })
	})
	slices.SortStableFunc(a.nouns, func(x, y noun) int { return cmp.Compare(x.from, y.from) })
}

// rowNoun finds what the question calls the rows of a table that may be called anything: the first word behind the one
// that asks which is no column's name.
func (a *asking) rowNoun() {
	_, at := a.q.find("how many", "number of", "which", "what", "whose", "name", "list", "show", "give")
	for at >= 0 && at < len(a.q.toks) && len(a.cols[at]) == 0 && a.asks(at) {
		at++
	}
	extremes := slices.Concat(most, least, more, less)
	if at >= 0 && at < len(a.q.toks) && !a.used[at] && len(a.cols[at]) == 0 && !a.self(at) && !slices.Contains(extremes, a.q.low[at]) {
		a.nouns = append(a.nouns, noun{0, at, at + 1, 2})
	}
}

// asks reports a word that says that something is asked, and not what.
func (a *asking) asks(i int) bool {
	return a.used[i] && !a.inValue(i) || a.q.toks[i].Stop || askWords[a.q.toks[i].Stem]
}

// tells reports that a column of another table than t tells when what the word at i says was done: "enrolled" is
// "enrolled_on" of students before it is a row of enrolments.
func (a *asking) tells(i, t int) bool {
	return slices.ContainsFunc(a.r.cols, func(c column) bool {
		return c.of != t && c.iso && slices.Equal(c.state(), []string{a.q.toks[i].Stem})
	})
}

// fully reports that a word is the whole name of a column.
func (a *asking) fully(i int) bool {
	return slices.ContainsFunc(a.cols[i], func(m mention) bool { return m.share == 1 })
}

// written are the values of several words that the question writes out.
func (a *asking) written() []filter {
	var out []filter
	for c := range a.r.cols {
		for _, f := range a.valuesOf(c) {
			if f.full && f.at-f.from > 1 {
				out = append(out, f)
			}
		}
	}
	return out
}

// subject is the table that the question asks about: the first that it names behind the word that asks; -1 if it
// names none.
func (a *asking) subject() int {
	_, cue := a.q.find("how many", "number of", "which", "what", "list", "show", "who")
	for _, n := range a.nouns {
		if n.from >= cue && n.strength > 1 {
			return n.table
		}
	}
	if len(a.nouns) > 0 {
		return a.nouns[0].table
	}
	for i := range a.q.toks { // "when did Alice join": the table of a column that one word alone names
		if m, ok := a.best(i, func(*column) bool { return true }); ok && !askWords[a.q.toks[i].Stem] {
			return a.r.cols[m.col].of
		}
	}
	return -1
}

// nounAt is the table that the word at i names.
func (a *asking) nounAt(i int) (noun, bool) {
	k := slices.IndexFunc(a.nouns, func(n noun) bool { return n.from <= i && i < n.at })
	if k < 0 {
		return noun{}, false
	}
	return a.nouns[k], true
}

// named are the tables that the question names.
func (a *asking) named() map[int]bool {
	out := map[int]bool{}
	for _, n := range a.nouns {
		out[n.table] = true
	}
	return out
}

// between is the table that joins the first of some tables with the others, as far as the question tells. Words that
// name the first say nothing of it.
func (a *asking) between(tables ...int) (int, bool) {
	words := map[string]bool{}
	for _, n := range a.nouns {
		if stem := a.q.toks[n.at-1].Stem; !slices.Contains(tableStems(a.w.tables[tables[0]].table), stem) {
			words[stem] = true
		}
	}
	return a.w.between(tables, a.named(), words)
}

// distance is how far a column is from what the question is about: 0 for a table named right before the word in
// question, then the subject, then other tables that are named, then those that the subject's rows refer to.
func (a *asking) distance(c *column) int {
	if a.place > 0 {
		at := a.place
		for at > 0 && harmless[a.q.low[at-1]] {
			at--
		}
		if n, ok := a.nounAt(at - 1); ok && n.table == c.of {
			return 0
		}
	}
	if c.of == a.main {
		return 1
	}
	if a.main < 0 {
		if a.named()[c.of] || slices.ContainsFunc(a.filters, func(f filter) bool { return a.r.cols[f.col].of == c.of }) {
			return 2
		}
		return far - 2
	}
	if way, ok := a.w.path(a.main, c.of); ok {
		if a.named()[c.of] {
			return 2
		}
		return 2 + len(way)
	}
	if a.named()[c.of] {
		return 3
	}
	if _, ok := a.between(a.main, c.of); ok {
		return far - 1
	}
	return far
}
