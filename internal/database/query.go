package database

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Rows is the answer to a statement.
type Rows struct {
	Columns   []string
	Cells     [][]Cell
	Truncated bool // says that a cap cut the answer short: there are more rows
}

// Cell is one value as text, whatever the driver: times as RFC 3339, numbers in their shortest form, what is no text as
// "[n bytes]".
type Cell struct {
	Text   string
	Null   bool // Text is then "null"
	Number bool
}

// maxCell is the longest text of one value that is kept, in bytes.
const maxCell = 4 << 10

// Query runs one statement that reads, under the caps of the DB, and never lets it
// change anything. A statement that the wall refuses, or that the database cannot
// make sense of, is CodeInvalid; one that takes too long is CodeTimeout; a
// connection that fails is CodeUnavailable; what the role may not read is
// CodeDenied; the end of ctx is CodeCanceled and ends the statement in the
// database too.
func (d *DB) Query(ctx context.Context, statement string) (Rows, error) {
	return d.query(ctx, statement, d.opts)
}

// QueryUpTo is Query with another cap on the rows, for a program that looks
// through a table rather than shows it.
func (d *DB) QueryUpTo(ctx context.Context, statement string, rows int) (Rows, error) {
	o := d.opts
	o.MaxRows, o.MaxBytes = rows, 8*o.MaxBytes
	return d.query(ctx, statement, o)
}

func (d *DB) query(ctx context.Context, statement string, o Options) (Rows, error) {
	clean, err := Check(statement, d.dialect)
	if err != nil {
		return Rows{}, err
	}
	return d.read(ctx, clean, o)
}

func (d *DB) read(ctx context.Context, statement string, o Options) (Rows, error) {
	caller := ctx
	ctx, done := context.WithTimeout(ctx, o.Timeout)
	defer done()
	rows, err := d.wall.read(ctx, statement, o)
	if err != nil {
		return Rows{}, d.fail(caller, ctx, err)
	}
	return rows, nil
}

// within runs a statement on a connection of a pool, in the transaction that begin opens.
func within(ctx context.Context, pool *sql.DB, begin func(context.Context, *sql.Conn, Options) (*sql.Tx, error), statement string, o Options) (Rows, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return Rows{}, err
	}
	defer conn.Close() // back to the pool
	tx, err := begin(ctx, conn, o)
	if err != nil {
		return Rows{}, err
	}
	defer tx.Rollback() // there is nothing to keep
	rows, err := tx.QueryContext(ctx, statement)
	if err != nil {
		return Rows{}, err
	}
	defer rows.Close() // rows.Err is looked at
	return collect(rows, o)
}

func bounded(p *sql.DB) *sql.DB {
	p.SetMaxOpenConns(maxConns)
	p.SetMaxIdleConns(maxConns)
	p.SetConnMaxIdleTime(time.Minute)
	return p
}

func collect(rows *sql.Rows, o Options) (Rows, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return Rows{}, err
	}
	var out Rows
	for _, t := range types {
		out.Columns = append(out.Columns, Printable(t.Name()))
	}
	values, targets := make([]any, len(types)), make([]any, len(types))
	for i := range values {
		targets[i] = &values[i]
	}
	size := 0
	for rows.Next() {
		if len(out.Cells) >= o.MaxRows || size >= o.MaxBytes {
			out.Truncated = true
			return out, nil
		}
		if err := rows.Scan(targets...); err != nil {
			return Rows{}, err
		}
		row := make([]Cell, len(values))
		for i, v := range values {
			row[i] = cell(v, types[i].DatabaseTypeName())
			size += len(row[i].Text)
		}
		out.Cells = append(out.Cells, row)
	}
	return out, rows.Err()
}

// numeric are the names of types whose values drivers give as text or bytes.
var numeric = set("NUMERIC DECIMAL INT BIGINT DOUBLE FLOAT SMALLINT TINYINT MEDIUMINT YEAR INTEGER REAL")

func cell(v any, typeName string) Cell {
	number := numeric[strings.TrimPrefix(strings.ToUpper(typeName), "UNSIGNED ")]
	switch v := v.(type) {
	case nil:
		return Cell{Text: "null", Null: true}
	case bool:
		return Cell{Text: strconv.FormatBool(v)}
	case int64:
		return Cell{Text: strconv.FormatInt(v, 10), Number: true}
	case float64:
		return Cell{Text: float(v), Number: true}
	case float32:
		return Cell{Text: float(float64(v)), Number: true}
	case time.Time:
		return Cell{Text: moment(v, typeName)}
	case []byte:
		if kind := strings.ToUpper(typeName); strings.Contains(kind, "BLOB") || strings.Contains(kind, "BINARY") || !utf8.Valid(v) {
			return Cell{Text: "[" + strconv.Itoa(len(v)) + " bytes]"}
		}
		return textCell(string(v), number)
	case string:
		return textCell(v, number)
	}
	return Cell{Text: "[value]"}
}

// textCell is a text without what a terminal or a reader could stumble over.
func textCell(s string, number bool) Cell {
	if _, err := strconv.ParseFloat(s, 64); !number || err != nil {
		return Cell{Text: Printable(s)}
	}
	if !strings.ContainsAny(s, "eE") && strings.Contains(s, ".") { // 3.50 is 3.5
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return Cell{Text: s, Number: true}
}

// float is the shortest text of a number, without an exponent where it is short.
func float(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) || math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	if f != math.Trunc(f) { // 27.88 is not 27.879999999999995
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', 15, 64), 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// moment writes a time; a column of dates has no time of day.
func moment(t time.Time, typeName string) string {
	if strings.EqualFold(typeName, "DATE") {
		return t.Format(time.DateOnly)
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Printable is a text on one line, without control and format characters, cut where it is very long.
func Printable(s string) string {
	if len(s) > maxCell {
		s = strings.ToValidUTF8(s[:maxCell], "") + "…"
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r), r == utf8.RuneError:
			return ' '
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// fail gives an error of the driver its code and takes secrets out of it. It is not wrapped: its text may hold them.
func (d *DB) fail(caller, statement context.Context, err error) error {
	if own, ok := errors.AsType[*marchwarden.Error](err); ok {
		return own
	}
	said := d.wall.explain(err)
	if said == nil {
		said = &marchwarden.Error{Code: marchwarden.CodeUnavailable}
	}
	switch {
	case caller.Err() != nil:
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "query " + d.name, Err: caller.Err()}
	case said.Code == marchwarden.CodeTimeout, statement.Err() != nil:
		return marchwarden.Errorf(marchwarden.CodeTimeout, "query %s: the statement took longer than %s", d.name, d.opts.Timeout)
	case said.Hint != "": // in words of our own
		said.Message = d.name + ": " + said.Message
		return said
	case said.Message != "":
		said.Message = d.name + ": " + d.hide(Printable(said.Message))
		return said
	}
	return marchwarden.Errorf(said.Code, "query %s: %s", d.name, d.hide(Printable(err.Error())))
}
