// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// HoldingSlot returns the replication slot that holds most of the write-ahead log back, and how many bytes of it; no name when there
// is no slot.
func HoldingSlot(ctx context.Context, socket string) (string, int64, error) {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var (
		slot  string
		bytes int64
	)
	err = conn.QueryRow(ctx, `select slot_name, pg_wal_lsn_diff(
		case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end, restart_lsn)::bigint as held
		from pg_replication_slots where restart_lsn is not null order by held desc limit 1`).Scan(&slot, &bytes)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", 0, nil
	case err != nil:
		return "", 0, fmt.Errorf("cannot look at replication slots: %w", err)
	}
	return slot, bytes, nil
}
