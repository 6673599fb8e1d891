// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// Reasons to wait before a Database begins without data although it is to be backed up.
const (
	// backupsExist: the bucket has backups under the name of the Database.
	backupsExist = "BackupsExist"
	// waitingForBucket: it is not known yet whether it has.
	waitingForBucket = "WaitingForBucket"
)

const (
	// existingEvery is how often it is asked whether there are backups.
	existingEvery = 10 * time.Second
	// restoreAgain is the pause after a restore that did not work.
	restoreAgain = time.Minute
)

// existing is what was found out about backups of this name.
type existing struct {
	asked time.Time
	wait  error
}

// besideBackups tells what a member with an empty volume has to wait for before it begins without data: nobody is to take an empty
// Database for the one that was backed up. A Database that begins with a backup, or says that it begins beside them, waits for nothing.
func (m *member) besideBackups(ctx context.Context) error {
	w, err := pgbackrest.ReadWanted(layout.Wanted)
	if err != nil {
		return err
	}
	if w.From != nil {
		return m.again(*w.From)
	}
	if w.Backup == nil || !w.Backup.Enabled || w.Backup.StartEmpty {
		return nil
	}
	if time.Since(m.existing.asked) >= existingEvery {
		m.existing = existing{time.Now(), m.askExisting(ctx, *w.Backup)}
	}
	return m.existing.wait
}

// again is what a member has to wait for before it restores, for the first time or once more. What is left of a restore that did not
// work is removed: its room is needed.
func (m *member) again(from pgbackrest.Source) error {
	// One that was killed has no control file.
	if err := volume.Clear(layout.Data); err != nil {
		return err
	}
	// Patroni keeps what it could not begin with.
	failed := layout.Data + ".failed"
	if _, err := os.Stat(failed); err == nil {
		if err := os.RemoveAll(failed); err != nil {
			return fmt.Errorf("cannot remove what is left of a restore: %w", err)
		}
		message := m.told.get().Message
		if err := os.Remove(layout.Restored); err == nil {
			message = "the backup was restored, and PostgreSQL could not replay what was archived after it: see the log of the pod"
			if from.At != nil {
				message = fmt.Sprintf("the backup was restored, and what was archived ends before %s, or PostgreSQL could not replay it: choose an "+
					"earlier moment, in another Database, or wait until more is archived", from.At.UTC().Format(time.RFC3339))
			}
			if from.RestorePoint != "" {
				message = fmt.Sprintf("the backup was restored, and what was archived does not reach the restore point %q, or PostgreSQL could not replay it: "+
					"choose another one, in another Database, or see the log of the pod", from.RestorePoint)
			}
		}
		m.existing = existing{time.Now(), &volume.Wait{Reason: restoreFailed, Message: message}}
	}
	if time.Since(m.existing.asked) < restoreAgain {
		return m.existing.wait
	}
	return nil
}

func (m *member) askExisting(ctx context.Context, s pgbackrest.Settings) error {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	all, err := m.stanzas(ctx, s)
	if err != nil {
		return &volume.Wait{Reason: waitingForBucket, Message: fmt.Sprintf("it is not known yet whether %s has backups of this name: %v. "+
			"See the condition BackupFresh, or let the Database begin whatever there is: set spec.backup.onExisting to StartEmpty", s.Place(), err)}
	}
	latest := pgbackrest.Latest(all)
	if latest.Name == "" {
		return nil
	}
	last := latest.Backups[len(latest.Backups)-1]
	from := "a Database with spec.from.backup of them"
	if s.Repository != "" {
		from = "another Database with spec.from.database of this one"
	}
	return &volume.Wait{Reason: backupsExist, Message: fmt.Sprintf("%s has backups of a Database of this name, stanza %s, the last of %s, and no volume of its data "+
		"is here. Bring its volumes back, or make %s, or let this one begin empty beside them: "+
		"set spec.backup.onExisting to StartEmpty", s.Place(), latest.Name, last.Ended().Format(time.RFC3339), from)}
}

// stanzas that the bucket has where this Database keeps its backups.
func (m *member) stanzas(ctx context.Context, s pgbackrest.Settings) ([]pgbackrest.Stanza, error) {
	repository, err := repositoryOf(s)
	if err != nil {
		return nil, err
	}
	file := layout.PgBackRest + ".existing"
	if _, err := pgbackrest.Reader(s.Path, "", repository, pgbackrest.Folders{Lock: layout.Lock}).Write(file); err != nil {
		return nil, err
	}
	all, err := pgbackrest.Runner{Program: pgbackrest.Program, Config: file}.Info(ctx, "")
	var failure *pgbackrest.Failure
	if errors.As(err, &failure) {
		return nil, errors.New(failure.Said)
	}
	return all, err
}
