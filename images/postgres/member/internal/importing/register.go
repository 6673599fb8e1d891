// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// What became of an import is in the data itself, in the database postgres, where only the superuser makes anything. So the next leader
// continues where the last one was, and a Database that is deleted and applied again does not import a second time. Each entry is made before
// what it is about, or in place of it, and a commit waits for the other members as a client's does.
var makeRegister = []string{
	"create schema if not exists import",
	`create table if not exists import.databases (name text primary key, source text not null, phase text not null, tables text[] not null default '{}',
		publication text not null default '', server text not null default '', changed text not null default '')`,
	`create table if not exists import.cut_over (id text primary key, phase text not null, message text not null default '', gap bigint not null default 0)`,
	`create table if not exists import.fences (database text primary key, source text not null, cut text not null, was text, since timestamptz)`,
	`create table if not exists import.object (uid text primary key)`,
}

// follows reports whether rows of a database are copied, and changes followed.
func (p progress) follows(database string) bool {
	phase := p.phases[database]
	return phase == phaseSubscribed || phase == phaseAnalyzed
}

// Phases of a database, in order.
const (
	phaseRestoring  = "Restoring"  // the schema may be there
	phaseRestored   = "Restored"   // the schema is there
	phaseSubscribed = "Subscribed" // rows are copied, and changes followed
	phaseAnalyzed   = "Analyzed"   // all rows are there, and statistics
	phaseLeft       = "Left"       // it is no longer imported, and the source has something of it
)

// A progress is what the register says.
type progress struct {
	phases  map[string]string
	sources map[string]string
	tables  map[string][]string
	// left are databases that are no longer imported, with their sources.
	left map[string]string
	// publications as they were when rows were begun to be copied.
	publications map[string]string
	// servers are the identifiers of the servers that rows are copied from, and "" when they withhold it.
	servers map[string]string
	// changed is what was changed at the source while a database was followed, and "" for nothing. Changes of rows may be missing since, also
	// when it was undone: so it stays.
	changed map[string]string
	cuts    importing.Cuts
	fences  []fenced
}

// unlisted are the databases that are not imported any more, by their names.
func (p progress) unlisted(listed []members.ImportDatabase) []members.ImportDatabase {
	all := maps.Clone(p.left)
	maps.Copy(all, p.sources)
	var out []members.ImportDatabase
	for _, d := range slices.Sorted(maps.Keys(all)) {
		if !slices.ContainsFunc(listed, func(i members.ImportDatabase) bool { return i.Name == d }) {
			out = append(out, members.ImportDatabase{Name: d, Source: all[d]})
		}
	}
	return out
}

// A fenced database of the source may be read-only by a cut-over. That is in the register before anything is altered, and until it is undone.
type fenced struct {
	database, source string
	// cut is the id of the cut-over.
	cut string
	// was is the setting of the database before. Nil: it had none.
	was *string
	// since when it is read-only, by the clock of the source. Nil: perhaps it is not.
	since *time.Time
}

// local opens a database of this server as superuser. Names are looked up in pg_catalog only, and what the owner of a database can set for it has
// no effect.
func local(ctx context.Context, database string) (*pgx.Conn, error) {
	return managed.Dial(ctx, pgmember.FolderSocket, pgmember.PortPostgres, pgmember.RoleSuperuser, database, map[string]string{
		"application_name": application, "synchronous_commit": "on", "lock_timeout": "30s", "statement_timeout": "2min", "idle_session_timeout": "0",
		"default_transaction_read_only": "off", "default_transaction_isolation": "read committed",
		"log_statement": "none", "log_min_error_statement": "panic", "log_min_duration_statement": "-1", "client_min_messages": "warning",
		"pg_stat_statements.track_utility": "off",
	})
}

// read the register, and make it when there is none. The id of a cut-over that is requested when an object first meets its data cuts nothing
// over, or a manifest that is applied again would end the service of a source in use: also over volumes that an earlier object has left.
func readRegister(ctx context.Context, conn *pgx.Conn, object, requested string) (progress, error) {
	statements := slices.Clone(makeRegister)
	var there, known bool
	if err := conn.QueryRow(ctx, "select to_regclass('import.object') is not null").Scan(&there); err != nil {
		return progress{}, fmt.Errorf("cannot look for the register of the import: %w", err)
	}
	if there {
		statements = nil
		if err := conn.QueryRow(ctx, "select exists (select from import.object where uid = $1)", object).Scan(&known); err != nil {
			return progress{}, fmt.Errorf("cannot look at the register of the import: %w", err)
		}
	}
	if !known {
		statements = append(statements, "delete from import.object", "insert into import.object (uid) values ("+text(object)+")",
			"delete from import.cut_over where phase = "+text(importing.CutSkipped),
			// What an earlier object did to the source is undone.
			"update import.fences set cut = ''")
		if requested != "" {
			statements = append(statements, "insert into import.cut_over (id, phase) values ("+text(requested)+", "+text(importing.CutSkipped)+") on conflict do nothing")
		}
		if err := all(ctx, conn, statements...); err != nil {
			return progress{}, fmt.Errorf("cannot write the register of the import: %w", err)
		}
	}
	return readProgress(ctx, conn)
}

func readProgress(ctx context.Context, conn *pgx.Conn) (progress, error) {
	p := progress{
		phases: map[string]string{}, sources: map[string]string{}, tables: map[string][]string{},
		left: map[string]string{}, publications: map[string]string{}, servers: map[string]string{}, changed: map[string]string{},
	}
	rows, err := conn.Query(ctx, "select name, source, phase, tables, publication, server, changed from import.databases")
	if err != nil {
		return p, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	var name, source, phase, publication, server, changed string
	var tables []string
	if _, err := pgx.ForEachRow(rows, []any{&name, &source, &phase, &tables, &publication, &server, &changed}, func() error {
		if phase == phaseLeft {
			p.left[name] = source
			return nil
		}
		p.phases[name], p.sources[name], p.tables[name] = phase, source, tables
		p.publications[name], p.servers[name], p.changed[name] = publication, server, changed
		tables = nil
		return nil
	}); err != nil {
		return p, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	rows, err = conn.Query(ctx, "select id, phase, message, gap from import.cut_over")
	if err != nil {
		return p, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	p.cuts, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (importing.Cut, error) {
		var c importing.Cut
		return c, r.Scan(&c.ID, &c.Phase, &c.Message, &c.Gap)
	})
	if err != nil {
		return p, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	p.fences, err = readFences(ctx, conn)
	return p, err
}

// note the phase of a database, and once its schema is known also its tables.
func note(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase, phase string, tables []string) error {
	_, err := conn.Exec(ctx, `insert into import.databases as d (name, source, phase, tables) values ($1, $2, $3, coalesce($4::text[], '{}'))
		on conflict (name) do update set source = $2, phase = $3, tables = coalesce($4, d.tables)`, d.Name, d.Source, phase, tables)
	if err != nil {
		return fmt.Errorf("cannot note how far database %q is: %w", d.Name, err)
	}
	return nil
}

// noteChanged notes that the source changed what is followed, for good.
func (p progress) noteChanged(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase, what string) error {
	if p.changed[d.Name] != "" || what == "" {
		return nil
	}
	if _, err := conn.Exec(ctx, "update import.databases set changed = $2 where name = $1 and changed = ''", d.Name, what); err != nil {
		return fmt.Errorf("cannot note what the source changed in database %q: %w", d.Name, err)
	}
	p.changed[d.Name] = what
	return nil
}

// notePublished notes what the publication of a database is before rows are copied by it, and the identifier of the server.
func notePublished(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase, publication, server string) error {
	if _, err := conn.Exec(ctx, "update import.databases set publication = $2, server = $3 where name = $1", d.Name, publication, server); err != nil {
		return fmt.Errorf("cannot note how database %q is published: %w", d.Name, err)
	}
	return nil
}

func readFences(ctx context.Context, conn *pgx.Conn) ([]fenced, error) {
	rows, err := conn.Query(ctx, "select database, source, cut, was, since from import.fences order by 1")
	if err != nil {
		return nil, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (fenced, error) {
		var f fenced
		return f, r.Scan(&f.database, &f.source, &f.cut, &f.was, &f.since)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the register of the import: %w", err)
	}
	return out, nil
}

func noteFence(ctx context.Context, conn *pgx.Conn, f fenced) error {
	_, err := conn.Exec(ctx, `insert into import.fences (database, source, cut, was, since) values ($1, $2, $3, $4, $5)
		on conflict (database) do update set since = $5`, f.database, f.source, f.cut, f.was, f.since)
	if err != nil {
		return fmt.Errorf("cannot note that database %q of the source is made read-only: %w", f.source, err)
	}
	return nil
}

// noteCut notes the phase of a cut-over.
func noteCut(ctx context.Context, conn *pgx.Conn, c importing.Cut) error {
	_, err := conn.Exec(ctx, `insert into import.cut_over (id, phase, message, gap) values ($1, $2, $3, $4)
		on conflict (id) do update set phase = $2, message = $3, gap = $4`, c.ID, c.Phase, c.Message, c.Gap)
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

// text quotes a string constant, and name an identifier. Every session on both sides has standard_conforming_strings on.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
func name(n string) string { return pgx.Identifier{n}.Sanitize() }

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
