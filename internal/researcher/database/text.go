package database

import (
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// plan is a statement, or one row by its key, with the rows that it gave.
type plan struct {
	statement string
	rows      database.Rows
	table     string // the table, for people; "" for a statement of a reasoner's own
	key       string // of the one row that is meant; "" for a statement
	// meaning says what the rows are, "count of trials where city is Lyon"; "" for a
	// statement that a reasoner wrote. The first column of the rows is then the answer.
	meaning string
}

// What stands at the end of a text, as headings, which no reader takes for statements.
const (
	statementMark = "\n# Statement: "
	meaningMark   = "\n# Meaning: "
	askedMark     = "\n# Asked of: "
)

// The most that a text holds.
const (
	maxLines   = 100
	maxAnswers = 12
	maxSQL     = 160 // characters of the statement in a title
	maxOne     = 400 // characters of rows that make one sentence
)

// between stands between the rows of one sentence.
const between = " | "

// text is the rows as sentences, with what is needed to run the statement again:
//
//	# SELECT "name", "score" FROM "results" … — trials.db
//
//	results, the largest score: name: Bob; score: 93.
//
//	# Statement: SELECT …
//	# Meaning: results, the largest score
//	# Asked of: /data/trials.db
func (p *plan) text(db *database.DB) string {
	out := "# " + p.title(db.Name()) + "\n\n" + p.body()
	if p.key == "" {
		out += statementMark + p.statement
	}
	if p.meaning != "" {
		out += meaningMark + p.meaning
	}
	return out + askedMark + db.Address() + "\n"
}

// title is what a reader sees over the rows: the statement, or the row's key.
func (p *plan) title(name string) string {
	if p.key != "" {
		return fmt.Sprintf("Table %s of %s, row %s", p.table, name, p.key)
	}
	return plaintext.Clip(p.statement, maxSQL) + " — " + name
}

// body is the rows: in one sentence under their meaning where they are few, or a sentence each.
func (p *plan) body() string {
	answers := distinctValues(p.rows)
	if p.meaning == "" || len(answers) == 0 {
		return p.lines()
	}
	all := make([]string, len(p.rows.Cells))
	for i, r := range p.rows.Cells {
		all[i] = p.row(r)
	}
	if p.grouped() { // what a chart is drawn from stands below
		return p.meaning + ": " + strings.Join(all, between) + ".\n\n" + p.lines()
	}
	// A row alone that is picked by what stands in it needs no words before it, unlike an extreme, a neighbour or a number.
	picked := !p.number() && !strings.Contains(p.meaning, ", the ") && !strings.HasPrefix(p.meaning, "next row of ") && !strings.HasPrefix(p.meaning, "row of ")
	if len(all) == 1 && picked {
		return "# " + p.meaning + "\n\n" + all[0] + ".\n"
	}
	if one := strings.Join(all, between); len([]rune(one)) <= maxOne && !p.rows.Truncated {
		return p.meaning + ": " + one + ".\n"
	}
	more := ""
	if n := len(answers); n > maxAnswers {
		answers, more = answers[:maxAnswers], fmt.Sprintf("%s%d more", between, n-maxAnswers)
	}
	return p.meaning + ": " + strings.Join(answers, between) + more + ".\n\n" + p.lines()
}

// lines are the rows, one a line.
func (p *plan) lines() string {
	if len(p.rows.Cells) == 0 {
		return "The statement gave no rows.\n"
	}
	var b strings.Builder
	for _, r := range p.rows.Cells[:min(maxLines, len(p.rows.Cells))] {
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

// grouped reports a number for each of several groups.
func (p *plan) grouped() bool {
	return len(p.rows.Columns) == 2 && len(p.rows.Cells) > 1 && (strings.Contains(p.meaning, forEach) || strings.Contains(p.meaning, ranking))
}

// How the meanings of grouped and of ranked rows go on.
const (
	forEach = ", for each "
	ranking = ", the first "
)

// row is a row under its meaning; a number that the meaning names needs no name.
func (p *plan) row(cells []database.Cell) string {
	if p.grouped() {
		return cells[0].Text + ": " + cells[1].Text
	}
	if len(cells) == 1 && p.number() {
		return cells[0].Text
	}
	return strings.TrimSuffix(sentence(p.rows.Columns, cells), ".")
}

// number reports a statement for one number.
func (p *plan) number() bool {
	return len(p.rows.Columns) == 1 && slices.ContainsFunc(computed, func(head string) bool { return strings.HasPrefix(p.meaning, head) })
}

// computed are how the meanings of one number begin.
var computed = []string{"count of ", "total ", "sum of ", "average ", "difference in "}

// sentence is a row as one: "id: 17; drug: Aspirin; phase: 3."
func sentence(columns []string, row []database.Cell) string {
	parts := make([]string, len(row))
	for i, c := range row {
		parts[i] = columns[i] + ": " + c.Text
	}
	return strings.Join(parts, "; ") + "."
}
