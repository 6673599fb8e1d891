// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// What became of an import is in the data itself, in the database postgres, where only the superuser makes anything. So the next leader
// continues where the last one was, and a Database that is deleted and applied again does not import a second time. Each entry is made before
// what it is about, or in place of it, and a commit waits for the other members as a client's does.
var makeRegister = []string{
	"create schema if not exists import",
	`create table if not exists import.databases (name text primary key, phase text not null, tables text[] not null default '{}')`,
	`create table if not exists import.cut_over (id text primary key, phase text not null, message text not null default '', gap bigint not null default 0)`,
}

// Phases of a database, in order.
const (
	phaseRestoring  = "Restoring"  // the schema may be there
	phaseRestored   = "Restored"   // the schema is there
	phaseSubscribed = "Subscribed" // rows are copied, and changes followed
	phaseAnalyzed   = "Analyzed"   // all rows are there, and statistics
)

// Phases of a cut-over.
const (
	cutSkipped = "Skipped" // the Database was created with the id
	cutFencing = "Fencing" // the databases of the source may be read-only by our doing
	cutDrained = "Drained" // everything is here; what connects both sides goes
	cutDone    = "Done"
)

// A progress is what the register says.
type progress struct {
	phases map[string]string
	tables map[string][]string
	cuts   []cut
}

// A cut is a cut-over by its id.
type cut struct {
	id, phase, message string
	gap                int64
}

// by id, or in a phase.
func (p progress) cut(match func(cut) bool) *cut {
	for i := range p.cuts {
		if match(p.cuts[i]) {
			return &p.cuts[i]
		}
	}
	return nil
}

func (p progress) ended() *cut   { return p.cut(func(c cut) bool { return c.phase == cutDone }) }
func (p progress) drained() *cut { return p.cut(func(c cut) bool { return c.phase == cutDrained }) }
func (p progress) fencing() *cut { return p.cut(func(c cut) bool { return c.phase == cutFencing }) }

// skipped id: the Database was created with it.
func (p progress) skipped() string {
	if c := p.cut(func(c cut) bool { return c.phase == cutSkipped }); c != nil {
		return c.id
	}
	return ""
}

// local opens a database of this server as superuser. Names are looked up in pg_catalog only.
func local(ctx context.Context, database string) (*pgx.Conn, error) {
	return managed.Dial(ctx, pgmember.FolderSocket, pgmember.PortPostgres, pgmember.RoleSuperuser, database, map[string]string{
		"application_name": application, "synchronous_commit": "on", "lock_timeout": "30s",
		"log_statement": "none", "log_min_error_statement": "panic", "log_min_duration_statement": "-1", "client_min_messages": "warning",
		"pg_stat_statements.track_utility": "off",
	})
}

// read the register, and make it when there is none. The id of a cut-over that is requested at that moment cuts nothing over, or a manifest
// that is applied again would end the service of a source in use.
func readRegister(ctx context.Context, conn *pgx.Conn, requested string) (progress, error) {
	p := progress{phases: map[string]string{}, tables: map[string][]string{}}
	var there bool
	if err := conn.QueryRow(ctx, "select to_regclass('import.cut_over') is not null").Scan(&there); err != nil {
		return p, fmt.Errorf("cannot look for the register of the import: %w", err)
	}
	if !there {
		statements := makeRegister
		if requested != "" {
			statements = append(statements[:len(statements):len(statements)],
				"insert into import.cut_over (id, phase) values ("+text(requested)+", "+text(cutSkipped)+")")
		}
		if err := all(ctx, conn, statements...); err != nil {
			return p, fmt.Errorf("cannot make the register of the import: %w", err)
		}
	}
	rows, err := conn.Query(ctx, "select name, phase, tables from import.databases")
	if err != nil {
		return p, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	var name, phase string
	var tables []string
	if _, err := pgx.ForEachRow(rows, []any{&name, &phase, &tables}, func() error {
		p.phases[name], p.tables[name] = phase, tables
		tables = nil
		return nil
	}); err != nil {
		return p, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	rows, err = conn.Query(ctx, "select id, phase, message, gap from import.cut_over")
	if err != nil {
		return p, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	p.cuts, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (cut, error) {
		var c cut
		return c, r.Scan(&c.id, &c.phase, &c.message, &c.gap)
	})
	if err != nil {
		return p, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	return p, nil
}

// note the phase of a database, and once its schema is known also its tables.
func note(ctx context.Context, conn *pgx.Conn, database, phase string, tables []string) error {
	_, err := conn.Exec(ctx, `insert into import.databases as d (name, phase, tables) values ($1, $2, coalesce($3::text[], '{}'))
		on conflict (name) do update set phase = $2, tables = coalesce($3, d.tables)`, database, phase, tables)
	if err != nil {
		return fmt.Errorf("cannot note how far database %q is: %w", database, err)
	}
	return nil
}

// noteCut notes the phase of a cut-over.
func noteCut(ctx context.Context, conn *pgx.Conn, c cut) error {
	_, err := conn.Exec(ctx, `insert into import.cut_over (id, phase, message, gap) values ($1, $2, $3, $4)
		on conflict (id) do update set phase = $2, message = $3, gap = $4`, c.id, c.phase, c.message, c.gap)
	if err != nil {
		return fmt.Errorf("cannot note how far the cut-over is: %w", err)
	}
	return nil
}

// prefix of everything that an import makes on both sides.
const prefix = "capstan_"

// named is the name of slot, publication and subscription of a database: it begins with the Database's, and no other one has it.
func named(database, identity, logical string) string {
	sum := sha256.Sum256([]byte(identity + "/" + logical))
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, database)
	return prefix + clean[:min(len(clean), 40)] + "_" + hex.EncodeToString(sum[:])[:12]
}

// all statements in one transaction.
func all(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// text quotes a string constant, and name an identifier. Both servers have standard_conforming_strings on, or the source refuses.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
func name(n string) string { return pgx.Identifier{n}.Sanitize() }

// Release removes subscriptions of an import from data that is no import, because it was restored from a backup that was taken while there
// was one. It leaves the source alone: slots there are another Database's.
func Release(ctx context.Context) error {
	conn, err := local(ctx, "postgres")
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	rows, err := conn.Query(ctx, `select d.datname::text, s.subname::text from pg_subscription s join pg_database d on d.oid = s.subdbid
		where s.subname like 'capstan\_%' and pg_get_userbyid(s.subowner) = $1`, pgmember.RoleSuperuser)
	if err != nil {
		return fmt.Errorf("cannot look for subscriptions: %w", err)
	}
	type sub struct{ Database, Name string }
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sub])
	if err != nil {
		return fmt.Errorf("cannot look for subscriptions: %w", err)
	}
	var problems []error
	for _, s := range found {
		problems = append(problems, within(ctx, s.Database, func(conn *pgx.Conn) error { return dropSubscription(ctx, conn, s.Name) }))
	}
	return errors.Join(problems...)
}

// within a database of this server.
func within(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := local(ctx, database)
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	return do(conn)
}

// dropSubscription here only. Its slot stays where it is.
func dropSubscription(ctx context.Context, conn *pgx.Conn, which string) error {
	var there bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_subscription s join pg_database d on d.oid = s.subdbid
		where d.datname = current_database() and s.subname = $1)`, which).Scan(&there); err != nil {
		return fmt.Errorf("cannot look for subscription %q: %w", which, err)
	}
	if !there {
		return nil
	}
	for _, statement := range []string{"alter subscription %s disable", "alter subscription %s set (slot_name = none)", "drop subscription %s"} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(statement, name(which))); err != nil {
			return fmt.Errorf("cannot remove subscription %q: %w", which, err)
		}
	}
	return nil
}
