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
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
)

const (
	// existingLimit is how long the repository may take to answer.
	existingLimit = time.Minute
	// existingEvery is the time between two requests for the list of backups in the repository.
	existingEvery = 10 * time.Second
	// restoreAgain is the pause after a restore that failed.
	restoreAgain = time.Minute
)

// existingBackups is what was found out about backups under this name, and when.
type existingBackups struct {
	checked time.Time
	wait    error
}

// check what a member with an empty volume has to wait for before it begins without data: an empty Database must not look like
// the one that was backed up. A Database that begins with a backup, or that may begin beside backups, waits for nothing.
func (e *existingBackups) check(ctx context.Context, config pgmember.Config, reporter *report.Reporter) error {
	if config.From != nil {
		return e.checkRestore(*config.From, reporter.Report().Message)
	}
	if config.Backup == nil || !config.Backup.Enabled || config.Backup.StartEmpty {
		return nil
	}
	if time.Since(e.checked) >= existingEvery {
		*e = existingBackups{time.Now(), findExisting(ctx, *config.Backup)}
	}
	return e.wait
}

// checkRestore returns what a member has to wait for before it restores, for the first time or once more. What a failed restore
// left is removed: its room is needed. The message is what was reported of it.
func (e *existingBackups) checkRestore(from pgmember.Source, message string) error {
	// A restore that was killed leaves no control file.
	if err := pgdata.Clear(pgmember.FolderData); err != nil {
		return err
	}
	// Patroni keeps what it could not begin with.
	failed := pgmember.FolderData + ".failed"
	if _, err := os.Stat(failed); err == nil {
		if err := os.RemoveAll(failed); err != nil {
			return fmt.Errorf("cannot remove what is left of a restore: %w", err)
		}
		if err := os.Remove(layout.Restored); err == nil {
			message = notReplayed(from)
		}
		*e = existingBackups{time.Now(), &volume.Wait{Reason: members.ReasonRestoreFailed, Message: message}}
	}
	if time.Since(e.checked) < restoreAgain {
		return e.wait
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

// findExisting returns a Wait when there are backups under the name of the Database, or when that is unknown.
func findExisting(ctx context.Context, s pgmember.Backup) error {
	ctx, cancel := context.WithTimeout(ctx, existingLimit)
	defer cancel()
	place := pgbackrest.Place(s.Repository)
	all, err := stanzas(ctx, s)
	if err != nil {
		return &volume.Wait{Reason: members.ReasonWaitingForBucket, Message: fmt.Sprintf("it is not known yet whether %s has backups of this name: %v. "+
			"See the condition BackupFresh, or let the Database begin without regard to them: set spec.backup.onExisting to StartEmpty", place, err)}
	}
	latest := pgbackrest.Latest(all)
	if latest.Name == "" {
		return nil
	}
	from := "a Database with spec.from.backup of them"
	if s.Repository != "" {
		from = "another Database with spec.from.database of this one"
	}
	return &volume.Wait{Reason: members.ReasonBackupsExist, Message: fmt.Sprintf("%s has backups of a Database of this name, stanza %s, the last of %s, and no "+
		"volume of its data is here. Bring its volumes back, or make %s, or let this one begin empty beside them: "+
		"set spec.backup.onExisting to StartEmpty", place, latest.Name, latest.Ended().Format(time.RFC3339), from)}
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
