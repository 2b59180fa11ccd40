package question

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// relation is what a question may be about: a table, or a table joined with one
// that it refers to, with enough of its rows to know the values.
type relation struct {
	dialect database.Dialect
	display string
	from    string // what follows FROM
	order   string // what the rows are listed by; "" if they have no order
	cols    []column
	rows    [][]database.Cell
	whole   bool // rows are all that there are
	joined  bool
}

// column is a column of a relation.
type column struct {
	name   string
	expr   string // in a statement
	stems  []string
	words  []string // of its name, in lower case, one for each stem
	number bool     // holds numbers, if only as text
	typed  bool     // the database itself knows that they are numbers or dates
	date   bool     // a column of dates that the database can order
	year   string   // the expression of its year; "" if it has none
	key    bool     // a number that counts the rows and says nothing
	values []string // that were seen, each once
	unique float64  // share of the rows whose value no other row has
}

// The bounds of what is read to know a relation.
const (
	wholeRows  = 1000 // rows of a table that is read whole
	wantedRows = 400  // rows with words of the question of a larger one
)

// relations are the tables and the joins along one foreign key.
func relations(schema database.Schema, d database.Dialect) []*relation {
	var out []*relation
	for _, t := range schema.Tables {
		if len(t.Columns) > 0 && !t.Search {
			out = append(out, single(t, d))
		}
	}
	for _, t := range schema.Tables {
		for _, ref := range t.Refs {
			at := slices.IndexFunc(schema.Tables, func(o database.Table) bool { return o.Name == ref.Table })
			if at >= 0 && len(ref.Columns) == 1 && len(ref.To) == 1 {
				out = append(out, joinedWith(t, schema.Tables[at], ref, d))
			}
		}
	}
	return out
}

func single(t database.Table, d database.Dialect) *relation {
	r := &relation{dialect: d, display: t.Display(), from: t.SQL(), whole: t.Rows >= 0 && t.Rows <= wholeRows && !t.Many}
	r.order = t.Order()
	if r.order == "" && d == database.SQLite && !t.View {
		r.order = "rowid"
	}
	for _, c := range t.Columns {
		r.add(t, c, database.Ident(c.Name))
	}
	return r
}

// joinedWith is a table with the columns of one that it refers to.
func joinedWith(t, other database.Table, ref database.Ref, d database.Dialect) *relation {
	a, b := "a", "b"
	r := &relation{dialect: d, joined: true, display: t.Display() + " with " + other.Display(), whole: t.Rows >= 0 && t.Rows <= wholeRows && !t.Many}
	r.from = fmt.Sprintf("%s AS a JOIN %s AS b ON a.%s = b.%s", t.SQL(), other.SQL(), database.Ident(ref.Columns[0]), database.Ident(ref.To[0]))
	var order []string
	for _, k := range t.Key {
		order = append(order, a+"."+database.Ident(k))
	}
	r.order = strings.Join(order, ", ")
	for _, c := range t.Columns {
		if c.Name != ref.Columns[0] {
			r.add(t, c, a+"."+database.Ident(c.Name))
		}
	}
	for _, c := range other.Columns {
		if !slices.Contains(other.Key, c.Name) {
			r.add(other, c, b+"."+database.Ident(c.Name))
			// "the name of the drug" is the column name of the table drugs.
			last := &r.cols[len(r.cols)-1]
			last.stems, last.words = append(last.stems, nameStems(other.Name)...), append(last.words, nameWords(other.Name)...)
		}
	}
	return r
}

// add takes in a column.
func (r *relation) add(t database.Table, c database.Column, expr string) {
	col := column{name: c.Name, expr: expr, stems: nameStems(c.Name), words: nameWords(c.Name), number: c.Kind == database.Number, typed: c.Kind == database.Number || c.Kind == database.Date, date: c.Kind == database.Date}
	col.key = len(t.Key) == 1 && t.Key[0] == c.Name && c.Kind == database.Number
	r.cols = append(r.cols, col)
}

// nameStems are the stems of the words in a name: "homeTeam_id" is home, team, id.
func nameStems(name string) []string {
	var out []string
	for _, w := range nameWords(name) {
		out = append(out, lexicon.Stem(w))
	}
	return out
}

// nameWords are the words in a name, in lower case.
func nameWords(name string) []string {
	var b strings.Builder
	var last rune
	for _, c := range name {
		if unicode.IsUpper(c) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		if c == '_' || c == '#' {
			c = ' '
		}
		b.WriteRune(c)
		last = c
	}
	var out []string
	for _, t := range lexicon.Tokens(b.String()) {
		out = append(out, strings.ToLower(t.Text))
	}
	return out
}

// load reads the rows of a small relation, or those of a large one that hold words
// of the question.
func (r *relation) load(ctx context.Context, db *database.DB, words []string) error {
	exprs := make([]string, len(r.cols))
	var tests []string
	for i, c := range r.cols {
		exprs[i] = c.expr
		if !c.typed {
			for _, w := range words {
				tests = append(tests, database.Contains(r.dialect, c.expr, w))
			}
		}
	}
	statement := "SELECT " + strings.Join(exprs, ", ") + " FROM " + r.from
	most := wholeRows
	if !r.whole {
		if most = wantedRows; len(tests) > 0 {
			statement += " WHERE " + strings.Join(tests, " OR ")
		}
	}
	if r.order != "" {
		statement += " ORDER BY " + r.order
	}
	if len(statement) > database.MaxStatement/2 {
		return nil
	}
	rows, err := db.QueryUpTo(ctx, statement+" LIMIT "+strconv.Itoa(most), most)
	if err != nil {
		return err
	}
	r.rows = rows.Cells
	for i := range r.cols {
		r.learn(i)
	}
	return nil
}

var (
	numeral  = regexp.MustCompile(`^[$£€~]?\s?[-+−]?\d[\d,]*(?:\.\d+)?\s?(?:%|[a-zA-Z]{1,3}\.?)?(?:\s?[(\[].*)?$`)
	yearHead = regexp.MustCompile(`^(?:1[0-9]|20)\d\d(?:\D|$)`)
	yearTail = regexp.MustCompile(`(?:^|\D)(?:1[0-9]|20)\d\d$`)
)

// learn finds out what a column holds from its values.
func (r *relation) learn(i int) {
	c := &r.cols[i]
	seen := map[string]int{}
	filled, numbers, heads, tails := 0, 0, 0, 0
	for _, row := range r.rows {
		v := row[i].Text
		if row[i].Null || strings.Trim(v, "-–— ") == "" {
			continue
		}
		filled++
		if seen[v]++; seen[v] == 1 {
			c.values = append(c.values, v)
		}
		if row[i].Number || numeral.MatchString(v) {
			numbers++
		}
		if yearHead.MatchString(v) {
			heads++
		}
		if yearTail.MatchString(v) {
			tails++
		}
	}
	if filled == 0 {
		return
	}
	alone := 0
	for _, n := range seen {
		if n == 1 {
			alone++
		}
	}
	c.unique = float64(alone) / float64(filled)
	c.number = c.number || !c.date && 10*numbers >= 9*filled
	switch {
	case c.date && r.dialect == database.Postgres:
		c.year = "EXTRACT(YEAR FROM " + c.expr + ")"
	case c.date && r.dialect == database.MySQL:
		c.year = "YEAR(" + c.expr + ")"
	case 10*heads >= 9*filled:
		c.year = r.yearNumber("SUBSTR(" + database.AsText(r.dialect, c.expr) + ", 1, 4)")
	case 10*tails >= 9*filled:
		c.year = r.yearNumber("SUBSTR(" + c.expr + ", LENGTH(" + c.expr + ") - 3)")
	}
}

// yearNumber is four figures as a number.
func (r *relation) yearNumber(expr string) string {
	if r.dialect == database.MySQL {
		return "CAST(" + expr + " AS SIGNED)"
	}
	return "CAST(" + expr + " AS INTEGER)"
}

// value is the expression of a column of numbers as a number.
func (r *relation) value(c *column) string {
	if c.typed {
		return c.expr
	}
	bare := "REPLACE(LTRIM(" + c.expr + ", '$£€~ '), ',', '')"
	switch r.dialect {
	case database.Postgres:
		return "CAST(SUBSTRING(REPLACE(" + c.expr + ", ',', '') FROM '-?[0-9]+(?:[.][0-9]+)?') AS numeric)"
	case database.MySQL:
		return "CAST(REGEXP_SUBSTR(REPLACE(" + c.expr + ", ',', ''), '-?[0-9]+([.][0-9]+)?') AS DECIMAL(30, 6))"
	}
	return "CAST(" + bare + " AS REAL)"
}

// filledTest is true of rows that have a number in a column.
func (r *relation) filledTest(c *column) string {
	if c.typed {
		return c.expr + " IS NOT NULL"
	}
	if r.dialect == database.SQLite {
		return c.expr + " GLOB '*[0-9]*'"
	}
	return r.value(c) + " IS NOT NULL"
}

// ordinal reports a column whose numbers are places or names: to add them up, or to
// look for the largest, says nothing.
func (c *column) ordinal() bool {
	return slices.ContainsFunc(c.stems, func(s string) bool { return ordinals[s] }) || c.name == "#"
}

var ordinals = stems("pos position rank ranking place no number nr id seed bib grid round week year season")

// noTotals leaves out the rows of a table that sum up the others.
func (r *relation) noTotals() string {
	for _, c := range r.cols {
		for _, v := range c.values {
			if low := strings.ToLower(strings.Trim(v, " :")); !c.number && (low == "total" || low == "totals") {
				return "(" + c.expr + " IS NULL OR " + c.expr + " <> " + database.Literal(v) + ")"
			}
		}
	}
	return ""
}

// entity is the column that names the rows: the first of text whose values are
// mostly its own, or -1.
func (r *relation) entity() int {
	best, top := -1, 0.0
	for i := range r.cols {
		c := &r.cols[i]
		if c.number || c.date || len(c.values) == 0 || c.key {
			continue
		}
		score := min(c.unique, 0.9) - 0.06*float64(i)
		if slices.ContainsFunc(c.stems, func(s string) bool { return nameLike[s] }) {
			score += 0.5
		}
		if c.year != "" {
			score -= 0.5
		}
		if best < 0 || score > top {
			best, top = i, score
		}
	}
	return best
}

// nameLike are words in the names of columns that name what a row is about.
var nameLike = stems("name title player team athlete driver rider candidate person club school country nation city company model film movie song album artist")

func stems(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[lexicon.Stem(w)] = true
	}
	return out
}
