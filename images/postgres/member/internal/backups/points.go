// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/points"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// archivedWithin is how long the segment of a restore point is waited for at a time.
const archivedWithin = 10 * time.Second

// A marker makes restore points as labels in the write-ahead log.
type marker struct {
	// segment and time of the last one that was made.
	segment string
	at      time.Time
}

// Make a restore point.
func (m *marker) Make(ctx context.Context, p *points.Point) error {
	made, err := managed.MakePoint(ctx, pgmember.FolderSocket, p.Label)
	if err != nil {
		return err
	}
	m.segment, m.at = made.Segment, made.At
	p.At, p.LSN, p.Timeline = made.At.UTC().Format(time.RFC3339), made.LSN, made.Timeline
	return nil
}

// Archived waits a while until the archive has the segment of the restore point that was made last.
func (m *marker) Archived(ctx context.Context, _ *points.Point) error {
	status := filepath.Join(pgmember.FolderData, "pg_wal", "archive_status", m.segment)
	for until := time.Now().Add(archivedWithin); ; loop.Sleep(ctx, soon) {
		_, err := os.Stat(status + ".ready")
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot find out whether the restore point is archived: %w", err)
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return points.ErrWaits
		}
	}
	a, err := pgbackrest.ReadArchived(layout.Archive)
	if err != nil {
		return err
	}
	// Drops are recorded by the minute.
	if a.Dropped != nil && a.Dropped.After(m.at.Add(-time.Minute)) {
		return points.ErrDropped
	}
	return nil
}

// pointsOf the repository that a member archives to.
type pointsOf struct{ pgmember.Backup }

// Read all points.
func (o pointsOf) Read(ctx context.Context, all *[]points.Point) error {
	store, err := objectstore.Configured(o.Backup)
	if err != nil {
		return err
	}
	_, err = store.Read(ctx, objectstore.RestorePoints(o.Path), all)
	return err
}

// Change reads all points, lets a function change them, and writes them.
func (o pointsOf) Change(ctx context.Context, all *[]points.Point, change func()) error {
	if err := o.Read(ctx, all); err != nil {
		return err
	}
	change()
	store, err := objectstore.Configured(o.Backup)
	if err != nil {
		return err
	}
	return store.Write(ctx, objectstore.RestorePoints(o.Path), *all)
}
