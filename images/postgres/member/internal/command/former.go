// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// expireFormer applies the retention to what former generations left. A stanza is removed once the backups of the current one reach back as
// far as backups are kept. What fails is tried again with the next backup.
func expireFormer(ctx context.Context, log *slog.Logger, run pgbackrest.Runner, s pgmember.Backup, current pgbackrest.Stanza, now time.Time) {
	for _, former := range s.Former {
		if former == s.Stanza {
			continue
		}
		all, err := run.Info(ctx, former)
		if err != nil {
			log.Warn("cannot look at backups of a former generation", "stanza", former, "error", err)
			continue
		}
		if pgbackrest.Missing(all) {
			continue
		}
		act := "expired"
		if covers(current, s, now) {
			act, err = "removed", run.Remove(ctx, former)
		} else {
			_, err = run.Run(ctx, "expire", "--stanza="+former)
		}
		if err != nil {
			log.Warn("cannot expire backups of a former generation", "stanza", former, "error", err)
			continue
		}
		log.Info("applied the retention to backups of a former generation", "stanza", former, "result", act)
	}
}

// covers reports whether a stanza alone has all that the retention promises: as many full backups as are kept, or one that is at least as
// old.
func covers(current pgbackrest.Stanza, s pgmember.Backup, now time.Time) bool {
	full := slices.DeleteFunc(slices.Clone(current.Backups), func(b pgbackrest.Backup) bool { return b.Type != pgbackrest.Full || b.Error })
	switch {
	case s.RetentionDays > 0:
		oldest := now.Add(-time.Duration(s.RetentionDays) * 24 * time.Hour)
		return slices.ContainsFunc(full, func(b pgbackrest.Backup) bool { return b.Ended().Before(oldest) })
	case s.RetentionFull > 0:
		return len(full) >= s.RetentionFull
	default:
		return false
	}
}
