package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The file on disk. Everything in it is derived from the folders, so a file of
// another version, or a damaged one, is started anew rather than migrated.
// Raise schemaVersion with every change of the tables, of chunking, of stems, or of
// the text that extraction gives for the same bytes.
//
//	folders   one row a folder; next is the number of its next document, state goes
//	          up by one with every change
//	docs      one row a file whose bytes were read. id = folder<<32 + number, so that
//	          one folder is one range of ids; the numbers of its chunks begin there.
//	          mtime 0 = compare by hash; hash = SHA-256 of the bytes, or, a byte
//	          longer, of that hash and the text where pages wait to be read another
//	          time; host = the declared origin or ''; note = why nothing of it can be found, or ''
//	texts     one row a chunk
//	segments  what package inverted makes of the chunks of a batch of files, or of
//	          several batches. Numbers in it are counted from first, and it has span
//	          of them; those that are no file in docs any more are not there. A segment
//	          never changes and its id is never used again
const schemaVersion = 8

// applicationID marks a file as ours ("MWLI"), so that a path that points at another program's
// database by mistake never destroys its data.
const applicationID = 0x4d574c49

var schema = []string{
	`CREATE TABLE folders (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, next INTEGER NOT NULL DEFAULT 0,
		state INTEGER NOT NULL DEFAULT 0, updated TEXT NOT NULL DEFAULT '') STRICT`,
	`CREATE TABLE docs (id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, name TEXT NOT NULL,
		size INTEGER NOT NULL, mtime INTEGER NOT NULL, hash BLOB NOT NULL, title TEXT NOT NULL, host TEXT NOT NULL,
		note TEXT NOT NULL, chunks INTEGER NOT NULL, UNIQUE (folder, name)) STRICT`,
	`CREATE TABLE texts (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT`,
	`CREATE TABLE segments (id INTEGER PRIMARY KEY AUTOINCREMENT, folder INTEGER NOT NULL, first INTEGER NOT NULL, span INTEGER NOT NULL,
		chunks INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (folder, first)) STRICT`,
	fmt.Sprintf("PRAGMA application_id = %d", applicationID),
	fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
}

// dsn makes the connection string of a file. A batch of writes takes at most a
// few seconds, which is how long others may have to wait for theirs.
func dsn(path, extra string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path // a Windows drive
	}
	return u.String() + "?_pragma=busy_timeout(15000)&_pragma=synchronous(normal)&_pragma=temp_store(memory)&_pragma=cache_size(-16000)" + extra
}

// connect opens the handles of ix and makes sure that the schema is there.
func (ix *Index) connect(ctx context.Context) (err error) {
	if ix.path == "" {
		ix.w, err = openPool(":memory:?_txlock=immediate", 1) // every connection would be another database
		ix.r = ix.w
	} else {
		if err := createPrivate(ix.path); err != nil {
			return err
		}
		if ix.w, err = openPool(dsn(ix.path, "&_txlock=immediate"), 1); err == nil {
			ix.r, err = openPool(dsn(ix.path, "&_pragma=query_only(1)"), 8)
		}
	}
	if err == nil {
		err = ix.setUp(ctx)
	}
	if err != nil {
		return errors.Join(err, ix.Close())
	}
	return nil
}

func openPool(dsn string, conns int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// createPrivate makes an empty file that only its owner can read; SQLite gives
// its side files the same mode. An existing file is not opened here: closing it
// would drop the locks other handles of this process hold on it.
func createPrivate(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create folder of the index: %w: %w", errPlace, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create index: %w: %w", errPlace, err)
	}
	return file.Close()
}

// setUp switches to write-ahead logging, under which readers and the writer do
// not wait for each other, and creates the tables unless they are there.
func (ix *Index) setUp(ctx context.Context) error {
	// Two processes that switch at once can block each other, and SQLite does not
	// wait then: it reports busy at once.
	for try := 0; ; try++ {
		_, err := ix.w.ExecContext(ctx, "PRAGMA journal_mode = wal")
		if err == nil {
			break
		}
		if primaryCode(err) != sqlite3.SQLITE_BUSY || try == 200 {
			return fmt.Errorf("set journal mode: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(25 * time.Millisecond):
		}
	}
	if ok, err := ix.isCurrent(ctx, ix.w); err != nil || ok {
		return err
	}
	tx, err := ix.w.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin set-up: %w", err)
	}
	defer tx.Rollback() // after Commit a no-op
	// Another process may have been faster.
	if ok, err := ix.isCurrent(ctx, tx); err != nil || ok {
		return err
	}
	for _, stmt := range schema {
		if _, err := tx.ExecContext(ctx, stmt); err != nil {
			return fmt.Errorf("create schema: %w", err)
		}
	}
	return tx.Commit()
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// isCurrent reports whether the tables are there. Those of another version are damaged,
// and a database of another program is CodeInvalid.
func (ix *Index) isCurrent(ctx context.Context, q querier) (bool, error) {
	var version, application, tables int
	err := q.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&version, &application, &tables)
	switch {
	case err != nil:
		return false, fmt.Errorf("read schema version: %w", err)
	case tables == 0:
		return false, nil
	case application != applicationID:
		return false, &marchwarden.Error{
			Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("cannot use %q as the library index: file is a database of another program", ix.path),
			Hint: "give the index a path of its own",
		}
	case version != schemaVersion:
		return false, fmt.Errorf("index of version %d: %w", version, inverted.ErrDamaged)
	}
	return true, nil
}

// primaryCode is SQLite's result code without its extension, or 0.
func primaryCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// damaged reports whether err says that the file is not a sound index of this version.
func damaged(err error) bool {
	code := primaryCode(err)
	return errors.Is(err, inverted.ErrDamaged) || code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

// Unwritable reports whether err of Open or Update says that an index cannot be written
// where it is: its disk is full, read-only or broken. One in memory can be. What is
// wrong with a folder that is indexed says nothing about that.
func Unwritable(err error) bool {
	switch primaryCode(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return true
	}
	return errors.Is(err, errPlace)
}

// errPlace is in the chain of an error about the folder of an index.
var errPlace = errors.New("it cannot be made there")

// marker is the file that tells the next Open that the index is damaged.
func (ix *Index) marker() string { return ix.path + ".damaged" }

// Damaged reports whether the index was found damaged while it was in use, and has to be
// opened again.
func (ix *Index) Damaged() bool {
	_, err := os.Stat(ix.marker())
	return ix.path != "" && err == nil
}

// startAnew replaces a file that is damaged or of another version by an empty one, unless another
// process did so first, and opens it. A lock keeps two from doing it at once.
func (ix *Index) startAnew(ctx context.Context) error {
	unlock, err := durable.LockFile(ix.path + ".lock")
	switch {
	case errors.Is(err, durable.ErrLocked):
		return fmt.Errorf("lock for repair: %w", err)
	case err != nil:
		return fmt.Errorf("lock for repair: %w: %w", errPlace, err)
	}
	defer unlock()
	ix.rebuilt = "it was made by another version of the program, or damaged"
	if err := ix.connect(ctx); err == nil && !ix.Damaged() || err != nil && !damaged(err) {
		return err // nil: repaired by another
	}
	if err := ix.Close(); err != nil {
		return err
	}
	// The side files go first: without them the damaged file is still damaged,
	// while a fresh file must never meet an old log.
	for _, name := range []string{ix.path + "-wal", ix.path + "-shm", ix.path, ix.marker()} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove index: %w: %w", errPlace, err)
		}
	}
	return ix.connect(ctx)
}

// coded gives every failure of the index a code: what the caller's context
// ended is cancelled, everything else makes the index unavailable. Damage leaves a mark
// that makes the next Open start the index anew. Here and now an empty index would only
// look like an answer.
func (ix *Index) coded(ctx context.Context, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return marchwarden.Wrap(errors.Join(ctxErr, err), marchwarden.CodeCanceled, format, args...)
	}
	if damaged(err) {
		if ix.path != "" {
			err = errors.Join(err, os.WriteFile(ix.marker(), nil, 0o600))
		}
		return &marchwarden.Error{
			Code: marchwarden.CodeUnavailable, Message: "the library index is damaged",
			Hint: "try again: the index is made anew", Err: err,
		}
	}
	var known *marchwarden.Error
	if errors.As(err, &known) {
		return err
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, format, args...)
}
