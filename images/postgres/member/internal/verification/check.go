// SPDX-License-Identifier: Apache-2.0

package verification

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/process"
	frame "github.com/capstan-dev/capstan/images/member/verification"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/offline"
)

// assertionLimit is how long an assertion may take.
const assertionLimit = "10min"

// verifier is the login that assertions run as. It is made in what was restored only.
const verifier = "capstan_verifier"

// maxSaid is how much of what a program said is reported, in bytes.
const maxSaid = 600

// check what was restored: tables, indexes and catalogues of all databases, then the assertions, and with the server stopped the
// checksums of all pages.
func (t Trial) check(ctx context.Context, s *offline.Server) error {
	if err := amcheck(ctx, s, t.Processes); err != nil {
		return frame.Because(ctx, err)
	}
	t.Log.Info("checked tables and indexes")
	if err := reader(ctx, s); err != nil {
		return frame.Because(ctx, err)
	}
	for i, a := range t.Assertions {
		if err := assert(ctx, s, a); err != nil {
			return frame.Because(ctx, &frame.Failure{Kind: members.VerifyAssertion, Message: fmt.Sprintf("spec.backup.verify.assertions[%d] in database %q: %v; see whether the data or the assertion is wrong",
				i, a.Database, err)})
		}
	}
	t.Log.Info("assertions hold", "number", len(t.Assertions))
	if err := s.Stop(ctx); err != nil {
		return frame.Because(ctx, err)
	}
	if !s.Checksums {
		t.Log.Warn("the data has no checksums")
		return nil
	}
	if said, err := program(ctx, s, "pg_checksums", "--check", "--pgdata="+s.Data); err != nil {
		return frame.Because(ctx, damaged("checksums of pages are wrong", said, err))
	}
	t.Log.Info("checked the checksums of all pages")
	return nil
}

// amcheck checks the structure of all tables and indexes, including the catalogues.
func amcheck(ctx context.Context, s *offline.Server, processes int64) error {
	said, err := program(ctx, s, "pg_amcheck", "--host="+s.Folder, "--port=5432", "--username="+pgmember.RoleSuperuser, "--no-password",
		"--all", "--install-missing", "--jobs="+strconv.FormatInt(max(2, processes), 10))
	var exit *exec.ExitError
	// 2 means damage, 1 that it is unknown.
	if errors.As(err, &exit) && exit.ExitCode() != 2 {
		return &frame.Failure{Kind: members.VerifyOther, Message: "pg_amcheck cannot check what was restored: " + process.Head(said, maxSaid)}
	}
	if err != nil {
		return damaged("tables or indexes are damaged", said, err)
	}
	return nil
}

// damaged data, with the first of what a program said.
func damaged(what, said string, err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("cannot check what was restored: %w", err)
	}
	return &frame.Failure{Kind: members.VerifyData, Message: fmt.Sprintf("%s: %s. See whether the members' own data is well before the last good backup expires", what, process.Head(said, maxSaid))}
}

// program of PostgreSQL, and what it says.
func program(ctx context.Context, s *offline.Server, name string, args ...string) (string, error) {
	return process.Run(ctx, "", filepath.Join(s.Programs, name), args...)
}

// reader makes the login that assertions run as: it reads everything, and is no superuser.
func reader(ctx context.Context, s *offline.Server) error {
	conn, err := s.Connect(ctx, pgmember.RoleSuperuser, "postgres", nil)
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	for _, statement := range []string{
		"do $$ begin create role " + verifier + "; exception when duplicate_object then null; end $$",
		// Row-level security hides rows from roles without a policy.
		"alter role " + verifier + " login nosuperuser nocreatedb nocreaterole noreplication bypassrls connection limit -1",
		"grant pg_read_all_data to " + verifier,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("cannot make the login that asks the assertions: %w", err)
		}
	}
	names, err := managed.List(ctx, conn, "select datname from pg_database where datallowconn")
	if err != nil {
		return fmt.Errorf("cannot list what was restored: %w", err)
	}
	for _, name := range names {
		if _, err := conn.Exec(ctx, "grant connect on database "+pgx.Identifier{name}.Sanitize()+" to "+verifier); err != nil {
			return fmt.Errorf("cannot let the assertions into database %q: %w", name, err)
		}
	}
	return nil
}

// assert that one statement yields true, once.
func assert(ctx context.Context, s *offline.Server, a pgmember.Assertion) error {
	conn, err := s.Connect(ctx, verifier, a.Database, map[string]string{
		"statement_timeout": assertionLimit, "default_transaction_read_only": "on", "search_path": `"$user", public`,
	})
	if err != nil {
		return plain(err)
	}
	defer managed.Close(ctx, conn)
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return plain(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// The extended protocol takes one statement.
	rows, err := tx.Query(ctx, a.SQL)
	if err != nil {
		return plain(err)
	}
	defer rows.Close()
	held, n := false, 0
	for rows.Next() {
		if n++; n > 1 {
			break
		}
		values, err := rows.Values()
		if err != nil {
			return plain(err)
		}
		if len(values) != 1 {
			return fmt.Errorf("it yields %d values, and not one", len(values))
		}
		is, boolean := values[0].(bool)
		if !boolean && values[0] != nil {
			return errors.New("it yields no boolean")
		}
		held = is
	}
	rows.Close()
	switch {
	case n == 1 && held:
		return nil
	case n > 1:
		return errors.New("it yields more than one row")
	case rows.Err() != nil:
		return plain(rows.Err())
	case n == 0:
		return errors.New("it yields no row")
	default:
		return errors.New("it does not hold")
	}
}

// plain is what the server says of an assertion, in one line.
func plain(err error) error {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return fmt.Errorf("the server says %q (%s)", said.Message, said.Code)
	}
	return err
}
