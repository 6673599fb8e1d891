// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/notes"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// backlogEvery is the time between two measurements of what waits while one segment is on its way. A leader can write more than a
// bucket takes for much longer than one try lasts.
const backlogEvery = 2 * time.Second

// Archive brings one file of the write-ahead log into the archive, as PostgreSQL calls it. The file may be recycled when it
// succeeds.
type Archive struct {
	Path string `arg:"" help:"The file, from the data folder."`
}

// Run archives the file. While backups are off, and when more waits than the Database allows, it releases the file unarchived: a
// leader whose archive is down must not fill its volume.
func (c *Archive) Run(ctx context.Context, log *slog.Logger) error {
	w, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	if w.Backup == nil {
		return nil // there never were backups
	}
	before, err := pgbackrest.ReadArchived(layout.Archive)
	if err != nil {
		log.Warn("archiving continues", "error", err)
	}
	now, err := c.result(ctx, *w.Backup, before)
	if now != before {
		if werr := now.Write(layout.Archive); werr != nil {
			log.Error("cannot note the result of archiving", "error", werr)
		}
		// The agent reports it.
		_ = notes.Send(ctx, notes.Archive+": changed")
	}
	if err == nil && strings.HasSuffix(c.Path, ".backup") {
		_ = notes.Send(ctx, notes.Backup+": one ended")
	}
	return err
}

// result of archiving the file. While backups are off it is released, which leaves a gap for when they are on again.
func (c *Archive) result(ctx context.Context, s pgmember.Backup, before pgbackrest.Archived) (pgbackrest.Archived, error) {
	if !s.Enabled {
		return letGo(before), nil
	}
	return c.archive(ctx, s, before)
}

func (c *Archive) archive(ctx context.Context, s pgmember.Backup, a pgbackrest.Archived) (pgbackrest.Archived, error) {
	waits, err := pgbackrest.Backlog(pgmember.FolderData)
	if err != nil {
		return a, err
	}
	if isFull(s, waits, nearlyFull) {
		return letGo(a), nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	full := errors.New("more waits than may")
	go loop.Repeat(ctx, nil, func(context.Context) time.Duration {
		if waits, err := pgbackrest.Backlog(pgmember.FolderData); err == nil && isFull(s, waits, nearlyFull) {
			cancel(full)
		}
		return backlogEvery
	})
	// What pushes is another process, which continues.
	run := pgbackrest.Runner{Program: pgbackrest.Program, Config: layout.PgBackRest, Grace: time.Second}
	_, err = run.Run(ctx, "archive-push", "--stanza="+s.Stanza, filepath.Clean(c.Path))
	switch {
	case err == nil:
		a.Failing, a.Message = nil, ""
		return a, nil
	case errors.Is(context.Cause(ctx), full):
		return letGo(a), nil
	}
	if _, missing := pgbackrest.Configured(s); missing != nil {
		err = missing
	}
	if a.Failing == nil {
		a.Failing = new(time.Now().UTC().Truncate(time.Second))
	}
	a.Message = err.Error()
	return a, fmt.Errorf("cannot archive %s: %w", c.Path, err)
}

// isFull reports whether more waits for the archive than may. Unless the spec has a bound of its own, segments wait as long as the
// volume has room for them.
func isFull(s pgmember.Backup, waits int64, nearlyFull func() bool) bool {
	return waits > s.Queue && (!s.UntilLow || nearlyFull())
}

// nearlyFull reports whether the volume that the log is on has little room left, or it is unknown.
func nearlyFull() bool {
	u, err := volume.Measure(filepath.Join(pgmember.FolderData, "pg_wal"))
	return err != nil || volume.Class("", u.Percent) != volume.DiskOk
}

// letGo notes that a segment was released unarchived, at most once a minute.
func letGo(a pgbackrest.Archived) pgbackrest.Archived {
	now := time.Now().UTC()
	if a.Dropped == nil || now.Sub(*a.Dropped) >= time.Minute {
		a.Dropped = new(now.Truncate(time.Second))
	}
	return a
}
