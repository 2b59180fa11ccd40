package database

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database/dbtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// patience is how long a hostile statement may take: the timeout of a statement
// and a little for a busy machine.
const patience = 2*time.Second + 500*time.Millisecond

// soon are caps for statements of which only the effect matters.
var soon = Options{Timeout: 300 * time.Millisecond}.withDefaults()

// hostileSQLite are statements that try to change a file, to make one, or to run
// for ever. DIR is a folder that must stay empty.
var hostileSQLite = []string{
	"ATTACH 'file:DIR/a.db?mode=rwc' AS a", "ATTACH DATABASE 'DIR/b.db' AS b", "VACUUM INTO 'DIR/c.db'", "VACUUM", "REINDEX",
	"PRAGMA query_only = 0", "PRAGMA writable_schema = 1", "PRAGMA journal_mode = WAL", "PRAGMA user_version = 7", "PRAGMA wal_checkpoint(TRUNCATE)",
	"SELECT load_extension('DIR/x.so')", "SELECT writefile('DIR/d', 'x')", "SELECT readfile('/etc/passwd')", "SELECT fts3_tokenizer('simple', x'00')",
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT max(i) FROM n",
	"SELECT count(*) FROM people a, people b, people c, people d, people e, people f, people g, people h, people i, people j, people k, people l, people m, people n, people o, people p, people q, people r, people s, people t, people u",
	"SELECT 1; DROP TABLE people", "SELECT 1; COMMIT; DROP TABLE people", "COMMIT; DROP TABLE people", "INSERT INTO people VALUES (9, 'x')", "UPDATE people SET name = 'x'", "DELETE FROM people",
	"WITH x AS (SELECT 1) DELETE FROM people", "WITH x AS (DELETE FROM people RETURNING *) SELECT * FROM x", "CREATE TABLE t AS SELECT * FROM people", "CREATE TEMP TRIGGER t INSERT ON people BEGIN SELECT 1; END",
	"DROP/**/TABLE people", "/* SELECT */ DROP TABLE people", "SELECT 1 --\n; DROP TABLE people", "ＤＲＯＰ TABLE people", "REPLACE INTO people VALUES (1, 'x')", "ALTER TABLE people RENAME TO p",
	"SELECT hex(zeroblob(900000000))", "SELECT printf('%900000000d', 1)", "SELECT replace(replace(replace('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','a','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'),'a','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'),'a','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
	"SELECT * FROM pragma_wal_checkpoint", "BEGIN IMMEDIATE", "EXPLAIN DELETE FROM people", "ANALYZE", "DETACH main", "SAVEPOINT s",
}

// hostilePostgres are the same for PostgreSQL.
var hostilePostgres = []string{
	"SELECT 1; DROP TABLE people", "COMMIT; DROP TABLE people", "SELECT 1; COMMIT; DROP TABLE people", "ROLLBACK; BEGIN; DELETE FROM people; COMMIT",
	"WITH x AS (DELETE FROM people RETURNING *) SELECT * FROM x", "WITH x AS (UPDATE people SET name = 'x' RETURNING *) SELECT * FROM x", "WITH x AS MATERIALIZED (INSERT INTO people VALUES (9, 'x') RETURNING *) TABLE x",
	"SELECT * INTO stolen FROM people", "CREATE TABLE stolen AS SELECT * FROM people", "COPY people TO '/DIR/a'", "COPY people TO PROGRAM 'cat > /DIR/b'", "COPY (SELECT 1) TO PROGRAM 'touch /DIR/c'", "COPY people FROM PROGRAM 'echo 9'",
	"SELECT lo_export(lo_from_bytea(0, 'x'), '/DIR/d')", "SELECT lo_import('/etc/passwd')", "SELECT lo_create(77)", "SELECT pg_read_file('/etc/passwd')", "SELECT pg_ls_dir('/')", "SELECT pg_catalog.pg_read_binary_file('/etc/passwd')",
	"SELECT pg_sleep(30)", "SELECT pg_catalog . pg_sleep (30)", `SELECT "pg_sleep"(30)`, `SELECT U&"\0070g_sleep"(30)`, "SELECT/**/pg_sleep/**/(30)", "SELECT pg_sleep_for('30 seconds')", "SELECT query_to_xml('SELECT pg_sleep(30)', true, true, '')",
	"DO $$ BEGIN DELETE FROM people; END $$", "CALL wipe()", "SELECT wipe_all()", "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000000000) b",
	"SELECT * FROM people FOR UPDATE", "SELECT * FROM people FOR KEY SHARE", "LOCK TABLE people", "SELECT nextval('people_id_seq')", "SELECT setval('people_id_seq', 999)",
	"SELECT set_config('transaction_read_only', 'off', false)", "SET SESSION AUTHORIZATION postgres", "RESET ROLE", "SET default_transaction_read_only = off", "SET TRANSACTION READ WRITE",
	"SELECT dblink('host=127.0.0.1', 'DROP TABLE people')", "SELECT * FROM dblink('host=127.0.0.1', 'SELECT 1') AS t(a int)", "SELECT pg_terminate_backend(1)", "SELECT pg_advisory_lock(1)", "SELECT pg_notify('a', 'b')", "NOTIFY a", "LISTEN a",
	"SELECT pg_reload_conf()", "SELECT pg_switch_wal()", "SELECT pg_create_restore_point('x')", "ALTER SYSTEM SET fsync = off", "CREATE EXTENSION dblink", "DROP TABLE people", "TRUNCATE people", "VACUUM FULL people", "REFRESH MATERIALIZED VIEW v",
	"EXPLAIN ANALYZE DELETE FROM people", "PREPARE p AS DELETE FROM people", "EXECUTE p", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "ＤＲＯＰ TABLE people", "SELECT 1 --\r; DROP TABLE people", "/* x */ DELETE FROM people",
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", "SELECT repeat('x', 1000000000)", "SELECT string_agg(a::text, '') FROM generate_series(1, 1000000000) AS a",
	"SELECT ts_stat('DELETE FROM people')", "SELECT pg_logical_emit_message(true, 'a', 'b')", "SELECT txid_current(); DROP TABLE people", "GRANT ALL ON people TO PUBLIC",
}

func TestHostileStatementsSQLite(t *testing.T) {
	path := dbtest.File(t, "people.db", people()...)
	out := t.TempDir()
	db := open(t, path)
	before := treeHash(t, filepath.Dir(path))
	mustFail(t, db, some(hostileSQLite), "DIR", out)
	unchanged(t, "the folder of the database", before, treeHash(t, filepath.Dir(path)))
	if made := treeHash(t, out); made != treeHash(t, t.TempDir()) {
		t.Error("a file was made")
	}
	t.Logf("%d hostile statements", len(some(hostileSQLite)))
}

// The wall of SQLite alone, without the lexer.
func TestSQLiteItselfRefuses(t *testing.T) {
	path := dbtest.File(t, "people.db", people()...)
	out := t.TempDir()
	db := open(t, path)
	before := treeHash(t, filepath.Dir(path))
	for _, s := range some(hostileSQLite) {
		_, _ = db.read(t.Context(), strings.ReplaceAll(s, "DIR", out), soon) // what it says does not matter here
	}
	unchanged(t, "the folder of the database", before, treeHash(t, filepath.Dir(path)))
	if made := treeHash(t, out); made != treeHash(t, t.TempDir()) {
		t.Error("a file was made")
	}
	if rows, err := db.Query(t.Context(), "SELECT count(*) FROM people"); err != nil || rows.Cells[0][0].Text != "3" {
		t.Errorf("afterwards: %v %v", rows, err)
	}
}

// Reading a file in WAL mode makes no files beside it.
func TestFilesInWALModeStayAlone(t *testing.T) {
	path := dbtest.File(t, "wal.db", append([]string{"PRAGMA journal_mode = WAL"}, people()...)...)
	before := treeHash(t, filepath.Dir(path))
	db := open(t, path)
	if rows, err := db.Query(t.Context(), "SELECT count(*) FROM people"); err != nil || rows.Cells[0][0].Text != "3" {
		t.Fatalf("%v %v", rows, err)
	}
	unchanged(t, "the folder of the database", before, treeHash(t, filepath.Dir(path)))
}

func TestHostileStatementsPostgres(t *testing.T) {
	s := dbtest.Postgres(t)
	out, err := os.MkdirTemp("", "hostile")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(out) })
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, dbtest.Admin, "CREATE ROLE owner LOGIN", "CREATE DATABASE trials OWNER owner")
	s.Exec(t, "trials", "SET ROLE owner; CREATE TABLE people (id serial PRIMARY KEY, name text NOT NULL); INSERT INTO people (name) VALUES ('Ann'), ('Bob'), ('Cid'); "+
		"CREATE MATERIALIZED VIEW v AS SELECT * FROM people; CREATE PROCEDURE wipe() LANGUAGE sql AS 'DELETE FROM people'; CREATE FUNCTION wipe_all() RETURNS void LANGUAGE sql AS 'DELETE FROM people'")
	s.Exec(t, "trials", "GRANT CREATE ON SCHEMA public TO owner")
	for _, user := range []string{dbtest.Admin, "owner"} {
		t.Run(user, func(t *testing.T) {
			db := open(t, s.URL(user, "trials"))
			before := postgresHash(t, db)
			mustFail(t, db, some(hostilePostgres), "/DIR", out)
			unchanged(t, "the database", before, postgresHash(t, db))
			// The server alone, without the lexer.
			for _, st := range some(hostilePostgres) {
				if strings.Contains(st, "advisory_lock") || strings.HasPrefix(st, "SELECT 1 --") {
					continue // harmless, and held until the connection ends
				}
				_, _ = db.read(t.Context(), strings.ReplaceAll(st, "/DIR", out), soon)
			}
			unchanged(t, "the database without the lexer", before, postgresHash(t, db))
			if made := treeHash(t, out); made != treeHash(t, t.TempDir()) {
				t.Error("a file was made")
			}
			if w := db.Warning(t.Context()); w == "" || strings.Contains(w, "@127.0.0.1") && !strings.Contains(w, "trials@127.0.0.1") {
				t.Errorf("no warning about a role that may write: %q", w)
			}
		})
	}
	t.Logf("%d hostile statements for each of two roles", len(hostilePostgres))
}

func TestHostileStatementsMariaDB(t *testing.T) {
	s := dbtest.MariaDB(t)
	s.Exec(t, "", "CREATE DATABASE trials")
	s.Exec(t, "trials", "CREATE TABLE people (id int AUTO_INCREMENT PRIMARY KEY, name text NOT NULL); INSERT INTO people (name) VALUES ('Ann'), ('Bob'), ('Cid'); CREATE PROCEDURE wipe() DELETE FROM people;"+
		" CREATE USER owner@'%'; GRANT ALL ON *.* TO owner@'%' WITH GRANT OPTION; CREATE FUNCTION wipe_all() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN DELETE FROM people; RETURN 1; END")
	db := open(t, s.URL("owner", "trials"))
	count := func() string {
		rows, err := db.catalog(t.Context(), "SELECT COUNT(*), MAX(id), (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()) FROM people")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(rows)
	}
	before := count()
	mustFail(t, db, []string{
		"SELECT 1; DROP TABLE people", "DELETE FROM people", "SELECT sleep(30)", "SELECT SLEEP (30)", "SELECT benchmark(100000000000, md5('x'))", "SELECT load_file('/etc/passwd')", "SELECT * FROM people INTO OUTFILE '/tmp/x'",
		"SELECT * INTO DUMPFILE '/tmp/x' FROM people", "SELECT get_lock('x', 100)", "SELECT * FROM people FOR UPDATE", "SELECT * FROM people LOCK IN SHARE MODE", "SELECT wipe_all()", "CALL wipe()", "SELECT @a := 1", "SELECT 1 INTO @a",
		"SELECT /*! sleep(30) */", "SELECT /*!50000 sleep(30) */", "SELECT /*M! sleep(30) */", "SELECT 1 #\n; DROP TABLE people", "DO sleep(30)", "HANDLER people OPEN", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE people", "SET GLOBAL x = 1",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n, n AS m, n AS o", "REPLACE INTO people VALUES (1, 'x')", "TRUNCATE people", "ALTER TABLE people ADD x int", "SELECT `sleep`(30)",
		"SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c, information_schema.columns d",
	}, "", "")
	unchanged(t, "the database", before, count())
	for _, st := range []string{"DELETE FROM people", "UPDATE people SET name = 'x'", "SELECT wipe_all()", "CALL wipe()", "SELECT sleep(30)"} {
		if rows, err := db.read(t.Context(), st, soon); err == nil {
			t.Errorf("without the lexer %q gave %v", st, rows)
		}
	}
	unchanged(t, "the database without the lexer", before, count())
	if db.Warning(t.Context()) == "" {
		t.Error("no warning about a user that may write")
	}
}

// some are the statements that are tried: a fourth of them every day, all in the whole form.
func some(statements []string) (out []string) {
	for i, s := range statements {
		if datatest.Tried(i, 4) {
			out = append(out, s)
		}
	}
	return out
}

// mustFail runs hostile statements, a few at once. Each has to end in time and with
// an error. In each, from stands for to.
func mustFail(t *testing.T, db *DB, statements []string, from, to string) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(maxConns)
	for _, s := range statements {
		if from != "" {
			s = strings.ReplaceAll(s, from, to)
		}
		g.Go(func() error {
			began := time.Now()
			rows, err := db.Query(t.Context(), s)
			if took := time.Since(began); took > patience {
				t.Errorf("%.80q took %s", s, took)
			}
			if err == nil {
				t.Errorf("%.80q gave %d rows", s, len(rows.Cells))
			}
			switch code := marchwarden.CodeOf(err); code {
			case "", marchwarden.CodeInvalid, marchwarden.CodeTimeout, marchwarden.CodeDenied, marchwarden.CodeMalformed:
			default:
				t.Errorf("%.80q: %s: %v", s, code, err)
			}
			return nil
		})
	}
	_ = g.Wait() // nothing returns an error
}

func open(t *testing.T, address string) *DB {
	t.Helper()
	db, err := Open(t.Context(), address, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func people() []string {
	return []string{"CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL)", "INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cid')"}
}

func unchanged(t *testing.T, what, before, after string) {
	t.Helper()
	if before != after {
		t.Errorf("%s changed", what)
	}
}

// treeHash is the hash of the names and contents of all files below a folder.
func treeHash(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(h, "%q %d %x\n", filepath.Base(path), len(content), sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// postgresHash is the hash of all that the statements could have changed.
func postgresHash(t *testing.T, db *DB) string {
	t.Helper()
	h := sha256.New()
	for _, q := range []string{
		"SELECT * FROM people ORDER BY id", "SELECT last_value, is_called FROM people_id_seq", "SELECT relname, relkind::text FROM pg_class ORDER BY oid", "SELECT rolname, rolsuper FROM pg_roles ORDER BY 1",
		"SELECT count(*) FROM pg_largeobject_metadata", "SELECT extname FROM pg_extension ORDER BY 1", "SELECT name, setting FROM pg_settings WHERE source = 'configuration file' ORDER BY 1", "SELECT relacl::text FROM pg_class WHERE relname = 'people'",
		"SELECT datname FROM pg_database ORDER BY 1",
	} {
		rows, err := db.catalog(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		fmt.Fprintf(h, "%q\n", rows)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// secretsPostgres are statements that ask for what only the server should know.
var secretsPostgres = []string{
	"SELECT * FROM pg_authid", "SELECT rolpassword FROM pg_catalog.pg_authid", `SELECT * FROM "pg_authid"`, "TABLE pg_authid", "SELECT passwd FROM pg_shadow", "SELECT passwd FROM PG_SHADOW",
	"WITH x AS (SELECT rolpassword FROM pg_authid) SELECT * FROM x", "SELECT (SELECT max(rolpassword) FROM pg_authid)", "SELECT * FROM people WHERE EXISTS (SELECT 1 FROM pg_authid a WHERE a.rolpassword LIKE 'S%')",
	"SELECT umoptions FROM pg_user_mapping", "SELECT * FROM pg_user_mappings", "SELECT * FROM information_schema.user_mapping_options", "SELECT * FROM information_schema._pg_user_mappings", "SELECT * FROM information_schema.foreign_server_options",
	"SELECT srvoptions FROM pg_foreign_server", "SELECT subconninfo FROM pg_subscription", "SELECT data FROM pg_largeobject", "SELECT * FROM pg_hba_file_rules", "SELECT * FROM pg_hba_file_rules()", "SELECT * FROM pg_settings", "SELECT * FROM pg_file_settings",
	"SELECT pg_read_file('/etc/passwd')", "SELECT * FROM pg_read_file('/etc/passwd')", "SELECT * FROM pg_stat_activity", "SELECT * FROM pg_stats", "SELECT * FROM pg_statistic", "SELECT * FROM pg_db_role_setting", "SELECT * FROM pg_stat_wal_receiver",
	"SELECT * FROM logins", "SELECT count(*) FROM logins WHERE passwd LIKE 'SCRAM%'", "SELECT * FROM servers", "SELECT * FROM rules",
}

// No role, not even a superuser, is shown passwords, keys and files, by name or by a
// view: neither by the lexer and the server together nor by the server alone.
func TestSecretsOfThePostgresServer(t *testing.T) {
	s := dbtest.Postgres(t)
	s.Exec(t, dbtest.Admin, "CREATE DATABASE trials", "CREATE ROLE reader LOGIN PASSWORD 'hunter2' IN ROLE pg_read_all_data, pg_monitor")
	s.Exec(t, "trials", "CREATE TABLE people (id serial PRIMARY KEY, name text); INSERT INTO people (name) VALUES ('Ann')", "CREATE VIEW logins AS SELECT usename, passwd FROM pg_shadow",
		"CREATE FOREIGN DATA WRAPPER far", "CREATE SERVER there FOREIGN DATA WRAPPER far OPTIONS (host 'hunter2')", "CREATE VIEW servers AS SELECT srvoptions FROM pg_foreign_server", "CREATE VIEW rules AS SELECT * FROM pg_hba_file_rules",
		"CREATE USER MAPPING FOR reader SERVER there OPTIONS (password 'hunter2')", "SELECT lo_from_bytea(0, 'hunter2')", "GRANT SELECT ON logins, servers, rules TO reader")
	for _, user := range []string{dbtest.Admin, "reader"} {
		db := open(t, s.URL(user, "trials"))
		for _, st := range secretsPostgres {
			if rows, err := db.Query(t.Context(), st); err == nil || marchwarden.HintOf(err) == "" && marchwarden.CodeOf(err) != marchwarden.CodeDenied {
				t.Errorf("%s: %s gives %v, %v", user, st, rows.Cells, err)
			}
			if rows, err := db.read(t.Context(), st, soon); err == nil && !strings.Contains(st, "pg_read_file('") {
				t.Errorf("%s: the server alone lets %s through: %v", user, st, rows.Cells)
			}
		}
		if rows, err := db.Query(t.Context(), "SELECT name, pg_typeof(name) FROM people"); err != nil || rows.Cells[0][0].Text != "Ann" {
			t.Errorf("%s: a table of the user's: %v, %v", user, rows, err)
		}
		if _, err := db.Query(t.Context(), "SELECT table_name FROM information_schema.tables"); err != nil {
			t.Errorf("%s: the list of tables: %v", user, err)
		}
		schema, err := db.Schema(t.Context())
		if err != nil || len(schema.Tables) != 1 || strings.Contains(fmt.Sprint(schema), "SCRAM") || strings.Contains(fmt.Sprint(schema), "hunter2") {
			t.Errorf("%s: the schema tells %v, %v", user, schema, err)
		}
	}
}

// The same of MariaDB, whose own databases are closed, and of SQLite.
func TestSecretsOfOtherServers(t *testing.T) {
	for st, d := range map[string]Dialect{
		"SELECT authentication_string FROM mysql.user": MySQL, "SELECT * FROM `mysql` . `global_priv`": MySQL, "SELECT * FROM MySQL.servers": MySQL, "SELECT * FROM information_schema.processlist": MySQL,
		"SELECT * FROM performance_schema.threads": MySQL, "SELECT * FROM sys.processlist": MySQL, "SELECT * FROM \"mysql\".\"user\"": MySQL,
		"SELECT * FROM pragma_database_list": SQLite, "SELECT * FROM sqlite_dbpage": SQLite, "SELECT * FROM sqlite_stat4": SQLite,
	} {
		if _, err := Check(st, d); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
			t.Errorf("%s: %v", st, err)
		}
	}
	for st, d := range map[string]Dialect{"SELECT table_name FROM information_schema.tables": MySQL, "SELECT name FROM sqlite_master": SQLite, "SELECT mysql FROM servers": MySQL} {
		if _, err := Check(st, d); err != nil {
			t.Errorf("%s: %v", st, err)
		}
	}
	if _, err := dial("mysql://root@127.0.0.1/mysql", Options{}); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
		t.Errorf("the database mysql: %v", err)
	}
}
