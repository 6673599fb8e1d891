// SPDX-License-Identifier: Apache-2.0

// Package existing finds backups under the name of a Database that is about to begin empty: it must not look like the one that was backed up.
package existing

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/volume"
)

const (
	// limit is how long the repository may take to answer.
	limit = time.Minute
	// every is the time between two requests for the list of backups in the repository.
	every = 10 * time.Second
)

// A Backup is the last one that a repository has. Without a stanza there is none.
type Backup struct {
	Stanza string
	Ended  time.Time
}

// A Repository that backups go to.
type Repository struct {
	// Place in words, and Instead, the Database to make of what is there.
	Place, Instead string

	// Last backup of any Database that has had the name.
	Last func(context.Context) (Backup, error)
}

// Backups are what was found, and when. The zero value has not looked yet.
type Backups struct {
	checked time.Time
	wait    error
}

// Check returns a *volume.Wait when there are backups, or when that is unknown.
func (b *Backups) Check(ctx context.Context, r Repository) error {
	if time.Since(b.checked) >= every {
		*b = Backups{time.Now(), r.wait(ctx)}
	}
	return b.wait
}

func (r Repository) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last, err := r.Last(ctx)
	switch {
	case err != nil:
		return &volume.Wait{Reason: members.ReasonWaitingForBucket, Message: fmt.Sprintf("it is not known yet whether %s has backups of this name: %v. "+
			"See the condition BackupFresh, or let the Database begin without regard to them: set spec.backup.onExisting to StartEmpty", r.Place, err)}
	case last.Stanza == "":
		return nil
	}
	return &volume.Wait{Reason: members.ReasonBackupsExist, Message: fmt.Sprintf("%s has backups of a Database of this name, stanza %s, the last of %s, and no "+
		"volume of its data is here. Bring its volumes back, or make %s, or let this one begin empty beside them: "+
		"set spec.backup.onExisting to StartEmpty", r.Place, last.Stanza, last.Ended.UTC().Format(time.RFC3339), r.Instead)}
}

// FromBackup is the Database to make of backups in a bucket.
const FromBackup = "a Database with spec.from.backup of them"

// FromDatabase is the Database to make of backups on a volume, which serves them as long as this one waits.
const FromDatabase = "another Database with spec.from.database of this one"

// NoSource is why a copy cannot begin.
const NoSource = "the source has neither the connection Secret of a bucket nor the connection Secret of a volume of backups: " +
	"see whether it has spec.backup, and its condition BackupFresh"

// Mounted reports whether a Secret is there that is mounted to a folder, and has anything. The kubelet's own entries, which begin with two dots,
// are there without any.
func Mounted(folder string) bool {
	names, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(names, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), "..") })
}
