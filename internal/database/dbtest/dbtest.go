// Package dbtest starts private database servers for tests: PostgreSQL and MariaDB
// from the binaries of this machine, each in a temporary folder, on loopback and
// for one test. Where there are no binaries the test is skipped, and says so. It is
// for tests only and knows nothing of what is read from them.
package dbtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "modernc.org/sqlite" // the driver of Files
)

// Server is a running database server.
type Server struct {
	// Dir is where it keeps everything.
	Dir    string
	scheme string
	port   int
	exec   func(ctx context.Context, database, statement string) error
}

// URL is the address of a database on the server for a user without a password.
func (s *Server) URL(user, database string) string {
	return fmt.Sprintf("%s://%s@127.0.0.1:%d/%s", s.scheme, user, s.port, database)
}

// Exec runs statements as the administrator, or fails the test.
func (s *Server) Exec(t testing.TB, database string, statements ...string) {
	t.Helper()
	for _, st := range statements {
		if err := s.exec(t.Context(), database, st); err != nil {
			t.Fatalf("%.80s: %v", st, err)
		}
	}
}

// Admin is the administrator of a PostgreSQL server, a superuser.
const Admin = "postgres"

// Postgres starts a PostgreSQL server, stopped when the test ends.
func Postgres(t testing.TB) *Server {
	t.Helper()
	initdb, server := find("initdb", "/usr/lib/postgresql/*/bin"), find("postgres", "/usr/lib/postgresql/*/bin")
	if initdb == "" || server == "" {
		t.Skip("not tried: there is no PostgreSQL server on this machine")
	}
	dir := home(t)
	data := filepath.Join(dir, "data")
	run(t, dir, initdb, "-D", data, "-U", Admin, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	port := freePort(t)
	start(t, dir, server, "-D", data, "-p", strconv.Itoa(port), "-k", dir, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=50")
	s := &Server{Dir: dir, scheme: "postgres", port: port}
	s.exec = func(ctx context.Context, database, statement string) error {
		conn, err := pgconn.Connect(ctx, s.URL(Admin, database)+"?sslmode=disable")
		if err != nil {
			return err
		}
		return errors.Join(conn.Exec(ctx, statement).Close(), conn.Close(ctx))
	}
	wait(t, func(ctx context.Context) error { return s.exec(ctx, Admin, "SELECT 1") })
	return s
}

// MariaDB starts a MariaDB server, stopped when the test ends. Its administrator
// is root without a password.
func MariaDB(t testing.TB) *Server {
	t.Helper()
	server, install := find("mariadbd", "/usr/sbin"), find("mariadb-install-db", "/usr/bin")
	if server == "" || install == "" {
		t.Skip("not tried: there is no MariaDB server on this machine")
	}
	dir := home(t)
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")
	run(t, dir, install, "--no-defaults", "--datadir="+data, "--tmpdir="+dir, "--auth-root-authentication-method=normal", "--skip-test-db")
	port := freePort(t)
	start(t, dir, server, "--no-defaults", "--datadir="+data, "--tmpdir="+dir, "--socket="+socket, "--port="+strconv.Itoa(port), "--bind-address=127.0.0.1",
		"--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--pid-file="+filepath.Join(dir, "pid"))
	s := &Server{Dir: dir, scheme: "mariadb", port: port}
	s.exec = func(ctx context.Context, database, statement string) error {
		cfg := mysql.NewConfig()
		cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.Logger, cfg.MultiStatements = "root", "unix", socket, database, &mysql.NopLogger{}, true
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			return err
		}
		db := sql.OpenDB(connector)
		_, err = db.ExecContext(ctx, statement)
		return errors.Join(err, db.Close())
	}
	wait(t, func(ctx context.Context) error { return s.exec(ctx, "", "SELECT 1") })
	return s
}

// File makes a SQLite file of statements and returns its path.
func File(t testing.TB, name string, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range statements {
		if _, err := db.ExecContext(t.Context(), st); err != nil {
			t.Fatalf("%.80s: %v", st, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// find is a program on the path or, the newest, in folders that packages use.
func find(name, pattern string) string {
	found, err := filepath.Glob(filepath.Join(pattern, name))
	if err == nil && len(found) > 0 {
		return slices.Max(found)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// home is a folder of the user that the server runs as. It is not the test's own
// temporary folder, which another user could not enter.
func home(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dbtest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := giveAway(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// command is a program that runs as a user who is not root: servers refuse root.
func command(dir, program string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin", "HOME=" + dir, "TZ=UTC"}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	lower(cmd)
	return cmd, &said
}

func run(t testing.TB, dir, program string, args ...string) {
	t.Helper()
	cmd, said := command(dir, program, args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, said)
	}
}

// start runs a server until the test ends.
func start(t testing.TB, dir, program string, args ...string) {
	t.Helper()
	cmd, said := command(dir, program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	t.Cleanup(func() {
		if err := stop(cmd); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // a server that was told to stop need not end with 0
		if t.Failed() {
			t.Logf("%s said:\n%s", program, said)
		}
	})
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the port is what is wanted
	return l.Addr().(*net.TCPAddr).Port
}

// wait tries until the server answers.
func wait(t testing.TB, try func(context.Context) error) {
	t.Helper()
	const patience = 30 * time.Second
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server does not answer: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
