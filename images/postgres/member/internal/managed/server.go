// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// Checkpoint lets the server behind a socket's folder write at once what it holds in memory. One that has nothing to write does
// nothing.
func Checkpoint(ctx context.Context, socket string) error {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return err
	}
	defer Close(ctx, conn)
	if _, err := conn.Exec(ctx, "checkpoint"); err != nil {
		return fmt.Errorf("cannot make a checkpoint: %w", err)
	}
	return nil
}

// Streams reports whether the client of a replication slot gets what the server behind a socket's folder writes, and how many bytes
// it is behind. Without the slot there should be none.
func Streams(ctx context.Context, socket, slot string) (follows bool, lag int64, err error) {
	_, err = Ask(ctx, socket, pgmember.PortPostgres, `select coalesce(r.state = 'streaming', false),
		coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, r.flush_lsn), 0)::bigint
		from pg_replication_slots s left join pg_stat_replication r on r.pid = s.active_pid where s.slot_name = $1`, []any{slot}, &follows, &lag)
	if err != nil {
		return false, 0, fmt.Errorf("cannot read the replication slots: %w", err)
	}
	return follows, lag, nil
}

// HoldingSlot returns the replication slot that holds most of the write-ahead log back, and how many bytes of it; no name when
// there is no slot.
func HoldingSlot(ctx context.Context, socket string) (slot string, bytes int64, err error) {
	_, err = Ask(ctx, socket, pgmember.PortPostgres, `select slot_name, pg_wal_lsn_diff(
		case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end, restart_lsn)::bigint as held
		from pg_replication_slots where restart_lsn is not null order by held desc limit 1`, nil, &slot, &bytes)
	if err != nil {
		return "", 0, fmt.Errorf("cannot look at replication slots: %w", err)
	}
	return slot, bytes, nil
}

// A Point in the write-ahead log that has a label.
type Point struct {
	LSN string
	// Segment that it is in, by its name, and Timeline that it is on.
	Segment  string
	Timeline int64
	At       time.Time
}

// MakePoint gives this moment a label in the write-ahead log, and begins another segment, so that the archive has it soon.
func MakePoint(ctx context.Context, socket, label string) (Point, error) {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return Point{}, err
	}
	defer Close(ctx, conn)
	var p Point
	if _, err := row(ctx, conn, "make a restore point", "select pg_create_restore_point($1)::text, clock_timestamp()", []any{label}, &p.LSN, &p.At); err != nil {
		return Point{}, err
	}
	if _, err := row(ctx, conn, "find out where the restore point is", "select pg_walfile_name($1::pg_lsn)", []any{p.LSN}, &p.Segment); err != nil {
		return Point{}, err
	}
	if len(p.Segment) != 24 {
		return Point{}, fmt.Errorf("cannot find out where the restore point is: %q is no segment", p.Segment)
	}
	if p.Timeline, err = strconv.ParseInt(p.Segment[:8], 16, 64); err != nil {
		return Point{}, fmt.Errorf("cannot find out the timeline of the restore point: %w", err)
	}
	if _, err := conn.Exec(ctx, "select pg_switch_wal()"); err != nil {
		return Point{}, fmt.Errorf("cannot begin another segment after the restore point: %w", err)
	}
	return p, nil
}

// updateLimit is how long the update of one extension may take.
const updateLimit = "15min"

// UpdateExtensions brings extensions of all databases to the version that comes with the server behind a socket's folder. It
// returns which could not be, and why.
func UpdateExtensions(ctx context.Context, socket string) (stuck string, err error) {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return "", err
	}
	databases, err := List(ctx, conn, "select datname::text from pg_database where datallowconn order by 1")
	Close(ctx, conn)
	if err != nil {
		return "", fmt.Errorf("cannot list databases: %w", err)
	}
	var all []string
	for _, d := range databases {
		some, err := updateExtensions(ctx, socket, d)
		if err != nil {
			return "", err
		}
		all = append(all, some...)
	}
	return strings.Join(all, "; "), nil
}

// updateExtensions of one database.
func updateExtensions(ctx context.Context, socket, database string) ([]string, error) {
	conn, err := connect(ctx, socket, database)
	if err != nil {
		return nil, err
	}
	defer Close(ctx, conn)
	old, err := List(ctx, conn, `select name::text from pg_available_extensions where installed_version <> default_version order by 1`)
	if err != nil {
		return nil, fmt.Errorf("cannot look for extensions of database %q: %w", database, err)
	}
	if err := do(ctx, conn, "set the limit of an update", "set statement_timeout = '"+updateLimit+"'"); err != nil {
		return nil, err
	}
	var stuck []string
	for _, e := range old {
		if err := do(ctx, conn, "update it", "alter extension "+name(e)+" update"); err != nil {
			stuck = append(stuck, fmt.Sprintf("extension %q of database %q stays in its former version: %v", e, database, err))
		}
	}
	return stuck, nil
}
