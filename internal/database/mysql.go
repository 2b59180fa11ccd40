package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// mysqlWall keeps a MySQL or MariaDB server from being changed: session and transaction are read-only, with a time limit
// in the server and one statement a call.
type mysqlWall struct {
	pool *sql.DB
	cfg  *mysql.Config
}

func dialMySQL(u *url.URL, o Options) (*DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.DBName = u.User.Username(), strings.Trim(u.Path, "/")
	cfg.Passwd, _ = u.User.Password()
	if systemSchemas[strings.ToLower(cfg.DBName)] {
		return nil, withheld(cfg.DBName)
	}
	host, port := u.Hostname(), u.Port()
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(cmp.Or(host, "localhost"), cmp.Or(port, "3306"))
	for key, values := range u.Query() {
		switch key {
		case "tls":
			cfg.TLSConfig = values[0]
		case "socket":
			cfg.Net, cfg.Addr = "unix", values[0]
		default:
			return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "db", Message: "the address of the MySQL database has a setting that is not understood",
				Hint: "tls=true, tls=skip-verify, tls=preferred and socket=/path are"}
		}
	}
	cfg.ParseTime, cfg.Loc = true, time.UTC
	cfg.MultiStatements, cfg.AllowAllFiles, cfg.AllowCleartextPasswords = false, false, false
	cfg.MaxAllowedPacket = maxMessage
	cfg.Timeout, cfg.ReadTimeout = 10*time.Second, o.Timeout+5*time.Second
	cfg.Logger = &mysql.NopLogger{}
	// The lexer of this package reads statements as these modes say.
	cfg.Params = map[string]string{"sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,ONLY_FULL_GROUP_BY'", "time_zone": "'+00:00'"}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "db", Message: "the address of the MySQL database has a part that is not understood",
			Hint: "write mysql://user:password@host:port/name"}
	}
	return &DB{
		wall: mysqlWall{bounded(sql.OpenDB(connector)), cfg}, dialect: MySQL, opts: o,
		name: Printable(serverName(cfg.DBName, host, port, "3306")), secret: secrets(u), address: serverAddress("mysql", host, cmp.Or(port, "3306"), cfg.DBName),
	}, nil
}

func (w mysqlWall) read(ctx context.Context, statement string, o Options) (Rows, error) {
	return within(ctx, w.pool, w.begin, statement, o)
}

func (w mysqlWall) close() error { return w.pool.Close() }

func (mysqlWall) begin(ctx context.Context, conn *sql.Conn, o Options) (*sql.Tx, error) {
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return nil, err
	}
	limit := "SET SESSION max_execution_time = " + strconv.FormatInt(o.Timeout.Milliseconds(), 10)
	if strings.Contains(strings.ToLower(version), "mariadb") {
		limit = "SET SESSION max_statement_time = " + strconv.FormatFloat(o.Timeout.Seconds(), 'f', 3, 64)
	}
	wait := "SET SESSION innodb_lock_wait_timeout = " + strconv.Itoa(max(1, int(o.Timeout.Seconds())))
	for _, s := range []string{"SET SESSION TRANSACTION READ ONLY", limit, wait} {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return nil, err
		}
	}
	return conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
}

func (mysqlWall) warn(ctx context.Context, db *DB) string {
	rows, err := db.catalog(ctx, `SELECT COUNT(DISTINCT privilege_type) FROM (
		SELECT privilege_type, grantee FROM information_schema.user_privileges UNION ALL
		SELECT privilege_type, grantee FROM information_schema.schema_privileges WHERE table_schema = DATABASE()) AS p
		WHERE privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'DROP', 'ALTER', 'CREATE', 'FILE', 'SUPER')
		AND grantee = CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')`)
	if err != nil || len(rows) == 0 || rows[0][0] == "0" {
		return ""
	}
	return "the user of " + db.name + " may write to it; a user that may only SELECT is safer"
}

func (w mysqlWall) explain(err error) *marchwarden.Error {
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return &marchwarden.Error{Code: marchwarden.CodeMalformed}
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
			return silent(w.cfg.Addr)
		}
		return nil
	}
	switch e.Number {
	case 3024, 1969, 1317, 1205:
		return &marchwarden.Error{Code: marchwarden.CodeTimeout}
	case 1045, 1698:
		return refusedLogin(w.cfg.User)
	case 1044, 1142, 1143, 1227, 1290, 1370, 1792:
		return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: e.Message}
	case 1049:
		return missingDatabase(w.cfg.DBName)
	case 1040, 1053, 1203, 2006, 2013:
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: e.Message}
	}
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: e.Message}
}

func (mysqlWall) tables(ctx context.Context, db *DB) ([]Table, error) {
	cols, err := db.catalog(ctx, `SELECT c.table_schema, c.table_name, CASE WHEN t.table_type LIKE '%VIEW%' THEN 'v' ELSE 'r' END, 'true', c.column_name, c.column_type,
			COALESCE(CAST(k.ordinal_position AS SIGNED) - 1, -1)
		FROM information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
		LEFT JOIN information_schema.key_column_usage k ON k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name AND k.constraint_name = 'PRIMARY'
		WHERE c.table_schema = DATABASE() ORDER BY c.table_name, c.ordinal_position`)
	if err != nil {
		return nil, err
	}
	refs, err := db.catalog(ctx, `SELECT constraint_name, referenced_table_name, column_name, referenced_column_name, table_schema, table_name
		FROM information_schema.key_column_usage WHERE table_schema = DATABASE() AND referenced_table_name IS NOT NULL ORDER BY table_name, constraint_name, ordinal_position`)
	if err != nil {
		return nil, err
	}
	return assemble(cols, refs), nil
}
