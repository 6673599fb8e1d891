// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// authorities that everyone knows, in the image.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

const (
	// answerLimit is how long one visit to the source may take. A server that is silent must not hold the import up for good.
	answerLimit = time.Minute
	// silence is how long the source may say nothing while rows are read.
	silence = 2 * time.Minute
)

// A source is the server that is imported.
type source struct {
	members.Import
	importing.Secret

	tls *tls.Config
}

func openSource(i members.Import, folder string) (source, error) {
	secret, err := importing.ReadSecret(i, folder)
	if err != nil {
		return source{}, err
	}
	s := source{Import: i, Secret: secret}
	if s.CA == "" && i.TLS == mysqlmember.ImportVerifyCA {
		return source{}, importing.ErrNoAuthority
	}
	if s.CA == "" {
		s.CA = authorities
	}
	pem, err := os.ReadFile(s.CA)
	if err != nil {
		return source{}, fmt.Errorf("cannot read the authorities of the source: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return source{}, errors.New("the key ca.crt of the Secret of the source has no certificate")
	}
	s.tls = &tls.Config{RootCAs: roots, ServerName: i.Host, MinVersion: tls.VersionTLS12}
	if i.TLS == mysqlmember.ImportVerifyCA {
		s.tls.InsecureSkipVerify = true // The authority is checked below, and the name is not.
		s.tls.VerifyConnection = func(state tls.ConnectionState) error {
			between := x509.NewCertPool()
			for _, c := range state.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
			return err
		}
	}
	return s, nil
}

// errMariaDB is why one is not imported.
var errMariaDB = errors.New("the source is MariaDB, whose transaction ids and log MySQL cannot follow: make another Database without spec.from, and load a dump as a consumer, as docs/database-import.md describes")

// visit the source, for a limited time.
func (s source) visit(ctx context.Context, limit time.Duration, do func(context.Context, *sql.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.TLS = s.User, s.Password, "tcp", net.JoinHostPort(s.Host, strconv.Itoa(int(s.Port))), s.tls
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout, cfg.Logger = 10*time.Second, silence, silence, &driver.NopLogger{}
	cfg.AllowNativePasswords = false // The server itself could not log in by one.
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return fmt.Errorf("cannot connect to the source: %w", said(err))
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	c, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("cannot connect to the source: %w", said(err))
	}
	defer func() { _ = c.Close() }() // otherwise its locks would stay
	var version string
	if err := c.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return fmt.Errorf("cannot look at the source: %w", said(err))
	}
	if strings.Contains(version, "MariaDB") {
		return errMariaDB
	}
	if _, err := c.ExecContext(ctx, "SET SESSION sql_mode = '', time_zone = '+00:00', lock_wait_timeout = 10, max_execution_time = 0, net_write_timeout = 600, "+
		"information_schema_stats_expiry = 0"); err != nil {
		return fmt.Errorf("cannot look at the source: %w", said(err))
	}
	err = do(ctx, c)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !importing.IsWait(err) {
		return fmt.Errorf("the source has not answered within %s: look at that server and at the network", limit)
	}
	return err
}

// said is what a server of MySQL said, or in few words why there was none.
func said(err error) error {
	var server *driver.MySQLError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &server):
		return errors.New(strings.ToValidUTF8(server.Message[:min(len(server.Message), importing.MaxQuoted)], ""))
	case errors.Is(err, driver.ErrNativePassword), errors.Is(err, driver.ErrOldPassword), errors.Is(err, driver.ErrCleartextPassword), errors.Is(err, driver.ErrUnknownPlugin):
		return errors.New("its user does not log in by caching_sha2_password: run alter user ... identified with caching_sha2_password by ... on the source")
	case errors.Is(err, context.Canceled):
		return err
	default:
		return importing.Unreached(err)
	}
}

// maxRows of what a source lists.
const maxRows = 200_000

// list what a query of the source returns, in rows of texts.
func list(ctx context.Context, c *sql.Conn, query string, args ...any) ([][]string, error) {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, said(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, said(err)
	}
	var out [][]string
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, said(err)
		}
		if len(out) == maxRows {
			return nil, fmt.Errorf("an answer has more than %d rows", maxRows)
		}
		row := make([]string, len(names))
		for i, v := range values {
			row[i] = v.String
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		return nil, said(err)
	}
	return out, nil
}

// series of a version: its first two numbers.
func series(version string) (n [2]int) {
	_, _ = fmt.Sscanf(version, "%d.%d", &n[0], &n[1])
	return n
}

// A place in the log of the source.
type place struct {
	// Server is its id, and Version its version.
	Server, Version string
	File            string
	Position        uint64
	// Filtered are databases that the log does not have, or has alone.
	Filtered string
	Executed gtid.Set
}

// at which place the source is.
func at(ctx context.Context, c *sql.Conn) (p place, err error) {
	if err := c.QueryRowContext(ctx, "SELECT @@GLOBAL.server_uuid, @@GLOBAL.version").Scan(&p.Server, &p.Version); err != nil {
		return p, fmt.Errorf("cannot look at the source: %w", said(err))
	}
	statement := "SHOW BINARY LOG STATUS"
	if n := series(p.Version); slices.Compare(n[:], []int{8, 2}) < 0 {
		statement = "SHOW MASTER STATUS"
	}
	row, err := mysql.OneRow(ctx, c, statement)
	if err != nil {
		return p, fmt.Errorf("cannot look at the binary log of the source: %w", said(err))
	}
	p.File, p.Filtered = row["File"], row["Binlog_Do_DB"]+row["Binlog_Ignore_DB"]
	p.Position, _ = strconv.ParseUint(row["Position"], 10, 64)
	if p.Executed, err = gtid.Parse(row["Executed_Gtid_Set"]); err != nil {
		return p, fmt.Errorf("cannot understand the transactions of the source: %w", err)
	}
	return p, nil
}

// logsOf the source: names and sizes.
func logsOf(ctx context.Context, c *sql.Conn) ([][]string, error) {
	logs, err := list(ctx, c, "SHOW BINARY LOGS")
	if err != nil {
		return nil, fmt.Errorf("cannot list binary logs of the source: %w", err)
	}
	return logs, nil
}

// behind is how many bytes of logs come after a place.
func behind(logs [][]string, file string, position uint64) (bytes int64) {
	for _, l := range logs {
		if l[0] < file {
			continue
		}
		n, _ := strconv.ParseInt(l[1], 10, 64)
		if l[0] == file {
			n -= int64(position) //nolint:gosec // Logs are smaller.
		}
		bytes += max(n, 0)
	}
	return bytes
}
