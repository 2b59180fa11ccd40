package database

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database/dbtest"
)

// texts are the cells of the first row.
func texts(t *testing.T, db *DB, statement string) string {
	t.Helper()
	rows, err := db.Query(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var out []string
	for _, c := range rows.Cells[0] {
		out = append(out, c.Text)
	}
	return strings.Join(out, " | ")
}

func TestValuesSQLite(t *testing.T) {
	db := open(t, dbtest.File(t, "v.db", "CREATE TABLE v (i INTEGER, f REAL, s TEXT, b BLOB, d DATE, ts TIMESTAMP, n TEXT)",
		"INSERT INTO v VALUES (9007199254740993, 0.1, 'a'||char(10)||'b'||char(27)||'[1m', x'00ff10', '2024-02-29', '2024-02-29 10:11:12', NULL)"))
	want := "9007199254740993 | 0.1 | a b [1m | [3 bytes] | 2024-02-29 | 2024-02-29T10:11:12Z | null"
	if got := texts(t, db, "SELECT * FROM v"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := texts(t, db, "SELECT 1e21, 1.0, 100000.5, 1e-9"); got != "1e+21 | 1 | 100000.5 | 1e-09" {
		t.Error(got)
	}
}

func TestServersPostgres(t *testing.T) {
	s := dbtest.Postgres(t)
	s.Exec(t, dbtest.Admin, "CREATE ROLE reader LOGIN", "CREATE DATABASE d")
	s.Exec(t, "d", `CREATE SCHEMA side; CREATE TABLE side.notes (id int PRIMARY KEY, body text);
		CREATE TABLE makers (id int PRIMARY KEY, name text); CREATE TABLE drugs (id uuid PRIMARY KEY, maker_id int REFERENCES makers (id), name varchar(20), price numeric(10, 2), made timestamptz, day date, ok boolean, raw bytea, tags text[], doc jsonb);
		INSERT INTO makers VALUES (1, 'Bayer'); INSERT INTO drugs VALUES ('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 1, 'Aspirin', 3.50, '2024-02-29 10:11:12+02', '2024-02-29', true, '\x00ff', '{a,b}', '{"a": 1}');
		CREATE VIEW cheap AS SELECT name FROM drugs WHERE price < 10; CREATE TABLE secret (id int); GRANT USAGE ON SCHEMA side TO reader; GRANT SELECT ON makers, drugs, cheap, side.notes TO reader`)
	for _, user := range []string{dbtest.Admin, "reader"} {
		db := open(t, s.URL(user, "d"))
		want := "6ba7b810-9dad-11d1-80b4-00c04fd430c8 | 1 | Aspirin | 3.5 | 2024-02-29T08:11:12Z | 2024-02-29 | true | [2 bytes] | {a,b} | {\"a\": 1}"
		if got := texts(t, db, "SELECT * FROM drugs"); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		schema, err := db.Schema(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tb := range schema.Tables {
			names = append(names, tb.Display())
			if tb.Name == "drugs" {
				if d := cmp.Diff([]Ref{{Columns: []string{"maker_id"}, Table: "makers", To: []string{"id"}}}, tb.Refs); d != "" || !cmp.Equal(tb.Key, []string{"id"}) || tb.Rows != 1 {
					t.Errorf("drugs: %+v %s", tb, d)
				}
			}
		}
		tables := "cheap drugs makers side.notes"
		if user == dbtest.Admin {
			tables = "cheap drugs makers secret side.notes"
		}
		if got := strings.Join(names, " "); got != tables {
			t.Errorf("%s sees %s, want %s", user, got, tables)
		}
		rows, err := db.Query(t.Context(), "SELECT * FROM generate_series(1, 100000)")
		if err != nil || len(rows.Cells) != 200 || !rows.Truncated {
			t.Errorf("a long answer: %d rows, %v, %v", len(rows.Cells), rows.Truncated, err)
		}
		if got := texts(t, db, "SELECT count(*) FROM makers"); got != "1" {
			t.Errorf("afterwards: %s", got)
		}
		if w := db.Warning(t.Context()); (w == "") != (user == "reader") {
			t.Errorf("warning for %s: %q", user, w)
		}
	}
	reader := open(t, s.URL("reader", "d"))
	if _, err := reader.Query(t.Context(), "SELECT * FROM secret"); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
		t.Errorf("a table without a grant: %v", err)
	}
	for address, want := range map[string]struct {
		code marchwarden.Code
		said string
	}{
		s.URL("nobody_there", "d"):                {marchwarden.CodeDenied, `the server refuses the login of the user "nobody_there"`},
		s.URL("reader", "no_such"):                {marchwarden.CodeNotFound, `the server has no database "no_such"`},
		"postgres://ann:b@127.0.0.1:1/d":          {marchwarden.CodeUnavailable, "no database server answers at postgres://127.0.0.1:1/d"},
		"mysql://ann:b@127.0.0.1:1/d":             {marchwarden.CodeUnavailable, "no database server answers at 127.0.0.1:1"},
		s.URL("reader", "d") + "?sslmode=require": {marchwarden.CodeUnavailable, "the server and this program do not agree on TLS"},
	} {
		_, err := Open(t.Context(), address, Options{})
		if marchwarden.CodeOf(err) != want.code || !strings.HasSuffix(err.Error(), ": "+want.said) || strings.Count(err.Error(), ": ") != 1 || marchwarden.HintOf(err) == "" {
			t.Errorf("%s: %v (%s), want %s", address, err, marchwarden.HintOf(err), want.said)
		}
	}
	if _, err := Open(t.Context(), s.URL("reader", "no_such"), Options{}); marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
		t.Errorf("a database that is not there: %v", err)
	}
	cancelled(t, reader, "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000) b")
}

func TestServersMariaDB(t *testing.T) {
	s := dbtest.MariaDB(t)
	s.Exec(t, "", "CREATE DATABASE d; CREATE USER reader@'%'; GRANT SELECT ON d.* TO reader@'%'")
	s.Exec(t, "d", `CREATE TABLE makers (id int PRIMARY KEY, name text); CREATE TABLE drugs (id int PRIMARY KEY, maker_id int, name varchar(20), price decimal(10, 2), made datetime, day date, raw blob, FOREIGN KEY (maker_id) REFERENCES makers (id));
		INSERT INTO makers VALUES (1, 'Bayer'); INSERT INTO drugs VALUES (7, 1, 'Aspirin', 3.50, '2024-02-29 10:11:12', '2024-02-29', x'00ff')`)
	db := open(t, s.URL("reader", "d"))
	if got := texts(t, db, "SELECT * FROM drugs"); got != "7 | 1 | Aspirin | 3.5 | 2024-02-29T10:11:12Z | 2024-02-29 | [2 bytes]" {
		t.Error(got)
	}
	if got := texts(t, db, `SELECT '\', "name" FROM "drugs"`); got != `\ | Aspirin` {
		t.Error(got)
	}
	schema, err := db.Schema(t.Context())
	if err != nil || len(schema.Tables) != 2 || !cmp.Equal(schema.Tables[0].Refs, []Ref{{Columns: []string{"maker_id"}, Table: "makers", To: []string{"id"}}}) || !cmp.Equal(schema.Tables[0].Key, []string{"id"}) {
		t.Errorf("%+v %v", schema, err)
	}
	if w := db.Warning(t.Context()); w != "" {
		t.Errorf("warning for a reader: %s", w)
	}
	cancelled(t, db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT COUNT(*) FROM n a, n b, n c, n d")
}

func TestSchemaSQLite(t *testing.T) {
	db := open(t, dbtest.File(t, "s.db", "CREATE TABLE makers (id INTEGER PRIMARY KEY, name TEXT)", "CREATE TABLE drugs (a TEXT, b INT, maker INTEGER REFERENCES makers, loose, PRIMARY KEY (b, a))",
		"CREATE VIEW v AS SELECT name FROM makers", "CREATE VIRTUAL TABLE f USING fts5(body)", "INSERT INTO makers VALUES (2, 'Bayer'), (1, 'Acme')", "INSERT INTO drugs VALUES ('x', 1, 2, 3.5)"))
	schema, err := db.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Table{
		{Name: "drugs", Columns: []Column{{"a", "text", Text, []string{"x"}}, {"b", "int", Number, nil}, {"maker", "integer", Number, nil}, {"loose", "", Number, nil}}, Key: []string{"b", "a"},
			Refs: []Ref{{Columns: []string{"maker"}, Table: "makers", To: []string{"id"}}}, Rows: 1},
		{Name: "f", Search: true, Columns: []Column{{"body", "", Text, nil}}},
		{Name: "makers", Columns: []Column{{"id", "integer", Number, nil}, {"name", "text", Text, []string{"Acme", "Bayer"}}}, Key: []string{"id"}, Rows: 2},
		{Name: "v", View: true, Columns: []Column{{"name", "text", Text, []string{"Acme", "Bayer"}}}, Rows: 2},
	}
	if d := cmp.Diff(want, schema.Tables, cmp.AllowUnexported(Table{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestCaps(t *testing.T) {
	path := dbtest.File(t, "c.db", "CREATE TABLE t (s TEXT)", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t SELECT hex(zeroblob(4000)) FROM n")
	db := open(t, path)
	rows, err := db.Query(t.Context(), "SELECT * FROM t")
	if err != nil || !rows.Truncated || len(rows.Cells) > 80 {
		t.Errorf("%d rows, truncated %v, %v", len(rows.Cells), rows.Truncated, err)
	}
	if n := len(rows.Cells[0][0].Text); n > maxCell+8 {
		t.Errorf("a cell of %d bytes", n)
	}
	small, err := Open(t.Context(), path, Options{MaxRows: 3, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if rows, err := small.Query(t.Context(), "SELECT 1 FROM t"); err != nil || len(rows.Cells) != 3 || !rows.Truncated {
		t.Errorf("%d rows, %v", len(rows.Cells), err)
	}
	if rows, err := small.Query(t.Context(), "SELECT 1 FROM t LIMIT 3"); err != nil || rows.Truncated {
		t.Errorf("all rows are there: %v %v", rows.Truncated, err)
	}
}

func TestCancellationSQLite(t *testing.T) {
	cancelled(t, open(t, dbtest.File(t, "people.db", people()...)), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
}

// cancelled ends running statements, several at once, and continues with others.
func cancelled(t *testing.T, db *DB, statement string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	began := time.Now()
	for range 6 {
		wg.Go(func() {
			if _, err := db.Query(ctx, statement); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
				t.Errorf("a statement that was cancelled: %v", err)
			}
		})
	}
	time.Sleep(150 * time.Millisecond)
	stop()
	wg.Wait()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("cancelling took %s", took)
	}
	if rows, err := db.Query(t.Context(), "SELECT 1"); err != nil || rows.Cells[0][0].Text != "1" {
		t.Errorf("afterwards: %v", err)
	}
}
