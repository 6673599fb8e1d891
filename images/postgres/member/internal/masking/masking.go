// SPDX-License-Identifier: Apache-2.0

// Package masking changes restored data before it becomes the data of a member, on a server that no client reaches. The folder of the data
// is made complete under another name and then renamed, so that a member that is killed meanwhile begins the restore again, and no member
// ever serves data that is masked in part.
package masking

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/offline"
)

const (
	// masker is the login that statements run as, with the rights of the owner of each database. It exists only while they run.
	masker = "capstan_masker"
	// statementLimit is how long one statement may take.
	statementLimit = 6 * time.Hour
	// maxSaid is how much of what the server said is reported, in bytes.
	maxSaid = 600
)

// A Job is data to mask.
type Job struct {
	Mask pgmember.Mask
	// Programs is the folder of PostgreSQL's programs.
	Programs string
	// Data is the folder with the restored data, and Folder one for what is needed meanwhile, which only this member sees.
	Data, Folder string
	Log          *slog.Logger
}

// Run the job. Afterwards no server runs, and the data is whole. The data no longer says what to recover to, because
// PostgreSQL has done that.
func (j Job) Run(ctx context.Context) error {
	// A server that was killed leaves the lock of its socket, with a number that another process may have by now.
	if err := os.RemoveAll(j.Folder); err != nil {
		return fmt.Errorf("cannot remove what an earlier server left: %w", err)
	}
	if err := durable.Folders(j.Folder); err != nil {
		return err
	}
	s, err := offline.Start(ctx, j.Programs, j.Data, j.Folder, j.Mask.Preload)
	if err != nil {
		return fmt.Errorf("the restored data cannot be masked: %w", err)
	}
	defer s.Kill()
	if err := j.mask(ctx, s); err != nil {
		return err
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	// It says how this server was started, which is not how the member's is.
	if err := os.Remove(filepath.Join(j.Data, "postmaster.opts")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot tidy the masked data: %w", err)
	}
	j.Log.Info("masked what was restored", "statements", len(j.Mask.Statements))
	return nil
}

func (j Job) mask(ctx context.Context, s *offline.Server) error {
	names, err := databases(ctx, s)
	if err != nil {
		return err
	}
	// What was prepared and not committed would come back later, unmasked, and holds locks until then.
	if err := rollBack(ctx, s); err != nil {
		return err
	}
	if err := makeMasker(ctx, s); err != nil {
		return err
	}
	// Statements may be of a tenant who must not see the original: its owner's run first, and then there is nothing of it but the statistics.
	for _, name := range names {
		if err := execute(ctx, s, name, forget...); err != nil {
			return fmt.Errorf("cannot remove the statistics of database %q: %w", name, err)
		}
	}
	for i, st := range j.Mask.Statements {
		if err := run(ctx, s, st); err != nil {
			return fmt.Errorf("statement %d of %d that mask the copy, in database %q: %w; no client can connect to the copy. Correct the statement, "+
				"and make the copy again under another name, because data is copied once", i+1, len(j.Mask.Statements), st.Database, err)
		}
	}
	for _, name := range names {
		if err := tidy(ctx, s, name); err != nil {
			return fmt.Errorf("cannot finish the masking of database %q: %w", name, err)
		}
	}
	return finish(ctx, s)
}

// databases that were restored.
func databases(ctx context.Context, s *offline.Server) ([]string, error) {
	conn, err := superuser(ctx, s, "postgres")
	if err != nil {
		return nil, err
	}
	defer managed.Close(ctx, conn)
	names, err := managed.List(ctx, conn, "select datname from pg_database where datallowconn order by datname")
	if err != nil {
		return nil, fmt.Errorf("cannot list what was restored: %w", err)
	}
	return names, nil
}

// superuser connects to a database. What it does is not logged with the values in it, and not bound by what the owner of the database set
// for it.
func superuser(ctx context.Context, s *offline.Server, database string) (*pgx.Conn, error) {
	return s.Connect(ctx, pgmember.RoleSuperuser, database, map[string]string{
		"log_min_messages": "fatal", "log_min_error_statement": "panic", "statement_timeout": "0", "lock_timeout": "0", "default_transaction_read_only": "off",
	})
}

// rollBack transactions that were prepared.
func rollBack(ctx context.Context, s *offline.Server) error {
	conn, err := superuser(ctx, s, "postgres")
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	rows, err := conn.Query(ctx, "select gid, database from pg_prepared_xacts")
	if err != nil {
		return fmt.Errorf("cannot list prepared transactions: %w", err)
	}
	type prepared struct{ GID, Database string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[prepared])
	if err != nil {
		return fmt.Errorf("cannot list prepared transactions: %w", err)
	}
	for _, p := range all {
		if err := execute(ctx, s, p.Database, "rollback prepared '"+strings.ReplaceAll(p.GID, "'", "''")+"'"); err != nil {
			return fmt.Errorf("cannot roll a prepared transaction back: %w", err)
		}
	}
	return nil
}

// execute statements as superuser in a database.
func execute(ctx context.Context, s *offline.Server, database string, statements ...string) error {
	conn, err := superuser(ctx, s, database)
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// makeMasker makes the login that statements run as. It is no superuser, and has no rights of its own.
func makeMasker(ctx context.Context, s *offline.Server) error {
	err := execute(ctx, s, "postgres",
		"do $$ begin create role "+masker+"; exception when duplicate_object then null; end $$",
		"alter role "+masker+" login nosuperuser nocreatedb nocreaterole noreplication nobypassrls inherit connection limit -1 password null",
		"alter role "+masker+" reset all",
		// The log of the pod gets no values of the original.
		"alter role "+masker+" set log_min_messages = 'fatal'",
		"alter role "+masker+" set log_min_error_statement = 'panic'",
		"alter role "+masker+" set log_statement = 'none'",
	)
	if err != nil {
		return fmt.Errorf("cannot make the login that masks: %w", err)
	}
	return nil
}

// run one statement with the rights of the owner of its database.
func run(ctx context.Context, s *offline.Server, st pgmember.Statement) error {
	owner, err := ownerOf(ctx, s, st.Database)
	if err != nil {
		return err
	}
	// One that waits for this program, as COPY FROM STDIN does, is not ended by the server.
	ctx, cancel := context.WithTimeout(ctx, statementLimit+time.Minute)
	defer cancel()
	// Row-level security hides rows from the owner, too, where a table forces it, and hidden rows would stay as they are.
	if err := execute(ctx, s, "postgres", "alter role "+name(owner)+" bypassrls"); err != nil {
		return fmt.Errorf("cannot show all rows to its owner: %w", err)
	}
	conn, err := s.Connect(ctx, masker, st.Database, map[string]string{
		"role": owner, "search_path": `"$user", public`, "statement_timeout": strconv.FormatInt(statementLimit.Milliseconds(), 10), "default_transaction_read_only": "off",
		// A function that runs as another role fails where rows are hidden from that.
		"row_security": "off",
	})
	if err != nil {
		return said(err)
	}
	defer managed.Close(ctx, conn)
	// The extended protocol takes one statement.
	rows, err := conn.Query(ctx, st.SQL)
	if err != nil {
		return said(err)
	}
	rows.Close()
	if rows.Err() != nil {
		return said(rows.Err())
	}
	if err := execute(ctx, s, "postgres", "alter role "+name(owner)+" nobypassrls"); err != nil {
		return fmt.Errorf("cannot take from its owner that it sees all rows: %w", err)
	}
	return nil
}

// ownerOf a database, whose rights the login gets.
func ownerOf(ctx context.Context, s *offline.Server, database string) (string, error) {
	conn, err := superuser(ctx, s, "postgres")
	if err != nil {
		return "", err
	}
	defer managed.Close(ctx, conn)
	var (
		owner  string
		mighty bool
	)
	err = conn.QueryRow(ctx, `select rolname, rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
		from pg_database d join pg_roles r on r.oid = d.datdba where datname = $1 and datallowconn`, database).Scan(&owner, &mighty)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", errors.New("there is no such database in what was restored")
	case err != nil:
		return "", fmt.Errorf("cannot find its owner: %w", err)
	case mighty:
		return "", errors.New("it belongs to a role of the platform, whose rights no statement gets: name a database of spec.databases")
	}
	if err := execute(ctx, s, "postgres", "grant "+name(owner)+" to "+masker); err != nil {
		return "", fmt.Errorf("cannot use the rights of its owner: %w", err)
	}
	if err := execute(ctx, s, "postgres", "grant connect on database "+name(database)+" to "+masker); err != nil {
		return "", fmt.Errorf("cannot open it: %w", err)
	}
	return owner, nil
}

// forget statistics, which have values of the original.
var forget = []string{
	"set allow_system_table_mods = on",
	"delete from pg_catalog.pg_statistic",
	"delete from pg_catalog.pg_statistic_ext_data",
	"reset allow_system_table_mods",
}

// tidy a database: what the login made of its own goes, and so do dead rows, and statistics that a statement made.
func tidy(ctx context.Context, s *offline.Server, database string) error {
	return execute(ctx, s, database, slices.Concat([]string{"drop owned by " + masker}, forget, []string{"vacuum (analyze)"})...)
}

// finish: the login goes, what was recovered is not recovered again, and no segment stays of the write-ahead log, which has rows of the
// original and would be archived by the member.
func finish(ctx context.Context, s *offline.Server) error {
	err := execute(ctx, s, "postgres",
		"drop role "+masker,
		"alter system reset restore_command",
		"alter system reset recovery_target_time", "alter system reset recovery_target_name", "alter system reset recovery_target_action",
		"alter system reset recovery_target_timeline",
		"select pg_catalog.pg_switch_wal()",
		"checkpoint",
	)
	if err != nil {
		return fmt.Errorf("cannot finish the masking: %w", err)
	}
	return nil
}

// quoted text in a message of the server, from the first quote to the last: a value may have quotes of its own.
var quoted = regexp.MustCompile(`(?s)".*"`)

// said is what the server says of a statement, in one line and without values of the original: where data has the wrong form, the server
// quotes it. Details are left out, because they quote rows.
func said(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return err
	}
	message := refused.Message
	if strings.HasPrefix(refused.Code, "22") {
		message = quoted.ReplaceAllString(message, `"…"`)
	}
	return fmt.Errorf("the server says %q (%s)", process.Head(message, maxSaid), refused.Code)
}

// name quotes an identifier.
func name(n string) string { return pgx.Identifier{n}.Sanitize() }
