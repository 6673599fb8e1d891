// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

const (
	// firstCheck is how long after it became the leader a member looks for holes first, and checkEvery the time between two looks.
	firstCheck = 2 * time.Minute
	checkEvery = 10 * time.Minute
	// askArchive is how long the repository gets to report its last segment, before all is archived again.
	askArchive = 10 * time.Second
)

// A continuity keeps the archive without holes, as far as a leader can, and notes those that there are.
type continuity struct {
	// isLeader reports whether this member is the leader, and requeued whether it has let PostgreSQL archive what the leader before
	// had not.
	isLeader, requeued bool
	// check is when the next look for holes is due.
	check time.Time
}

// keep the archive continuous.
func (c *continuity) keep(ctx context.Context, s pgmember.Backup, leads bool, log *slog.Logger) {
	if !leads {
		*c = continuity{}
		return
	}
	now := time.Now()
	if !c.isLeader {
		c.isLeader, c.check = true, now.Add(firstCheck)
	}
	run := pgbackrest.Runner{Program: pgbackrest.Program, Config: layout.PgBackRest}
	if !c.requeued {
		if err := requeue(ctx, run, s.Stanza, log); err != nil {
			log.Warn("cannot archive yet what the leader before may not have archived", "error", err)
			return
		}
		c.requeued = true
	}
	if now.Before(c.check) {
		return
	}
	c.check = now.Add(checkEvery)
	if err := note(ctx, run, s.Stanza, log); err != nil {
		log.Warn("cannot find out whether the archive is complete", "error", err)
	}
}

// requeue what the leader before may not have archived.
func requeue(ctx context.Context, run pgbackrest.Runner, stanza string, log *slog.Logger) error {
	var timeline int64
	if _, err := managed.Ask(ctx, pgmember.FolderSocket, pgmember.PortPostgres,
		"select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint", nil, &timeline); err != nil {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, askArchive)
	defer cancel()
	// A repository that does not answer gets everything once more: it may be away for long, and PostgreSQL removes it soon.
	var archived pgbackrest.LSN
	if all, err := run.Info(ask, stanza); err == nil && len(all) > 0 {
		archived = all[0].Archived()
	}
	n, err := pgbackrest.Requeue(pgmember.FolderData, timeline, archived)
	if n > 0 {
		log.Info("archiving what the leader before may not have archived", "segments", n, "archived", archived.String())
	}
	return err
}

// note a hole in the archive since the last backup, once.
func note(ctx context.Context, run pgbackrest.Runner, stanza string, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all, err := run.Info(ctx, stanza)
	if err != nil || len(all) == 0 {
		return err
	}
	last, ok := all[0].Last()
	if !ok {
		return nil
	}
	hole, found, err := run.Hole(ctx, all[0], pgmember.FolderData)
	if err != nil || !found {
		return err
	}
	a, err := pgbackrest.ReadArchived(layout.Archive)
	if err != nil {
		return err
	}
	if a.Dropped != nil && a.Dropped.After(last.Began()) {
		return nil
	}
	log.Warn("the archive lacks a segment since the last backup", "at", hole.String())
	a.Dropped = new(time.Now().UTC().Truncate(time.Second))
	return a.Write(layout.Archive)
}
