// Package question turns a question in plain words into one SQL statement, by
// templates: a value, a count, a sum, an average, an extreme, a difference, the
// first and the last, the row before and after. It owns what is made of the words
// (read.go, values.go), what is known of the tables (relation.go), and the templates
// (templates.go, pairs.go, extremes.go). It says what it left out, and where it understands
// too little it makes no statement. It runs statements through package
// internal/database only, and knows no documents.
package question

import (
	"context"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// The bounds of what is made of a question.
const (
	maxRelations = 30
	maxSlow      = 3 // tables that take too long to look through
	// sure is the share of a question's words that must be understood for its
	// statement to stand for it; from leastCovered on it is given with a gap that
	// names the others.
	sure         = 0.75
	leastCovered = 0.2
	// manyAnswers is how many values are too many for an answer to one question.
	manyAnswers = 12
)

// Statement is what was made of a question. The first column of its rows is the
// answer.
type Statement struct {
	SQL  string
	Rows database.Rows
	// Table names for people what was asked.
	Table string
	// Phrase is the part of the question that was understood, as written, and
	// Meaning how.
	Phrase, Meaning string
}

// Answers are the values of the first column, each once.
func (s *Statement) Answers() []string { return Distinct(s.Rows) }

// Distinct are the values of the first column of rows, each once, without those
// that say nothing.
func Distinct(rows database.Rows) []string {
	var out []string
	for _, r := range rows.Cells {
		if len(r) > 0 && !r[0].Null && r[0].Text != "" && !slices.Contains(out, r[0].Text) {
			out = append(out, r[0].Text)
		}
	}
	return out
}

// draft is a statement that a template made.
type draft struct {
	what    string // the list after SELECT; the answer first
	where   string
	tail    string // GROUP BY, ORDER BY and LIMIT
	meaning string
	soft    float64 // words that were guessed rather than understood
}

// unfit is why the templates do not answer.
func unfit() error {
	return &marchwarden.Error{Code: marchwarden.CodeUnsupported,
		Message: "the question could not be turned into one statement; rows that hold its words are no answer to it",
		Hint:    "ask for one value, count, total, average or extreme in the words of the tables, or let a model write the statement"}
}

// Answer makes a statement of a question and runs it. Where no template understands
// enough of the question, or the rows answer nothing, the error is CodeUnsupported;
// with a statement, the same code says what the statement leaves out. A question that has
// nothing to do with the tables has neither statement nor error.
func Answer(ctx context.Context, db *database.DB, schema database.Schema, text string) (*Statement, error) {
	q := newQuestion(text)
	var best *Statement
	var doubt error
	met, slow, top := false, 0, 0.0
	all := relations(schema, db.Dialect())
	for _, r := range all[:min(maxRelations, len(all))] {
		if err := r.load(ctx, db, q.words()); err != nil {
			switch marchwarden.CodeOf(err) {
			case marchwarden.CodeInvalid, marchwarden.CodeDenied, marchwarden.CodeMalformed:
				continue // this table cannot be looked through
			case marchwarden.CodeTimeout:
				if slow++; slow < maxSlow {
					continue
				}
			}
			return nil, err
		}
		if len(r.rows) == 0 {
			continue
		}
		rd := read(q, r)
		met = met || rd.met()
		d := rd.draft()
		if d == nil {
			continue
		}
		covered := rd.covered(d)
		if r.joined {
			covered -= 0.03
		}
		if covered < leastCovered || covered <= top {
			continue
		}
		st, err := rd.run(ctx, db, d)
		if err != nil {
			return nil, err
		}
		if st != nil {
			best, top, doubt = st, covered, nil
			if covered < sure {
				doubt = rd.doubt()
			}
		}
	}
	if best == nil && met {
		return nil, unfit()
	}
	return best, doubt
}

// met reports that the question speaks of something in the relation.
func (rd *reading) met() bool {
	return len(rd.filters) > 0 || slices.ContainsFunc(rd.cols, func(ms []mention) bool {
		return slices.ContainsFunc(ms, func(m mention) bool { return m.share >= 0.5 })
	})
}

// doubt is what a statement leaves out of the question.
func (rd *reading) doubt() error {
	var words []string
	for i, t := range rd.q.toks {
		if !rd.used[i] && (operators[rd.q.low[i]] || !t.Stop && !asking[t.Stem]) && !slices.Contains(words, t.Text) {
			words = append(words, t.Text)
		}
	}
	left := "parts of the question were guessed"
	if len(words) > 0 {
		left = "these words of the question play no part in it: " + strings.Join(words, ", ")
	}
	return marchwarden.Errorf(marchwarden.CodeUnsupported, "the statement may answer another question; %s", left)
}

// operators are words that change what is asked, and are stop words otherwise.
var operators = words(`after before below above next previous previously prior same other besides except not no without than never between both
	first last most least highest lowest largest smallest top bottom best worst more less fewer only`)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

// run runs a draft; nil if its rows answer nothing.
func (rd *reading) run(ctx context.Context, db *database.DB, d *draft) (*Statement, error) {
	statement := "SELECT " + d.what + " FROM " + rd.r.from
	if d.where != "" {
		statement += " WHERE " + d.where
	}
	statement += d.tail
	clean, err := database.Check(statement, db.Dialect())
	if err != nil {
		return nil, nil // a name that the wall does not take: there is no statement
	}
	rows, err := db.Query(ctx, clean)
	if code := marchwarden.CodeOf(err); code == marchwarden.CodeInvalid || code == marchwarden.CodeTimeout {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st := &Statement{SQL: clean, Rows: rows, Table: rd.r.display, Phrase: rd.phrase(), Meaning: d.meaning}
	if got := st.Answers(); len(got) == 1 && got[0] == "0" && strings.HasPrefix(d.what, "COUNT(*)") {
		return nil, nil // more likely a word that was misunderstood than nothing
	}
	if n := len(st.Answers()); n == 0 || n > manyAnswers || rows.Truncated {
		return nil, nil
	}
	return st, nil
}

// covered is the share of the question's words that a draft rests on.
func (rd *reading) covered(d *draft) float64 {
	all, lost := 0.0, d.soft
	for _, f := range rd.filters {
		if f.elsewhere || f.partly && strings.HasPrefix(d.what, "COUNT") {
			lost += 0.6
		}
	}
	for i, t := range rd.q.toks {
		if !rd.used[i] && operators[rd.q.low[i]] && !rd.names(i) {
			lost++
		}
		if t.Stop || asking[t.Stem] {
			continue
		}
		weight := 1.0
		if rowWords[t.Stem] {
			weight = 0.4 // what a row is: seldom the name of anything in the table
		}
		all += weight
		if rd.used[i] || rd.names(i) {
			rd.used[i] = true
			continue
		}
		if t.Number || slices.ContainsFunc(rd.cols[i], func(m mention) bool { return m.share > 0.9 }) {
			weight *= 2 // a number, or a column, that plays no part makes it another question
		}
		lost += weight
	}
	if all == 0 {
		return 0.8
	}
	return 1 - lost/max(all, 2)
}

// names reports that a word names a column which the statement rests on.
func (rd *reading) names(i int) bool {
	return slices.ContainsFunc(rd.cols[i], func(m mention) bool { return rd.touched[m.col] })
}

// rowWords are what people call the rows of a table.
var rowWords = stems(`game match season race competition event tournament people player team member person competitor contestant medal item movie film song album book episode city town place school
	station building year award title championship winner series show role case part career history official
	win won come came receive received earn earned play played achieve achieved reach reached`)

// phrase is the question without the words that were not understood.
func (rd *reading) phrase() string {
	var b strings.Builder
	at := 0
	for i, t := range rd.q.toks {
		if rd.used[i] || t.Stop || asking[t.Stem] {
			b.WriteString(rd.q.text[at:t.End])
		} else {
			b.WriteString(rd.q.text[at:t.Start])
		}
		at = t.End
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(strings.TrimRight(b.String(), " ,;:-"), `"`, "")), " ")
}

// draft tries the templates in their order: the narrower ones first.
func (rd *reading) draft() *draft {
	for _, template := range []func() *draft{
		rd.yesNo, rd.difference, rd.either, rd.neighbour, rd.extreme, rd.average, rd.count, rd.ends, rd.lookup,
	} {
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

// conditions are the filters as SQL and in words, but for some.
func (rd *reading) conditions(skip func(filter) bool) (where, words string) {
	var tests, said []string
	merged := map[int]bool{}
	for i, f := range rd.filters {
		if merged[i] || skip != nil && skip(f) {
			continue
		}
		for j, g := range rd.filters[i+1:] { // a row that has one of two values
			if g.col == f.col && f.op == "" && g.op == "" && !f.not && !g.not && (skip == nil || !skip(g)) {
				f.values = append(slices.Clone(f.values), g.values...)
				merged[i+1+j] = true
			}
		}
		test, say := rd.condition(f)
		tests, said = append(tests, test), append(said, say)
	}
	return strings.Join(tests, " AND "), strings.Join(said, " and ")
}

// condition is one filter as SQL and in words.
func (rd *reading) condition(f filter) (test, say string) {
	c := &rd.r.cols[f.col]
	rd.touched[f.col] = true
	if f.op == "" {
		list := make([]string, len(f.values))
		for i, v := range f.values {
			list[i] = database.Literal(v)
		}
		op, is := " IN (", " is "
		if f.not {
			op, is = " NOT IN (", " is not "
		}
		return c.expr + op + strings.Join(list, ", ") + ")", c.name + is + someOf(f.values)
	}
	expr := rd.r.value(c)
	guard := rd.r.filledTest(c) + " AND "
	if c.year != "" && (f.number >= 1000 && f.number <= 2100) {
		expr, guard = c.year, ""
	}
	if f.op == "between" {
		return fmt.Sprintf("%s BETWEEN %s AND %s", expr, number(f.number), number(f.to)), fmt.Sprintf("%s is from %s to %s", c.name, number(f.number), number(f.to))
	}
	return guard + expr + " " + f.op + " " + number(f.number), c.name + " " + f.op + " " + number(f.number)
}

// someOf names the first of several values.
func someOf(values []string) string {
	if len(values) > 2 {
		return fmt.Sprintf("%s or %d others", plaintext.Clip(values[0], 60), len(values)-1)
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = plaintext.Clip(v, 60)
	}
	return strings.Join(out, " or ")
}

func number(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.6g", f), ".0") }

// both joins conditions.
func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " AND " + b
}

// of says which rows are meant.
func of(words string) string {
	if words == "" {
		return "of all rows"
	}
	return "of the rows where " + words
}

// show is the list after SELECT: the answer, and what a reader wants beside it.
func (rd *reading) show(answer int, beside ...int) string {
	out := []string{rd.r.cols[answer].expr}
	seen := map[int]bool{answer: true}
	rd.touched[answer] = true
	for _, c := range beside {
		if c >= 0 {
			rd.touched[c] = true
		}
	}
	add := func(c int) {
		if c >= 0 && !seen[c] {
			seen[c] = true
			out = append(out, rd.r.cols[c].expr)
		}
	}
	for _, c := range beside {
		add(c)
	}
	add(rd.r.entity())
	for _, f := range rd.filters {
		add(f.col)
	}
	return strings.Join(out, ", ")
}
