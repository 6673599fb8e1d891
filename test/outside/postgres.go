// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// postgresUser is the user of PostgreSQL in its image.
	postgresUser = "999:999"
)

// A PostgresServer is a PostgreSQL server from the image of members, without anything that members add.
type PostgresServer struct {
	*server

	// Port on the loopback address. Connections need a password and TLS, with a certificate that CA (PEM) has signed
	// for the hosts of the server. Its roles are the superuser postgres, without a password, and capstan.
	Port int32
	CA   []byte

	// Password of capstan, which can create roles and databases.
	Password string

	tb   testing.TB
	root string
}

// Postgres starts a server of a major version, with a certificate for hosts. It needs root, like containers: the
// content of the image is in a directory that becomes the root of the server.
func Postgres(tb testing.TB, version string, hosts ...string) *PostgresServer {
	tb.Helper()

	if os.Getuid() != 0 {
		tb.Skip("a server in the files of its image needs root")
	}

	s := &PostgresServer{
		server: newServer(tb, "postgres", hosts...), tb: tb,
		root: postgresRoot(tb), Password: "capstan-password",
	}
	s.CA = s.authority
	s.env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", "HOME=/data"}

	port, err := strconv.ParseInt(s.port, 10, 32)
	if err != nil {
		tb.Fatalf("cannot start postgres: %v", err)
	}

	s.Port = int32(port)

	data := s.folder(tb, "data")
	for _, f := range []string{"tls.crt", "tls.key"} {
		content, err := os.ReadFile(filepath.Join(s.dir, f)) //nolint:gosec // Both names are constants.
		if err == nil {
			err = os.WriteFile(filepath.Join(data, f), content, 0o600)
		}

		if err != nil {
			tb.Fatalf("cannot start postgres: %v", err)
		}
	}

	bin := "/usr/lib/postgresql/" + version + "/bin/"
	if out, err := exec.Command("chown", "-R", postgresUser, data).CombinedOutput(); err != nil { //nolint:gosec // All arguments are ours.
		tb.Fatalf("cannot start postgres: %v: %s", err, out)
	}

	initdb := s.inside(bin+"initdb", "--pgdata=/data/pgdata", "--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8")
	//nolint:gosec // a program of the image
	cmd := exec.Command(initdb[0], initdb[1:]...)

	cmd.Env = s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("cannot make the data of postgres %s: %v: %s", version, err, out)
	}

	hba := strings.Join([]string{
		"local   all all                   trust", //nolint:dupword // The fields of a line may well be alike.
		"hostssl all postgres all          reject",
		"hostssl all all      127.0.0.1/32 scram-sha-256", //nolint:dupword // So they may here.
		"",
	}, "\n")
	if err := os.WriteFile(filepath.Join(data, "pgdata", "pg_hba.conf"), []byte(hba), 0o644); err != nil { //nolint:gosec // nothing of it is secret
		tb.Fatalf("cannot start postgres: %v", err)
	}

	s.args = s.inside(bin+"postgres", "-D", "/data/pgdata", "-c", "listen_addresses="+loopback, "-c", "port="+s.port,
		"-c", "unix_socket_directories=/data", "-c", "ssl=on", "-c", "ssl_cert_file=/data/tls.crt", "-c", "ssl_key_file=/data/tls.key",
		"-c", "fsync=off", "-c", "jit=off", "-c", "shared_buffers=16MB", "-c", "max_connections=20", "-c", "log_connections=off",
		"-c", "log_line_prefix=%m [%p] %u@%d ")
	s.ready = func() error {
		conn, err := s.superuser("postgres")
		if err != nil {
			return err
		}

		return conn.Close(context.Background())
	}
	s.run(tb)
	s.SQL("postgres", "CREATE ROLE capstan LOGIN CREATEROLE CREATEDB PASSWORD '"+s.Password+"'")

	return s
}

// Stop makes the server unreachable until Start.
func (s *PostgresServer) Stop() { s.stop() }

// Start starts a stopped server again with the same port, certificate and data.
func (s *PostgresServer) Start() {
	s.tb.Helper()
	s.start(s.tb)
}

// SQL runs statements as the superuser, and returns the first column of the last statement's rows as text.
func (s *PostgresServer) SQL(database string, statements ...string) []string {
	s.tb.Helper()

	conn, err := s.superuser(database)
	if err != nil {
		s.tb.Fatalf("cannot connect with database %q: %v", database, err)
	}

	defer func() { _ = conn.Close(context.Background()) }()

	var out []string

	for _, sql := range statements {
		rows, err := conn.Query(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
		if err == nil {
			out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
				v, err := row.Values()
				if err != nil || len(v) == 0 {
					return "", err
				}

				return fmt.Sprint(v[0]), nil
			})
		}

		if err != nil {
			s.tb.Fatalf("cannot run %q: %v", sql, err)
		}
	}

	return out
}

func (s *PostgresServer) superuser(database string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	return pgx.Connect(ctx, fmt.Sprintf("host=%s port=%s user=postgres dbname=%s sslmode=disable standard_conforming_strings=on",
		filepath.Join(s.dir, "data"), s.port, database))
}

// inside is the command line of a program of the image, whose only own directory is the data of the server.
func (s *PostgresServer) inside(args ...string) []string {
	script := `root=$1 data=$2 && shift 2 &&
		mount --rbind /dev "$root/dev" && mount --bind "$data" "$root/data" &&
		{ chroot --userspec=` + postgresUser + ` "$root" "$@" & wait $!; }`

	// A process that changes its user is no longer killed with its parent, but with the first process of its namespace.
	return append([]string{
		"unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private", "sh", "-c", script, "sh", s.root, filepath.Join(s.dir, "data"),
	}, args...)
}

// unpacked is where the files of the image are, once per test binary.
var unpacked = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("CAPSTAN_POSTGRES_ROOTFS"); dir != "" {
		return dir, nil
	}

	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the repository: %w", err)
	}

	cmd := exec.Command("go", "run", "./member-image", "rootfs", "postgres")
	cmd.Dir, cmd.Stderr = filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "hack"), os.Stderr

	if out, err = cmd.Output(); err != nil {
		return "", fmt.Errorf("cannot unpack the image of PostgreSQL: %w", err)
	}

	return strings.TrimSpace(string(out)), nil
})

func postgresRoot(tb testing.TB) string {
	tb.Helper()

	root, err := unpacked()
	if err != nil {
		tb.Fatal(err)
	}

	return root
}

// Standby turns the server into a standby of a missing leader, or back into a leader. It stays the same server, with
// all its data.
func (s *PostgresServer) Standby(on bool) {
	s.tb.Helper()
	s.stop()

	path := filepath.Join(s.dir, "data", "pgdata", "standby.signal")

	err := os.Remove(path)
	if on {
		err = os.WriteFile(path, nil, 0o644) //nolint:gosec // it is empty
	}

	if err != nil {
		s.tb.Fatalf("cannot make postgres a standby: %v", err)
	}

	s.start(s.tb)
}

// Authority is the certificate of an authority that has signed nothing.
func Authority(tb testing.TB) []byte {
	tb.Helper()

	certs, err := newCertificates()
	if err != nil {
		tb.Fatal(err)
	}

	return certs.authority
}
