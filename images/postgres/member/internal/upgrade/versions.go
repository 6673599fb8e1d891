// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// PostgreSQL 15.20 and 17.12 note a version with each column, as an option of the column. Their own pg_dump leaves it out. A release of a later
// major from before that knows no such option, and its pg_dump writes it into the definitions, which it then refuses. For that release the
// option has no meaning, so it is taken away: from the definitions of the trial, and from the copy before it is converted. Nothing else has
// the copy, and columns that were made before 17.12 have no version either.

// invalidParameter is what a server says to an option of a column that it does not know.
const invalidParameter = "22023"

// unversioned reports whether the server of the trial does not know versions of columns.
func (j *Job) unversioned(ctx context.Context) (bool, error) {
	conn, err := connect(ctx, portTrial)
	if err != nil {
		return false, err
	}
	defer managed.Close(ctx, conn)
	if _, err := conn.Exec(ctx, "create temporary table trial (c int)"); err != nil {
		return false, fmt.Errorf("cannot try what version %s knows: %w", j.To, err)
	}
	_, err = conn.Exec(ctx, "alter table pg_temp.trial alter column c set (pg_attver = 1)")
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &refused) && refused.Code == invalidParameter:
		return true, nil
	default:
		return false, fmt.Errorf("cannot try what version %s knows: %w", j.To, err)
	}
}

// Statements of pg_dump that set the version of a column, alone or behind other options.
var (
	setsVersion = regexp.MustCompile(`^ALTER (FOREIGN )?TABLE ONLY .* SET \(pg_attver=[0-9]+\);\n?$`)
	addsVersion = regexp.MustCompile(`^(ALTER (?:FOREIGN )?TABLE ONLY .* SET \()(?:(.*), )?pg_attver=[0-9]+(?:, (.*))?(\);\n?)$`)
)

// stripped is a line of definitions without the version of a column.
func stripped(line string) string {
	if setsVersion.MatchString(line) {
		return ""
	}
	m := addsVersion.FindStringSubmatch(line)
	if m == nil {
		return line
	}
	between := ""
	if m[2] != "" && m[3] != "" {
		between = ", "
	}
	return m[1] + m[2] + between + m[3] + m[4]
}

// stripFile takes the versions of columns out of definitions.
func stripFile(file string) error {
	if err := rewrite(file, file+".stripped"); err != nil {
		return fmt.Errorf("cannot write definitions without versions of columns: %w", err)
	}
	return nil
}

func rewrite(file, next string) (err error) {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	to := bufio.NewWriter(out)
	for lines := bufio.NewReader(in); err == nil; {
		var line string
		line, err = lines.ReadString('\n') // a line may be of any length
		if _, failed := to.WriteString(stripped(line)); failed != nil {
			err = failed
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err := errors.Join(err, to.Flush(), out.Close()); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// stripCatalog takes the versions of columns out of the catalog of a database.
const stripCatalog = `update pg_attribute set attoptions = nullif(array(select o from unnest(attoptions) o where o not like 'pg\_attver=%'), '{}')
	where exists (select from unnest(attoptions) o where o like 'pg\_attver=%')`

// strip the versions of columns from the copy, which nothing follows or serves any more. Its server starts as pg_upgrade starts it: without
// workers, so that no subscription and no job of the copy runs.
func (j *Job) strip(ctx context.Context) error {
	if err := unlock(); err != nil {
		return err
	}
	server, err := process.Start(j.before("postgres"), nil, "-b", "-D", layout.UpgradeCopy, "-c", "shared_preload_libraries=")
	if err != nil {
		return err
	}
	defer stop(server)
	if err := j.answers(ctx, server, 5432); err != nil {
		return fmt.Errorf("cannot take the versions of columns away: %w", err)
	}
	databases, err := j.databases(ctx)
	if err != nil {
		return err
	}
	for _, d := range databases {
		if err := stripDatabase(ctx, d); err != nil {
			return fmt.Errorf("cannot take the versions of columns of database %q away: %w", d, err)
		}
	}
	return nil
}

func stripDatabase(ctx context.Context, database string) error {
	conn, err := managed.Connect(ctx, layout.UpgradeWork, 5432, database)
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	// There may be many columns, and no other session waits for a lock.
	_, err = conn.Exec(ctx, "set statement_timeout = 0; "+stripCatalog)
	return err
}
