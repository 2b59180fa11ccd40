package database

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// values finds the values that the question writes out, in whole or in part, the longest runs of words first, of those
// that pass a test.
func (a *asking) values(ok func(filter) bool) {
	var found []filter
	for c := range a.r.cols {
		found = append(found, a.valuesOf(c)...)
	}
	a.seen = len(found) > 0
	found = slices.DeleteFunc(found, func(f filter) bool { return !ok(f) })
	slices.SortStableFunc(found, func(x, y filter) int {
		return cmp.Or(cmp.Compare(y.at-y.from, x.at-x.from), truth(y.full, x.full), truth(y.named, x.named), cmp.Compare(x.from, y.from), cmp.Compare(a.distance(&a.r.cols[x.col]), a.distance(&a.r.cols[y.col])), cmp.Compare(x.col, y.col))
	})
	for i, m := range found {
		if !a.free(m.from, m.at) || a.doubtful(found, i) {
			continue
		}
		if !m.named && a.r.cols[m.col].number && !a.r.unnamed || a.q.toks[m.from].Number && len(a.cols[m.from]) > 0 {
			continue // of what it is the number is not said, or it is part of a column's name
		}
		m.not = a.denied(m.from)
		if !m.not && slices.ContainsFunc(a.filters, func(f filter) bool { return f.col == m.col && f.op == "" && !f.not && !a.q.alternatives(f, m) }) {
			continue // a row has one value
		}
		a.put(m)
	}
}

// doubtful reports a value that stands in two columns, of which neither is nearer to what the question is about.
func (a *asking) doubtful(found []filter, i int) bool {
	m := found[i]
	return a.distance(&a.r.cols[m.col]) == far || slices.ContainsFunc(found, func(o filter) bool {
		return o.col != m.col && o.from == m.from && o.at == m.at && o.full == m.full && o.named == m.named && a.distance(&a.r.cols[o.col]) == a.distance(&a.r.cols[m.col])
	})
}

// alternatives reports that two values are named side by side: "A or B", "A and B", "between A and B".
func (q *question) alternatives(a, b filter) bool {
	if b.from < a.from {
		a, b = b, a
	}
	return slices.ContainsFunc(q.low[a.at:b.from], func(w string) bool { return w == "or" || w == "and" || w == "than" })
}

// truth orders what holds behind what does not.
func truth(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// denied reports that what begins at a token is what is not meant.
func (a *asking) denied(from int) bool {
	at := from
	for at > 0 && from-at < 2 && harmless[a.q.low[at-1]] {
		at--
	}
	for _, words := range []string{"other than", "besides", "except", "not", "apart", "excluding"} {
		n := len(strings.Fields(words))
		if _, ok := a.q.phraseAt(at-n, words); ok {
			a.use(at-n, from)
			return true
		}
	}
	return false
}

// valuesOf finds runs of words in the values of one column.
func (a *asking) valuesOf(c int) []filter {
	col := &a.r.cols[c]
	if col.key || col.iso { // dates are compared with, not looked for
		return nil
	}
	var out []filter
	for _, v := range col.values {
		toks := lexicon.Tokens(v)
		for i := range a.q.toks {
			n, start := a.q.runAt(i, toks)
			if n == 0 || !a.telling(i, toks, start, n) {
				continue
			}
			k := slices.IndexFunc(out, func(m filter) bool { return m.from == i && m.at == i+n })
			if k < 0 {
				k = len(out)
				out = append(out, filter{col: c, from: i, at: i + n, named: a.namedNear(c, i, i+n)})
			}
			m := &out[k]
			full := n == len(toks)
			if full && !m.full {
				m.full, m.values = true, nil
			}
			if full == m.full {
				m.values = append(m.values, v)
			}
		}
	}
	return out
}

// runAt is how many words from token i on stand in a value one after the other, and where there.
func (q *question) runAt(i int, value []lexicon.Token) (most, start int) {
	for s := range value {
		n := 0
		for i+n < len(q.toks) && s+n < len(value) && sameWord(q.toks[i+n], value[s+n]) {
			n++
		}
		if n > most {
			most, start = n, s
		}
	}
	return most, start
}

func sameWord(a, b lexicon.Token) bool {
	if a.Number || b.Number {
		return strings.EqualFold(strings.ReplaceAll(a.Text, ",", ""), strings.ReplaceAll(b.Text, ",", ""))
	}
	return a.Stem == b.Stem || plainLetters(a.Text) == plainLetters(b.Text)
}

// letters are letters with marks, and how they are written without.
var letters = strings.NewReplacer("á", "a", "à", "a", "â", "a", "ã", "a", "ä", "a", "å", "a", "ā", "a", "ă", "a", "ą", "a", "ç", "c", "ć", "c", "č", "c", "ď", "d", "đ", "d", "é", "e", "è", "e", "ê", "e", "ë", "e", "ē", "e", "ę", "e", "ě", "e",
	"ğ", "g", "í", "i", "ì", "i", "î", "i", "ï", "i", "ī", "i", "ı", "i", "ł", "l", "ñ", "n", "ń", "n", "ň", "n", "ó", "o", "ò", "o", "ô", "o", "õ", "o", "ö", "o", "ø", "o", "ō", "o", "ő", "o", "ř", "r", "ś", "s", "š", "s", "ş", "s", "ș", "s",
	"ß", "ss", "ť", "t", "ţ", "t", "ț", "t", "ú", "u", "ù", "u", "û", "u", "ü", "u", "ū", "u", "ů", "u", "ű", "u", "ý", "y", "ÿ", "y", "ź", "z", "ż", "z", "ž", "z", "æ", "ae", "œ", "oe")

func plainLetters(s string) string { return letters.Replace(strings.ToLower(s)) }

// telling reports whether n words from token from on pick out the value that has them from start on, rather than
// standing in it by accident.
func (a *asking) telling(from int, value []lexicon.Token, start, n int) bool {
	full := n == len(value)
	for i := from; i < from+n; i++ {
		t, written := a.q.toks[i], value[start+i-from]
		switch {
		case full && n == 1 && i > 0 && t.Capital && t.Text == written.Text:
			return true // "blood type A"
		case t.Stop || askWords[t.Stem]:
		case full:
			return true
		case len(value) <= longValue && len(a.cols[i]) == 0 && !a.q.asked(i) && !a.self(i) && (written.Capital || written.Number || 2*n >= len(value)):
			return true // one word of several: a name, and not that of a column
		}
	}
	return false
}

// asked reports a word right after "which", "what" or "how many": it says what is wanted, and picks none out.
func (q *question) asked(i int) bool {
	low := q.low
	return i > 0 && slices.Contains([]string{"which", "what", "many", "whose"}, low[i-1]) ||
		i > 1 && low[i-1] == "of" && slices.Contains([]string{"number", "amount", "total", "count"}, low[i-2]) ||
		i > 0 && i < 3 && (low[0] == "list" || low[0] == "name")
}

// namedNear reports that a word beside a run names a column.
func (a *asking) namedNear(c, from, at int) bool {
	names := func(ms []mention) bool { return slices.ContainsFunc(ms, func(m mention) bool { return m.col == c }) }
	return slices.ContainsFunc(a.cols[max(0, from-3):from], names) || slices.ContainsFunc(a.cols[at:min(len(a.cols), at+3)], names)
}

// inYear finds the year of a column of dates: "joined in 2021".
func (a *asking) inYear(i int) {
	n := float64(a.q.toks[i].Year())
	if n == 0 || a.used[i] || len(a.q.toks[i].Text) != 4 || a.q.dashed(i) {
		return // or it is a part of a date
	}
	a.place = i
	if c := a.only(func(c *column) bool { return c.year != "" }); c >= 0 {
		from := i
		for from > 0 && slices.Contains([]string{"during", "year", "the", "within"}, a.q.low[from-1]) {
			from--
		}
		a.put(filter{col: c, op: "=", number: n, from: from, at: i + 1})
	}
}

// conditions are filters as SQL and in words.
func (a *asking) conditions(filters []filter) (where, words string) {
	var tests, said []string
	merged := map[int]bool{}
	for i, f := range filters {
		if merged[i] {
			continue
		}
		for j, g := range filters[i+1:] { // a row that has one of two values
			if g.col == f.col && f.op == "" && g.op == "" && !f.not && !g.not {
				f.values = append(slices.Clone(f.values), g.values...)
				merged[i+1+j] = true
				for k := min(f.at, g.at); k < max(f.from, g.from); k++ {
					a.used[k] = a.used[k] || a.q.low[k] == "or"
				}
			}
		}
		test, say := a.condition(f)
		tests, said = append(tests, test), append(said, say)
	}
	return strings.Join(tests, " AND "), strings.Join(said, " and ")
}

// condition is one filter as SQL and in words.
func (a *asking) condition(f filter) (test, say string) {
	c := &a.r.cols[f.col]
	name := c.name
	if c.of != a.main && !c.role {
		name = c.in + "." + name
	}
	a.touched[f.col] = true
	a.guessed = a.guessed || f.op == "" && !f.full && c.part
	not := ""
	if f.not {
		not = " NOT"
	}
	switch f.op {
	case "":
		list := make([]string, len(f.values))
		for i, v := range f.values {
			list[i] = database.Literal(v)
		}
		return c.expr + not + " IN (" + strings.Join(list, ", ") + ")", name + " is" + strings.ToLower(not) + " " + someOf(f.values)
	case "date":
		return a.r.prefixOf(f.col, len(f.values[0])) + " = " + database.Literal(f.values[0]), name + " in " + f.values[0]
	case "is":
		return c.expr + " = " + strings.ToUpper(strconv.FormatBool(!f.not)), name + " is " + strconv.FormatBool(!f.not)
	case "null":
		return c.expr + " IS" + not + " NULL", name + " is" + strings.ToLower(not) + " empty"
	}
	expr := a.r.value(c)
	guard, say := a.r.filledTest(c)+" AND ", f.op
	if c.year != "" && (f.number >= 1000 && f.number <= 2100) {
		expr, guard, say = c.year, "", yearOps[f.op]
	}
	if f.op == "between" {
		return fmt.Sprintf("%s BETWEEN %s AND %s", expr, number(f.number), number(f.to)), fmt.Sprintf("%s is from %s to %s", name, number(f.number), number(f.to))
	}
	return guard + expr + " " + f.op + " " + number(f.number), name + " " + say + " " + number(f.number)
}

// inMonth finds a month or a day of a column of dates: "in March 2023".
func (a *asking) inMonth() {
	d, span, ok := lexicon.FirstDate(a.q.text)
	if !ok || d.Year == 0 || d.Month == 0 {
		return
	}
	from := slices.IndexFunc(a.q.toks, func(t lexicon.Token) bool { return t.Start >= span.Start })
	at := from
	for at >= 0 && at < len(a.q.toks) && a.q.toks[at].End <= span.End {
		at++
	}
	a.place = max(0, from)
	c := a.only(func(c *column) bool { return c.iso })
	if c < 0 || at <= from || !a.free(from, at) || from > 0 && operators[a.q.low[from-1]] {
		return
	}
	day := strings.TrimSuffix(d.String(), "-00")
	a.put(filter{col: c, op: "date", values: []string{day}, from: from, at: at})
}

// yearOps are how a year is compared with, in words.
var yearOps = map[string]string{"=": "in", "<": "before", "<=": "in or before", ">": "after", ">=": "in or after"}

func someOf(values []string) string {
	if len(values) > 2 {
		return fmt.Sprintf("%s or %d others", plaintext.Clip(values[0], 60), len(values)-1)
	}
	return plaintext.Clip(strings.Join(values, " or "), 120)
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
