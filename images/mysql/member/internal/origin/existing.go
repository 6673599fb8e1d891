// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

const (
	// existingLimit is how long the repository may take to answer.
	existingLimit = time.Minute
	// existingEvery is the time between two requests for the list of backups in the repository.
	existingEvery = 10 * time.Second
)

// Existing is what was found out about backups under the name of the Database, and when.
type Existing struct {
	checked time.Time
	wait    error
}

// Check returns a *volume.Wait when there are backups under the name of a Database that is about to begin empty, or when that is unknown: an
// empty Database must not look like the one that was backed up. Nothing is in the way of one that may begin beside them.
func (e *Existing) Check(ctx context.Context, b *mysqlmember.Backup) error {
	if b == nil || !b.Enabled || b.StartEmpty {
		return nil
	}
	if time.Since(e.checked) >= existingEvery {
		*e = Existing{time.Now(), existing(ctx, *b)}
	}
	return e.wait
}

func existing(ctx context.Context, b mysqlmember.Backup) error {
	ctx, cancel := context.WithTimeout(ctx, existingLimit)
	defer cancel()
	place := layout.Repository(b)
	place.Stanza = "" // the Database may have had another identity
	repo, err := repository.Open(ctx, place)
	var all []repository.Backup
	if err == nil {
		all, err = repo.Backups(ctx)
	}
	if err != nil {
		return &volume.Wait{Reason: members.ReasonWaitingForBucket, Message: fmt.Sprintf("it is not known yet whether the bucket has backups of this name: %v. "+
			"See the condition BackupFresh, or let the Database begin without regard to them: set spec.backup.onExisting to StartEmpty", err)}
	}
	last := latest(all)
	if last.Stanza == "" {
		return nil
	}
	return &volume.Wait{Reason: members.ReasonBackupsExist, Message: fmt.Sprintf("the bucket has backups of a Database of this name, stanza %s, the last of %s, and no "+
		"volume of its data is here. Bring its volumes back, or make a Database with spec.from.backup of them, or let this one begin empty beside them: "+
		"set spec.backup.onExisting to StartEmpty", last.Stanza, last.Ended.UTC().Format(time.RFC3339))}
}
