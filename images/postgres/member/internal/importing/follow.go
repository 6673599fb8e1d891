// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// begin copies the schema of a database, and subscribes to its rows and changes. It may be called again at any point.
func (r *run) begin(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase, seen database) error {
	phase := r.progress.phases[d.Name]
	if phase == "" || phase == phaseRestoring {
		if err := note(ctx, conn, d.Name, phaseRestoring, nil); err != nil {
			return err
		}
		if err := r.restore(ctx, d); err != nil {
			return err
		}
		var prints []string
		for _, t := range seen.Tables {
			prints = append(prints, t.fingerprint())
		}
		if err := note(ctx, conn, d.Name, phaseRestored, prints); err != nil {
			return err
		}
	}
	which := r.named(d.Name)
	if err := r.publish(ctx, d.Source, which, seen.roots(r.config.Skip)); err != nil {
		return err
	}
	if err := r.subscribe(ctx, d, which); err != nil {
		return err
	}
	return note(ctx, conn, d.Name, phaseSubscribed, nil)
}

// restore the schema, unless it is there: it comes all or not.
func (r *run) restore(ctx context.Context, d pgmember.ImportDatabase) error {
	var by string
	if err := within(ctx, d.Name, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, occupied).Scan(&by) }); err != nil {
		return fmt.Errorf("cannot look at what is in database %q: %w", d.Name, err)
	}
	if by != "" {
		return nil
	}
	return r.schema.copy(ctx, d)
}

// publish the tables of a database of the source.
func (r *run) publish(ctx context.Context, database, which string, tables []table) error {
	conn, err := r.from.connect(ctx, database)
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_publication where pubname = $1)", which).Scan(&there); err != nil || there {
		return said(err)
	}
	statement := "create publication " + name(which)
	if len(tables) > 0 {
		names := make([]string, 0, len(tables))
		for _, t := range tables {
			names = append(names, pgx.Identifier{t.Schema, t.Name}.Sanitize())
		}
		statement += " for table " + strings.Join(names, ", ")
	}
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("cannot publish the tables of database %q of the source: %w", database, said(err))
	}
	return nil
}

// subscribe to them. A slot without a subscription is left from a try that did not end.
//
// A commit of the worker waits for the other members before the source hears that it was applied. Otherwise a failover could lose what the
// source keeps no more.
func (r *run) subscribe(ctx context.Context, d pgmember.ImportDatabase, which string) error {
	return within(ctx, d.Name, func(conn *pgx.Conn) error {
		var there bool
		if err := conn.QueryRow(ctx, "select exists (select from pg_subscription where subname = $1)", which).Scan(&there); err != nil || there {
			return err
		}
		if err := r.from.dropSlot(ctx, d.Source, which); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, fmt.Sprintf("create subscription %[1]s connection %[2]s publication %[1]s with (slot_name = %[3]s, synchronous_commit = on)",
			name(which), text(r.from.conninfo(d.Source)), text(which)))
		if err != nil {
			return fmt.Errorf("cannot subscribe to database %q of the source: %w", d.Source, said(err))
		}
		return nil
	})
}

// dropSlot of the source that nothing reads.
func (s source) dropSlot(ctx context.Context, database, which string) error {
	conn, err := s.connect(ctx, database)
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	if _, err := conn.Exec(ctx, "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1 and not active", which); err != nil {
		return fmt.Errorf("cannot drop replication slot %q of the source: %w", which, said(err))
	}
	return nil
}

// A position of the import.
type position struct {
	// Tables that are followed, Copied of them, and Errors of the workers since they began.
	Tables, Copied, Errors int64
	// Behind is how many bytes are not applied, and Moved the sum of the places up to which they are.
	Behind, Moved int64
	// Lost names a slot whose changes the source has removed.
	Lost string
	// Changed are tables of the source that are no more what was copied.
	Changed []string
}

// position of all databases, on both sides.
func (r *run) position(ctx context.Context) (position, error) {
	var all position
	for _, d := range r.config.Databases {
		which := r.named(d.Name)
		err := within(ctx, d.Name, func(conn *pgx.Conn) error {
			if err := reconnect(ctx, conn, which, r.from.conninfo(d.Source)); err != nil {
				return err
			}
			var tables, copied, errs int64
			err := conn.QueryRow(ctx, `select count(t.srrelid), count(t.srrelid) filter (where t.srsubstate = 'r'),
				coalesce((select apply_error_count + sync_error_count from pg_stat_subscription_stats x where x.subid = s.oid), 0)
				from pg_subscription s left join pg_subscription_rel t on t.srsubid = s.oid where s.subname = $1 group by s.oid`, which).Scan(&tables, &copied, &errs)
			all.Tables, all.Copied, all.Errors = all.Tables+tables, all.Copied+copied, all.Errors+errs
			return err
		})
		if err != nil {
			return all, fmt.Errorf("cannot look at the subscription of database %q: %w", d.Name, err)
		}
		if err := r.far(ctx, d, which, &all); err != nil {
			return all, err
		}
	}
	return all, nil
}

// reconnect a subscription when the Secret has another user since, or another authority.
func reconnect(ctx context.Context, conn *pgx.Conn, which, conninfo string) error {
	var is string
	if err := conn.QueryRow(ctx, "select subconninfo from pg_subscription where subname = $1", which).Scan(&is); err != nil || is == conninfo {
		return err
	}
	_, err := conn.Exec(ctx, "alter subscription "+name(which)+" connection "+text(conninfo))
	return err
}

// far is the side of the source.
func (r *run) far(ctx context.Context, d pgmember.ImportDatabase, which string, all *position) error {
	conn, err := r.from.connect(ctx, d.Source)
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	var lost bool
	var behind, at int64
	lostSlot := "false"
	if sourceVersion(conn) >= 130000 {
		lostSlot = "wal_status = 'lost'"
	}
	err = conn.QueryRow(ctx, `select coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint, coalesce(pg_wal_lsn_diff(confirmed_flush_lsn, '0/0'), 0)::bigint, `+
		lostSlot+` from pg_replication_slots where slot_name = $1`, which).Scan(&behind, &at, &lost)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		lost = true
	case err != nil:
		return fmt.Errorf("cannot look at replication slot %q of the source: %w", which, said(err))
	}
	if lost {
		all.Lost = which
	}
	all.Behind, all.Moved = max(all.Behind, behind), all.Moved+at
	now, err := tables(ctx, conn, which)
	if err != nil {
		return err
	}
	all.Changed = append(all.Changed, changed(r.progress.tables[d.Name], now)...)
	return nil
}

// sourceVersion as its number, such as 160004, as the server says it when a session begins.
func sourceVersion(conn *pgx.Conn) int {
	var major, minor int
	if n, _ := fmt.Sscanf(conn.PgConn().ParameterStatus("server_version"), "%d.%d", &major, &minor); n < 1 {
		return 0
	}
	return major*10000 + minor
}

// changed are tables that were added, removed or altered since the schema was copied.
func changed(before []string, now []table) []string {
	var names []string
	prints := make([]string, 0, len(now))
	for _, t := range now {
		prints = append(prints, t.fingerprint())
		if !slices.Contains(before, t.fingerprint()) {
			names = append(names, t.String())
		}
	}
	for _, p := range before {
		if !slices.Contains(prints, p) {
			table, _, _ := strings.Cut(p, "(")
			names = append(names, table)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// analyze a database, so that its first queries have statistics.
func analyze(ctx context.Context, database string) error {
	return within(ctx, database, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "analyze"); err != nil {
			return fmt.Errorf("cannot analyze database %q: %w", database, err)
		}
		return nil
	})
}
