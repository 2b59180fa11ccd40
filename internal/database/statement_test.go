package database

import (
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"pgregory.net/rapid"
)

// everywhere are the dialects.
var everywhere = []Dialect{SQLite, Postgres, MySQL}

func TestStatementsThatRead(t *testing.T) {
	for _, s := range []string{
		"SELECT 1", "select * from t;", " SELECT a FROM t -- all of it\n ;; ", "VALUES (1), (2)", "(SELECT 1) UNION (SELECT 2)",
		`SELECT "into", 'insert into t; drop table t', "delete" FROM t WHERE x = 'it''s'`,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5), m AS (SELECT 1) SELECT * FROM n",
		"SELECT CASE WHEN count(*) > 1 THEN max(a) END, round(avg(b), 2) FROM t GROUP BY c HAVING count(*) > 1 ORDER BY 1 LIMIT 5",
		"SELECT replace(a, 'x', 'y'), lower(b) FROM t WHERE a IN (SELECT b FROM u) AND (c) NOT IN (1, 2)",
		"SELECT CAST(a AS numeric(10, 2)), row_number() OVER (PARTITION BY a ORDER BY b) FROM (SELECT 1 AS a, 2 AS b) AS t",
		"SELECT update_time, deleted FROM t WHERE comment = 'x' /* a comment */ AND call > 1e5",
		"SELECT t.a FROM t JOIN u USING (id) WHERE EXISTS (SELECT 1 FROM v)",
	} {
		for _, d := range everywhere {
			if _, err := Check(s, d); err != nil {
				t.Errorf("%s: %q: %v", d, s, err)
			}
		}
	}
	for s, d := range map[string]Dialect{
		"SELECT pg_catalog.lower(a), date_trunc('year', b), a::text, e'it\\'s' FROM t FETCH FIRST 5 ROWS ONLY": Postgres,
		"SELECT DISTINCT ON (a) lower(b) FROM t WHERE a ~ 'x' ORDER BY a":                                      Postgres,
		"SELECT [a b], typeof(c) FROM f WHERE f MATCH 'word'":                                                  SQLite,
		"SELECT `a`, DATE_FORMAT(b, '%Y') FROM t":                                                              MySQL,
		"TABLE t": Postgres,
	} {
		if _, err := Check(s, d); err != nil {
			t.Errorf("%s: %q: %v", d, s, err)
		}
	}
}

func TestStatementsThatDoMore(t *testing.T) {
	for _, s := range []string{
		"", ";", "  -- nothing", "DELETE FROM t", "INSERT INTO t VALUES (1)", "EXPLAIN ANALYZE DELETE FROM t", "BEGIN", "SET x = 1",
		"SELECT 1; DROP TABLE t", "SELECT 1;;SELECT 2", "SELECT 1)", "SELECT (1", "SELECT 'open", `SELECT "open`,
		"WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "WITH x AS (SELECT 1) DELETE FROM t", "WITH x AS (SELECT 1) INSERT INTO t SELECT 1",
		"SELECT * INTO u FROM t", "SELECT * FROM t FOR UPDATE", "SELECT * FROM t FOR NO KEY UPDATE", "SELECT * FROM t FOR\nSHARE",
		"SELECT made_up(1)", "SELECT public.lower('x')", `SELECT "Lower"('x')`, `SELECT "made_up" ('x')`, "SELECT made_up/* */(1)", "SELECT made_up\t\n(1)",
		"SELECT 1 --\r, made_up(1)\n, 2", "SELECT /*! made_up(1), */ 2", "SELECT /*+ x */ 2", "SELECT /* /* */ made_up(1) /* */ */ 2",
		"SELECT 'a' 'b'", "SELECT U&\"\\006dade\"(1)", "SELECT u&'x'", "SELECT @x := 1", "SELECT 1\x00", "SELECT \xff",
		"SELECT * FROM a, dblink(b) AS (c int)", "SELECT * FROM dblink('x') AS t(c int)", "SELECT 1 \\; SELECT 2",
		"SELECT load_extension('x')", "SELECT DISTINCT ON (a) pg_sleep(5) FROM t", "SELECT ｐｇ_sleep(1)", strings.Repeat("SELECT 1 ", 5000),
	} {
		for _, d := range everywhere {
			if got, err := Check(s, d); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
				t.Errorf("%s: %.60q gave %q, %v", d, s, got, err)
			}
		}
	}
	for s, d := range map[string]Dialect{
		"SELECT $$x$$": Postgres, "SELECT E'a'\n'b\\'', pg_sleep(5), '' FROM t": Postgres, "SELECT 1 --1": MySQL, "SELECT 1 LOCK IN SHARE MODE": MySQL,
		"SELECT sleep(5)": MySQL, "SELECT * FROM pragma_table_info('t')": SQLite, "SELECT zeroblob(1000000000)": SQLite,
	} {
		if got, err := Check(s, d); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%s: %q gave %q, %v", d, s, got, err)
		}
	}
}

// Whatever the text, the check ends, and what it lets through it lets through
// again, unchanged.
func TestCheckIsStable(t *testing.T) {
	piece := rapid.SampledFrom([]string{"SELECT", "WITH", " ", "\n", "(", ")", "'", `"`, "--", "/*", "*/", ";", "a", "1", ",", "AS", "lower", "drop", "E'", "\\", "$$", "[", "]", "`", "#", "é"})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(piece, 0, 25).Draw(t, "pieces"), "")
		d := rapid.SampledFrom(everywhere).Draw(t, "dialect")
		once, err := Check(s, d)
		if err != nil {
			return
		}
		if again, err := Check(once, d); err != nil || again != once {
			t.Fatalf("%q became %q, then %q, %v", s, once, again, err)
		}
	})
}

func TestNames(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://ann:se%40cret@db.example/trials":       "trials@db.example",
		"postgresql://ann:secret@localhost:5433/trials":    "trials@localhost:5433",
		"mysql://ann:secret@127.0.0.1/shop":                "shop@127.0.0.1",
		"mariadb://ann:secret@h:3307/shop?tls=skip-verify": "shop@h:3307",
		"postgres:///trials?host=/tmp&password=secret":     "trials@localhost",
	} {
		db, err := dial(address, Options{}.withDefaults())
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if db.Name() != want {
			t.Errorf("%s is called %q, want %q", address, db.Name(), want)
		}
		if said := db.hide("login with se@cret, se%40cret or secret failed"); strings.Contains(said, "secret") && !strings.Contains(address, "se%40cret") || strings.Contains(address, "se%40cret") && (strings.Contains(said, "se@cret") || strings.Contains(said, "se%40cret")) {
			t.Errorf("%s: %q", address, said)
		}
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	for address, want := range map[string]marchwarden.Code{
		"duckdb:trials.duckdb": marchwarden.CodeUnsupported, "trials.duckdb": marchwarden.CodeUnsupported,
		"": marchwarden.CodeInvalid, "notes.txt": marchwarden.CodeInvalid, "oracle://a:secret@h/x": marchwarden.CodeInvalid,
		"postgres://a:se cret%zz@h/x": marchwarden.CodeInvalid, "mysql://a:secret@h/x?allowAllFiles=true": marchwarden.CodeInvalid,
		"postgres://a:secret@h:bad/x": marchwarden.CodeInvalid, "/no/such/file.db": marchwarden.CodeNotFound, "sqlite:///no/such.db": marchwarden.CodeNotFound,
	} {
		_, err := Open(t.Context(), address, Options{})
		if marchwarden.CodeOf(err) != want {
			t.Errorf("%q: %v, want %s", address, err, want)
		}
		if err != nil && strings.Contains(err.Error()+marchwarden.HintOf(err), "cret") {
			t.Errorf("%q: the error tells the password: %v", address, err)
		}
	}
}
