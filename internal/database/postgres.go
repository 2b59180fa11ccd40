package database

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// postgresWall keeps a PostgreSQL server from being changed: a read-only transaction with time limits, one statement a
// message. A superuser, whom that does not keep from files and programs, takes the rights of a role that may only read.
type postgresWall struct {
	cfg   *pgconn.Config
	slots chan struct{}       // one for each connection that is open or being opened
	idle  chan *pgconn.PgConn // open and unused
	super atomic.Bool         // the user is a superuser
	shut  atomic.Bool         // what is in use is closed afterwards, not kept
}

// maxMessage is the longest message that a server may send, in bytes.
const maxMessage = 8 << 20

func dialPostgres(u *url.URL, o Options) (*DB, error) {
	cfg, err := pgconn.ParseConfig(u.String())
	if err != nil { // its words may quote the URL
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "db", Message: "the address of the PostgreSQL database has a part that is not understood",
			Hint: "write postgres://user:password@host:port/name?sslmode=require"}
	}
	cfg.MaxProtocolMessageBodyLen = maxMessage
	cfg.RuntimeParams["application_name"] = "marchwarden"
	cfg.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	return &DB{
		wall:    &postgresWall{cfg: cfg, slots: make(chan struct{}, maxConns), idle: make(chan *pgconn.PgConn, maxConns)},
		dialect: Postgres, opts: o, secret: append(secrets(u), cfg.Password),
		name:    Printable(serverName(cfg.Database, hostOf(cfg.Host), strconv.Itoa(int(cfg.Port)), "5432")),
		address: serverAddress("postgres", hostOf(cfg.Host), strconv.Itoa(int(cfg.Port)), cfg.Database),
	}, nil
}

// hostOf is a host for people; a folder with a socket is this machine.
func hostOf(host string) string {
	if strings.HasPrefix(host, "/") {
		return "localhost"
	}
	return host
}

// read uses a connection of the pool. One on which anything went wrong, or whose answer was not read, is closed.
func (w *postgresWall) read(ctx context.Context, statement string, o Options) (Rows, error) {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return Rows{}, ctx.Err()
	}
	defer func() { <-w.slots }()
	conn, err := w.conn(ctx)
	if err != nil {
		return Rows{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	rows, err := w.inside(ctx, conn, statement, o, stop)
	if !conn.IsClosed() && conn.Exec(ctx, "ROLLBACK").Close() == nil && conn.TxStatus() == 'I' && !w.shut.Load() {
		select {
		case w.idle <- conn:
			return rows, err
		default:
		}
	}
	stop()
	_ = conn.Close(ctx) // it is of no more use
	return rows, err
}

// conn is an idle connection that still stands, or a new one.
func (w *postgresWall) conn(ctx context.Context) (*pgconn.PgConn, error) {
	for {
		select {
		case c := <-w.idle:
			if c.Ping(ctx) == nil {
				return c, nil
			}
			_ = c.Close(ctx)
		default:
			return pgconn.ConnectConfig(ctx, w.cfg)
		}
	}
}

// inside opens the transaction and runs the statement in it. stop ends the statement in the server.
func (w *postgresWall) inside(ctx context.Context, conn *pgconn.PgConn, statement string, o Options, stop func()) (Rows, error) {
	ms := strconv.FormatInt(o.Timeout.Milliseconds(), 10)
	super := conn.ParameterStatus("is_superuser") == "on"
	begin := "BEGIN READ ONLY; SET LOCAL statement_timeout = " + ms + "; SET LOCAL lock_timeout = " + ms +
		"; SET LOCAL idle_in_transaction_session_timeout = " + strconv.FormatInt(2*o.Timeout.Milliseconds()+1000, 10) +
		"; SET LOCAL default_transaction_read_only = on; SET LOCAL standard_conforming_strings = on; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'" +
		"; SET LOCAL bytea_output = 'hex'; SET LOCAL IntervalStyle = 'postgres'; SET LOCAL extra_float_digits = 1"
	if super {
		w.super.Store(true)
		major, _, _ := strings.Cut(conn.ParameterStatus("server_version"), ".")
		if n, err := strconv.Atoi(major); err == nil && n >= 14 { // it has a role that may read everything and do nothing else
			begin += "; SET LOCAL ROLE pg_read_all_data"
		}
	}
	if err := conn.Exec(ctx, begin).Close(); err != nil {
		return Rows{}, err
	}
	if !o.own {
		if err := withholds(ctx, conn, statement); err != nil {
			return Rows{}, err
		}
	}
	// The extended protocol takes one statement a message; results come as text.
	return receive(conn.ExecParams(ctx, statement, nil, nil, nil, nil), o, stop)
}

// guarded are the catalogs with passwords, keys, files and values of tables that the role may not read.
var guarded = set(`pg_authid pg_user_mapping pg_subscription pg_foreign_server pg_foreign_data_wrapper pg_foreign_table pg_largeobject
	pg_statistic pg_statistic_ext_data pg_db_role_setting pg_dist_authinfo pg_dist_poolinfo`)

// withholds asks the server what a statement would read, views looked through, and refuses one that reads what is
// guarded: a superuser, and the role that may read everything, could.
func withholds(ctx context.Context, conn *pgconn.PgConn, statement string) error {
	plan := conn.ExecParams(ctx, "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) "+statement, nil, nil, nil, nil).Read()
	var nodes any
	if plan.Err == nil && (len(plan.Rows) != 1 || json.Unmarshal(plan.Rows[0][0], &nodes) != nil) {
		return marchwarden.Errorf(marchwarden.CodeMalformed, "the server does not say what the statement reads")
	}
	if name := guardedIn(nodes); name != "" {
		return withheld(name)
	}
	return plan.Err
}

// guardedIn is the first name in a plan of what is guarded, or "".
func guardedIn(node any) string {
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			if name := guardedIn(n); name != "" {
				return name
			}
		}
	case map[string]any:
		schema, _ := node["Schema"].(string)
		table, _ := node["Relation Name"].(string)
		function, _ := node["Function Name"].(string)
		switch {
		case schema == "pg_toast", schema == "pg_catalog" && guarded[table]:
			return table
		case strings.HasPrefix(function, "pg_"), schema == "pg_catalog" && function != "" && !functions[function] && !own[Postgres][function]:
			return function
		}
		return guardedIn(slices.Collect(maps.Values(node)))
	}
	return ""
}

func receive(result *pgconn.ResultReader, o Options, stop func()) (Rows, error) {
	var out Rows
	size := 0
	for result.NextRow() {
		if out.Truncated = len(out.Cells) >= o.MaxRows || size >= o.MaxBytes; out.Truncated {
			break
		}
		fields := result.FieldDescriptions()
		row := make([]Cell, len(fields))
		for i, v := range result.Values() {
			row[i] = postgresCell(v, fields[i].DataTypeOID)
			size += len(row[i].Text)
		}
		out.Cells = append(out.Cells, row)
	}
	for _, f := range result.FieldDescriptions() { // known with the first row at the latest
		out.Columns = append(out.Columns, Printable(f.Name))
	}
	if out.Truncated {
		stop()
		_, _ = result.Close() // stopped on purpose
		return out, nil
	}
	_, err := result.Close()
	return out, err
}

// The object ids of types whose text is written anew.
const (
	oidBool, oidBytea                 = 16, 17
	oidInt8, oidInt2, oidInt4, oidOID = 20, 21, 23, 26
	oidFloat4, oidFloat8, oidNumeric  = 700, 701, 1700
	oidTimestamp, oidTimestampTZ      = 1114, 1184
)

// postgresCell writes a value that the server sent as text.
func postgresCell(v []byte, oid uint32) Cell {
	if v == nil {
		return Cell{Text: "null", Null: true}
	}
	s := string(v)
	switch oid {
	case oidBool:
		return Cell{Text: strconv.FormatBool(s == "t")}
	case oidBytea:
		return Cell{Text: "[" + strconv.Itoa(max(0, len(s)-2)/2) + " bytes]"}
	case oidInt8, oidInt2, oidInt4, oidOID, oidNumeric:
		return textCell(s, true)
	case oidFloat4, oidFloat8:
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return Cell{Text: float(f), Number: true}
		}
	case oidTimestamp, oidTimestampTZ:
		for _, layout := range []string{"2006-01-02 15:04:05.999999-07", "2006-01-02 15:04:05.999999"} {
			if t, err := time.Parse(layout, s); err == nil {
				return Cell{Text: moment(t, "")}
			}
		}
	}
	return Cell{Text: Printable(s)}
}

func (w *postgresWall) close() error {
	w.shut.Store(true)
	const patience = time.Second
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	var errs []error
	for {
		select {
		case c := <-w.idle:
			errs = append(errs, c.Close(ctx))
		default:
			return errors.Join(errs...)
		}
	}
}

func (w *postgresWall) warn(ctx context.Context, db *DB) string {
	if w.super.Load() {
		return "the role of " + db.name + " is a superuser; a role that may only read is safer"
	}
	rows, err := db.catalog(ctx, `SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%'
		AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')`)
	if err != nil || len(rows) == 0 || rows[0][0] == "0" {
		return ""
	}
	return "the role of " + db.name + " may write to " + rows[0][0] + " tables; a role that may only read is safer"
}

func (w *postgresWall) explain(err error) *marchwarden.Error {
	if _, long := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); long {
		return &marchwarden.Error{Code: marchwarden.CodeMalformed}
	}
	connect, failed := errors.AsType[*pgconn.ConnectError](err)
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(e.Code) != 5 {
		if _, dial := errors.AsType[*net.OpError](err); failed && dial {
			return silent(serverAddress("postgres", hostOf(w.cfg.Host), strconv.Itoa(int(w.cfg.Port)), w.cfg.Database))
		}
		if failed {
			return unconnected(connect.Unwrap())
		}
		return nil
	}
	switch {
	case e.Code == "57014", e.Code == "55P03", e.Code == "25P03":
		return &marchwarden.Error{Code: marchwarden.CodeTimeout}
	case e.Code == "3D000":
		return missingDatabase(w.cfg.Database)
	case strings.HasPrefix(e.Code, "28"):
		return refusedLogin(w.cfg.User)
	case e.Code == "42501", e.Code == "25006":
		return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: e.Message}
	}
	switch e.Code[:2] {
	case "42", "22", "21", "54", "0A", "2F", "25":
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: e.Message}
	}
	return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: e.Message}
}

// unconnected says why there is no connection: the last of the tries, without the addresses that were tried.
func unconnected(err error) *marchwarden.Error {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	why := lines[len(lines)-1]
	if at := strings.LastIndex(why, "): "); at >= 0 {
		why = why[at+3:]
	}
	if strings.Contains(strings.ToLower(why), "tls") {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the server and this program do not agree on TLS", Hint: "sslmode in the address says what is wanted: disable, prefer, require or verify-full"}
	}
	return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "cannot connect to the server: " + why}
}

func (*postgresWall) tables(ctx context.Context, db *DB) ([]Table, error) {
	cols, err := db.catalog(ctx, `SELECT n.nspname, c.relname, c.relkind::text, pg_table_is_visible(c.oid)::text, a.attname, format_type(a.atttypid, a.atttypmod),
			COALESCE(array_position(i.indkey::int2[], a.attnum), -1)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%'
			AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
		ORDER BY n.nspname, c.relname, a.attnum`)
	if err != nil {
		return nil, err
	}
	refs, err := db.catalog(ctx, `SELECT k.conname || '.' || k.conrelid::text, f.relname, a.attname, b.attname, n.nspname, c.relname
		FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_class f ON f.oid = k.confrelid
		CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS u(x, y, z)
		JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.x JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = u.y
		WHERE k.contype = 'f' ORDER BY n.nspname, c.relname, k.conname, u.z`)
	if err != nil {
		return nil, err
	}
	return assemble(cols, refs), nil
}

// assemble makes tables of columns (schema, table, kind, whether the bare name finds it, column, type, place in the key
// from 0 or -1) and references (name, table referred to, column, column there, schema, table).
func assemble(cols, refs [][]string) []Table {
	var out []Table
	var places [][]string // per table: the key's columns by place
	for _, r := range cols {
		if n := len(out); n == 0 || out[n-1].space != r[0] || out[n-1].Name != r[1] {
			t := Table{space: r[0], Name: r[1], View: r[2] == "v" || r[2] == "m" || r[2] == "view", Search: r[2] == "virtual"}
			if r[3] != "true" {
				t.Schema = r[0]
			}
			out, places = append(out, t), append(places, nil)
		}
		t := &out[len(out)-1]
		t.Columns = append(t.Columns, Column{Name: r[4], Type: strings.ToLower(r[5])})
		if at, err := strconv.Atoi(r[6]); err == nil && at >= 0 && at < 16 {
			p := &places[len(out)-1]
			for len(*p) <= at {
				*p = append(*p, "")
			}
			(*p)[at] = r[4]
		}
	}
	for i := range out {
		t := &out[i]
		t.Key = slices.DeleteFunc(places[i], func(name string) bool { return name == "" })
		last := ""
		for _, r := range refs {
			if r[4] != t.space || r[5] != t.Name {
				continue
			}
			if len(t.Refs) == 0 || r[0] != last {
				t.Refs, last = append(t.Refs, Ref{Table: r[1]}), r[0]
			}
			ref := &t.Refs[len(t.Refs)-1]
			ref.Columns = append(ref.Columns, r[2])
			if r[3] != "" && r[3] != "null" {
				ref.To = append(ref.To, r[3])
			}
		}
	}
	return out
}
