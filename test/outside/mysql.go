// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// A MySQLServer is a MySQL server with the programs of the image of members, without anything that members add.
type MySQLServer struct {
	*server

	// Port on the loopback address. Connections need a password and TLS, with a certificate that CA (PEM) has signed
	// for the hosts of the server. Its accounts are root, by its socket only, and capstan.
	Port int32
	CA   []byte

	// Password of capstan, which has the rights that members give it.
	Password string

	tb testing.TB
}

// MySQL starts a server, with a certificate for hosts. The package's TestMain has to call Main.
func MySQL(tb testing.TB, hosts ...string) *MySQLServer {
	tb.Helper()
	s := &MySQLServer{server: newServer(tb, "mysql", hosts...), tb: tb, Password: "capstan-password"}
	s.CA = s.authority
	s.env = environment()
	port, err := strconv.ParseInt(s.port, 10, 32)
	if err != nil {
		tb.Fatalf("cannot start mysql: %v", err)
	}
	s.Port = int32(port)
	mysqld := program(tb, "mysql", "mysqld")
	ca, data := filepath.Join(s.dir, "ca.crt"), filepath.Join(s.dir, "data")
	if err := os.WriteFile(ca, s.CA, 0o600); err != nil {
		tb.Fatalf("cannot start mysql: %v", err)
	}
	// To make data takes ten seconds, so that all servers of a package begin with the same.
	if err := os.CopyFS(data, os.DirFS(share(tb, "data of mysql", mysqlData))); err != nil {
		tb.Fatalf("cannot start mysql: cannot copy its data: %v", err)
	}
	s.args = append(mysqlArgs(mysqld, data),
		"--socket="+s.Socket(), "--pid-file="+filepath.Join(s.dir, "pid"), "--bind-address="+loopback, "--port="+s.port, "--mysqlx=OFF",
		"--ssl-ca="+ca, "--ssl-cert="+s.certFile, "--ssl-key="+s.keyFile, "--require-secure-transport=ON",
		// As members have it.
		"--partial-revokes=ON", "--sql-require-primary-key=ON", "--log-bin-trust-function-creators=ON", "--persisted-globals-load=OFF",
		"--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--max-connections=100")
	s.ready = func() error {
		db, err := s.root()
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		return db.PingContext(context.Background())
	}
	s.run(tb)
	s.SQL("CREATE USER '" + mysqlmember.AccountAccess + "'@'%' IDENTIFIED WITH caching_sha2_password BY '" + s.Password + "' REQUIRE SSL")
	s.SQL(mysqlmember.AccessRights()...)
	return s
}

// mysqlArgs are arguments of every call of mysqld.
func mysqlArgs(mysqld, data string) []string {
	args := []string{mysqld, "--no-defaults", "--datadir=" + data, "--secure-file-priv=NULL", "--innodb-buffer-pool-size=32M", "--innodb-redo-log-capacity=8M"}
	if os.Getuid() == 0 {
		args = append(args, "--user=root")
	}
	return args
}

// mysqlData is a folder with the data of a new server, whose root has no password.
func mysqlData(tb testing.TB) string {
	tb.Helper()
	data := filepath.Join(tb.TempDir(), "data")
	args := append(mysqlArgs(program(tb, "mysql", "mysqld"), data), "--initialize-insecure")
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec // a program of the cache
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("cannot make the data of mysql: %v: %s", err, out)
	}
	return data
}

// Stop makes the server unreachable until Start.
func (s *MySQLServer) Stop() { s.stop() }

// Start starts a stopped server again with the same port, certificate and data.
func (s *MySQLServer) Start() {
	s.tb.Helper()
	s.start(s.tb)
}

// SQL runs statements as root, and returns the first column of the last statement's rows as text.
func (s *MySQLServer) SQL(statements ...string) []string {
	s.tb.Helper()
	db, err := s.root()
	if err != nil {
		s.tb.Fatalf("cannot open mysql: %v", err)
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	var out []string
	for _, statement := range statements {
		if out, err = first(ctx, db, statement); err != nil {
			s.tb.Fatalf("cannot run %q: %v", statement, err)
		}
	}
	return out
}

// first column of the rows of a statement.
func first(ctx context.Context, db *sql.DB, statement string) ([]string, error) {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out []string
	for rows.Next() {
		values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range into {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, string(values[0]))
	}
	return out, rows.Err()
}

// Socket of the server, for programs on this machine. Its path is short, because the system bounds it.
func (s *MySQLServer) Socket() string { return filepath.Join(s.dir, "s") }

func (s *MySQLServer) root() (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "unix", s.Socket()
	cfg.Timeout = 10 * time.Second
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}
