// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// restorer is the login that the schema is restored as. It may do what the owner of the database may, and no more: a dump is a script of
// the source's administrators, and a superuser must not run it.
const restorer = prefix + "import"

// schemaLimit is how long a dump or a restore of a schema may take.
const schemaLimit = 15 * time.Minute

// maxSaid is how much of what a program says is reported, in bytes.
const maxSaid = 600

// A schemaCopy copies the schema of one database, all or nothing.
type schemaCopy struct {
	from     source
	programs string // folder
	folder   string // for files, in memory
	ip       string // of this member
}

// copy the schema of a database of the source.
func (c schemaCopy) copy(ctx context.Context, d pgmember.ImportDatabase) error {
	ctx, cancel := context.WithTimeout(ctx, schemaLimit)
	defer cancel()
	folder, err := os.MkdirTemp(c.folder, "import-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the schema: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	dump, list := filepath.Join(folder, "schema"), filepath.Join(folder, "list")
	if _, err := c.run(ctx, "pg_dump", "--format=custom", "--schema-only", "--no-owner", "--no-privileges", "--no-publications", "--no-subscriptions",
		"--no-security-labels", "--no-tablespaces", "--lock-wait-timeout=60s", "--file="+dump, "--dbname="+c.from.conninfo(d.Source)); err != nil {
		return fmt.Errorf("cannot dump the schema of database %q of the source: %w", d.Source, err)
	}
	entries, err := c.run(ctx, "pg_restore", "--list", dump)
	if err != nil {
		return fmt.Errorf("cannot list the schema of database %q of the source: %w", d.Source, err)
	}
	return within(ctx, d.Name, func(conn *pgx.Conn) error {
		made, err := managed.List(ctx, conn, "select extname::text from pg_extension")
		if err != nil {
			return fmt.Errorf("cannot list extensions: %w", err)
		}
		var owner string
		if err := conn.QueryRow(ctx, "select pg_get_userbyid(datdba)::text from pg_database where datname = current_database()").Scan(&owner); err != nil {
			return fmt.Errorf("cannot find the owner of database %q: %w", d.Name, err)
		}
		if err := os.WriteFile(list, []byte(restorable(entries, made)), 0o600); err != nil {
			return fmt.Errorf("cannot keep the list of the schema: %w", err)
		}
		passwords := filepath.Join(folder, "pgpass")
		password := rand.Text()
		if err := os.WriteFile(passwords, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
			return fmt.Errorf("cannot keep a password: %w", err)
		}
		if err := login(ctx, conn, owner, password); err != nil {
			return fmt.Errorf("cannot make the login that restores the schema: %w", err)
		}
		_, err = c.run(ctx, "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", "--role="+owner, "--use-list="+list,
			"--dbname="+source{host: c.ip, port: pgmember.PortPostgres, mode: "require", user: restorer, passwords: passwords}.conninfo(d.Name), dump)
		if gone := logout(ctx, conn); err == nil && gone != nil {
			return fmt.Errorf("cannot remove the login that restored the schema: %w", gone)
		}
		if err != nil {
			return fmt.Errorf("cannot restore the schema of database %q: %w", d.Name, err)
		}
		return nil
	})
}

// login that may act as the owner of the database, with a password that is used once.
func login(ctx context.Context, conn *pgx.Conn, owner, password string) error {
	if err := logout(ctx, conn); err != nil {
		return err
	}
	grant := "grant " + name(owner) + " to " + name(restorer)
	return all(ctx, conn, "create role "+name(restorer)+" login nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit 2 password "+text(password), grant)
}

func logout(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(context.WithoutCancel(ctx), "drop role if exists "+name(restorer))
	return err
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

// leftOut reports whether an entry is, such as "2; 3079 16385 EXTENSION - hstore ".
func leftOut(line string, made []string) bool {
	_, rest, found := strings.Cut(line, "; ")
	words := strings.Fields(rest)
	if !found || strings.HasPrefix(line, ";") || len(words) < 5 {
		return false
	}
	kind := words[2:]
	switch {
	case kind[0] == "EXTENSION":
		return slices.Contains(made, kind[2])
	case kind[0] == "EVENT" && kind[1] == "TRIGGER", kind[0] == "PUBLICATION", kind[0] == "SUBSCRIPTION":
		return true
	case kind[0] == "SCHEMA":
		return kind[2] == "public"
	case kind[0] != "COMMENT" || len(kind) < 4:
		return false
	default:
		return kind[2] == "EXTENSION" || kind[2] == "EVENT" || kind[2] == "SCHEMA" && kind[3] == "public"
	}
}

// run a program of PostgreSQL, and return what it writes to its output. The error has what it said.
func (c schemaCopy) run(ctx context.Context, program string, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, program), args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := process.Do(cmd, 10*time.Second); err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, process.Tail(said.String(), maxSaid))
	}
	return out.String(), nil
}
