// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/importing"
)

// begin copies the schema of a database, and subscribes to its rows and changes. It may be called again at any point.
func (r *run) begin(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) error {
	if phase := r.progress.phases[d.Name]; phase == "" || phase == phaseRestoring {
		if err := r.restore(ctx, conn, d); err != nil {
			return err
		}
		if err := note(ctx, conn, d, phaseRestored, nil); err != nil {
			return err
		}
	}
	which := r.named(d.Name)
	// A leader that was lost may have noted no more: what it enabled was accepted before, and copies already.
	if r.progress.phases[d.Name] == phaseRestored {
		switch enabled, err := enabled(ctx, conn, d.Name, which); {
		case err != nil:
			return err
		case enabled:
			return note(ctx, conn, d, phaseSubscribed, nil)
		}
	}
	var server string
	if err := r.from.visit(ctx, d.Source, func(ctx context.Context, conn *pgx.Conn) error {
		server = identifier(ctx, conn)
		return nil
	}); err != nil {
		return err
	}
	followed, published, err := r.publish(ctx, d.Source, which, r.progress.tables[d.Name])
	if err != nil {
		return err
	}
	if err := notePublished(ctx, conn, d, published, server); err != nil {
		return err
	}
	r.progress.publications[d.Name], r.progress.servers[d.Name] = published, server
	if err := r.subscribe(ctx, d, which, followed); err != nil {
		return err
	}
	return note(ctx, conn, d, phaseSubscribed, nil)
}

// restore the schema, unless it is there: it comes all or not, and what tables it has is noted before.
func (r *run) restore(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) error {
	// A leader that was lost may have left a session that still restores.
	if err := removeRole(ctx, conn, restorer); err != nil {
		return err
	}
	var by string
	if err := within(ctx, d.Name, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, occupied).Scan(&by) }); err != nil {
		return fmt.Errorf("cannot look at what is in database %q: %w", d.Name, err)
	}
	if by != "" && r.progress.phases[d.Name] == phaseRestoring {
		return nil
	}
	return r.schema.copy(ctx, d, func(seen []table) error {
		// They may have changed since the check of the source.
		if err := twice(seen); err != nil {
			return fmt.Errorf("database %q of the source: %w", d.Source, err)
		}
		prints := make([]string, 0, len(seen))
		for _, t := range seen {
			prints = append(prints, t.fingerprint())
		}
		r.progress.tables[d.Name] = prints
		return note(ctx, conn, d, phaseRestoring, prints)
	})
}

// publish the tables of a database of the source, which have to be the ones that were copied. It returns the ones that are followed, and the
// fingerprint of the publication.
func (r *run) publish(ctx context.Context, from, which string, copied []string) (followed []object, published string, err error) {
	err = r.from.visit(ctx, from, func(ctx context.Context, conn *pgx.Conn) error {
		now, err := tables(ctx, conn, which)
		if err != nil {
			return err
		}
		switch lost, added := changed(copied, now); {
		case len(lost) > 0:
			return fmt.Errorf("tables of database %q of the source have changed since their schema was copied: %s: make another Database", from, importing.Some(lost))
		case len(added) > 0:
			return fmt.Errorf("tables of database %q of the source are new since its schema was copied: %s: drop them there, or make another Database", from, importing.Some(added))
		}
		followed = followedOf(now)
		names := without(followed, nil)
		var there bool
		if err := conn.QueryRow(ctx, "select exists (select from pg_publication where pubname = $1)", which).Scan(&there); err != nil {
			return said(err)
		}
		if there {
			published, err = publication(ctx, conn, which)
			return err
		}
		statement := "create publication " + name(which)
		if len(names) > 0 {
			statement += " for table " + strings.Join(names, ", ")
		}
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("cannot publish the tables of database %q of the source: %w", from, said(err))
		}
		published, err = publication(ctx, conn, which)
		return err
	})
	return followed, published, err
}

// subscribe to the tables that are followed. What a try before has left is removed first.
//
// The publisher names the tables that a subscription writes to. So it is made without being enabled; it has to name exactly what is
// followed; it belongs to a role that has only the rights of the owner; and each change is applied as the owner of its table.
//
// A commit of the worker waits for the other members before the source hears that it was applied. Otherwise a failover could lose what the
// source keeps no more.
func (r *run) subscribe(ctx context.Context, d members.ImportDatabase, which string, followed []object) error {
	return within(ctx, d.Name, func(conn *pgx.Conn) error {
		owner, err := owner(ctx, conn)
		if err != nil {
			return err
		}
		if err := dropSubscription(ctx, conn, which); err != nil {
			return err
		}
		if err := r.from.visit(ctx, d.Source, func(ctx context.Context, conn *pgx.Conn) error { return endSlots(ctx, conn, which, r.system) }); err != nil {
			return fmt.Errorf("cannot drop replication slot %q of the source: %w", which, err)
		}
		if err := mayActAs(ctx, conn, applier, owner, " password null connection limit 0"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf("create subscription %[1]s connection %[2]s publication %[1]s with "+
			"(enabled = false, slot_name = %[3]s, synchronous_commit = on, password_required = false, run_as_owner = false)",
			name(which), text(r.from.libpq(d.Source)), text(which))); err != nil {
			return fmt.Errorf("cannot subscribe to database %q of the source: %w", d.Source, said(err))
		}
		if err := r.accept(ctx, conn, d, which, followed); err != nil {
			return err
		}
		if err := all(ctx, conn, "alter subscription "+name(which)+" owner to "+name(applier), "alter subscription "+name(which)+" enable"); err != nil {
			return fmt.Errorf("cannot enable the subscription of database %q: %w", d.Name, err)
		}
		return nil
	})
}

// enabled reports whether a subscription is. It is no sooner than when everything else of it is noted.
func enabled(ctx context.Context, conn *pgx.Conn, database, which string) (is bool, err error) {
	if err := conn.QueryRow(ctx, `select exists (select from pg_subscription s join pg_database d on d.oid = s.subdbid
		where d.datname = $1 and s.subname = $2 and s.subenabled and pg_get_userbyid(s.subowner) = $3)`, database, which, applier).Scan(&is); err != nil {
		return false, fmt.Errorf("cannot look for subscription %q: %w", which, err)
	}
	return is, nil
}

// accept what the publisher named as tables: exactly what is followed, and tables of the owner only.
func (r *run) accept(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase, which string, followed []object) error {
	named, err := objects(ctx, conn, `select n.nspname::text, c.relname::text from pg_subscription_rel s join pg_subscription x on x.oid = s.srsubid
		join pg_class c on c.oid = s.srrelid join pg_namespace n on n.oid = c.relnamespace where x.subname = $1`, which)
	if err != nil {
		return fmt.Errorf("cannot list what is subscribed: %w", err)
	}
	own, err := objects(ctx, conn, `select n.nspname::text, c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and c.relowner = (select datdba from pg_database where datname = current_database())`+notOfExtension)
	if err != nil {
		return fmt.Errorf("cannot list tables of database %q: %w", d.Name, err)
	}
	var problem error
	if foreign := without(named, own); len(foreign) > 0 {
		problem = fmt.Errorf("publication %q of the source has what is no table of the owner of database %q: %s: nothing is copied", which, d.Name, importing.Some(foreign))
	} else if other := append(without(named, followed), without(followed, named)...); len(other) > 0 {
		problem = fmt.Errorf("publication %q of the source has other tables than the ones that are followed: %s: drop it there, or correct it", which, importing.Some(other))
	}
	if problem == nil {
		return nil
	}
	return errors.Join(problem, dropSubscription(ctx, conn, which))
}

// An object of a database, by its schema and name.
type object struct{ Schema, Name string }

// String is the name as statements have it.
func (o object) String() string { return pgx.Identifier{o.Schema, o.Name}.Sanitize() }

func objects(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]object, error) {
	rows, err := conn.Query(ctx, query, args...)
	return collect(rows, err, pgx.RowToStructByPos[object])
}

// without are the objects of a list that another one lacks.
func without(all, others []object) []string {
	var out []string
	for _, o := range all {
		if !slices.Contains(others, o) {
			out = append(out, o.String())
		}
	}
	return out
}

// A position of the import.
type position struct {
	// Tables that are followed, Copied of them, and Errors of the workers since they began.
	Tables, Copied, Errors int64
	// Behind is how many bytes are not applied, and Moved the sum of the places up to which they are.
	Behind, Moved int64
	// Arrived is how many bytes of the tables that are being copied have come.
	Arrived int64
	// Idle is a slot that no worker reads.
	Idle string
	// Lost names a slot whose changes the source has removed.
	Lost string
	// Changed is what the source changed of what is followed. Changes of rows may be missing since, also when it was undone.
	Changed []string
	// Added are tables of the source that were made since its schema was copied.
	Added []string
}

// position of all databases, on both sides.
func (r *run) position(ctx context.Context, conn *pgx.Conn) (position, error) {
	var all position
	for _, d := range r.config.Databases {
		which := r.named(d.Name)
		err := within(ctx, d.Name, func(conn *pgx.Conn) error {
			if err := reconnect(ctx, conn, which, r.from.libpq(d.Source)); err != nil {
				return err
			}
			var tables, copied, errs, arrived int64
			err := conn.QueryRow(ctx, `select count(t.srrelid), count(t.srrelid) filter (where t.srsubstate = 'r'),
				coalesce((select apply_error_count + sync_error_count from pg_stat_subscription_stats x where x.subid = s.oid), 0),
				coalesce((select sum(bytes_processed) from pg_stat_progress_copy where datname = current_database()), 0)::bigint
				from pg_subscription s left join pg_subscription_rel t on t.srsubid = s.oid where s.subname = $1 group by s.oid`, which).Scan(&tables, &copied, &errs, &arrived)
			all.Tables, all.Copied, all.Errors, all.Arrived = all.Tables+tables, all.Copied+copied, all.Errors+errs, all.Arrived+arrived
			return err
		})
		if err != nil {
			return all, fmt.Errorf("cannot look at the subscription of database %q: %w", d.Name, err)
		}
		var found string
		if err := r.from.visit(ctx, d.Source, func(ctx context.Context, conn *pgx.Conn) error { return r.far(ctx, conn, d, which, &all, &found) }); err != nil {
			return all, err
		}
		if err := r.progress.noteChanged(ctx, conn, d, found); err != nil {
			return all, err
		}
		if what := r.progress.changed[d.Name]; what != "" {
			all.Changed = append(all.Changed, what)
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

// far is the side of the source. What it changed is found.
func (r *run) far(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase, which string, all *position, found *string) error {
	if was, is := r.progress.servers[d.Name], identifier(ctx, conn); another(was, is) {
		return fmt.Errorf("the host of the source is another server than the one that was copied (it was %s, and is %s): look at spec.from.server.host and at its name service", was, is)
	}
	var lost, active bool
	var behind, at int64
	err := conn.QueryRow(ctx, `select coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint, coalesce(pg_wal_lsn_diff(confirmed_flush_lsn, '0/0'), 0)::bigint,
		wal_status = 'lost', active from pg_replication_slots where slot_name = $1`, which).Scan(&behind, &at, &lost, &active)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		lost = true
	case err != nil:
		return fmt.Errorf("cannot look at replication slot %q of the source: %w", which, said(err))
	}
	if lost {
		all.Lost = which
	}
	if !active {
		all.Idle = which
	}
	all.Behind, all.Moved = max(all.Behind, behind), all.Moved+at
	now, err := tables(ctx, conn, which)
	if err != nil {
		return err
	}
	altered, added := changed(r.progress.tables[d.Name], now)
	all.Added = append(all.Added, added...)
	for _, t := range now {
		if t.followed() && !t.Published && !slices.Contains(altered, t.String()) && !slices.Contains(added, t.String()) {
			altered = append(altered, t.String()+" (no longer published)")
		}
	}
	var why string
	if err := conn.QueryRow(ctx, partial, which).Scan(&why); err != nil {
		return fmt.Errorf("cannot look at publication %q of the source: %w", which, said(err))
	}
	if why != "" {
		altered = append(altered, "publication "+which+" "+why)
	}
	published, err := publication(ctx, conn, which)
	if err != nil {
		return err
	}
	if published != r.progress.publications[d.Name] && len(altered) == 0 {
		altered = append(altered, "publication "+which+" (altered)")
	}
	// Also at the first look after the last row was copied. Changes are decoded without row security.
	if r.progress.phases[d.Name] != phaseAnalyzed {
		altered = append(altered, hidden(now)...)
	}
	*found = importing.Shortened(importing.Some(altered), importing.MaxFinding)
	return nil
}

// identifier of a server, as PostgreSQL has it; a standby that is promoted keeps it. Services may withhold it: then it is "".
func identifier(ctx context.Context, conn *pgx.Conn) (id string) {
	if err := conn.QueryRow(ctx, "select left(system_identifier::text, 20) from pg_control_system()").Scan(&id); err != nil {
		return ""
	}
	return importing.Shortened(id, importing.MaxQuoted)
}

// another reports whether these are of different servers, which takes that both are known.
func another(was, is string) bool { return was != "" && is != "" && was != is }

// hidden are tables whose rows a copy would leave out, because row security hides them from the user of the import.
func hidden(now []table) []string {
	var out []string
	for _, t := range now {
		if t.followed() && t.Filtered {
			out = append(out, t.String()+" (row security hides rows from the user of the import)")
		}
	}
	return out
}

// twice is why a schema cannot be restored as it was dumped: changes could not be applied, or triggers would fire a second time when they are.
func twice(seen []table) error {
	var names []string
	for _, t := range seen {
		if t.Always || t.Forced {
			names = append(names, t.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("tables have forced row security, or triggers that fire always or on a replica: %s: "+
		"run alter table ... no force row level security, or alter table ... enable trigger ..., on the source", importing.Some(names))
}

// changed are tables that were altered or removed since the schema was copied, and tables that were added. The first stays so when it is undone,
// because rows may have changed meanwhile; a table that is new and dropped again has left nothing.
func changed(before []string, now []table) (lost, added []string) {
	prints, known := map[string]bool{}, map[string]bool{}
	for _, t := range now {
		prints[t.fingerprint()] = true
	}
	for _, p := range before {
		table, rest, _ := strings.Cut(p, "\n")
		oid, _, _ := strings.Cut(rest, "\n")
		known[oid] = true
		if !prints[p] {
			lost = append(lost, table)
		}
	}
	for _, t := range now {
		if !known[strconv.FormatUint(uint64(t.OID), 10)] {
			added = append(added, t.String())
		}
	}
	slices.Sort(lost)
	slices.Sort(added)
	return lost, added
}

// publication is the fingerprint of one. PostgreSQL filters by a publication when it decodes. So changes that were made while it was another one
// are lost, also when it is again what it was. Each entry of the catalog has the transaction that made it.
func publication(ctx context.Context, conn *pgx.Conn, which string) (string, error) {
	entries := `select 'publication ' || p.oid || ' ' || p.xmin as entry from pg_publication p where p.pubname = $1
		union all select 'table ' || r.oid || ' ' || r.prrelid::oid || ' ' || r.xmin from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where p.pubname = $1`
	var schemas bool // from version 15 on
	if err := conn.QueryRow(ctx, "select to_regclass('pg_catalog.pg_publication_namespace') is not null").Scan(&schemas); err != nil {
		return "", fmt.Errorf("cannot look at publication %q of the source: %w", which, said(err))
	}
	if schemas {
		entries += " union all select 'schema ' || r.oid || ' ' || r.xmin from pg_publication_namespace r join pg_publication p on p.oid = r.pnpubid where p.pubname = $1"
	}
	var sum string
	if err := conn.QueryRow(ctx, "select coalesce(encode(sha256(convert_to(string_agg(entry, ', ' order by entry), 'UTF8')), 'hex'), '') from ("+entries+") x", which).Scan(&sum); err != nil {
		return "", fmt.Errorf("cannot look at publication %q of the source: %w", which, said(err))
	}
	return sum, nil
}

// analyzeLimit is how long statistics may take.
const analyzeLimit = time.Hour

// analyze a database, so that its first queries have statistics.
func analyze(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, analyzeLimit)
	defer cancel()
	return asOwner(ctx, database, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "set statement_timeout = 0"); err != nil {
			return fmt.Errorf("cannot analyze database %q: %w", database, err)
		}
		// What is not the owner's is skipped, with a warning.
		if _, err := conn.Exec(ctx, "analyze"); err != nil {
			return fmt.Errorf("cannot analyze database %q: %w", database, err)
		}
		return nil
	})
}
