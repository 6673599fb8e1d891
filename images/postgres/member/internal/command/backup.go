// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/outcome"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/repository"
)

// fullEvery is how often a backup is full. Those between hold what changed since the one before.
const fullEvery = 7 * 24 * time.Hour

// Backup takes one backup. It runs in a pod of its own, which is the host of the repository: it reads from the members'
// pgBackRest and writes to the bucket. When backups go to a volume, that has a host of its own, which takes the backup.
type Backup struct {
	Folder string `default:"/tmp"                 help:"Folder for what is needed while it runs." type:"existingdir"`
	Output string `default:"/dev/termination-log" env:"TERMINATION_LOG"                           help:"File that the result is written to as well." hidden:""`
}

// Run takes the backup and removes those that are older than the Database keeps them.
func (c *Backup) Run(ctx context.Context, log *slog.Logger) error {
	w, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	if w.Backup == nil || !w.Backup.Enabled {
		return errors.New("backups are off: set spec.backup.enabled")
	}
	r, err := c.take(ctx, log, *w.Backup)
	if err != nil {
		return err
	}
	return outcome.Print(os.Stdout, c.Output, r)
}

// take the backup here, or let the host of the volume take it.
func (c *Backup) take(ctx context.Context, log *slog.Logger, s pgmember.Backup) (outcome.Backup, error) {
	tls := pgbackrest.Identity(pgmember.FolderMembers)
	if s.Repository != "" && !vault.IsBucket(pgmember.FolderBackup) {
		log.Info("asking for a backup", "host", s.Repository, "stanza", s.Stanza)
		var r outcome.Backup
		err := repository.Take(ctx, tls, s, &r)
		return r, err
	}
	bucket, err := pgbackrest.Configured(s)
	if err != nil {
		return outcome.Backup{}, err
	}
	folders := pgbackrest.Folders{Data: pgmember.FolderData, Socket: pgmember.FolderSocket, Lock: filepath.Join(c.Folder, "lock")}
	run, err := pgbackrest.Host(s, bucket, folders, tls, layout.PgBackRest).Runner(filepath.Join(c.Folder, "pgbackrest.conf"))
	if err != nil {
		return outcome.Backup{}, err
	}
	return take(ctx, log, run, s)
}

// take a backup of the stanza, which is made if there is none.
func take(ctx context.Context, log *slog.Logger, run pgbackrest.Runner, s pgmember.Backup) (outcome.Backup, error) {
	stanza := "--stanza=" + s.Stanza
	all, err := run.Info(ctx, s.Stanza)
	if err != nil {
		return outcome.Backup{}, err
	}
	// To make it locks out who archives, or is locked out by them. One of other data is refused by the backup: what is there is
	// never overwritten.
	if pgbackrest.Missing(all) {
		if _, err := run.Run(ctx, "stanza-create", stanza); err != nil {
			return outcome.Backup{}, err
		}
	}
	kind := next(all, s, time.Now())
	log.Info("taking a backup", "type", kind, "stanza", s.Stanza)
	if _, err := run.Run(ctx, "backup", stanza, "--type="+kind); err != nil {
		return outcome.Backup{}, err
	}
	all, err = run.Info(ctx, s.Stanza)
	if err != nil {
		return outcome.Backup{}, err
	}
	last, ok := pgbackrest.Latest(all).Last()
	if !ok {
		return outcome.Backup{}, fmt.Errorf("the backup ended, and %s has none: see whether something else removes what is there", pgbackrest.Place(s.Repository))
	}
	expireFormer(ctx, log, run, s, pgbackrest.Latest(all), time.Now())
	return outcome.Backup{
		Label: last.Label, Type: last.Type, Size: last.Info.Size, Added: last.Info.Repository.Delta, Began: last.Began(), Ended: last.Ended(),
	}, nil
}

// next type of backup: full when there is none, or the last full one is a week old or as old as what is kept.
func next(all []pgbackrest.Stanza, s pgmember.Backup, now time.Time) string {
	every := fullEvery
	if s.RetentionDays > 0 {
		every = min(every, time.Duration(s.RetentionDays)*24*time.Hour)
	}
	for _, stanza := range all {
		for _, b := range stanza.Backups {
			// What is taken a moment earlier than the last time counts.
			if b.Type == pgbackrest.Full && !b.Error && now.Sub(b.Began()) < every-time.Hour {
				return pgbackrest.Incremental
			}
		}
	}
	return pgbackrest.Full
}
