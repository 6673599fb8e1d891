// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// settles is after what time a session that began while a database was made read-only can be seen.
const settles = time.Second

// A fence is since when databases of the source are read-only, by the clock of the source.
type fence map[string]time.Time

// raise a fence: the databases of the source are read-only for sessions that begin, and the others have ended. A session can begin while the
// setting is made, and be seen a moment later, so there is a second look.
func (r *run) raise(ctx context.Context) (fence, error) {
	f := fence{}
	if err := r.eachSource(ctx, func(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase) error {
		if err := fenceable(ctx, conn, d); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "alter database "+name(d.Source)+" set default_transaction_read_only = on"); err != nil {
			return wait("database %q of the source cannot be made read-only (%s): stop its clients yourself and remove spec.cutOver.stopWrites, or give the user of the import the right",
				d.Source, said(err))
		}
		var since time.Time
		if err := conn.QueryRow(ctx, "select clock_timestamp()").Scan(&since); err != nil {
			return fmt.Errorf("cannot ask the source for the time: %w", said(err))
		}
		f[d.Name] = since.Add(settles)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := r.eachSource(ctx, f.endSessions); err != nil {
		return nil, err
	}
	if err := pause(ctx, settles); err != nil {
		return nil, err
	}
	return f, r.eachSource(ctx, f.endSessions)
}

// holds reports, after the last change was applied, whether nothing was written since the fence was raised.
func (f fence) holds(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase) error {
	if err := fenceable(ctx, conn, d); err != nil {
		return err
	}
	var early, writing int
	err := conn.QueryRow(ctx, `select count(*) filter (where backend_start < $1)::int, count(*) filter (where backend_xid is not null)::int from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`, f[d.Name]).Scan(&early, &writing)
	switch {
	case err != nil:
		return fmt.Errorf("cannot look at sessions in database %q of the source: %w", d.Source, said(err))
	case early > 0:
		return wait("a session in database %q of the source had begun before it was read-only, and is ended now", d.Source)
	case writing > 0:
		return wait("a session writes to database %q of the source although it is read-only, because the session has set that off: stop its client", d.Source)
	}
	return nil
}

// fenceable reports whether a database of the source can be made read-only at all.
func fenceable(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase) error {
	var hidden, subscriptions, prepared int
	err := conn.QueryRow(ctx, `select (select count(*) from pg_stat_activity where datname = current_database() and backend_type is null)::int,
		(select count(*) from pg_subscription s join pg_database d on d.oid = s.subdbid where d.datname = current_database() and s.subenabled)::int,
		(select count(*) from pg_prepared_xacts where database = current_database())::int`).Scan(&hidden, &subscriptions, &prepared)
	switch {
	case err != nil:
		return fmt.Errorf("cannot look at sessions in database %q of the source: %w", d.Source, said(err))
	case hidden > 0:
		return wait("the user of the import cannot see what sessions in database %q of the source do: grant pg_read_all_stats to it, or stop its clients yourself and remove spec.cutOver.stopWrites",
			d.Source)
	case subscriptions > 0:
		return wait("subscriptions write to database %q of the source: disable them", d.Source)
	case prepared > 0:
		return wait("database %q of the source has %d prepared transactions: end them", d.Source, prepared)
	}
	workers, err := managed.List(ctx, conn, `select distinct backend_type from pg_stat_activity where datname = current_database()
		and backend_type not in ('client backend', 'walsender', 'autovacuum worker', 'parallel worker')`)
	if err != nil {
		return fmt.Errorf("cannot look at sessions in database %q of the source: %w", d.Source, said(err))
	}
	if len(workers) > 0 {
		return wait("workers run in database %q of the source and could write: %s: stop them", d.Source, some(workers))
	}
	exempt, err := managed.List(ctx, conn, `select r.rolname::text from pg_db_role_setting s join pg_roles r on r.oid = s.setrole, unnest(s.setconfig) c
		where c like 'default\_transaction\_read\_only=%' and s.setdatabase in (0, (select oid from pg_database where datname = current_database())) order by 1`)
	if err != nil {
		return fmt.Errorf("cannot look at settings of roles of the source: %w", said(err))
	}
	if len(exempt) > 0 {
		return wait("roles of the source have a default_transaction_read_only of their own, which the one of database %q does not reach: %s: run alter role ... reset default_transaction_read_only",
			d.Source, some(exempt))
	}
	return nil
}

// endSessions that began before a database was read-only.
func (f fence) endSessions(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase) error {
	return endSessions(ctx, conn, d, f[d.Name])
}

func endSessions(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase, before time.Time) error {
	for range 10 {
		var open int
		err := conn.QueryRow(ctx, `select count(pg_terminate_backend(pid))::int from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
			and backend_type = 'client backend' and backend_start < $1`, before).Scan(&open)
		switch {
		case err != nil:
			return wait("sessions in database %q of the source cannot be ended (%s): stop its clients yourself, or grant pg_signal_backend to the user of the import", d.Source, said(err))
		case open == 0:
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return wait("sessions in database %q of the source do not end: stop its clients", d.Source)
}

// lower the fence of a database, when the request was withdrawn. Sessions that began meanwhile are read-only for as long as they last, so they
// end, too.
func lower(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase) error {
	if _, err := conn.Exec(ctx, "alter database "+name(d.Source)+" reset default_transaction_read_only"); err != nil {
		return fmt.Errorf("cannot make database %q of the source writable again: %w", d.Source, said(err))
	}
	var now time.Time
	if err := conn.QueryRow(ctx, "select clock_timestamp()").Scan(&now); err != nil {
		return fmt.Errorf("cannot ask the source for the time: %w", said(err))
	}
	return endSessions(ctx, conn, d, now)
}
