// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// Suffixes of what belongs to backups. The Secrets begin with pg-, which no consumer does, so that none has the name of a
// consumer's.
const (
	suffixBackup       = "backup"
	suffixBackupBucket = "pg-backup-bucket"
	suffixBackupClient = "pg-backup"
	suffixVerify       = "verify"
	volumeBackup       = "backup"
	volumeSource       = "source"

	// volumeSourceRepository has what opens the source's volume of backups, if it has one.
	volumeSourceRepository = "source-repository"

	labelBackupOf       = "capstan.dev/backup-of"
	hoursOfNight        = 6
	backupDeadline      = 6 * time.Hour
	suffixDays          = "d"
	partOfStorage       = 5
	mostOfStorage       = 2
	maxRetention        = 9999
	minArchiveBacklogMB = 128 << 20
)

// takesBackups reports whether backups are taken.
func (s *cluster) takesBackups() bool { return s.spec.Backup != nil && *s.spec.Backup.Enabled }

// archives reports whether members can archive: they can once there were backups, so that switching them off and on restarts
// nobody.
func (s *cluster) archives() bool {
	if s.spec.Backup != nil {
		return true
	}
	for _, o := range s.sets {
		if o.bucketSecret != "" {
			return true
		}
	}
	return false
}

// bucketSecret holds what opens the bucket, or the volume. A Database that no longer mentions backups keeps the one it had.
func (s *cluster) bucketSecret() string {
	switch {
	case s.spec.Backup != nil && s.isOnVolume():
		return s.called(suffixRepositoryClient)
	case s.spec.Backup != nil && s.spec.Backup.To != nil && s.spec.Backup.To.ConnectionSecretRef != nil:
		return s.spec.Backup.To.ConnectionSecretRef.Name
	case s.spec.Backup != nil:
		return s.called(suffixBackupBucket)
	}
	for _, letter := range compose.SortedKeys(s.sets) {
		if name := s.sets[letter].bucketSecret; name != "" {
			return name
		}
	}
	return ""
}

// stanza that backups are kept under: by identity, so that a stranger of the same name has another, and by version, because an
// upgrade begins other data.
func (s *cluster) stanza() string { return s.stanzaOf(s.generation) }

// stanzaOf a generation. Each has its own, so that none archives among what another one wrote.
func (s *cluster) stanzaOf(generation int) string {
	scope := s.name + "-" + s.identity[:min(8, len(s.identity))]
	if generation > 1 {
		scope = fmt.Sprintf("%s-g%d", scope, generation)
	}
	return fmt.Sprintf("%s-%s", scope, s.versionOf(generation))
}

// repositoryOf a Database in its bucket.
func repositoryOf(namespace, name string) string { return "/" + namespace + "/" + name }

// archiveBacklog that is allowed, in bytes.
func (s *cluster) archiveBacklog() int64 {
	if q := s.spec.Backup.MaxArchiveBacklog; q != nil {
		return q.Value()
	}
	// Whole MiB, which people can read.
	return max(s.spec.Storage.Value()/partOfStorage>>20<<20, minArchiveBacklogMB)
}

// backupFile of this Database, or nil where there never were backups.
func (s *cluster) backupFile() *engine.Backup {
	if s.spec.Backup == nil {
		return nil
	}
	f := &engine.Backup{
		Enabled: s.takesBackups(), Stanza: s.stanza(), Path: repositoryOf(s.namespace, s.name), Repository: s.repositoryAddress(), Queue: s.archiveBacklog(),
		StartEmpty:   s.spec.Backup.OnExisting == v1alpha1.ExistingLeft,
		RestorePoint: string(s.spec.Backup.RestorePoint), Encrypted: s.backupKey().encrypted(), Verify: s.verifyFile(),
	}
	f.RetentionDays, f.RetentionFull = retention(s.spec.Backup.Retention)
	for _, letter := range s.expected() {
		f.Members = append(f.Members, s.podHost(letter))
	}
	return f
}

// retention in days, or else as a number of full backups; both 0 when it is neither.
func retention(text string) (days, full int) {
	number, isDays := strings.CutSuffix(text, suffixDays)
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > maxRetention {
		return 0, 0
	}
	if isDays {
		return n, 0
	}
	return 0, n
}

// schedule of backups: the one that is asked for, or once a night. When in the night follows from namespace and name, so that not
// all Databases begin at once.
func (s *cluster) schedule() string {
	if text := s.spec.Backup.Schedule; text != "" {
		return text
	}
	minute := s.hashed() % (hoursOfNight * 60)
	return fmt.Sprintf("%d %d * * *", minute%60, minute/60)
}

// hashed namespace and name.
func (s *names) hashed() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.namespace + "/" + s.name))
	return h.Sum32()
}

// sourceFile of the backup that the Database begins with, or nil.
func (s *cluster) sourceFile() *engine.Source {
	if s.generation > 1 {
		return s.filledFrom()
	}
	switch from := s.spec.From; {
	case from == nil:
		return nil
	case from.Database != nil:
		return &engine.Source{
			Path: repositoryOf(s.namespace, from.Database.Name), Either: repositoryHost(s.namespace, from.Database.Name), At: moment(from.Database.At),
			RestorePoint: string(from.Database.RestorePoint), Encrypted: s.sourceKey().encrypted(),
		}
	default:
		b := from.Backup
		return &engine.Source{
			Path: repositoryOf(cmp.Or(b.Namespace, s.namespace), b.Database), Stanza: b.Stanza, At: moment(b.At),
			RestorePoint: string(b.RestorePoint), Encrypted: s.sourceKey().encrypted(),
		}
	}
}

// sourceSecret opens the bucket of the backup that the Database begins with.
func (s *cluster) sourceSecret() string {
	// It stays after the restore, or members would be restarted.
	if s.generation > 1 {
		return s.bucketSecret()
	}
	switch from := s.spec.From; {
	case from == nil:
		return ""
	case from.Database != nil:
		return from.Database.Name + "-" + suffixBackupBucket
	default:
		return from.Backup.ConnectionSecretRef.Name
	}
}

// moment, or nil for the latest. The spec was checked.
func moment(at v1alpha1.Moment) *time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(at))
	if err != nil {
		return nil
	}
	t = t.UTC()
	return &t
}

// checkBackup holds what the schema cannot say of backups.
func checkBackup(s *cluster) []check.Problem {
	var ps []check.Problem
	if b := s.spec.Backup; b != nil {
		ps = append(ps, s.checkSchedule("spec.backup.schedule", b.Schedule)...)
		if q := b.MaxArchiveBacklog; q != nil && q.Value() > s.spec.Storage.Value()/mostOfStorage {
			ps = append(ps, check.Invalid("spec.backup.maxArchiveBacklog", q.String(), "must be at most half of spec.storage, which holds data and what waits"))
		}
	}
	return slices.Concat(ps, s.checkRepository(), s.checkEncryption(), s.checkVerify(), s.checkSource())
}

// checkSchedule of a field, which may be empty.
func (s *cluster) checkSchedule(field, schedule string) []check.Problem {
	_, err := cron.ParseStandard(schedule)
	switch {
	case schedule == "":
		return nil
	case err != nil, strings.Contains(schedule, "@"), strings.Contains(schedule, "TZ"):
		return []check.Problem{check.Invalid(field, schedule, "must be minute, hour, day, month and weekday, for instance 0 */6 * * *")}
	case never(schedule, s.Now):
		return []check.Problem{check.Invalid(field, schedule, "must name a time that comes")}
	default:
		return nil
	}
}

func (s *cluster) checkSource() []check.Problem {
	from := s.spec.From
	if from == nil {
		return nil
	}
	var at v1alpha1.Moment
	path := "spec.from.backup.at"
	switch {
	case from.Database != nil:
		path, at = "spec.from.database.at", from.Database.At
		if from.Database.Name == s.name {
			return []check.Problem{check.Invalid("spec.from.database.name", s.name, "must be another Database: use spec.from.backup for the backups of one that is gone")}
		}
	case from.Backup != nil:
		at = from.Backup.At
	}
	if at != "" && moment(at) == nil {
		return []check.Problem{check.Invalid(path, string(at), "must be a time with its zone, for instance 2026-11-21T08:59:00Z")}
	}
	return nil
}

// never reports whether a schedule names no time that comes, such as the 30th of February.
func never(schedule string, now time.Time) bool {
	parsed, err := cron.ParseStandard(schedule)
	return err == nil && parsed.Next(now.UTC()).IsZero()
}

// archivesAs is what of backups reaches the pods, for the revision.
func (s *cluster) archivesAs(e map[string]any) {
	if s.archives() {
		e["backup"] = s.bucketSecret()
	}
	if k := s.backupKey(); s.archives() && k.encrypted() {
		e["backupKey"] = k.text()
	}
	if name := s.sourceSecret(); name != "" {
		e["source"] = name
	}
	if k := s.sourceKey(); k.encrypted() {
		e["sourceKey"] = k.text()
	}
}

// secretOf a volume of a pod template, or "".
func secretOf(volumes []any, name string) string {
	for _, v := range volumes {
		if volume, ok := v.(map[string]any); ok && volume["name"] == name {
			return compose.Text(volume, "secret", "secretName")
		}
	}
	return ""
}
