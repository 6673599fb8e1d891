// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/existing"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// Backups of a Database that is about to begin empty.
func Backups(b mysqlmember.Backup) existing.Repository {
	at, instead := layout.Repository(b).Where(), existing.FromBackup
	if b.Repository != "" {
		instead = existing.FromDatabase
	}
	return existing.Repository{Place: at, Instead: instead, Last: func(ctx context.Context) (existing.Backup, error) {
		place := layout.Repository(b)
		place.Stanza = "" // the Database may have had another identity
		repo, err := repository.Open(ctx, place)
		if err != nil {
			return existing.Backup{}, err
		}
		all, err := repo.Backups(ctx)
		last := latest(all)
		return existing.Backup{Stanza: last.Stanza, Ended: last.Ended}, err
	}}
}
