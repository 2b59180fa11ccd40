package database

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// relation is what a question may be about: the rows of one table, with enough of them to know the values. Values of
// a table that it refers to are looked up, never joined in: a join would count rows more than once.
type relation struct {
	dialect database.Dialect
	table   database.Table
	from    string // what follows FROM
	order   string // what the rows are listed by; "" if they have no order
	cols    []column
	rows    [][]database.Cell
	whole   bool             // rows are all that there are
	unnamed bool             // says that this is the only table and its name does not tell what its rows are: they may be called anything
	parents []database.Table // whose values are looked up; nil for the table alone
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
	parent int      // its place in parents, from 1, of a value that is looked up; 0 for a column of the table
	link   string   // the column of the table that a looked-up value hangs on
	label  bool     // what people call the row that link refers to, or the row itself
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
	isoDate  = regexp.MustCompile(`^\d{4}-\d\d-\d\d(?:[T ].*)?$`)
	numeral  = regexp.MustCompile(`^[$£€~]?\s?[-+−]?\d[\d,]*(?:\.\d+)?\s?(?:%|[a-zA-Z]{1,3}\.?)?(?:\s?[(\[].*)?$`)
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
		if row[i].Number || numeral.MatchString(v) {
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
	case most(years):
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
		if c.number || c.date || len(c.values) == 0 || c.key || c.parent > 0 {
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
		return slices.IndexFunc(r.cols, func(c column) bool { return c.parent == 0 && c.name == r.table.Key[0] })
	}
	return best
}

// named is the column of text that is called name or title, alone or with other words, or the full name; or -1.
func (r *relation) named() int {
	best, fewest := -1, 0
	for i, c := range r.cols {
		if c.label && c.parent == 0 {
			return i
		}
		if c.number || c.date || c.key || c.parent > 0 || !c.hasWord(called) {
			continue
		}
		if best < 0 || len(c.stems) < fewest {
			best, fewest = i, len(c.stems)
		}
	}
	return best
}
