// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/existing"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/snapshot"
)

// restoreAgain is the pause after a restore that failed.
const restoreAgain = time.Minute

// existingBackups is what was found out about backups under this name, and when a restore failed, with what.
type existingBackups struct {
	existing.Backups

	failed time.Time
	wait   error
}

// check what a member with an empty volume has to wait for before it begins without data: an empty Database must not look like
// the one that was backed up. A Database that begins with a backup, or that may begin beside backups, waits for nothing.
func (e *existingBackups) check(ctx context.Context, config pgmember.Config, member string, reporter *report.Reporter) error {
	if config.From != nil {
		if err := e.checkRestore(*config.From, reporter.Report().Message); err != nil {
			return err
		}
		return hasSnapshot(config.From.Snapshot, member)
	}
	if config.Backup == nil || !config.Backup.Enabled || config.Backup.StartEmpty {
		return nil
	}
	return e.Check(ctx, repositoryOf(*config.Backup))
}

// checkRestore returns what a member has to wait for before it restores, for the first time or once more. What a failed restore
// left is removed: its room is needed. The message is what was reported of it.
func (e *existingBackups) checkRestore(from pgmember.Source, message string) error {
	// A restore that was killed leaves no control file.
	if err := pgdata.Clear(pgmember.FolderData); err != nil {
		return err
	}
	// Patroni keeps what it could not begin with.
	if _, err := os.Stat(layout.Failed); err == nil {
		if err := clearFailed(from); err != nil {
			return err
		}
		if err := os.Remove(layout.Restored); err == nil {
			message = notReplayed(from)
		}
		e.failed, e.wait = time.Now(), &volume.Wait{Reason: members.ReasonRestoreFailed, Message: message}
	}
	if time.Since(e.failed) < restoreAgain {
		return e.wait
	}
	return nil
}

// clearFailed removes what Patroni could not begin with. There is no other copy of what a volume was filled with.
func clearFailed(from pgmember.Source) error {
	if from.Snapshot != nil {
		return snapshot.Own.Again(layout.Failed)
	}
	if err := os.RemoveAll(layout.Failed); err != nil {
		return fmt.Errorf("cannot remove what is left of a restore: %w", err)
	}
	return nil
}

// snapshotOf is the identity of the Database that this one begins with a snapshot of, or "".
func snapshotOf() (string, error) {
	config, err := layout.ReadConfig()
	if err != nil || config.From == nil || config.From.Snapshot == nil {
		return "", err
	}
	return config.From.Snapshot.Identity, nil
}

// hasSnapshot returns what a member has to wait for whose Database begins with a snapshot: one member has it.
func hasSnapshot(s *pgmember.Snapshot, member string) error {
	switch {
	case s == nil || snapshot.Own.Has():
		return nil
	case s.Member == member:
		return &volume.Wait{Reason: members.ReasonRestoreFailed, Message: "the volume of this member was not filled from the snapshot that spec.from names: " +
			"remove the Database and its volumes, and make it again"}
	}
	return &volume.Wait{Reason: pgmember.ReasonWaitingForData, Message: fmt.Sprintf("member %s begins with the snapshot, and this one copies its data: make room for its pod", s.Member)}
}

// removeRestored data that is not the member's: what a restore that was killed had not masked, and once the Database has begun what it could
// not begin with. Another member may have made the data meanwhile, so that no restore of this one removes it.
func removeRestored(begun bool) error {
	left := []string{layout.Unmasked}
	if begun {
		left = append(left, layout.Failed, layout.Snapshot)
	}
	for _, folder := range left {
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("cannot remove what is left of a restore: %w", err)
		}
	}
	return nil
}

// notReplayed says why a Database cannot begin whose backup was restored.
func notReplayed(from pgmember.Source) string {
	switch {
	case from.RestorePoint != "":
		return fmt.Sprintf("the backup was restored, and what was archived does not reach the restore point %q, or PostgreSQL could not replay it: "+
			"choose another one, in another Database, or see the log of the pod", from.RestorePoint)
	case from.At != nil:
		return fmt.Sprintf("the backup was restored, and what was archived ends before %s, or PostgreSQL could not replay it: choose an "+
			"earlier moment, in another Database, or wait until more is archived", from.At.UTC().Format(time.RFC3339))
	}
	return "the backup was restored, and PostgreSQL could not replay what was archived after it: see the log of the pod"
}

// repositoryOf backups under the name of the Database.
func repositoryOf(s pgmember.Backup) existing.Repository {
	r := existing.Repository{Place: pgbackrest.Place(s.Repository), Instead: existing.FromBackup}
	if s.Repository != "" {
		r.Instead = existing.FromDatabase
	}
	r.Last = func(ctx context.Context) (existing.Backup, error) {
		all, err := stanzas(ctx, s)
		if err != nil {
			return existing.Backup{}, err
		}
		last := pgbackrest.Latest(all)
		return existing.Backup{Stanza: last.Name, Ended: last.Ended()}, nil
	}
	return r
}

// stanzas of the repository that this Database keeps its backups in.
func stanzas(ctx context.Context, s pgmember.Backup) ([]pgbackrest.Stanza, error) {
	repository, err := pgbackrest.Configured(s)
	if err != nil {
		return nil, err
	}
	run, err := pgbackrest.Reader(s.Path, "", 0, repository, pgbackrest.Folders{Lock: layout.Lock}).Runner(layout.PgBackRest + ".existing")
	if err != nil {
		return nil, err
	}
	all, err := run.Info(ctx, "")
	var failure *pgbackrest.Failure
	if errors.As(err, &failure) {
		return nil, errors.New(failure.Said)
	}
	return all, err
}
