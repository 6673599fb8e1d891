// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Follower tells whether who uses a replication slot gets what the server behind a socket's folder writes, and how many bytes it is
// behind. Without the slot nobody is to follow.
func Follower(ctx context.Context, socket, slot string) (follows bool, lag int64, err error) {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, `select coalesce(r.state = 'streaming', false),
		coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, r.flush_lsn), 0)::bigint
		from pg_replication_slots s left join pg_stat_replication r on r.pid = s.active_pid where s.slot_name = $1`, slot).Scan(&follows, &lag)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, 0, nil
	case err != nil:
		return false, 0, fmt.Errorf("cannot look at who follows: %w", err)
	}
	return follows, lag, nil
}
