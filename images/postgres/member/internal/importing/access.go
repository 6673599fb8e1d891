// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// passwords is a file of libpq with the password of the source. PostgreSQL itself reads it when it connects, so that the password is neither
// in the data nor in backups, and may change.
const passwords = pgmember.FolderPrivate + "/import-pgpass"

// application names the sessions of an import on both sides.
const application = "capstan-import"

// answerLimit is how long one visit to a database of the source may take. A server that is silent must not hold the import up for good.
const answerLimit = time.Minute

// A source is the server that is imported.
type source struct {
	host string
	port int32
	mode string

	user, password string
	// ca is the file that the certificate of the server is checked with, or "system".
	ca string
	// passwords is the file that libpq reads.
	passwords string
	// limit of a visit.
	limit time.Duration
}

// openSource reads the Secret that is mounted, and writes the file with the password. The Secret says which host it is for: who may make a
// Database, and may not read the Secret, cannot send it elsewhere.
func openSource(i members.Import, folder, passwords string) (source, error) {
	secret, err := importing.ReadSecret(i, folder)
	if err != nil {
		return source{}, err
	}
	s := source{host: i.Host, port: i.Port, mode: i.TLS, user: secret.User, password: secret.Password, ca: secret.CA, passwords: passwords, limit: answerLimit}
	switch {
	case s.ca != "" && i.TLS == "disable":
		return source{}, importing.ErrAuthority
	case s.ca == "" && i.TLS == "verify-full":
		s.ca = "system"
	case s.ca == "" && i.TLS == "verify-ca":
		return source{}, importing.ErrNoAuthority
	}
	if err := writePassword(passwords, s.password); err != nil {
		return source{}, fmt.Errorf("cannot keep the password of the source: %w", err)
	}
	return s, nil
}

// writePassword for all servers as libpq reads it.
func writePassword(path, password string) error {
	escaped := strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(password)
	return os.WriteFile(path, []byte("*:*:*:*:"+escaped+"\n"), 0o600)
}

// forgetPassword of a source that is not connected to any more. Nothing is wrong when there is none.
func forgetPassword(path string) { _ = os.Remove(path) }

// conninfo of a database of the source, as both libpq and pgx read it.
func (s source) conninfo(database string) string {
	words := []string{
		setting("host", s.host), setting("port", strconv.Itoa(int(s.port))), setting("user", s.user), setting("dbname", database),
		setting("sslmode", s.mode), setting("passfile", s.passwords), setting("connect_timeout", "10"), setting("application_name", application),
	}
	if s.ca != "" {
		words = append(words, setting("sslrootcert", s.ca))
	}
	return strings.Join(words, " ")
}

// libpq is the conninfo of PostgreSQL itself and of its programs. It has what only libpq understands: no password goes out but by SCRAM, and a
// server that is gone is noticed.
func (s source) libpq(database string) string {
	return s.conninfo(database) + " " + strings.Join([]string{
		setting("require_auth", "scram-sha-256"), setting("keepalives_idle", "30"), setting("keepalives_interval", "10"), setting("tcp_user_timeout", "60000"),
	}, " ")
}

// setting of a connection, quoted as libpq reads it.
func setting(key, value string) string {
	return key + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// errNoDatabase is why a database of the source cannot be visited.
var errNoDatabase = errors.New("the source has no such database")

// invalidCatalogName is what PostgreSQL says then.
const invalidCatalogName = "3D000"

// visit a database of the source, for a limited time. The session may write although the database was made read-only by a cut-over, and reads
// text as this program quotes it.
func (s source) visit(ctx context.Context, database string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	cfg, err := pgx.ParseConfig(s.conninfo(database))
	if err != nil {
		return fmt.Errorf("cannot connect to the source: %w", said(err))
	}
	cfg.Password, cfg.BuildFrontend = s.password, scramOnly
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"search_path": "pg_catalog", "standard_conforming_strings": "on", "client_encoding": "UTF8", "default_transaction_read_only": "off",
		"default_transaction_isolation": "read committed", "statement_timeout": "60s", "lock_timeout": "10s",
	})
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		if server := (*pgconn.PgError)(nil); errors.As(err, &server) && server.Code == invalidCatalogName {
			return fmt.Errorf("%w: %q", errNoDatabase, database)
		}
		return fmt.Errorf("cannot connect to database %q of the source: %w", database, said(err))
	}
	defer managed.Close(ctx, conn)
	err = do(ctx, conn)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !importing.IsWait(err) {
		return fmt.Errorf("the source has not answered within %s (database %q): look at that server and at the network", s.limit, database)
	}
	return err
}

// replicates tries a connection of replication, which needs rights that no table shows: managed services have roles of their own for it.
func (s source) replicates(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	cfg, err := pgconn.ParseConfig(s.conninfo(database))
	if err != nil {
		return said(err)
	}
	cfg.Password, cfg.BuildFrontend = s.password, scramOnly
	cfg.RuntimeParams["replication"] = "database"
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return said(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	role, results := "none", conn.Exec(ctx, "SHOW role")
	for results.NextResult() {
		for reader := results.ResultReader(); reader.NextRow(); {
			if values := reader.Values(); len(values) == 1 {
				role = importing.Shortened(string(values[0]), importing.MaxQuoted)
			}
		}
	}
	if err := results.Close(); err != nil {
		return said(err)
	}
	// The right is the login's, and a session that begins as another role does not have it.
	if role != "none" {
		return fmt.Errorf("its sessions begin as role %q, because of alter role ... set role", role)
	}
	return nil
}

// said is what a server of PostgreSQL said, or in few words why there was none. It has no addresses and no answers of other servers: who names a
// host must not learn from it what the network has.
func said(err error) error {
	var server *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &server):
		return errors.New(strings.ToValidUTF8(server.Message[:min(len(server.Message), importing.MaxQuoted)], ""))
	case errors.Is(err, errNotSCRAM):
		return errNotSCRAM
	case errors.Is(err, errIterations):
		return errIterations
	case errors.Is(err, errAnswer):
		return errAnswer
	case errors.Is(err, context.Canceled), errors.Is(err, pgx.ErrNoRows):
		return err
	default:
		return importing.Unreached(err)
	}
}
