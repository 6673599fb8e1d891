// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// checkBackup holds what the schema cannot say of backups.
func checkBackup(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	if b := s.Spec.Backup; b != nil {
		ps = append(ps, checkSchedule(s, "spec.backup.schedule", b.Schedule)...)
		if q, own := b.MaxArchiveBacklog, s.Spec.WALStorage; q != nil && own != nil && q.Value() > own.Value()/2 {
			ps = append(ps, check.Invalid("spec.backup.maxArchiveBacklog", q.String(), "must be at most half of spec.walStorage, because the volume holds the backlog and what the server keeps for itself: lower it, or raise spec.walStorage"))
		} else if q != nil && own == nil && q.Value() > s.Spec.Storage.Value()/2 {
			ps = append(ps, check.Invalid("spec.backup.maxArchiveBacklog", q.String(), "must be at most half of spec.storage, because the volume holds data and the backlog: lower it, or raise spec.storage"))
		}
	}
	return slices.Concat(ps, checkRepository(s), checkEncryption(s), checkVerify(s), checkSnapshots(s), checkSource(s), checkSourceSnapshot(s))
}

// checkSchedule of a field, which may be empty.
func checkSchedule(s *facts.Cluster, field, schedule string) []check.Problem {
	_, err := cron.ParseStandard(schedule)
	switch {
	case schedule == "":
		return nil
	case err != nil, strings.Contains(schedule, "@"), strings.Contains(schedule, "TZ"):
		return []check.Problem{check.Invalid(field, schedule, "must be minute, hour, day, month and weekday, for instance 0 */6 * * *")}
	case Never(schedule, s.Now):
		return []check.Problem{check.Invalid(field, schedule, "must name a time that comes: this schedule has none")}
	default:
		return nil
	}
}

func checkSource(s *facts.Cluster) []check.Problem {
	switch from := s.Spec.From; {
	case from != nil && from.Database != nil:
		if from.Database.Name == s.Name {
			return []check.Problem{check.Invalid("spec.from.database.name", s.Name, "must be another Database: to restore a deleted Database from its backups, use spec.from.backup")}
		}
		return checkMoment("spec.from.database.at", from.Database.At)
	case from != nil && from.Backup != nil:
		return checkMoment("spec.from.backup.at", from.Backup.At)
	}
	return nil
}

// checkMoment of a field, which may be empty.
func checkMoment(field string, at v1alpha1.Moment) []check.Problem {
	if at != "" && facts.Moment(at) == nil {
		return []check.Problem{check.Invalid(field, string(at), "must be a time with its zone, for instance 2026-11-21T08:59:00Z")}
	}
	return nil
}

// Never reports whether a schedule names no time that comes, such as the 30th of February.
func Never(schedule string, now time.Time) bool {
	parsed, err := cron.ParseStandard(schedule)
	return err == nil && parsed.Next(now.UTC()).IsZero()
}

// checkRepository holds what the schema cannot express about the volume of backups: the schema sees no previous value after a
// target was removed and added again.
func checkRepository(s *facts.Cluster) []check.Problem {
	v := backup.RepositoryVolume(s)
	var ps []check.Problem
	if was := backup.RepositoryClaimed(s); v.Size != nil && v.Size.Cmp(was) < 0 {
		ps = append(ps, check.Invalid("spec.backup.to.volume.size", v.Size.String(),
			fmt.Sprintf("the volume has %[1]s and cannot shrink: set %[1]s or more", was.String())))
	}
	made := backup.RepositoryMade(s)
	if made == nil || v.StorageClassName == "" {
		return ps
	}
	if class := compose.Text(made, "spec", "storageClassName"); class != v.StorageClassName {
		ps = append(ps, check.Invalid("spec.backup.to.volume.storageClassName", v.StorageClassName, fmt.Sprintf(
			"the volume exists with StorageClass %[1]q, which cannot change: set %[1]q, or remove the field", class)))
	}
	return ps
}

// checkEncryption holds what the schema cannot say: a block that was removed and put back has no value before.
func checkEncryption(s *facts.Cluster) []check.Problem {
	if s.Spec.Backup == nil {
		return nil
	}
	now := backup.Key(s)
	for _, letter := range compose.SortedKeys(s.Sets) {
		o := s.Sets[letter]
		if o.BucketSecret == "" || o.BackupKey.Encrypted() == now.Encrypted() {
			continue
		}
		remedy := "the existing backups are not encrypted, and " + s.Traits.BackupTool + " cannot turn encryption on in the same place: remove the field, " +
			"or make another Database with spec.from.database and a key"
		if !now.Encrypted() {
			remedy = fmt.Sprintf("the existing backups are encrypted with the key %s of Secret %q, and %s cannot turn encryption off in the same place: set the field to that Secret and key",
				o.BackupKey.Key, o.BackupKey.Secret, s.Traits.BackupTool)
		}
		return []check.Problem{check.Invalid("spec.backup.encryption", now.Secret, remedy)}
	}
	return nil
}

// checkVerify holds what the schema cannot express about verifications.
func checkVerify(s *facts.Cluster) []check.Problem {
	if s.Spec.Backup == nil || s.Spec.Backup.Verify == nil {
		return nil
	}
	v := s.Spec.Backup.Verify
	ps := checkSchedule(s, "spec.backup.verify.schedule", v.Schedule)
	for i, a := range v.Assertions {
		if !slices.ContainsFunc(s.Spec.Databases, func(d v1alpha1.LogicalDatabase) bool { return d.Name == a.Database }) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.backup.verify.assertions[%d].database", i), a.Database, "must be one of spec.databases: add it there, or name another database"))
		}
	}
	return ps
}

func checkRestore(s *facts.Cluster) []check.Problem {
	if s.Spec.Restore == nil {
		return nil
	}
	return checkMoment("spec.restore.at", s.Spec.Restore.At)
}
