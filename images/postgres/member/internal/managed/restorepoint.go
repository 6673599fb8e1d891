// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

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
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var p Point
	if err := conn.QueryRow(ctx, "select pg_create_restore_point($1)::text, clock_timestamp()", label).Scan(&p.LSN, &p.At); err != nil {
		return Point{}, fmt.Errorf("cannot make a restore point: %w", err)
	}
	if err := conn.QueryRow(ctx, "select pg_walfile_name($1::pg_lsn)", p.LSN).Scan(&p.Segment); err != nil {
		return Point{}, fmt.Errorf("cannot tell where the restore point is: %w", err)
	}
	if len(p.Segment) != 24 {
		return Point{}, fmt.Errorf("cannot tell where the restore point is: %q is no segment", p.Segment)
	}
	if p.Timeline, err = strconv.ParseInt(p.Segment[:8], 16, 64); err != nil {
		return Point{}, fmt.Errorf("cannot tell the timeline of the restore point: %w", err)
	}
	if _, err := conn.Exec(ctx, "select pg_switch_wal()"); err != nil {
		return Point{}, fmt.Errorf("cannot begin another segment after the restore point: %w", err)
	}
	return p, nil
}
