package conflict

import (
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// record is a row of a table, read out of the sentence that it was written as:
// "name: Copper kettle; price: 49.9."
type record struct {
	fields []field
	names  []int // the fields that tell which thing the row is of
}

// field is one cell with its label.
type field struct {
	label  []string // stems
	said   string   // the label as written
	tail   string   // its last word, in lower case: "unit_price" is a price
	value  string
	stems  []string          // of all words of the value
	amount *lexicon.Quantity // if the value is one number and nothing else
	start  int               // of the value in the sentence
}

const (
	labelBytes = 60 // longest label
	fieldsCap  = 64 // most fields of a row that are looked at
)

// identifiers are labels of what a thing is called; keys number rows, and differ
// from one table to the next; times say when a row was true.
var (
	identifiers = words("name title")
	keys        = words("id key no nr number code index row uuid ref")
	times       = words("year date month quarter week day season period time")
)

// newRecord reads a row, or is nil: each of at least two parts has a label, and no
// label comes twice.
func newRecord(text string) *record {
	if !strings.Contains(text, ": ") || !strings.Contains(text, "; ") {
		return nil
	}
	r := &record{}
	var texts []int
	at := 0
	for part := range strings.SplitSeq(strings.TrimRight(text, "."), "; ") {
		said, value, ok := strings.Cut(part, ": ")
		if !ok || len(said) > labelBytes || strings.ContainsAny(said, ".!?\n") || len(r.fields) == fieldsCap {
			return nil
		}
		f := field{said: said, value: value, start: at + len(part) - len(value)}
		at += len(part) + len("; ")
		for _, t := range lexicon.Tokens(strings.ReplaceAll(said, "_", " ")) {
			f.label, f.tail = append(f.label, t.Stem), strings.ToLower(t.Text)
		}
		for _, t := range lexicon.Tokens(value) {
			f.stems = append(f.stems, t.Stem)
		}
		if len(f.label) == 0 || slices.ContainsFunc(r.fields, func(o field) bool { return slices.Equal(o.label, f.label) }) {
			return nil
		}
		if qs := lexicon.Quantities(value); len(qs) == 1 && qs[0].Start == 0 && qs[0].End == len(value) {
			f.amount = &qs[0]
		} else if len(f.stems) > 0 && !times[f.tail] {
			texts = append(texts, len(r.fields))
		}
		if identifiers[f.tail] && f.amount == nil && len(f.stems) > 0 {
			r.names = append(r.names, len(r.fields))
		}
		r.fields = append(r.fields, f)
	}
	if len(r.fields) < 2 {
		return nil
	}
	if len(r.names) == 0 {
		r.names = texts
	}
	return r
}

// sameRow reports whether a quantity in which two sentences differ may be a value
// of one thing: in rows, it is none that numbers or dates them, and there is a text
// by which the thing is known.
func sameRow(a, b *statement, x, y lexicon.Quantity) bool {
	return a.record == nil && b.record == nil || a.record != nil && b.record != nil && a.record.values(x) && b.record.values(y)
}

func (r *record) values(q lexicon.Quantity) bool {
	for i := len(r.fields) - 1; i >= 0; i-- {
		if f := r.fields[i]; f.start <= q.Start {
			return i > 0 && len(r.names) > 0 && !slices.Contains(r.names, i) && !keys[f.tail] && !times[f.tail]
		}
	}
	return false
}

// againstRow holds when a sentence gives another number than a row for the same
// attribute of a thing of the same name: "The price of the Copper kettle is 60."
func againstRow(a, b *statement) (c marchwarden.Contradiction, ok bool) {
	row, s := a, b
	if row.record == nil {
		row, s = b, a
	}
	if row.record == nil || s.record != nil || s.long || len(s.denied) > 0 {
		return c, false
	}
	r := row.record
	var named []span
	for _, i := range r.names {
		at, ok := s.find(r.fields[i].stems)
		if !ok {
			return c, false
		}
		named = append(named, at)
	}
	if len(named) == 0 || !r.ofOneTime(s) {
		return c, false
	}
	for i, f := range r.fields {
		if f.amount == nil || slices.Contains(r.names, i) || keys[f.tail] || times[f.tail] {
			continue
		}
		at, ok := s.find(f.label)
		if !ok || !s.plain(append(named, at)) {
			continue
		}
		q, ok := s.lone(r, named)
		if !ok || !s.gives(q, at) || !f.differs(q) {
			continue
		}
		va, vb := f.value, amountText(s.text, q, unitOf(s.text, q))
		if row == b {
			va, vb = vb, va
		}
		return report(a, b, r.fields[r.names[0]].value, f.said, va, vb), true
	}
	return c, false
}

// span is tokens [from,to) of a sentence.
type span struct{ from, to int }

// find is where these stems follow each other in a sentence.
func (s *statement) find(stems []string) (span, bool) {
	for i := range len(s.toks) - len(stems) + 1 {
		if slices.EqualFunc(s.toks[i:i+len(stems)], stems, func(t lexicon.Token, w string) bool { return t.Stem == w }) {
			return span{i, i + len(stems)}, len(stems) > 0
		}
	}
	return span{}, false
}

// plain reports whether no other word is part of these phrases: the wholesale price
// is not the price, and a Copper kettle stand no Copper kettle.
func (s *statement) plain(phrases []span) bool {
	known := func(i int) bool {
		if i < 0 || i >= len(s.toks) || s.toks[i].Stop || s.toks[i].Number {
			return true
		}
		return slices.ContainsFunc(phrases, func(p span) bool { return i >= p.from && i < p.to })
	}
	for _, p := range phrases {
		after := p.to == len(s.toks) || strings.ContainsAny(s.text[s.toks[p.to-1].End:s.toks[p.to].Start], ",;:(") || verbs[strings.ToLower(s.toks[p.to].Text)]
		if !known(p.from-1) || !after && !known(p.to) {
			return false
		}
	}
	return true
}

// ofOneTime reports whether a sentence names the time of a row that has one.
func (r *record) ofOneTime(s *statement) bool {
	for _, f := range r.fields {
		if times[f.tail] && slices.ContainsFunc(f.stems, func(w string) bool {
			return !slices.ContainsFunc(s.toks, func(t lexicon.Token) bool { return t.Stem == w })
		}) {
			return false
		}
	}
	return true
}

// lone is the one quantity of a sentence, those in the names and the times of the
// row aside.
func (s *statement) lone(r *record, named []span) (q lexicon.Quantity, ok bool) {
	n := 0
	for _, x := range s.amounts {
		aside := slices.ContainsFunc(named, func(p span) bool { return x.Start >= s.toks[p.from].Start && x.Start < s.toks[p.to-1].End })
		for _, f := range r.fields {
			aside = aside || times[f.tail] && strings.Contains(f.value, x.Text)
		}
		if !aside {
			q, n = x, n+1
		}
	}
	return q, n == 1
}

// verbs stand between a thing and its number; approximations between them and the
// number.
var (
	verbs          = words("is was are were be equals amounts costs stands has had comes")
	leads          = words("is was are were be of at to equals in")
	approximations = words("about around approximately roughly nearly almost exactly currently now only just")
)

// gives reports whether a quantity is said to be the value of a label: "the price is
// about 60", "60 patients".
func (s *statement) gives(q lexicon.Quantity, label span) bool {
	i := slices.IndexFunc(s.toks, func(t lexicon.Token) bool { return t.End > q.Start })
	if i < 0 {
		return false
	}
	if s.toks[label.from].Start >= q.End {
		return strings.TrimSpace(s.text[q.End:s.toks[label.from].Start]) == "" && (i == 0 || !bounds[strings.ToLower(s.toks[i-1].Text)])
	}
	for i--; i > 0 && approximations[strings.ToLower(s.toks[i].Text)]; i-- {
	}
	if label.to > i+1 || i < 0 {
		return false
	}
	lead := strings.ToLower(s.toks[i].Text)
	return leads[lead] && (lead != "in" || q.Unit == "year" && once[strings.ToLower(s.toks[label.from].Text)])
}

// bounds stand before a number that is a limit or a difference.
var bounds = words("by than over under above below least most to between per")

// differs reports whether a cell cannot be the amount that a sentence gives.
func (f field) differs(q lexicon.Quantity) bool {
	bare := func(unit string) bool { return unit == "" || unit == "year" }
	switch {
	case f.amount.Unit != q.Unit && !bare(f.amount.Unit) && !bare(q.Unit):
		return false
	case bare(f.amount.Unit) && (q.Unit == "%" || q.Unit == "date" || q.Unit == "ordinal" || q.Unit == "time" || q.Unit == "decade"):
		return false
	case once[strings.ToLower(f.said)] && f.amount.Unit == "year" && q.Unit == "year":
		return f.amount.Value != q.Value
	}
	return !near(f.amount.Value, q.Value)
}
