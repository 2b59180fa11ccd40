package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// sqliteWall keeps a file from being changed. ATTACH and VACUUM INTO get round mode=ro; with no database that may be
// attached both fail.
type sqliteWall struct {
	path  string
	pool  *sql.DB
	still *sql.DB // reads a file that no process has open: reading one in WAL mode otherwise makes files beside it
}

// sqliteLimits hold for every connection, beyond SQLite's own.
var sqliteLimits = map[int]int{
	sqlite3.SQLITE_LIMIT_ATTACHED:            0,
	sqlite3.SQLITE_LIMIT_LENGTH:              4 << 20,
	sqlite3.SQLITE_LIMIT_SQL_LENGTH:          64 << 10,
	sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          100,
	sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     50,
	sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
	sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
}

// dialSQLite opens the file at a path.
func dialSQLite(path string, o Options) (*DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "open the database %s", filepath.Base(path))
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: "there is no database file " + path, Hint: "check the path; a file is read, never made"}
	case err != nil:
		return nil, marchwarden.Wrap(err, marchwarden.CodeDenied, "open the database")
	case !info.Mode().IsRegular():
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "%s is no database file", path)
	}
	dsn := "file://" + (&url.URL{Path: filepath.ToSlash(abs)}).EscapedPath() +
		"?mode=ro&_defensive=1&_dqs=0&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)&_pragma=busy_timeout(500)"
	w := sqliteWall{path: abs}
	for _, open := range []struct {
		into **sql.DB
		dsn  string
	}{{&w.pool, dsn}, {&w.still, dsn + "&immutable=1"}} {
		db, err := sql.Open("sqlite", open.dsn)
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the database %s", filepath.Base(path))
		}
		// A connection lasts for one statement: the file may be used otherwise by the next.
		*open.into = bounded(db)
		db.SetMaxIdleConns(0)
	}
	return &DB{wall: w, dialect: SQLite, name: Printable(filepath.Base(abs)), address: Printable(abs), opts: o}, nil
}

// unused reports a file in WAL mode that no process has open: it has no log.
func unused(path string) bool {
	const mode = 18 // where the header says how the file is written; 2 is WAL
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // read-only
	var head [20]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || head[mode] != 2 {
		return false
	}
	_, err = os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist)
}

func (w sqliteWall) read(ctx context.Context, statement string, o Options) (Rows, error) {
	pool := w.pool
	if unused(w.path) {
		pool = w.still
	}
	return within(ctx, pool, w.begin, statement, o)
}

func (w sqliteWall) close() error { return errors.Join(w.pool.Close(), w.still.Close()) }

func (sqliteWall) begin(ctx context.Context, conn *sql.Conn, _ Options) (*sql.Tx, error) {
	for id, most := range sqliteLimits {
		if _, err := sqlite.Limit(conn, id, most); err != nil {
			return nil, fmt.Errorf("set a limit: %w", err)
		}
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = 1"); err != nil {
		return nil, err
	}
	return conn.BeginTx(ctx, nil)
}

func (sqliteWall) warn(context.Context, *DB) string { return "" }

func (sqliteWall) explain(err error) *marchwarden.Error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return nil
	}
	code := marchwarden.CodeUnavailable
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_INTERRUPT:
		code = marchwarden.CodeTimeout
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PERM:
		code = marchwarden.CodeDenied
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		code = marchwarden.CodeInvalid
	case sqlite3.SQLITE_TOOBIG:
		code = marchwarden.CodeMalformed
	}
	return &marchwarden.Error{Code: code}
}

func (sqliteWall) tables(ctx context.Context, db *DB) ([]Table, error) {
	list, err := db.catalog(ctx, `SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view', 'virtual')
		AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
	if err != nil {
		return nil, err
	}
	var cols, refs [][]string
	for _, r := range list {
		of, err := db.catalog(ctx, "SELECT '', "+Literal(r[0])+", "+Literal(r[1])+", 'true', name, type, pk - 1 FROM pragma_table_xinfo("+Literal(r[0])+") WHERE hidden IN (0, 2, 3) ORDER BY cid")
		if err != nil {
			continue // a view or virtual table that cannot be read here is not offered
		}
		to, err := db.catalog(ctx, `SELECT id, "table", "from", COALESCE("to", ''), '', `+Literal(r[0])+` FROM pragma_foreign_key_list(`+Literal(r[0])+`) ORDER BY id, seq`)
		if err != nil {
			return nil, err
		}
		cols, refs = append(cols, of...), append(refs, to...)
	}
	return assemble(cols, refs), nil
}
