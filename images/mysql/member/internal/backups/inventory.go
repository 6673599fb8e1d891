// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// inventoryEvery is how often the leader reads which backups there are.
const inventoryEvery = time.Minute

// An inventory is which backups the repository has.
type inventory struct {
	// facts of the backups, and the last one, as of asked.
	facts members.BackupReport
	last  *repository.Backup
	asked time.Time
	// first is when the first one ended; nil without any.
	first *time.Time
	// unreadable are backups that do not count, and warned is what was logged of them last.
	unreadable, warned string
	// vanished reports that there were backups before, and are none now.
	vanished bool
}

// ask the repository which backups there are, if it is due. trouble is why it cannot be asked.
func (v *inventory) ask(ctx context.Context, r Repository, trouble error) {
	if v.facts.Unread == "" && time.Since(v.asked) < inventoryEvery {
		return
	}
	v.asked = time.Now()
	if trouble == nil {
		trouble = v.read(ctx, r)
	}
	if trouble != nil {
		// What was known stays.
		v.facts.Unread, v.facts.Key = report.Lasting(trouble), keyTrouble(trouble)
	}
}

func (v *inventory) read(ctx context.Context, r Repository) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all, err := r.Backups(ctx)
	if err != nil {
		return err
	}
	v.unreadable = ""
	if err := r.Unreadable(); err != nil {
		v.unreadable = report.Lasting(err)
	}
	facts := members.BackupReport{Asked: true}
	v.vanished, v.last, v.first = v.last != nil && len(all) == 0, nil, nil
	if len(all) > 0 {
		last := all[len(all)-1]
		facts.Label, facts.Type, facts.Size, facts.Added = last.Label, typeFull, last.Size, last.Added
		facts.Began, facts.Ended = stamp(&last.Began), stamp(&last.Ended)
		facts.Earliest = stamp(new(roundUp(all[0].Ended)))
		v.first = &all[0].Ended
		v.last = &last
	}
	v.facts = facts
	return nil
}

// warn of backups that do not count, once.
func (v *inventory) warn(log *slog.Logger) {
	if v.unreadable != v.warned && v.unreadable != "" {
		log.Warn("not all backups count", "error", v.unreadable)
	}
	v.warned = v.unreadable
}

// roundUp to a second: a restore to the time that a report shows must not be before the backup.
func roundUp(t time.Time) time.Time {
	if down := t.Truncate(time.Second); down.Before(t) {
		return down.Add(time.Second)
	}
	return t
}

// typeFull: every backup restores alone.
const typeFull = "full"

// keyTrouble is what is wrong with the key, as one of members.Key…; "" when something else is wrong.
func keyTrouble(err error) string {
	var missing *repository.NotReadyError
	if errors.As(err, &missing) {
		return missing.Key
	}
	return ""
}

// verifiedEvery is how often the leader reads the results of verifications.
const verifiedEvery = time.Minute

// A verification is what is known of verifications of backups, as of asked.
type verification struct {
	report members.VerificationReport
	asked  time.Time
}

// read the results, if backups are verified and it is due.
func (v *verification) read(ctx context.Context, r Repository, s mysqlmember.Backup, log *slog.Logger) {
	if s.Verify == nil {
		*v = verification{}
		return
	}
	if r == nil || time.Since(v.asked) < verifiedEvery {
		return
	}
	v.asked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var report members.VerificationReport
	if _, err := r.ReadObject(ctx, layout.Verification(s), &report); err != nil {
		log.Warn("cannot read the results of verifications of backups", "error", err)
		return
	}
	report.Asked = true
	v.report = report
}

// measuredEvery is how often the leader measures the volume of backups.
const measuredEvery = time.Minute

// A room is how full the volume of backups is, if they are on one, as of measured.
type room struct {
	report   members.RepositoryReport
	measured time.Time
}

// measure the volume if it is due. The last result stays while its host does not answer.
func (v *room) measure(ctx context.Context, r Repository, log *slog.Logger) {
	if r == nil || time.Since(v.measured) < measuredEvery {
		return
	}
	v.measured = time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch u, onVolume, err := r.Usage(ctx); {
	case err != nil:
		log.Warn("the room of backups is unknown", "error", err)
	case !onVolume:
		v.report = members.RepositoryReport{}
	default:
		v.report = vault.Report(v.report, u)
	}
}
