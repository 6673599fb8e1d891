// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// Suffixes of what belongs to backups. The Secrets begin with pg-, which no consumer does, so that none has the name of a
// consumer's.
const (
	mostOfStorage = 2
)

// checkBackup holds what the schema cannot say of backups.
func checkBackup(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	if b := s.Spec.Backup; b != nil {
		ps = append(ps, checkSchedule(s, "spec.backup.schedule", b.Schedule)...)
		if q := b.MaxArchiveBacklog; q != nil && q.Value() > s.Spec.Storage.Value()/mostOfStorage {
			ps = append(ps, check.Invalid("spec.backup.maxArchiveBacklog", q.String(), "must be at most half of spec.storage, because the volume holds data and the backlog: lower it, or raise spec.storage"))
		}
	}
	return slices.Concat(ps, checkRepository(s), checkEncryption(s), checkVerify(s), checkSource(s))
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
	from := s.Spec.From
	if from == nil {
		return nil
	}
	var at v1alpha1.Moment
	path := "spec.from.backup.at"
	switch {
	case from.Database != nil:
		path, at = "spec.from.database.at", from.Database.At
		if from.Database.Name == s.Name {
			return []check.Problem{check.Invalid("spec.from.database.name", s.Name, "must be another Database: to restore a deleted Database from its backups, use spec.from.backup")}
		}
	case from.Backup != nil:
		at = from.Backup.At
	}
	if at != "" && facts.Moment(at) == nil {
		return []check.Problem{check.Invalid(path, string(at), "must be a time with its zone, for instance 2026-11-21T08:59:00Z")}
	}
	return nil
}

// Never reports whether a schedule names no time that comes, such as the 30th of February.
func Never(schedule string, now time.Time) bool {
	parsed, err := cron.ParseStandard(schedule)
	return err == nil && parsed.Next(now.UTC()).IsZero()
}
