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
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// cutOver ends the import if the source is quiet: everything that it committed is here, and so are its sequences. What has to hold
// at the end is checked at the end: that nothing was written, that no table is another one, and that the cut-over is still requested.
func (r *run) cutOver(ctx context.Context, conn *pgx.Conn, request members.CutOver) error {
	began := time.Now()
	quiet, err := r.quieten(ctx, conn, request)
	if err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	patient := *r
	patient.from.limit = sequencesLimit
	if err := patient.eachSource(ctx, patient.sequences); err != nil {
		return err
	}
	if err := r.complete(ctx, conn); err != nil {
		return err
	}
	if err := quiet(ctx); err != nil {
		return err
	}
	switch still, err := r.request(); {
	case err != nil:
		return err
	case still == nil || *still != request:
		return importing.Wait("the request has changed meanwhile")
	}
	return noteCut(ctx, conn, importing.Cut{ID: request.ID, Phase: importing.CutDrained, Gap: int64(time.Since(began)/time.Second) + 1})
}

// quieten the source, and return what reports at the end whether it was quiet all the time.
func (r *run) quieten(ctx context.Context, conn *pgx.Conn, request members.CutOver) (func(context.Context) error, error) {
	if request.StopWrites {
		f, err := r.raise(ctx, conn, request.ID)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			// Until then statistics may lack the last rows that were written.
			if err := importing.Pause(ctx, settles); err != nil {
				return err
			}
			err := r.eachSource(ctx, f.holds)
			if err != nil {
				return errors.Join(err, r.eachSource(ctx, f.endSessions))
			}
			return nil
		}, nil
	}
	before, err := r.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if err := importing.Pause(ctx, importing.QuietFor); err != nil {
		return nil, err
	}
	if now, err := r.snapshot(ctx); err != nil {
		return nil, err
	} else if now != before {
		return nil, importing.Wait("the source still takes writes: stop its clients, or set spec.cutOver.stopWrites")
	}
	return func(ctx context.Context) error {
		// The markers of the drain are transactions, one for each database.
		if now, err := r.snapshot(ctx); err != nil {
			return err
		} else if now != advanced(before, len(r.config.Databases)) {
			return importing.Wait("something wrote to the source again: stop its clients, or set spec.cutOver.stopWrites")
		}
		return nil
	}, nil
}

// complete reports whether every table of the source is here, and is the one that was copied.
func (r *run) complete(ctx context.Context, conn *pgx.Conn) error {
	at, err := r.position(ctx, conn)
	switch {
	case err != nil:
		return err
	case at.Lost != "" || at.Copied < at.Tables:
		return importing.Wait("rows or changes of the source are missing")
	case len(at.Changed) > 0:
		return importing.Wait("the source has changed what is followed, and rows may be missing here since: %s", importing.Some(at.Changed))
	case len(at.Added) > 0:
		return importing.Wait("the source has tables that were made since its schema was copied: %s", importing.Some(at.Added))
	}
	return nil
}

// eachSource does something in every database of the source.
func (r *run) eachSource(ctx context.Context, do func(context.Context, *pgx.Conn, members.ImportDatabase) error) error {
	for _, d := range r.config.Databases {
		if err := r.from.visit(ctx, d.Source, func(ctx context.Context, conn *pgx.Conn) error { return do(ctx, conn, d) }); err != nil {
			return err
		}
	}
	return nil
}

// snapshot is the next transaction of the source, when none is under way: nothing is written anywhere in it without taking a number. The
// youngest transaction that is open is not in a snapshot, and holds a lock on its number, as a prepared one does. Every user may ask for both.
func (r *run) snapshot(ctx context.Context) (next string, err error) {
	var oldest string
	var open int
	err = r.from.visit(ctx, r.config.Databases[0].Source, func(ctx context.Context, conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, `select txid_snapshot_xmin(s)::text, txid_snapshot_xmax(s)::text,
			(select count(*) from pg_locks where locktype = 'transactionid' and mode = 'ExclusiveLock' and granted and pid is distinct from pg_backend_pid())::int
			from txid_current_snapshot() s`).Scan(&oldest, &next, &open); err != nil {
			return fmt.Errorf("cannot find out whether the source takes writes: %w", said(err))
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case oldest != next || open > 0:
		return "", importing.Wait("a transaction that writes is open at the source: stop its clients, or set spec.cutOver.stopWrites")
	}
	return next, nil
}

// advanced is a snapshot after some more transactions.
func advanced(snapshot string, by int) string {
	var n int64
	_, _ = fmt.Sscan(snapshot, &n)
	return strconv.FormatInt(n+int64(by), 10)
}

// drain waits until everything that the source committed is applied. A marker of each database is the last that it committed: when the
// subscription confirms a place behind it, it has all before.
func (r *run) drain(ctx context.Context) error {
	patient := *r
	patient.from.limit = importing.DrainLimit
	return patient.eachSource(ctx, func(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) error {
		end, err := mark(ctx, conn)
		if err != nil {
			return err
		}
		for {
			var done bool
			err := conn.QueryRow(ctx, "select confirmed_flush_lsn >= $1::pg_lsn from pg_replication_slots where slot_name = $2", end, r.named(d.Name)).Scan(&done)
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				return importing.Wait("changes of the source are being applied for longer than %s", importing.DrainLimit)
			case err != nil:
				return fmt.Errorf("cannot look at replication slot %q of the source: %w", r.named(d.Name), said(err))
			case done:
				return nil
			}
			if err := importing.Pause(ctx, 100*time.Millisecond); err != nil {
				return importing.Wait("changes of the source are being applied for longer than %s", importing.DrainLimit)
			}
		}
	})
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

// ofSequences lists the sequences of a database on both sides.
const ofSequences = `select n.nspname::text, c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where c.relkind = 'S' and c.relpersistence <> 't'` + notOfExtension + " order by 1, 2"

// A sequenceValue is of the sequence at a place, and whether it was given out already.
type sequenceValue struct {
	At     int
	Last   int64
	Called bool
}

const (
	// sequencesLimit is how long the sequences of a database may take.
	sequencesLimit = 5 * time.Minute
	// sequencesAtOnce is how many sequences one query reads: a round trip for each would be too slow.
	sequencesAtOnce = 500
)

// readsSequences are queries that read the values of sequences, each with its place among them.
func readsSequences(all []object) []string {
	var queries []string
	for first := 0; first < len(all); first += sequencesAtOnce {
		chunk := all[first:min(first+sequencesAtOnce, len(all))]
		parts := make([]string, 0, len(chunk))
		for i, s := range chunk {
			parts = append(parts, fmt.Sprintf("select %d, last_value, is_called from %s", first+i, s))
		}
		queries = append(queries, strings.Join(parts, " union all "))
	}
	return queries
}

// sequences of this Database get the values that the source has. The names are this Database's, and the values are a number and a truth: nothing
// that the source says is run.
func (r *run) sequences(ctx context.Context, from *pgx.Conn, d members.ImportDatabase) error {
	there, err := objects(ctx, from, ofSequences)
	if err != nil {
		return fmt.Errorf("cannot list sequences of the source: %w", said(err))
	}
	return asOwner(ctx, d.Name, func(conn *pgx.Conn) error {
		here, err := objects(ctx, conn, ofSequences)
		if err != nil {
			return fmt.Errorf("cannot list sequences of database %q: %w", d.Name, err)
		}
		if !slices.Equal(here, there) {
			return importing.Wait("database %q of the source has other sequences than when its schema was copied: undo that there, or make another Database", d.Source)
		}
		values := &pgx.Batch{}
		for _, query := range readsSequences(here) {
			rows, err := from.Query(ctx, query)
			read, err := collect(rows, err, pgx.RowToStructByPos[sequenceValue])
			if err != nil {
				return fmt.Errorf("cannot read sequences of database %q of the source: %w", d.Source, said(err))
			}
			for _, v := range read {
				if v.At < 0 || v.At >= len(here) {
					return fmt.Errorf("database %q of the source names a sequence that was not asked for", d.Source)
				}
				values.Queue("select setval($1::regclass, $2::bigint, $3::boolean)", here[v.At].String(), v.Last, v.Called)
			}
		}
		if values.Len() != len(here) {
			return fmt.Errorf("database %q of the source has read %d of %d sequences", d.Source, values.Len(), len(here))
		}
		if err := conn.SendBatch(ctx, values).Close(); err != nil {
			return fmt.Errorf("cannot set sequences of database %q: %w", d.Name, err)
		}
		return nil
	})
}

// refreshLimit is how long the views of all databases may take.
const refreshLimit = 10 * time.Minute

// refresh materialized views, which are not followed. Those that build on others were made after them. It returns the views that stay as they
// are: their owner can refresh them.
func refresh(ctx context.Context, database string) (left []string, err error) {
	err = asOwner(ctx, database, func(conn *pgx.Conn) error {
		views, err := managed.List(ctx, conn, "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'm'"+
			notOfExtension+" order by c.oid")
		if err != nil {
			return fmt.Errorf("cannot list materialized views of database %q: %w", database, err)
		}
		for _, v := range views {
			if _, err := conn.Exec(ctx, "refresh materialized view "+v); err != nil {
				left = append(left, v)
			}
		}
		return nil
	})
	return left, err
}

// leftThere begins what a source still has.
const leftThere = "left at the source, to be dropped there by hand: "

// finish removes what connects both sides, after the cut-over was noted. It may be called again at any point. What is left at a source that does
// not answer is named.
func (r *run) finish(ctx context.Context, conn *pgx.Conn, c importing.Cut) error {
	began := time.Now()
	var told, views []string
	until, cancel := context.WithTimeout(ctx, refreshLimit)
	defer cancel()
	for _, d := range r.config.Databases {
		left, err := r.leave(ctx, conn, d)
		if err != nil {
			return err
		}
		if left != nil {
			told = append(told, left.Error())
		}
		stale, err := refresh(until, d.Name)
		switch {
		case until.Err() != nil && len(stale) == 0:
			stale = []string{fmt.Sprintf("all of database %q", d.Name)}
		case err != nil:
			return err
		}
		views = append(views, stale...)
	}
	other, err := r.forget(ctx, conn)
	if err != nil {
		return err
	}
	told = append(told, other...)
	if err := Release(ctx); err != nil {
		return err
	}
	if len(told) > 0 {
		c.Message = leftThere + strings.Join(told, "; ")
	}
	if len(views) > 0 {
		c.Message = strings.Trim(c.Message+"; these materialized views could not be refreshed, so refresh them: "+importing.Some(views), "; ")
	}
	// Consumers have waited for this as well.
	c.Phase, c.Gap = importing.CutDone, c.Gap+int64(time.Since(began)/time.Second)
	if err := noteCut(ctx, conn, c); err != nil {
		return err
	}
	forgetPassword(r.from.passwords)
	return nil
}

// leave a database of the source: its subscription goes, and what there is at the source. What could not be removed there is returned as left.
func (r *run) leave(ctx context.Context, conn *pgx.Conn, d members.ImportDatabase) (left, err error) {
	which := r.named(d.Name)
	found, err := subscriptions(ctx, conn)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(found, func(s subscription) bool { return s.Name == which }) {
		if err := within(ctx, d.Name, func(conn *pgx.Conn) error { return dropSubscription(ctx, conn, which) }); err != nil {
			return nil, err
		}
	}
	err = r.from.clean(ctx, d.Source, which, r.system)
	if errors.Is(err, errNoDatabase) {
		err = r.from.renamed(ctx, r.config.Databases[0].Source, which)
	}
	if err != nil {
		return fmt.Errorf("database %q: %w", d.Source, err), nil
	}
	return nil, nil
}

// renamed is where the slot of a database is that the source has no more. With a database that was dropped it went, and with one that was renamed it
// did not. A slot is dropped only from its own database.
func (s source) renamed(ctx context.Context, from, which string) error {
	s.limit = cleanLimit
	return s.visit(ctx, from, func(ctx context.Context, conn *pgx.Conn) error {
		in, err := list(ctx, conn, "select database::text from pg_replication_slots where slot_name = $1", which)
		switch {
		case err != nil:
			return fmt.Errorf("replication slot %q, which keeps write-ahead log (%w)", which, said(err))
		case len(in) > 0:
			return fmt.Errorf("it has another name, %q, and there replication slot %q, which keeps write-ahead log, and publication %q", in[0], which, which)
		}
		return nil
	})
}

// cleanLimit is how long a source may take to be left.
const cleanLimit = 20 * time.Second

// clean a database of the source. The error names what is left.
func (s source) clean(ctx context.Context, database, which, system string) error {
	s.limit = cleanLimit
	var left []error
	err := s.visit(ctx, database, func(ctx context.Context, conn *pgx.Conn) error {
		if err := endSlots(ctx, conn, which, system); err != nil {
			left = append(left, fmt.Errorf("replication slots, which keep write-ahead log (%w)", err))
		}
		if _, err := conn.Exec(ctx, "drop publication if exists "+name(which)); err != nil {
			left = append(left, fmt.Errorf("publication %q (%w)", which, said(err)))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("replication slot %q, which keeps write-ahead log, and publication %q (%w)", which, which, err)
	}
	return errors.Join(left...)
}

// slotsOf a subscription at the source: its own one, and one for each table that is being copied, which PostgreSQL names after the subscription,
// the table, and the system that subscribes.
const slotsOf = ` from pg_replication_slots where database = current_database()
	and (slot_name = $1 or slot_name ~ ('^pg_[0-9]+_sync_[0-9]+_' || $2 || '$'))`

// endSlots drops the slots of a subscription. The workers that read them may take a moment to end.
func endSlots(ctx context.Context, conn *pgx.Conn, which, system string) error {
	for {
		there, err := list(ctx, conn, "select slot_name::text"+slotsOf+" order by 1", which, system)
		if err != nil {
			return said(err)
		}
		if len(there) == 0 {
			return nil
		}
		if _, err := conn.Exec(ctx, "select pg_drop_replication_slot(slot_name)"+slotsOf+" and not active", which, system); err != nil {
			return said(err)
		}
		if err := importing.Pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("something still reads %s", importing.Some(there))
		}
	}
}
