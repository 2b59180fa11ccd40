package database

// This part turns a question in plain words into one SQL statement, by
// templates: a value, a count, a sum, an average, an extreme, a difference, the first
// and the last, the row before and after. Where a word of the question stands for
// nothing it makes no statement: a wrong answer is worse than none. It runs statements
// through package internal/database only, and knows no documents.

import (
	"context"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

const (
	maxRelations = 30
	maxSlow      = 3 // tables that take too long to look through
	// maxMeaning bounds the words for what the rows are, in characters.
	maxMeaning = 240
	// manyAnswers is how many values are too many for an answer to one question.
	manyAnswers = 12
)

// distinctValues are the values of the first column of rows, each once, without those that say nothing.
func distinctValues(rows database.Rows) []string {
	var out []string
	for _, r := range rows.Cells {
		if len(r) > 0 && !r[0].Null && r[0].Text != "" && !slices.Contains(out, r[0].Text) {
			out = append(out, r[0].Text)
		}
	}
	return out
}

type draft struct {
	what    string // the list after SELECT; the answer first
	where   string
	tail    string // GROUP BY, ORDER BY and LIMIT
	meaning string
}

// unfit is why the templates do not answer.
func unfit(because string) error {
	return &marchwarden.Error{Code: marchwarden.CodeUnsupported,
		Message: "the question could not be turned into one statement: " + because + "; rows that hold its words are no answer to it",
		Hint:    "ask for one value, count, total, average or extreme in the words of the tables, or let a model write the statement"}
}

// answerByTemplate makes a statement of a question and runs it, if every word of it stands for a table, a column, a
// value, or what is done with them. Otherwise, and where the rows answer nothing or two tables answer differently,
// it is CodeUnsupported. A question that has nothing to do with the tables has neither statement nor error.
func answerByTemplate(ctx context.Context, db *database.DB, schema database.Schema, text string) (*plan, error) {
	q := newQuestion(text)
	q.nouns = nouns(q, schema)
	c := choice{q: q, met: len(q.nouns) > 0}
	all := relations(schema, db.Dialect())
	slices.SortStableFunc(all, func(a, b *relation) int { return truth(q.speaks(b), q.speaks(a)) })
	slow := 0
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
		if len(r.rows) == 0 && !q.speaks(r) {
			continue
		}
		if err := c.try(ctx, db, r); err != nil {
			return nil, err
		}
	}
	return c.made()
}

// speaks reports that the question names the table of a relation.
func (q *question) speaks(r *relation) bool {
	return slices.ContainsFunc(q.nouns, func(n noun) bool { return n.table == r.table.Display() })
}

// choice is the best statement so far, and what is known of the question.
type choice struct {
	q       *question
	best    *plan
	own     bool     // it rests on values of the table itself alone
	rival   string   // a table that answers as well, and differently
	lacking []string // the fewest words that a table left out
	met     bool     // the question has to do with the tables
}

// try holds the question against a relation.
func (c *choice) try(ctx context.Context, db *database.DB, r *relation) error {
	rd := readAgainst(c.q, r)
	c.met = c.met || rd.met()
	d := rd.draft()
	if d == nil || !rd.fits() {
		if missing := rd.missing(); len(missing) > 0 && (c.lacking == nil || len(missing) < len(c.lacking)) {
			c.lacking = missing
		}
		return nil
	}
	own := len(r.parents) == 0
	if c.best != nil && c.own && !own {
		return nil
	}
	st, err := rd.run(ctx, db, d)
	switch {
	case err != nil || st == nil:
		return err
	case c.best == nil || own && !c.own:
		c.best, c.own, c.rival = st, own, ""
	case !slices.Equal(distinctValues(c.best.rows), distinctValues(st.rows)):
		c.rival = st.table
	}
	return nil
}

// made is the statement, or why there is none.
func (c *choice) made() (*plan, error) {
	switch {
	case c.best != nil && c.rival == "":
		return c.best, nil
	case c.best != nil:
		return nil, unfit("the tables " + c.best.table + " and " + c.rival + " give different answers")
	case !c.met:
		return nil, nil
	case len(c.lacking) > 0:
		return nil, unfit("nothing in the tables, and no template, stands for \"" + strings.Join(c.lacking[:min(6, len(c.lacking))], `", "`) + `"`)
	}
	return nil, unfit("no template fits it")
}

// fits tells whether a draft answers all of the question. One of a table with its parents has to look something up,
// and to be about the table itself.
func (rd *reading) fits() bool {
	if len(rd.missing()) > 0 || rd.guessed {
		return false
	}
	looked := 0
	for c := range rd.touched {
		if rd.r.cols[c].parent > 0 {
			looked++
		}
	}
	return looked == 0 && len(rd.r.parents) == 0 || looked > 0 && (looked < len(rd.touched) || rd.q.speaks(rd.r))
}

// met reports that the question speaks of something in the relation.
func (rd *reading) met() bool {
	return len(rd.filters) > 0 || slices.ContainsFunc(rd.cols, func(ms []mention) bool {
		return slices.ContainsFunc(ms, func(m mention) bool { return m.share >= 0.5 })
	})
}

// run runs a draft; nil if its rows answer nothing.
func (rd *reading) run(ctx context.Context, db *database.DB, d *draft) (*plan, error) {
	sql := "SELECT " + d.what + " FROM " + rd.r.from
	if d.where != "" {
		sql += " WHERE " + d.where
	}
	sql += d.tail
	clean, err := database.Check(sql, db.Dialect())
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
	st := &plan{statement: clean, rows: rows, table: rd.r.table.Display(), meaning: plaintext.Clip(database.Printable(d.meaning), maxMeaning)}
	if n := len(distinctValues(rows)); n == 0 || n > manyAnswers || rows.Truncated {
		return nil, nil
	}
	return st, nil
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
	for _, template := range []func() *draft{
		rd.difference, rd.neighbour, rd.extreme, rd.average, rd.count, rd.ends, rd.lookup,
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

func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " AND " + b
}

// rows says which rows are meant: "trials where city is Lyon".
func (rd *reading) rows(words string) string {
	if words == "" {
		return rd.r.table.Display()
	}
	return rd.r.table.Display() + " where " + words
}

// show is the list after SELECT: the answer, and what a reader wants beside it.
func (rd *reading) show(answer int, beside ...int) string {
	cols := append([]int{answer}, beside...)
	for _, c := range cols {
		rd.touched[c] = true
	}
	cols = append(cols, rd.r.entity())
	for _, f := range rd.filters {
		cols = append(cols, f.col)
	}
	var out []string
	for i, c := range cols {
		if c >= 0 && !slices.Contains(cols[:i], c) {
			out = append(out, rd.shown(c))
		}
	}
	return strings.Join(out, ", ")
}

// shown is a column in the list after SELECT, under its name.
func (rd *reading) shown(c int) string {
	if col := &rd.r.cols[c]; col.parent > 0 || col.label {
		return col.expr + " AS " + database.Ident(col.name)
	}
	return rd.r.cols[c].expr
}
