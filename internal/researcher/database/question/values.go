package question

import (
	"cmp"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// match is a run of the question's words that stands in values of a column.
type match struct {
	filter
	words int
	named bool // the question names the column as well
	own   bool // the run holds a word that no column is called by
}

// values finds the values that the question writes out, in whole or in part, the
// longest runs of words first.
func (rd *reading) values() {
	var found []match
	for c := range rd.r.cols {
		found = append(found, rd.valuesOf(c)...)
	}
	slices.SortStableFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.words, a.words), truth(b.full, a.full), truth(b.named, a.named), truth(b.own, a.own), cmp.Compare(len(a.values), len(b.values)), cmp.Compare(a.from, b.from), cmp.Compare(a.col, b.col))
	})
	for _, m := range found {
		if !rd.free(m.from, m.at) {
			continue
		}
		m.elsewhere = !m.named && slices.ContainsFunc(found, func(o match) bool { return o.col != m.col && o.from == m.from && o.at == m.at })
		m.not = rd.denied(m.from)
		if !m.not && slices.ContainsFunc(rd.filters, func(f filter) bool { return f.col == m.col && f.op == "" && !f.not && !rd.alternatives(f, m.filter) }) {
			continue // a row has one value
		}
		rd.put(m.filter)
	}
}

// alternatives reports that two values are named side by side: "A or B", "A and B",
// "between A and B".
func (rd *reading) alternatives(a, b filter) bool {
	if b.from < a.from {
		a, b = b, a
	}
	return slices.ContainsFunc(rd.q.low[min(a.at, b.from):b.from], func(w string) bool { return w == "or" || w == "and" || w == "than" })
}

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
func (rd *reading) denied(from int) bool {
	for _, words := range []string{"other than", "besides", "except", "except for", "not", "apart from", "excluding"} {
		n := len(strings.Fields(words))
		for gap := range 3 {
			if _, ok := rd.q.phraseAt(from-n-gap, words); ok {
				rd.use(from-n-gap, from)
				return true
			}
		}
	}
	return false
}

// valuesOf finds runs of words in the values of one column.
func (rd *reading) valuesOf(c int) []match {
	col := &rd.r.cols[c]
	if col.key {
		return nil
	}
	type run struct{ from, at int }
	best := map[run]*match{}
	var order []run
	for _, v := range col.values {
		toks := lexicon.Tokens(v)
		for i := range rd.q.toks {
			n, start := rd.runAt(i, toks)
			if n == 0 || !rd.telling(i, toks, start, n, col) {
				continue
			}
			k := run{i, i + n}
			m := best[k]
			if m == nil {
				m = &match{filter: filter{col: c, from: i, at: i + n}, words: n, named: len(rd.namedNear(c, i, i+n)) > 0, own: rd.ownWord(i, i+n)}
				best[k] = m
				order = append(order, k)
			}
			full := n == len(toks)
			m.partly = m.partly || len(m.values) > 0 && full != m.full
			if full && !m.full {
				m.full, m.values = true, nil
			}
			if full == m.full {
				m.values = append(m.values, v)
			}
		}
	}
	out := make([]match, len(order))
	for i, k := range order {
		out[i] = *best[k]
	}
	return out
}

// runAt is how many words from token i on stand in a value one after the other,
// and where there.
func (rd *reading) runAt(i int, value []lexicon.Token) (most, start int) {
	for s := range value {
		n := 0
		for i+n < len(rd.q.toks) && s+n < len(value) && sameWord(rd.q.toks[i+n], value[s+n]) {
			n++
		}
		for n > 0 && rd.q.toks[i+n-1].Stop && n < len(value) { // "the" at the end says nothing
			n--
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

// plainLetters is a word in lower case without marks on its letters.
func plainLetters(s string) string { return letters.Replace(strings.ToLower(s)) }

// telling reports whether n words from token from on, which stand in a value from
// start on, pick the value out rather than standing in it by accident.
func (rd *reading) telling(from int, value []lexicon.Token, start, n int, col *column) bool {
	full := n == len(value)
	weight, content := 0, 0
	for _, t := range rd.q.toks[from : from+n] {
		if !t.Stop {
			content++
		}
	}
	for i := from; i < from+n; i++ {
		t, written := rd.q.toks[i], value[start+i-from]
		switch {
		case t.Stop && !(written.Capital && i+1 < from+n && rd.q.toks[i+1].Number): // "May 2010"
		case asking[t.Stem]:
		case t.Number && !full && len(t.Text) < 3:
		case col.number && !full:
		case full, content > 1:
			weight++
		case len(rd.cols[i]) == 0 && !rd.asked(i) && (written.Capital || written.Number || 2*n >= len(value)):
			weight++ // one word of several: a name, and not that of a column
		}
	}
	if first := rd.q.toks[from]; first.Stop && !full && !value[start].Capital {
		return false
	}
	return weight > 0 && (full || len(value) <= longValue)
}

// asked reports a word that stands right after "which", "what" or "how many": it
// says what kind of thing is wanted, and picks none out.
func (rd *reading) asked(i int) bool {
	low := rd.q.low
	return i > 0 && slices.Contains([]string{"which", "what", "many", "whose"}, low[i-1]) ||
		i > 1 && low[i-1] == "of" && slices.Contains([]string{"number", "amount", "total", "count"}, low[i-2]) ||
		i > 0 && i < 3 && (low[0] == "list" || low[0] == "name")
}

// longValue is how many words a value may have of which a part is written in the
// question: prose holds words by accident.
const longValue = 14

// namedNear are the tokens beside a run that name a column.
func (rd *reading) namedNear(c, from, at int) []int {
	var out []int
	for k := max(0, from-3); k < min(len(rd.cols), at+3); k++ {
		if (k < from || k >= at) && slices.ContainsFunc(rd.cols[k], func(m mention) bool { return m.col == c }) {
			out = append(out, k)
		}
	}
	return out
}

// ownWord reports a word in a run that names no column.
func (rd *reading) ownWord(from, at int) bool {
	for i := from; i < at; i++ {
		if !rd.q.toks[i].Stop && len(rd.cols[i]) == 0 {
			return true
		}
	}
	return false
}
