// Package database reads other people's databases and cannot change them. It owns
// the connections to PostgreSQL, MySQL, MariaDB and SQLite and their drivers, what
// is known of a schema, and the wall around a statement:
//
//   - a lexer of our own lets one SELECT, WITH, VALUES or TABLE statement through,
//     with functions of a list only (statement.go);
//   - the database itself is told to write nothing: a read-only transaction that is
//     always rolled back, or a file opened read-only (postgres.go, mysql.go, sqlite.go);
//   - time, rows and bytes are capped (query.go).
//
// Either of the first two is meant to hold alone. What rows mean is for others.
package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Dialect is the kind of SQL that a database speaks.
type Dialect string

// The dialects. MariaDB counts as MySQL.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgresql"
	MySQL    Dialect = "mysql"
)

// Options are the caps of every query. Zero fields have the defaults.
type Options struct {
	Timeout  time.Duration // of one statement; 2 s
	MaxRows  int           // of one answer; 200
	MaxBytes int           // of one answer, as text; 256 KiB

	own bool // the statement is this package's, and may read what is the server's own
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.MaxRows = cmp.Or(o.MaxRows, 200)
	o.MaxBytes = cmp.Or(o.MaxBytes, 256<<10)
	return o
}

const maxConns = 4

// DB is an open database that can only be read. It is safe for concurrent use. Its opener closes it.
type DB struct {
	wall    wall
	dialect Dialect
	name    string
	address string
	secret  []string // what no error may show
	opts    Options
}

// wall is a connection that changes nothing, as each dialect keeps to that. It is safe for concurrent use.
type wall interface {
	// read runs one statement in a transaction that is read-only and rolled back, and ends it with ctx.
	read(ctx context.Context, statement string, o Options) (Rows, error)
	// warn says for people what the database would let this user do; "" for nothing.
	warn(ctx context.Context, db *DB) string
	// tables reads the schema, in the order of the names.
	tables(ctx context.Context, db *DB) ([]Table, error)
	// explain says what an error of the driver means; nil, and a Message of "", leave the words to the caller.
	explain(err error) *marchwarden.Error
	close() error
}

// Open connects to the database at a URL and tries the connection:
//
//	postgres://user:password@host:port/name, postgresql://…
//	mysql://user:password@host:port/name, mariadb://…
//	sqlite:path, sqlite:///path, or a path that ends in .db, .sqlite or .sqlite3
//
// A URL that is none of these is CodeInvalid, a kind of database that is not read
// CodeUnsupported; a missing file is CodeNotFound, a refused login CodeDenied, a
// server that does not answer CodeUnavailable. No error holds the password.
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	db, err := dial(address, o.withDefaults())
	if err != nil {
		return nil, err
	}
	if err := db.ping(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// dial makes the DB of an address and connects to nothing yet.
func dial(address string, o Options) (*DB, error) {
	scheme, rest, ok := strings.Cut(address, ":")
	low := strings.ToLower(scheme)
	switch {
	case ok && (low == "postgres" || low == "postgresql"):
		return dialServer(address, o, dialPostgres)
	case ok && (low == "mysql" || low == "mariadb"):
		return dialServer(address, o, dialMySQL)
	case ok && (low == "sqlite" || low == "sqlite3"):
		path := strings.TrimPrefix(rest, "//") // of sqlite:path, sqlite://path and sqlite:///path
		if plain, err := url.PathUnescape(path); err == nil {
			path = plain
		}
		return dialSQLite(path, o)
	case ok && low == "duckdb", strings.HasSuffix(strings.ToLower(address), ".duckdb"):
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: "DuckDB files are not read by this program",
			Hint: "export the tables to SQLite: ATTACH 'out.db' AS out (TYPE sqlite), then CREATE TABLE out.t AS FROM t"}
	case IsFile(address):
		return dialSQLite(address, o)
	}
	return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "db", Message: "not the address of a database",
		Hint: "give postgres://…, mysql://…, sqlite:path, or the path of a file that ends in .db, .sqlite or .sqlite3"}
}

// IsFile reports whether an address is the bare path of a database file.
func IsFile(address string) bool {
	ext := strings.ToLower(filepath.Ext(address))
	return !strings.Contains(address, "://") && (ext == ".db" || ext == ".sqlite" || ext == ".sqlite3")
}

// dialServer reads the URL of a server. What the parser says of a bad one is not passed on: it quotes the password.
func dialServer(address string, o Options, dial func(*url.URL, Options) (*DB, error)) (*DB, error) {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "db", Message: "the address of the database is no URL",
			Hint: "write " + strings.SplitN(address, ":", 2)[0] + "://user:password@host/name, with %40 for @ and %2F for / in the password"}
	}
	return dial(u, o)
}

// serverName is a name for people: database and host, never the user.
func serverName(database, host, port, usual string) string {
	name := cmp.Or(database, "database") + "@" + cmp.Or(host, "localhost")
	if port != "" && port != usual {
		name += ":" + port
	}
	return name
}

// serverAddress is the address of a database on a server, without the user.
func serverAddress(scheme, host, port, database string) string {
	return Printable((&url.URL{Scheme: scheme, Host: net.JoinHostPort(cmp.Or(host, "localhost"), port), Path: "/" + database}).String())
}

// missingDatabase, refusedLogin and silent are what most often goes wrong first.
func missingDatabase(name string) *marchwarden.Error {
	return &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("the server has no database %q", name), Hint: "check the name at the end of the address"}
}

func refusedLogin(user string) *marchwarden.Error {
	return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: fmt.Sprintf("the server refuses the login of the user %q", user), Hint: "check the user and the password in the address"}
}

func silent(at string) *marchwarden.Error {
	return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "no database server answers at " + at, Hint: "check the host and the port, and that the server is running"}
}

// secrets are the spellings of the password in a URL.
func secrets(u *url.URL) []string {
	var out []string
	if p, ok := u.User.Password(); ok {
		out = append(out, p, url.QueryEscape(p), url.PathEscape(p))
		if _, raw, ok := strings.Cut(u.User.String(), ":"); ok {
			out = append(out, raw)
		}
	}
	for key, values := range u.Query() {
		if strings.Contains(strings.ToLower(key), "pass") {
			out = append(out, values...)
		}
	}
	return out
}

// Name is the database's name for people and for locators, such as
// "trials@localhost" or "trials.db". It never holds a credential.
func (d *DB) Name() string { return d.name }

// Address says where the database is: the full path of a file, or the address of a
// server with the name of the database. It never holds a user or a credential.
func (d *DB) Address() string { return d.address }

// Dialect is the kind of SQL that the database speaks.
func (d *DB) Dialect() Dialect { return d.dialect }

// Close closes the connections.
func (d *DB) Close() error { return d.wall.close() }

// Warning says for people what this user could do to the database, were it not
// for this package: a role that may write is more than reading needs. "" means
// nothing to say. It asks the database; a failure to find out is no warning.
func (d *DB) Warning(ctx context.Context) string {
	ctx, done := context.WithTimeout(ctx, d.opts.Timeout)
	defer done()
	return d.wall.warn(ctx, d)
}

// ping tries the connection and the read-only transaction.
func (d *DB) ping(ctx context.Context) error {
	patient := d.opts
	patient.Timeout = max(patient.Timeout, 10*time.Second) // it has to connect first
	_, err := d.read(ctx, "SELECT 1", patient)
	if err != nil && marchwarden.CodeOf(err) == marchwarden.CodeInvalid {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: err.Error(), Hint: marchwarden.HintOf(err)}
	}
	return err
}

// hide takes the password out of a driver's words.
func (d *DB) hide(s string) string {
	for _, secret := range d.secret {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "…")
		}
	}
	return s
}
