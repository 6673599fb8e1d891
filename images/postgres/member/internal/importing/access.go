// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// passwords is a file of libpq with the password of the source. PostgreSQL itself reads it when it connects, so that the password is neither
// in the data nor in backups, and may change.
const passwords = pgmember.FolderPrivate + "/import-pgpass"

// application names the sessions of an import on both sides.
const application = "capstan-import"

// Keys of the Secret of the source.
const (
	keyUsername = "username"
	keyPassword = "password"
	keyCA       = "ca.crt"
)

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
}

// openSource reads the Secret that is mounted, and writes the file with the password.
func openSource(i pgmember.Import, folder, passwords string) (source, error) {
	user, err := value(folder, keyUsername)
	if err != nil {
		return source{}, err
	}
	password, err := value(folder, keyPassword)
	if err != nil {
		return source{}, err
	}
	s := source{host: i.Host, port: i.Port, mode: i.TLS, user: user, password: password, passwords: passwords}
	switch _, err := os.Stat(filepath.Join(folder, keyCA)); {
	case err == nil:
		s.ca = filepath.Join(folder, keyCA)
	case !errors.Is(err, fs.ErrNotExist):
		return source{}, fmt.Errorf("cannot look for %s in the Secret of the source: %w", keyCA, err)
	case i.TLS == "verify-full":
		s.ca = "system"
	case i.TLS == "verify-ca":
		return source{}, fmt.Errorf("the Secret of the source has no key %q: add the authority that signed the certificate of the source, or set spec.from.server.tls to VerifyFull or Require", keyCA)
	}
	escaped := strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(password)
	if err := os.WriteFile(passwords, []byte("*:*:*:*:"+escaped+"\n"), 0o600); err != nil {
		return source{}, fmt.Errorf("cannot keep the password of the source: %w", err)
	}
	return s, nil
}

// value of the mounted Secret.
func value(folder, key string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(folder, key))
	if err != nil {
		return "", fmt.Errorf("the Secret of the source has no key %q: create the Secret that spec.from.server.credentialsSecretRef names, with the keys username and password", key)
	}
	text := strings.TrimRight(string(raw), "\r\n")
	if text == "" || strings.ContainsAny(text, "\x00\n") {
		return "", fmt.Errorf("the key %q of the Secret of the source is empty, or has more than one line", key)
	}
	return text, nil
}

// conninfo of a database of the source, as libpq reads it.
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

// setting of a connection, quoted as libpq reads it.
func setting(key, value string) string {
	return key + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// connect to a database of the source. It may write although the database was made read-only by a cut-over.
func (s source) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(s.conninfo(database))
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the source: %w", err)
	}
	cfg.Password = s.password
	cfg.RuntimeParams["search_path"] = "pg_catalog"
	cfg.RuntimeParams["default_transaction_read_only"] = "off"
	cfg.RuntimeParams["statement_timeout"] = "60s"
	cfg.RuntimeParams["lock_timeout"] = "10s"
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to database %q of the source: %w", database, said(err))
	}
	return conn, nil
}

// replicates tries a connection of replication, which needs rights that no table shows: managed services have roles of their own for it.
func (s source) replicates(ctx context.Context, database string) error {
	cfg, err := pgconn.ParseConfig(s.conninfo(database))
	if err != nil {
		return err
	}
	cfg.Password = s.password
	cfg.RuntimeParams["replication"] = "database"
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return said(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	results, err := conn.Exec(ctx, "SHOW role").ReadAll()
	if err != nil {
		return said(err)
	}
	// The right is the login's, and a session that begins as another role does not have it.
	if len(results) == 1 && len(results[0].Rows) == 1 && string(results[0].Rows[0][0]) != "none" {
		return fmt.Errorf("its sessions begin as role %q, because of alter role ... set role", results[0].Rows[0][0])
	}
	return nil
}

// said is what the server said, or why it was not reached, without the addresses that were tried.
func said(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return errors.New(server.Message)
	}
	return err
}
