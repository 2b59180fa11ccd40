package database

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Schema is what a database holds, as far as the role may read it.
type Schema struct {
	Tables []Table // by name
}

// Table is a table or a view.
type Table struct {
	Schema  string // "" where the bare name finds it
	Name    string
	View    bool
	Search  bool // a full-text index that answers MATCH
	Columns []Column
	Key     []string // the columns of the primary key, in order; nil without one
	Refs    []Ref
	Rows    int // the number of rows, counted up to a bound; Many says that there are more than that
	Many    bool

	space string // the schema it is in, even if the bare name finds it
}

// Column is a column of a table.
type Column struct {
	Name    string
	Type    string // as the database writes it, lower case
	Kind    Kind
	Samples []string // a few values of a column of text, short ones, in sorted order
}

// Kind is what a column holds.
type Kind string

// The kinds.
const (
	Text   Kind = "text"
	Number Kind = "number"
	Date   Kind = "date" // with or without a time of day
	Other  Kind = "other"
)

// Ref is a foreign key.
type Ref struct {
	Columns []string
	Table   string
	To      []string // nil for the primary key of Table
}

// The bounds of what is looked at for a schema.
const (
	maxTables   = 60
	maxColumns  = 60
	sampledRows = 200
	maxSamples  = 5
	maxSample   = 40 // characters
	countedRows = 100_000
)

// Display is the table's name for people and for locators.
func (t Table) Display() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// SQL is the table's name in a statement.
func (t Table) SQL() string {
	if t.Schema == "" {
		return Ident(t.Name)
	}
	return Ident(t.Schema) + "." + Ident(t.Name)
}

// Select is a statement for all columns.
func (t Table) Select() string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = Ident(c.Name)
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM " + t.SQL()
}

// Ident quotes a name for a statement of any dialect.
func Ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Literal quotes a text for a statement of any dialect.
func Literal(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "'", "''") + "'"
}

// AsText is a column as text: PostgreSQL has types, such as uuid, that its functions on text do not take.
func AsText(d Dialect, expr string) string {
	if d == Postgres {
		return "CAST(" + expr + " AS text)"
	}
	return expr
}

// AsWhole is a text of figures as a whole number.
func AsWhole(d Dialect, expr string) string {
	if d == MySQL {
		return "CAST(" + expr + " AS SIGNED)"
	}
	return "CAST(" + expr + " AS INTEGER)"
}

// AsNumber is the number in a text such as "$1,200" or "12 km".
func AsNumber(d Dialect, expr string) string {
	switch d {
	case Postgres:
		return "CAST(SUBSTRING(REPLACE(" + expr + ", ',', '') FROM '-?[0-9]+(?:[.][0-9]+)?') AS numeric)"
	case MySQL:
		return "CAST(REGEXP_SUBSTR(REPLACE(" + expr + ", ',', ''), '-?[0-9]+([.][0-9]+)?') AS DECIMAL(30, 6))"
	}
	return "CAST(REPLACE(LTRIM(" + expr + ", '$£€~ '), ',', '') AS REAL)"
}

// Rounded is a number with two decimals at most.
func Rounded(d Dialect, expr string) string {
	if d == Postgres {
		return "ROUND(CAST(" + expr + " AS numeric), 2)"
	}
	return "ROUND(" + expr + ", 2)"
}

// Joined is two texts with a space between them.
func Joined(d Dialect, a, b string) string {
	if d == MySQL {
		return "CONCAT(" + a + ", ' ', " + b + ")"
	}
	return a + " || ' ' || " + b
}

// Contains tests whether the text of a column holds a word, whatever its case.
func Contains(d Dialect, expr, word string) string {
	plain := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(strings.ToLower(word))
	return "LOWER(" + AsText(d, expr) + ") LIKE " + Literal("%"+plain+"%") + " ESCAPE '!'"
}

// Order is the columns of the key as a statement lists them after ORDER BY, or "".
func (t Table) Order() string {
	names := make([]string, len(t.Key))
	for i, k := range t.Key {
		names[i] = Ident(k)
	}
	return strings.Join(names, ", ")
}

// Schema reads tables, columns, keys, a count of the rows and a few values. It
// asks a bounded number of short queries. Errors are those of Query.
func (d *DB) Schema(ctx context.Context) (Schema, error) {
	tables, err := d.wall.tables(ctx, d)
	if err != nil {
		return Schema{}, marchwarden.Wrap(err, marchwarden.CodeOf(err), "read the schema")
	}
	s := Schema{Tables: tables}
	slices.SortStableFunc(s.Tables, func(a, b Table) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	s.Tables = s.Tables[:min(maxTables, len(s.Tables))]
	for i := range s.Tables {
		t := &s.Tables[i]
		t.Columns = t.Columns[:min(len(t.Columns), maxColumns)]
		for j := range t.Columns {
			t.Columns[j].Kind = kindOf(t.Columns[j].Type)
		}
		for j := range t.Refs {
			of := slices.IndexFunc(s.Tables, func(o Table) bool { return o.Name == t.Refs[j].Table })
			if of >= 0 && len(t.Refs[j].To) == 0 {
				t.Refs[j].To = s.Tables[of].Key
			}
		}
		switch err := d.sample(ctx, t); marchwarden.CodeOf(err) {
		case "":
		case marchwarden.CodeCanceled:
			return Schema{}, err
		case marchwarden.CodeDenied:
			t.Columns = nil
		default:
			t.Rows, t.Many = -1, true // it cannot be read now; its columns are known all the same
		}
	}
	// What may not be read, such as a view of passwords, is not offered.
	s.Tables = slices.DeleteFunc(s.Tables, func(t Table) bool { return len(t.Columns) == 0 })
	return s, nil
}

// sample counts rows and takes a few values of each column of text.
func (d *DB) sample(ctx context.Context, t *Table) error {
	n, err := d.catalog(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM "+t.SQL()+" LIMIT "+strconv.Itoa(countedRows+1)+") AS n")
	if err != nil {
		return err
	}
	t.Rows, _ = strconv.Atoi(n[0][0])
	t.Many = t.Rows > countedRows
	t.Rows = min(t.Rows, countedRows)
	if len(t.Columns) == 0 {
		return nil
	}
	statement := t.Select()
	if len(t.Key) > 0 {
		statement += " ORDER BY " + Ident(t.Key[0])
	}
	o := d.opts
	o.MaxRows = sampledRows
	rows, err := d.read(ctx, statement+" LIMIT "+strconv.Itoa(sampledRows), o)
	if err != nil {
		return err
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Kind == Other && c.Type == "" { // SQLite columns need no type
			c.Kind = seenKind(rows, i)
		}
		if c.Kind == Text {
			c.Samples = samplesOf(rows, i)
		}
	}
	return nil
}

// seenKind is the kind of a column that declares none, by its values.
func seenKind(rows Rows, i int) Kind {
	text := func(r []Cell) bool { return !r[i].Null && !r[i].Number }
	filled := func(r []Cell) bool { return !r[i].Null }
	if slices.ContainsFunc(rows.Cells, filled) && !slices.ContainsFunc(rows.Cells, text) {
		return Number
	}
	return Text
}

func samplesOf(rows Rows, i int) []string {
	var out []string
	for _, r := range rows.Cells {
		if c := r[i]; !c.Null && c.Text != "" && utf8.RuneCountInString(c.Text) <= maxSample && !slices.Contains(out, c.Text) {
			if out = append(out, c.Text); len(out) == maxSamples {
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// kindOf reads a type as databases write them.
func kindOf(typ string) Kind {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(typ, w) })
	}
	switch {
	case has("json", "blob", "bytea", "binary", "array", "[]", "geometry", "interval", "xml", "bool"):
		return Other
	case has("char", "text", "clob", "string", "enum", "uuid", "citext", "name"):
		return Text
	case has("date", "time"):
		return Date
	case has("int", "real", "floa", "doub", "num", "dec", "money", "serial", "year"):
		return Number
	}
	return Other
}

// catalog runs a statement of this package's own and gives its cells as text.
func (d *DB) catalog(ctx context.Context, statement string) ([][]string, error) {
	o := d.opts
	o.MaxRows, o.MaxBytes, o.own = 10_000, 4<<20, true
	rows, err := d.read(ctx, statement, o)
	if err != nil {
		return nil, err
	}
	out := make([][]string, len(rows.Cells))
	for i, r := range rows.Cells {
		for _, c := range r {
			out[i] = append(out[i], c.Text)
		}
	}
	return out, nil
}
