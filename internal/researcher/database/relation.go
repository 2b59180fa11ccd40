package database

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// relation is a table, with enough of its rows to know the values.
type relation struct {
	dialect database.Dialect
	table   database.Table
	from    string // what follows FROM
	order   string // what the rows are listed by; "" if they have no order
	cols    []column
	rows    [][]database.Cell
	whole   bool   // rows are all that there are
	unnamed bool   // says that this is the only table and its name does not tell what its rows are: they may be called anything
	prefix  string // before the names of its columns in a statement
	first   int    // the place of its first column among those of all tables
}

type column struct {
	name   string
	expr   string // in a statement
	stems  []string
	number bool     // holds numbers, if only as text
	typed  bool     // the database itself knows that they are numbers or dates
	date   bool     // a column of dates that the database can order
	year   string   // the expression of its year; "" if it has none
	iso    bool     // its values are dates that sort as they are written
	key    bool     // a number that names rows and says nothing about them
	flag   bool     // says yes or no
	part   bool     // there may be values that were not seen
	of     int      // its table
	in     string   // the name of its table
	label  bool     // what people call the row
	role   bool     // it is made of others: what a foreign key refers to, or a product of two numbers
	values []string // that were seen, each once
	unique float64  // share of the rows whose value no other row has
}

// The bounds of what is read to know a relation, and of its values.
const (
	wholeRows   = 1000 // rows of a table that is read whole
	wantedRows  = 400  // rows with words of the question of a larger one
	maxRowWords = 10   // words that rows are looked for by
	maxName     = 80   // bytes of what a row is called
	longValue   = 14   // words of a value of which a part is written in the question: prose holds words by accident
)

// nameStems are the stems of the words in a name: "homeTeam_id" is home, team, id.
func nameStems(name string) []string {
	var out []string
	for _, w := range nameWords(name) {
		out = append(out, lexicon.Stem(w))
	}
	return out
}

var camel = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)

func nameWords(name string) []string {
	var out []string
	for _, t := range lexicon.Tokens(strings.NewReplacer("_", " ", "#", " ").Replace(camel.ReplaceAllString(name, "$1 $2"))) {
		out = append(out, strings.ToLower(t.Text))
	}
	return out
}

// load reads the rows of a small relation, or those of a large one that hold words of the question.
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
	list := "SELECT " + strings.Join(exprs, ", ") + " FROM " + r.from
	statement := list
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
	if err == nil && len(rows.Cells) == 0 && !r.whole { // some rows tell at least what the columns hold
		rows, err = db.QueryUpTo(ctx, list+" LIMIT "+strconv.Itoa(most), most)
	}
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
	isoDate = regexp.MustCompile(`^\d{4}-\d\d-\d\d(?:[T ].*)?$`)
	numeral = regexp.MustCompile(`^[$£€~]?\s?[-+−]?\d[\d,]*(?:\.\d+)?\s?(?:%|[a-zA-Z]{1,3}\.?)?(?:\s?[(\[].*)?$`)
	// amount is a number that is no code: text of a table with a name holds codes as well, such as "7A" or "0049".
	amount   = regexp.MustCompile(`^[^\d]*\d[\d,]*[.,%$£€ ]|^[$£€]`)
	yearHead = regexp.MustCompile(`^(?:1[0-9]|20)\d\d(?:\D|$)`)
)

// learn finds out what a column holds from its values.
func (r *relation) learn(i int) {
	c := &r.cols[i]
	seen := map[string]int{}
	var filled []string
	numbers := 0
	for _, row := range r.rows {
		v := row[i].Text
		if row[i].Null || strings.Trim(v, "-–— ") == "" {
			continue
		}
		filled = append(filled, v)
		if seen[v]++; seen[v] == 1 {
			c.values = append(c.values, v)
		}
		if row[i].Number || numeral.MatchString(v) && (r.unnamed || amount.MatchString(v)) {
			numbers++
		}
	}
	if len(filled) == 0 {
		return
	}
	alone := slices.DeleteFunc(slices.Clone(c.values), func(v string) bool { return seen[v] > 1 })
	c.unique = float64(len(alone)) / float64(len(filled))
	most := func(n int) bool { return 10*n >= 9*len(filled) }
	years := len(slices.DeleteFunc(slices.Clone(filled), func(v string) bool { return !yearHead.MatchString(v) }))
	c.iso = c.date || !slices.ContainsFunc(filled, func(v string) bool { return !isoDate.MatchString(v) })
	c.number = c.number || !c.date && most(numbers)
	switch {
	case c.date && r.dialect == database.Postgres:
		c.year = "EXTRACT(YEAR FROM " + c.expr + ")"
	case c.date && r.dialect == database.MySQL:
		c.year = "YEAR(" + c.expr + ")"
	case most(years) && (r.unnamed || !c.number || !c.typed || c.tellsYears()):
		c.year = database.AsWhole(r.dialect, "SUBSTR("+database.AsText(r.dialect, c.expr)+", 1, 4)")
	}
}

// value is the expression of a column of numbers as a number.
func (r *relation) value(c *column) string {
	if c.typed {
		return c.expr
	}
	return database.AsNumber(r.dialect, c.expr)
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

// hasWord reports that a word of a column's name is one of a set of stems.
func (c *column) hasWord(set map[string]bool) bool {
	return slices.ContainsFunc(c.stems, func(s string) bool { return set[s] })
}

func placeNamed(c *column) bool { return c.hasWord(placeLike) }

// measurable reports a column whose numbers can be compared and added up: no places, names or years.
func measurable(c *column) bool {
	return c.number && !c.hasWord(ordinals) && c.year == ""
}

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

// entity is the column that names the rows, or -1: one that is called so, or the first of text whose values are mostly
// its own. Where the table's name tells what a row is, no other column will do but the key.
func (r *relation) entity() int {
	if at := r.named(); at >= 0 && !r.unnamed {
		return at
	}
	best, top := -1, 0.0
	for i := range r.cols {
		c := &r.cols[i]
		if c.number || c.date || len(c.values) == 0 || c.key || c.role {
			continue
		}
		if !r.unnamed && (c.unique < 0.9 || c.year != "" || slices.ContainsFunc(c.values, func(v string) bool { return len(v) > maxName })) {
			continue
		}
		if score := min(c.unique, 0.9) - 0.06*float64(i); best < 0 || score > top {
			best, top = i, score
		}
	}
	if best < 0 && !r.unnamed && len(r.table.Key) == 1 {
		return slices.IndexFunc(r.cols, func(c column) bool { return !c.role && c.name == r.table.Key[0] })
	}
	return best
}

// named is the column of text that is called name or title, alone or with other words, or the full name; or -1.
func (r *relation) named() int {
	best, fewest := -1, 0
	for i, c := range r.cols {
		if c.label && !c.role {
			return i
		}
		if c.number || c.date || c.key || c.role || !c.hasWord(called) {
			continue
		}
		if best < 0 || len(c.stems) < fewest {
			best, fewest = i, len(c.stems)
		}
	}
	return best
}

// alone is a table without what it refers to. The prefix stands before the names of its columns in statements.
func alone(t database.Table, d database.Dialect, prefix string) *relation {
	r := &relation{dialect: d, table: t, from: t.SQL(), prefix: prefix, whole: t.Rows >= 0 && t.Rows <= wholeRows && !t.Many, order: t.Order()}
	if r.order == "" && d == database.SQLite && !t.View {
		r.order = "rowid"
	}
	for _, c := range t.Columns {
		col := column{name: c.Name, expr: prefix + database.Ident(c.Name), stems: nameStems(c.Name), number: c.Kind == database.Number, date: c.Kind == database.Date}
		col.typed = col.number || col.date
		col.key = col.number && len(t.Key) == 1 && t.Key[0] == c.Name || refers(t, c.Name)
		col.flag = strings.Contains(c.Type, "bool")
		col.in, col.part = t.Display(), !r.whole
		r.cols = append(r.cols, col)
	}
	if expr := r.join(prefix); expr != "" { // the name of a person that stands in two columns
		r.cols = append(r.cols, column{name: "name", expr: expr, stems: nameStems("name"), label: true, in: t.Display(), part: !r.whole})
	}
	return r
}

func refers(t database.Table, name string) bool {
	return slices.ContainsFunc(t.Refs, func(r database.Ref) bool { return slices.Contains(r.Columns, name) })
}

// join is the expression of a first and a last name; "" unless the table has both and no name of one piece.
func (r *relation) join(prefix string) string {
	first, last := "", ""
	for _, c := range r.table.Columns {
		switch strings.Join(nameWords(c.Name), " ") {
		case "first name", "firstname", "given name", "forename":
			first = prefix + database.Ident(c.Name)
		case "last name", "lastname", "family name", "surname":
			last = prefix + database.Ident(c.Name)
		case "name", "full name", "fullname":
			return ""
		}
	}
	if first == "" || last == "" {
		return ""
	}
	return database.Joined(r.dialect, first, last)
}

// tableStems are the stems of a table's name, without what only says that it is one.
func tableStems(t database.Table) []string {
	words := nameStems(t.Name)
	if len(words) > 1 && tellsNothing[words[0]] {
		return words[1:]
	}
	return words
}

// tellsYears reports a name that says that numbers are years: "opened", "year built".
func (c *column) tellsYears() bool {
	return c.hasWord(ageLike) || slices.ContainsFunc(nameWords(c.name), func(w string) bool { return strings.HasSuffix(w, "ed") })
}

// usual is how sure a column of dates is the one that a question means which only says when: one that is called as
// its table is, or only a date, comes first.
func (c *column) usual() int {
	head := nameStems(c.in)
	if slices.Contains(c.stems, head[len(head)-1]) || slices.Contains(c.stems, "creat") || len(c.state()) == 0 {
		return 0
	}
	return 1
}

// prefixOf is the beginning of a column of dates: the year, or the year and the month.
func (r *relation) prefixOf(c, length int) string {
	return fmt.Sprintf("SUBSTR(%s, 1, %d)", database.AsText(r.dialect, r.cols[c].expr), length)
}

// when is the expression that puts rows in the order of a column of dates or years.
func (c *column) when() string {
	if c.iso {
		return c.expr
	}
	return c.year
}

// summed is what the sum of a column is called.
func (c *column) summed() string {
	if slices.Contains(c.stems, "total") {
		return "sum of " + c.name
	}
	return "total " + c.name
}

// shown is a column in the list after SELECT, under its name.
func (r *relation) shown(c int) string {
	if col := &r.cols[c]; col.role || col.label {
		return col.expr + " AS " + database.Ident(col.name)
	}
	return r.cols[c].expr
}
