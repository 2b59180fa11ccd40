package database

import (
	"fmt"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database/question"
)

// plan is one statement and what it is for.
type plan struct {
	statement string
	rows      database.Rows
	table     string // the table, for people; "" for a statement of a mind's own
	key       string // of the one row that is meant; "" for a statement
	// phrase is the part of the question that was understood, as written, and
	// meaning how; "" for a statement that a mind wrote. The first column of the
	// rows is then the answer.
	phrase, meaning string
}

// statementMark stands before the statement, at the end of the text. It makes a
// heading of it, which nobody takes for a sentence that says something.
const statementMark = "\n# Statement: "

// The most of rows that a text holds.
const (
	maxLines   = 100
	maxAnswers = 8
)

// text is the rows as sentences:
//
//	# Table results of trials.db
//
//	Table results gives 93 for "highest score": the largest score of all rows.
//
//	name: Bob; score: 93.
//
//	# Statement: SELECT …
func (p *plan) text(name string) string {
	if p.key != "" {
		return "# " + p.title(name) + "\n\n" + p.lines() + "\n"
	}
	out := "# " + p.title(name) + "\n\n"
	if lead := p.lead(); lead != "" {
		out += lead + "\n\n"
	}
	return out + p.lines() + statementMark + p.statement + "\n"
}

func (p *plan) title(name string) string {
	switch {
	case p.key != "":
		return fmt.Sprintf("Table %s of %s, row %s", p.table, name, p.key)
	case p.table != "":
		return fmt.Sprintf("Table %s of %s", p.table, name)
	}
	return "Rows of " + name
}

// lead is the sentence that answers, or "" where there is no answer to give.
func (p *plan) lead() string {
	answers := question.Distinct(p.rows)
	if p.phrase == "" || len(answers) == 0 {
		return ""
	}
	more := ""
	if n := len(answers); n > maxAnswers {
		answers, more = answers[:maxAnswers], fmt.Sprintf(" and %d more", n-maxAnswers)
	}
	return fmt.Sprintf("Table %s gives %s%s for %q: %s.", p.table, strings.Join(answers, " and "), more, p.phrase, p.meaning)
}

// lines are the rows, one a line.
func (p *plan) lines() string {
	if len(p.rows.Cells) == 0 {
		return "The statement gave no rows.\n"
	}
	var b strings.Builder
	for i, r := range p.rows.Cells {
		if i == maxLines {
			break
		}
		b.WriteString(sentence(p.rows.Columns, r) + "\n")
	}
	switch {
	case p.rows.Truncated:
		b.WriteString("There are more rows than these.\n")
	case len(p.rows.Cells) > maxLines:
		fmt.Fprintf(&b, "There are %d more rows.\n", len(p.rows.Cells)-maxLines)
	}
	return b.String()
}

// sentence is a row as one: "id: 17; drug: Aspirin; phase: 3."
func sentence(columns []string, row []database.Cell) string {
	parts := make([]string, len(row))
	for i, c := range row {
		parts[i] = columns[i] + ": " + c.Text
	}
	return strings.Join(parts, "; ") + "."
}
