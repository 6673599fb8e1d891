// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// schemaLimit is how long a dump or a restore of a schema may take.
const schemaLimit = 15 * time.Minute

// removeLimit is how long the login of a restore may take to go when that was cancelled.
const removeLimit = time.Minute

// maxSchema is how large a dump of a schema may be, in bytes. The source must not fill the volume with it.
const maxSchema = 256 << 20

// maxSaid is how much of what a program says is reported, in bytes.
const maxSaid = 600

// A schemaCopy copies the schema of one database, all or nothing.
type schemaCopy struct {
	from     source
	programs string // folder
	memory   string // folder for passwords
	disk     string // folder for dumps; it is removed afterwards
	ip       string // of this member
}

// copy the schema of a database of the source. Before it is restored, its tables are noted.
func (c schemaCopy) copy(ctx context.Context, d members.ImportDatabase, note func([]table) error) error {
	ctx, cancel := context.WithTimeout(ctx, schemaLimit)
	defer cancel()
	if err := errors.Join(os.RemoveAll(c.disk), os.Mkdir(c.disk, 0o700)); err != nil {
		return fmt.Errorf("cannot make a folder for the schema: %w", err)
	}
	defer func() { _ = os.RemoveAll(c.disk) }()
	dump, list := filepath.Join(c.disk, "schema"), filepath.Join(c.disk, "list")
	seen, err := c.dump(ctx, d.Source, dump)
	if err != nil {
		return err
	}
	entries, err := c.run(ctx, "pg_restore", "--list", dump)
	if err != nil {
		return fmt.Errorf("cannot list the schema of database %q of the source: %w", d.Source, err)
	}
	if err := note(seen); err != nil {
		return err
	}
	return within(ctx, d.Name, func(conn *pgx.Conn) error {
		made, err := managed.List(ctx, conn, "select extname::text from pg_extension")
		if err != nil {
			return fmt.Errorf("cannot list extensions: %w", err)
		}
		if err := os.WriteFile(list, []byte(restorable(entries, made)), 0o600); err != nil {
			return fmt.Errorf("cannot keep the list of the schema: %w", err)
		}
		return c.restore(ctx, conn, d.Name, dump, list)
	})
}

// dump the schema to a file. The list of tables is of the same snapshot, so that neither has a table that the other lacks.
func (c schemaCopy) dump(ctx context.Context, database, to string) (seen []table, err error) {
	from := c.from
	from.limit = schemaLimit
	err = from.visit(ctx, database, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "set idle_in_transaction_session_timeout = 0"); err != nil {
			return fmt.Errorf("cannot begin a snapshot of the source: %w", said(err))
		}
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			var snapshot string
			if err := tx.QueryRow(ctx, "select pg_export_snapshot()").Scan(&snapshot); err != nil {
				return fmt.Errorf("cannot make a snapshot of the source: %w", said(err))
			}
			if seen, err = tables(ctx, conn, ""); err != nil {
				return err
			}
			file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
			if err != nil {
				return fmt.Errorf("cannot keep the schema: %w", err)
			}
			defer func() { _ = file.Close() }()
			bounded := &bounded{to: file, left: maxSchema}
			if err := c.pipe(ctx, bounded, "pg_dump", "--format=custom", "--schema-only", "--no-owner", "--no-privileges", "--no-publications", "--no-subscriptions",
				"--no-security-labels", "--no-tablespaces", "--lock-wait-timeout=60s", "--snapshot="+snapshot, "--dbname="+from.libpq(database)); err != nil {
				if bounded.left < 0 {
					return fmt.Errorf("the schema of database %q of the source is larger than %s: make it smaller", database, importing.Size(maxSchema))
				}
				return fmt.Errorf("cannot dump the schema of database %q of the source: %w", database, err)
			}
			return file.Close()
		})
	})
	return seen, err
}

// bounded writes no more than it may.
type bounded struct {
	to   io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errors.New("too much")
	}
	return b.to.Write(p)
}

// restore a schema as a login that can do what the owner of the database can, and no more.
func (c schemaCopy) restore(ctx context.Context, conn *pgx.Conn, database, dump, list string) error {
	return asRestorer(ctx, conn, restorerOf{memory: c.memory, ip: c.ip, limit: schemaLimit, sessions: 2}, func(here source, owner string) error {
		if _, err := c.run(ctx, "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", "--role="+owner, "--use-list="+list,
			"--dbname="+here.libpq(database), dump); err != nil {
			return fmt.Errorf("cannot restore the schema of database %q: %w", database, err)
		}
		return nil
	})
}

// A restorerOf a member: the folder for its password, the address of the server, for how long it logs in, and how many sessions it has.
type restorerOf struct {
	memory, ip string
	limit      time.Duration
	sessions   int
}

// asRestorer makes a login that can do what the owner of the database of a session can, and no more, for as long as something takes. A dump is a
// script of its source: it could leave any role that a session may leave, so the session must not be one of the superuser.
func asRestorer(ctx context.Context, conn *pgx.Conn, of restorerOf, do func(here source, owner string) error) error {
	owner, err := owner(ctx, conn)
	if err != nil {
		return err
	}
	if err := removeRole(ctx, conn, restorer); err != nil {
		return err
	}
	// It is removed also when this was cancelled; what a leader that was killed has left is removed by the next look of any leader.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		_ = removeRole(ctx, conn, restorer)
	}()
	password, passwords := rand.Text(), filepath.Join(of.memory, "import-restore-pgpass")
	if err := writePassword(passwords, password); err != nil {
		return fmt.Errorf("cannot keep a password: %w", err)
	}
	defer func() { _ = os.Remove(passwords) }()
	until := time.Now().Add(of.limit).UTC().Format(time.RFC3339)
	if err := mayActAs(ctx, conn, restorer, owner, fmt.Sprintf(" connection limit %d password %s valid until %s", of.sessions, text(password), text(until))); err != nil {
		return err
	}
	here := source{host: of.ip, port: pgmember.PortPostgres, mode: "require", user: restorer, password: password, passwords: passwords}
	if err := do(here, owner); err != nil {
		return err
	}
	return removeRole(ctx, conn, restorer)
}

// restorable are the entries of a dump that the owner of a database can restore: what this server has already, and what only a superuser
// makes, is left out.
func restorable(entries string, made []string) string {
	var kept strings.Builder
	for line := range strings.Lines(entries) {
		if !leftOut(line, made) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// kindExtension of an entry of a dump.
const kindExtension = "EXTENSION"

// leftOut reports whether an entry is, such as "2; 3079 16385 EXTENSION - hstore ".
func leftOut(line string, made []string) bool {
	_, rest, found := strings.Cut(line, "; ")
	words := strings.Fields(rest)
	if !found || strings.HasPrefix(line, ";") || len(words) < 5 {
		return false
	}
	kind := words[2:]
	switch {
	case kind[0] == kindExtension:
		return slices.Contains(made, kind[2])
	case kind[0] == "EVENT" && kind[1] == "TRIGGER", kind[0] == "PUBLICATION", kind[0] == "SUBSCRIPTION":
		return true
	case kind[0] == "SCHEMA":
		return kind[2] == "public"
	case kind[0] != "COMMENT" || len(kind) < 4:
		return false
	default:
		return kind[2] == kindExtension || kind[2] == "EVENT" || kind[2] == "SCHEMA" && kind[3] == "public"
	}
}

// run a program of PostgreSQL, and return what it writes to its output.
func (c schemaCopy) run(ctx context.Context, program string, args ...string) (string, error) {
	var out bytes.Buffer
	err := c.pipe(ctx, &out, program, args...)
	return out.String(), err
}

// pipe the output of a program of PostgreSQL. The error has what it said.
func (c schemaCopy) pipe(ctx context.Context, to io.Writer, program string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, program), args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = to, &bounded{to: &said, left: 1 << 20}
	if err := process.Do(cmd, 10*time.Second); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, process.Tail(said.String(), maxSaid))
	}
	return nil
}
