// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

const (
	// quietFor is how long nothing may have written to the source.
	quietFor = 3 * time.Second
	// drainLimit is how long the cut-over waits for what was written, before it looks again at whether something writes.
	drainLimit = 2 * time.Minute
)

// waits is why a cut-over does not continue yet.
type waits struct{ message string }

func (w *waits) Error() string { return w.message }

func wait(format string, args ...any) error { return &waits{fmt.Sprintf(format, args...)} }

// cutOver ends the import if the source is quiet: everything that it committed is here, and so are its sequences.
func (r *run) cutOver(ctx context.Context, conn *pgx.Conn, request pgmember.CutOver) error {
	began := time.Now()
	var quiet func(context.Context) (string, error)
	if request.StopWrites {
		if err := noteCut(ctx, conn, cut{id: request.ID, phase: cutFencing}); err != nil {
			return err
		}
		if err := r.eachSource(ctx, stopWrites); err != nil {
			return err
		}
		quiet = func(context.Context) (string, error) { return "", nil }
	} else {
		quiet = r.snapshot
	}
	before, err := quiet(ctx)
	if err != nil {
		return err
	}
	if !request.StopWrites {
		if err := pause(ctx, quietFor); err != nil {
			return err
		}
		if now, err := quiet(ctx); err != nil {
			return err
		} else if now != before {
			return wait("the source still takes writes: stop its clients, or set spec.cutOver.stopWrites")
		}
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	if err := r.eachSource(ctx, r.sequences); err != nil {
		return err
	}
	if !request.StopWrites {
		// The markers of the drain are transactions, one for each database.
		if now, err := quiet(ctx); err != nil {
			return err
		} else if now != advanced(before, len(r.config.Databases)) {
			return wait("something wrote to the source again: stop its clients, or set spec.cutOver.stopWrites")
		}
	}
	for _, d := range r.config.Databases {
		if err := refresh(ctx, d.Name); err != nil {
			return err
		}
	}
	return noteCut(ctx, conn, cut{id: request.ID, phase: cutDrained, gap: int64(time.Since(began)/time.Second) + 1})
}

// pause for a time.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// eachSource does something in every database of the source.
func (r *run) eachSource(ctx context.Context, do func(context.Context, *pgx.Conn, pgmember.ImportDatabase) error) error {
	for _, d := range r.config.Databases {
		conn, err := r.from.connect(ctx, d.Source)
		if err != nil {
			return err
		}
		err = do(ctx, conn, d)
		managed.Close(ctx, conn)
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshot is the next transaction of the source, when none is under way: nothing is written anywhere in it without taking a number. Every
// user may ask for it.
func (r *run) snapshot(ctx context.Context) (string, error) {
	conn, err := r.from.connect(ctx, r.config.Databases[0].Source)
	if err != nil {
		return "", err
	}
	defer managed.Close(ctx, conn)
	var oldest, next string
	var prepared int
	if err := conn.QueryRow(ctx, `select txid_snapshot_xmin(s)::text, txid_snapshot_xmax(s)::text, (select count(*) from pg_prepared_xacts)::int from txid_current_snapshot() s`).
		Scan(&oldest, &next, &prepared); err != nil {
		return "", fmt.Errorf("cannot find out whether the source takes writes: %w", said(err))
	}
	if oldest != next || prepared > 0 {
		return "", wait("a transaction that writes is open at the source: stop its clients, or set spec.cutOver.stopWrites")
	}
	return next, nil
}

// advanced is a snapshot after some more transactions.
func advanced(snapshot string, by int) string {
	var n int64
	_, _ = fmt.Sscan(snapshot, &n)
	return strconv.FormatInt(n+int64(by), 10)
}

// stopWrites makes a database of the source read-only for sessions that begin, and ends the others. A session that changes its own setting
// can still write.
func stopWrites(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase) error {
	if _, err := conn.Exec(ctx, "alter database "+name(d.Source)+" set default_transaction_read_only = on"); err != nil {
		return wait("database %q of the source cannot be made read-only (%s): stop its clients yourself and remove spec.cutOver.stopWrites, or give the user of the import the right",
			d.Source, said(err))
	}
	var since time.Time
	if err := conn.QueryRow(ctx, "select clock_timestamp()").Scan(&since); err != nil {
		return fmt.Errorf("cannot ask the source for the time: %w", said(err))
	}
	for range 10 {
		var open, prepared int
		err := conn.QueryRow(ctx, `select count(pg_terminate_backend(pid))::int, (select count(*) from pg_prepared_xacts where database = current_database())::int
			from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
			and backend_start < $1`, since).Scan(&open, &prepared)
		switch {
		case err != nil:
			return wait("sessions in database %q of the source cannot be ended (%s): stop its clients yourself, or run grant pg_signal_backend", d.Source, said(err))
		case prepared > 0:
			return wait("database %q of the source has %d prepared transactions: end them", d.Source, prepared)
		case open == 0:
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return wait("sessions in database %q of the source do not end: stop its clients", d.Source)
}

// allowWrites undoes stopWrites, when the request was withdrawn.
func allowWrites(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase) error {
	if _, err := conn.Exec(ctx, "alter database "+name(d.Source)+" reset default_transaction_read_only"); err != nil {
		return fmt.Errorf("cannot make database %q of the source writable again: %w", d.Source, said(err))
	}
	return nil
}

// drain waits until everything that the source committed is applied. A marker of each database is the last that it committed: when the
// subscription confirms a place behind it, it has all before.
func (r *run) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	err := r.eachSource(ctx, func(ctx context.Context, conn *pgx.Conn, d pgmember.ImportDatabase) error {
		end, err := mark(ctx, conn)
		if err != nil {
			return err
		}
		for {
			var done bool
			err := conn.QueryRow(ctx, "select confirmed_flush_lsn >= $1::pg_lsn from pg_replication_slots where slot_name = $2", end, r.named(d.Name)).Scan(&done)
			switch {
			case err != nil:
				return fmt.Errorf("cannot look at replication slot %q of the source: %w", r.named(d.Name), said(err))
			case done:
				return nil
			}
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return wait("changes of the source are being applied")
	}
	return err
}

// mark commits a transaction that writes nothing but its own mark, and returns where the write-ahead log ends afterwards. The commit
// is on disk, and so is everything before it.
func mark(ctx context.Context, conn *pgx.Conn) (end string, err error) {
	err = all(ctx, conn, "set local synchronous_commit = on", "select txid_current(), pg_logical_emit_message(true, 'capstan', 'cut-over')")
	if err == nil {
		err = conn.QueryRow(ctx, "select pg_current_wal_flush_lsn()::text").Scan(&end)
	}
	if err != nil {
		return "", fmt.Errorf("cannot mark the end of the source: %w", said(err))
	}
	return end, nil
}

// batch is how many sequences one query reads.
const batch = 100

// sequences of a database of the source get their values here.
func (r *run) sequences(ctx context.Context, from *pgx.Conn, d pgmember.ImportDatabase) error {
	rows, err := from.Query(ctx, `select n.nspname::text, c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'S' and c.relpersistence <> 't'`+notOfExtension+" order by 1, 2")
	if err != nil {
		return fmt.Errorf("cannot list sequences of the source: %w", said(err))
	}
	type sequence struct{ Schema, Name string }
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sequence])
	if err != nil {
		return fmt.Errorf("cannot list sequences of the source: %w", said(err))
	}
	return within(ctx, d.Name, func(conn *pgx.Conn) error {
		for begin := 0; begin < len(found); begin += batch {
			queries := make([]string, 0, batch)
			for _, s := range found[begin:min(begin+batch, len(found))] {
				id := pgx.Identifier{s.Schema, s.Name}.Sanitize()
				queries = append(queries, "select format('select setval(%L, %s, %L)', "+text(id)+", last_value, is_called) from "+id)
			}
			statements, err := managed.List(ctx, from, strings.Join(queries, " union all "))
			if err != nil {
				return fmt.Errorf("cannot read sequences of the source: %w", said(err))
			}
			if err := all(ctx, conn, statements...); err != nil {
				return fmt.Errorf("cannot set sequences of database %q: %w", d.Name, err)
			}
		}
		return nil
	})
}

// refresh materialized views, which are not followed. Those that build on others were made after them. One that fails stays as it is: its
// owner can refresh it.
func refresh(ctx context.Context, database string) error {
	return within(ctx, database, func(conn *pgx.Conn) error {
		views, err := managed.List(ctx, conn, "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'm'"+
			notOfExtension+" order by c.oid")
		if err != nil {
			return fmt.Errorf("cannot list materialized views of database %q: %w", database, err)
		}
		for _, v := range views {
			_, _ = conn.Exec(ctx, "refresh materialized view "+v)
		}
		return nil
	})
}

// finish removes what connects both sides. It may be called again at any point. What is left at a source that does not answer is named.
func (r *run) finish(ctx context.Context, conn *pgx.Conn, c cut) error {
	var left []string
	for _, d := range r.config.Databases {
		which := r.named(d.Name)
		if err := within(ctx, d.Name, func(conn *pgx.Conn) error { return dropSubscription(ctx, conn, which) }); err != nil {
			return err
		}
		if err := r.from.clean(ctx, d.Source, which); err != nil {
			left = append(left, fmt.Sprintf("database %q: %v", d.Source, err))
		}
	}
	c.phase = cutDone
	if len(left) > 0 {
		c.message = "left at the source, to be dropped there by hand: " + strings.Join(left, "; ")
	}
	return noteCut(ctx, conn, c)
}

// clean a database of the source. The error names what is left.
func (s source) clean(ctx context.Context, database, which string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	conn, err := s.connect(ctx, database)
	if err != nil {
		return fmt.Errorf("replication slot %q, which keeps write-ahead log, and publication %q (%w)", which, which, err)
	}
	defer managed.Close(ctx, conn)
	var left []error
	if err := endSlot(ctx, conn, which); err != nil {
		left = append(left, fmt.Errorf("replication slot %q, which keeps write-ahead log (%w)", which, err))
	}
	if _, err := conn.Exec(ctx, "drop publication if exists "+name(which)); err != nil {
		left = append(left, fmt.Errorf("publication %q (%w)", which, said(err)))
	}
	return errors.Join(left...)
}

// endSlot drops a slot. The worker that read it may take a moment to end.
func endSlot(ctx context.Context, conn *pgx.Conn, which string) error {
	for {
		var there bool
		if err := conn.QueryRow(ctx, "select exists (select from pg_replication_slots where slot_name = $1)", which).Scan(&there); err != nil {
			return said(err)
		}
		if !there {
			return nil
		}
		if _, err := conn.Exec(ctx, "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1 and not active", which); err != nil {
			return said(err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return errors.New("something still reads it")
		}
	}
}
