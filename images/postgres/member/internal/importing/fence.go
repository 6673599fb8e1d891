// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/importing"
)

// settles is after what time a session that began while a database was made read-only can be seen.
const settles = time.Second

// readOnly is the value of the setting while a database is fenced.
const readOnly = "on"

// lowering is the statement that undoes what a cut-over did to a database that has a setting now: nothing, when it did nothing, or when that was
// undone meanwhile.
func (f fenced) lowering(is *string) string {
	switch {
	case is == nil || *is != readOnly || f.was != nil && *f.was == readOnly:
		return ""
	case f.was != nil:
		return "alter database " + name(f.source) + " set default_transaction_read_only = " + text(*f.was)
	default:
		return "alter database " + name(f.source) + " reset default_transaction_read_only"
	}
}

// unwanted are the fences that no request wants any more.
func unwanted(fences []fenced, i members.Import) []fenced {
	var out []fenced
	for _, f := range fences {
		listed := slices.Contains(i.Databases, members.ImportDatabase{Name: f.database, Source: f.source})
		if !listed || i.CutOver == nil || !i.CutOver.StopWrites || i.CutOver.ID != f.cut {
			out = append(out, f)
		}
	}
	return out
}

// readOnlySetting of a database of the source for all roles. Nil: it has none.
func readOnlySetting(ctx context.Context, conn *pgx.Conn, source string) (*string, error) {
	var is *string
	err := conn.QueryRow(ctx, `select (select left(split_part(c, '=', 2), 63) from pg_db_role_setting s, unnest(s.setconfig) c where s.setrole = 0
		and s.setdatabase = (select oid from pg_database where datname = current_database()) and c like 'default\_transaction\_read\_only=%')`).Scan(&is)
	if err != nil {
		return nil, fmt.Errorf("cannot look at the settings of database %q of the source: %w", source, said(err))
	}
	return is, nil
}

// A fence is around databases of the source.
type fence map[string]raised

// A raised fence of one database.
type raised struct {
	// since when it is read-only, by the clock of the source, and a session that had begun before can be seen.
	since time.Time
	// rows that were ever written to it, when everything before had ended.
	rows int64
}

// raise a fence: the databases of the source are read-only for sessions that begin, and the others have ended. A session can begin while the
// setting is made, and be seen a moment later, so there is a second look.
func (r *run) raise(ctx context.Context, here *pgx.Conn, id string) (fence, error) {
	f := fence{}
	if err := r.eachSource(ctx, func(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) error {
		if err := fenceable(ctx, conn, d); err != nil {
			return err
		}
		since, err := r.raiseOne(ctx, here, conn, d, id)
		f[d.Name] = raised{since: since.Add(settles)}
		return err
	}); err != nil {
		return nil, err
	}
	if err := r.eachSource(ctx, f.endSessions); err != nil {
		return nil, err
	}
	if err := importing.Pause(ctx, settles); err != nil {
		return nil, err
	}
	return f, r.eachSource(ctx, func(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) error {
		if err := f.endSessions(ctx, conn, d); err != nil {
			return err
		}
		rows, err := rowsWritten(ctx, conn, d)
		f[d.Name] = raised{f[d.Name].since, rows}
		return err
	})
}

// rowsWritten to a database of the source ever, as its statistics have it. They have the rows of a transaction up to a second after its end.
func rowsWritten(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) (rows int64, err error) {
	if err := conn.QueryRow(ctx, "select tup_inserted + tup_updated + tup_deleted from pg_stat_database where datname = current_database()").Scan(&rows); err != nil {
		return 0, fmt.Errorf("cannot look at statistics of database %q of the source: %w", d.Source, said(err))
	}
	return rows, nil
}

// raiseOne makes a database of the source read-only, unless it is by this cut-over, and returns since when it is.
func (r *run) raiseOne(ctx context.Context, here, conn *pgx.Conn, d members.ImportDatabase, id string) (time.Time, error) {
	is, err := readOnlySetting(ctx, conn, d.Source)
	if err != nil {
		return time.Time{}, err
	}
	f := fenced{database: d.Name, source: d.Source, cut: id, was: is}
	for _, known := range r.progress.fences {
		if known.database == d.Name {
			f = known
		}
	}
	if f.since != nil && is != nil && *is == readOnly {
		return *f.since, nil
	}
	if err := noteFence(ctx, here, f); err != nil {
		return time.Time{}, err
	}
	if _, err := conn.Exec(ctx, "alter database "+name(d.Source)+" set default_transaction_read_only = "+readOnly); err != nil {
		return time.Time{}, importing.Wait("database %q of the source cannot be made read-only (%s): stop its clients yourself and remove spec.cutOver.stopWrites, or give the user of the import the right",
			d.Source, said(err))
	}
	var since time.Time
	if err := conn.QueryRow(ctx, "select clock_timestamp()").Scan(&since); err != nil {
		return time.Time{}, fmt.Errorf("cannot ask the source for the time: %w", said(err))
	}
	f.since = &since
	return since, noteFence(ctx, here, f)
}

// holds reports, after the last change was applied, whether nothing was written since the fence was raised. A transaction that says that it writes
// passes the fence, as each one of some clients does, and may have ended since.
func (f fence) holds(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) error {
	if err := fenceable(ctx, conn, d); err != nil {
		return err
	}
	var early, writing int
	err := conn.QueryRow(ctx, `select count(*) filter (where backend_start < $1)::int, count(*) filter (where backend_xid is not null)::int from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`, f[d.Name].since).Scan(&early, &writing)
	switch {
	case err != nil:
		return fmt.Errorf("cannot look at sessions in database %q of the source: %w", d.Source, said(err))
	case early > 0:
		return importing.Wait("a session in database %q of the source had begun before it was read-only, and is ended now", d.Source)
	case writing > 0:
		return importing.Wait("a session writes to database %q of the source although it is read-only, because the session has set that off: stop its client", d.Source)
	}
	switch rows, err := rowsWritten(ctx, conn, d); {
	case err != nil:
		return err
	case rows != f[d.Name].rows:
		return importing.Wait("rows were written to database %q of the source although it is read-only: stop clients that begin their transactions as read write (PostgreSQL's own statistics count as well, and pass)",
			d.Source)
	}
	return nil
}

// fenceable reports whether a database of the source can be made read-only at all.
func fenceable(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) error {
	var hidden, subscriptions, prepared int
	err := conn.QueryRow(ctx, `select (select count(*) from pg_stat_activity where datname = current_database() and backend_type is null)::int,
		(select count(*) from pg_subscription s join pg_database d on d.oid = s.subdbid where d.datname = current_database() and s.subenabled)::int,
		(select count(*) from pg_prepared_xacts where database = current_database())::int`).Scan(&hidden, &subscriptions, &prepared)
	switch {
	case err != nil:
		return fmt.Errorf("cannot look at sessions in database %q of the source: %w", d.Source, said(err))
	case hidden > 0:
		return importing.Wait("the user of the import cannot see what sessions in database %q of the source do: grant pg_read_all_stats to it, or stop its clients yourself and remove spec.cutOver.stopWrites",
			d.Source)
	case subscriptions > 0:
		return importing.Wait("subscriptions write to database %q of the source: disable them", d.Source)
	case prepared > 0:
		return importing.Wait("database %q of the source has %d prepared transactions: end them", d.Source, prepared)
	}
	workers, err := list(ctx, conn, `select distinct backend_type from pg_stat_activity where datname = current_database()
		and backend_type not in ('client backend', 'walsender', 'autovacuum worker', 'parallel worker')`)
	if err != nil {
		return fmt.Errorf("cannot look at sessions in database %q of the source: %w", d.Source, said(err))
	}
	if len(workers) > 0 {
		return importing.Wait("workers run in database %q of the source and could write: %s: stop them", d.Source, importing.Some(workers))
	}
	exempt, err := list(ctx, conn, `select r.rolname::text from pg_db_role_setting s join pg_roles r on r.oid = s.setrole, unnest(s.setconfig) c
		where c like 'default\_transaction\_read\_only=%' and s.setdatabase in (0, (select oid from pg_database where datname = current_database())) order by 1`)
	if err != nil {
		return fmt.Errorf("cannot look at settings of roles of the source: %w", said(err))
	}
	if len(exempt) > 0 {
		return importing.Wait("roles of the source have a default_transaction_read_only of their own, which the one of database %q does not reach: %s: run alter role ... reset default_transaction_read_only",
			d.Source, importing.Some(exempt))
	}
	return nil
}

// endSessions that began before a database was read-only.
func (f fence) endSessions(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) error {
	return endSessions(ctx, conn, d, f[d.Name].since)
}

func endSessions(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase, before time.Time) error {
	for range 10 {
		var open int
		err := conn.QueryRow(ctx, `select count(pg_terminate_backend(pid))::int from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
			and backend_type = 'client backend' and backend_start < $1`, before).Scan(&open)
		switch {
		case err != nil:
			return importing.Wait("sessions in database %q of the source cannot be ended (%s): stop its clients yourself, or grant pg_signal_backend to the user of the import", d.Source, said(err))
		case open == 0:
			return nil
		}
		if err := importing.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return importing.Wait("sessions in database %q of the source do not end: stop its clients", d.Source)
}

// lowered are fences that no request wants any more.
func (r *run) lowered(ctx context.Context, here *pgx.Conn) error {
	var problems []error
	for _, f := range unwanted(r.progress.fences, r.config) {
		if err := r.from.visit(ctx, f.source, func(ctx context.Context, conn *pgx.Conn) error { return lower(ctx, conn, f) }); err != nil && !errors.Is(err, errNoDatabase) {
			problems = append(problems, fmt.Errorf("database %q of the source is read-only, and cannot be made writable again: %w", f.source, err))
			continue
		}
		if _, err := here.Exec(ctx, "delete from import.fences where database = $1", f.database); err != nil {
			return fmt.Errorf("cannot forget that database %q of the source was read-only: %w", f.source, err)
		}
		r.progress.fences = slices.DeleteFunc(slices.Clone(r.progress.fences), func(o fenced) bool { return o.database == f.database })
	}
	return errors.Join(problems...)
}

// lower the fence of a database, if it was raised. Sessions that began behind it are read-only for as long as they last, so they end, too: once, and
// as far as the user of the import may end them.
func lower(ctx context.Context, conn *pgx.Conn, f fenced) error {
	is, err := readOnlySetting(ctx, conn, f.source)
	if err != nil {
		return err
	}
	statement := f.lowering(is)
	if statement == "" {
		return nil
	}
	if _, err := conn.Exec(ctx, statement); err != nil {
		return said(err)
	}
	if f.since == nil {
		return nil
	}
	behind, err := list(ctx, conn, `select pid::text from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
		and backend_type = 'client backend' and backend_start >= $1 and backend_start <= clock_timestamp()`, *f.since)
	if err != nil {
		return nil //nolint:nilerr // The database is writable, which is what counts.
	}
	for _, pid := range behind {
		_, _ = conn.Exec(ctx, "select pg_terminate_backend($1::int)", pid)
	}
	return nil
}
