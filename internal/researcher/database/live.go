package database

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Now is what a locator names today, held against what was stored.
type Now struct {
	// Changes are what differs, the old and the new: "price: 49.9 → 50.9". None means
	// that the rows are what they were.
	Changes   []string
	Elsewhere string // says that another database of the same name was asked then; "" if not, or if that is not known
}

// Live reads again what a locator names and compares it with text, its stored text,
// which holds the statement. A locator of another database, and a text that does
// not belong to its locator, are CodeInvalid. A row that is gone, a statement whose
// rows are all gone, and one whose tables or columns are, are CodeNotFound; the
// other errors are those of DB.Query. Elsewhere is told with an error, too.
func Live(ctx context.Context, db *database.DB, locator, text string) (Now, error) {
	var now Now
	if at := strings.LastIndex(text, askedMark); at >= 0 {
		if asked, _, _ := strings.Cut(text[at+len(askedMark):], "\n"); asked != db.Address() {
			now.Elsewhere = fmt.Sprintf("asked of %s; this is %s", asked, db.Address())
		}
	}
	p, err := readAgain(ctx, db, locator, text)
	if err != nil {
		return now, err
	}
	was, is := bodyOf(text), p.body()
	switch {
	case was == is:
	case len(p.rows.Cells) == 0:
		return now, marchwarden.Errorf(marchwarden.CodeNotFound, "the statement gives no rows any more")
	default:
		now.Changes = differences(p.rows.Columns, rowsIn(was, p.meaning), rowsIn(is, p.meaning))
	}
	return now, nil
}

// readAgain runs the statement of a locator again, or reads its row.
func readAgain(ctx context.Context, db *database.DB, locator, text string) (*plan, error) {
	name := "db:" + url.PathEscape(db.Name())
	if strings.HasPrefix(locator, name+"/") {
		schema, err := db.Schema(ctx)
		if err != nil {
			return nil, err
		}
		p, err := rowPlan(ctx, db, schema, locator)
		if marchwarden.CodeOf(err) == marchwarden.CodeDenied { // its table, or the table's key, is not there
			return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "the table of the row is gone")
		}
		return p, err
	}
	hash, ok := strings.CutPrefix(locator, name+"?query=")
	if !ok {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "%s is not in the database %s", locator, db.Name())
	}
	statement, meaning, ok := statementOf(text, hash)
	if !ok {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the stored text of %s does not hold its statement", locator)
	}
	rows, err := db.Query(ctx, statement)
	if marchwarden.CodeOf(err) == marchwarden.CodeInvalid { // it ran when it was stored
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "a table or a column of the statement is gone: %v", err)
	}
	return &plan{statement: statement, rows: rows, meaning: meaning}, err
}

// statementOf is the statement with a hash that a stored text holds, maybe on several lines, and what its rows mean.
func statementOf(text, hash string) (statement, meaning string, ok bool) {
	_, rest, found := strings.Cut(text, statementMark)
	if at := strings.LastIndex(rest, askedMark); at >= 0 {
		rest = rest[:at]
	}
	if found && statementHash(rest) == hash {
		return rest, "", true
	}
	at := strings.LastIndex(rest, meaningMark)
	if !found || at < 0 || statementHash(rest[:at]) != hash {
		return "", "", false
	}
	return rest[:at], rest[at+len(meaningMark):], true
}

// bodyOf is what a stored text holds between its title and its marks.
func bodyOf(text string) string {
	_, body, _ := strings.Cut(text, "\n\n")
	for _, m := range []string{statementMark, askedMark} {
		if at := strings.Index(body, m); at >= 0 {
			body = body[:at]
		}
	}
	return body
}

// rowsIn are the rows of a body as they are written there.
func rowsIn(body, meaning string) []string {
	body = strings.TrimPrefix(body, "# "+meaning+"\n\n")
	if meaning != "" {
		first, lines, long := strings.Cut(body, ".\n\n")
		if !long {
			return strings.Split(strings.TrimSuffix(strings.TrimPrefix(first, meaning+": "), ".\n"), between)
		}
		body = lines
	}
	var out []string
	for line := range strings.Lines(body) {
		out = append(out, strings.TrimSuffix(strings.TrimSpace(line), "."))
	}
	return out
}

// The most of changes that is told.
const (
	maxChanges = 5
	maxChange  = 160 // characters
)

// differences are the changes from some rows to others, row by row where there are as many.
func differences(columns, was, now []string) []string {
	var out []string
	if len(was) == len(now) {
		for i := range was {
			if was[i] != now[i] {
				out = append(out, cellChanges(columns, was[i], now[i])...)
			}
		}
	} else {
		out = append(out, fmt.Sprintf("rows: %d → %d", len(was), len(now)))
		lacking := func(what string, rows, others []string) {
			for _, r := range rows {
				if !slices.Contains(others, r) {
					out = append(out, what+r)
				}
			}
		}
		lacking("gone: ", was, now)
		lacking("new: ", now, was)
	}
	if len(out) == 0 {
		out = append(out, "the order or the columns of the rows")
	}
	if n := len(out); n > maxChanges {
		out = append(out[:maxChanges], fmt.Sprintf("%d more changes", n-maxChanges))
	}
	for i := range out {
		out[i] = plaintext.Clip(out[i], maxChange)
	}
	return out
}

// cellChanges are the cells in which two rows differ. Rows that do not have the same columns are told whole.
func cellChanges(columns []string, was, now string) []string {
	a, b := cellsIn(columns, was), cellsIn(columns, now)
	if a == nil || b == nil {
		return []string{was + " → " + now}
	}
	var out []string
	for i := range columns {
		if a[i] != b[i] {
			out = append(out, columns[i]+": "+a[i]+" → "+b[i])
		}
	}
	return out
}

// cellsIn are the values of a row that is written as text; nil if it has not these columns.
func cellsIn(columns []string, row string) []string {
	rest, ok := strings.CutPrefix(row, columns[0]+": ")
	if !ok {
		return nil
	}
	var out []string
	for _, c := range columns[1:] {
		value, after, found := strings.Cut(rest, "; "+c+": ")
		if !found {
			return nil
		}
		out, rest = append(out, value), after
	}
	return append(out, rest)
}
