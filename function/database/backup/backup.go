// SPDX-License-Identifier: Apache-2.0

// Package backup has what follows from spec.backup and spec.from: where backups go, what opens it, and when they are due.
package backup

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Suffixes of what belongs to backups. The Secrets begin with pg-, which no consumer does, so that none has the name of a
// consumer's.
const (
	hoursOfNight        = 6
	suffixDays          = "d"
	partOfStorage       = 5
	partOfWALStorage    = 4
	maxRetention        = 9999
	minArchiveBacklogMB = 128 << 20
)

// Archives reports whether members can archive: they can once there were backups, so that switching them off and on
// restarts no member.
func Archives(s *facts.Cluster) bool {
	return s.Spec.Backup != nil || facts.FirstOf(s.Sets, func(v facts.Set) string { return v.BucketSecret }) != ""
}

// BucketSecret holds what opens the bucket, or the volume. A Database that no longer mentions backups keeps the one it had.
func BucketSecret(s *facts.Cluster) string {
	switch {
	case s.Spec.Backup != nil && IsOnVolume(s):
		return s.Called(names.SuffixRepositoryClient)
	case s.Spec.Backup != nil && s.Spec.Backup.To != nil && s.Spec.Backup.To.ConnectionSecretRef != nil:
		return s.Spec.Backup.To.ConnectionSecretRef.Name
	case s.Spec.Backup != nil:
		return s.Called(names.SuffixBackupBucket)
	}
	return facts.FirstOf(s.Sets, func(v facts.Set) string { return v.BucketSecret })
}

// Stanza that backups are kept under: by identity, so that another Database of the same name has another, and by version, because an
// upgrade begins other data.
func Stanza(s *facts.Cluster) string { return StanzaOf(s, s.Generation) }

// StanzaOf a generation. Each has its own, so that none archives among what another one wrote.
func StanzaOf(s *facts.Cluster, generation int) string {
	scope := s.Name + "-" + s.Identity[:min(8, len(s.Identity))]
	if generation > 1 {
		scope = fmt.Sprintf("%s-g%d", scope, generation)
	}
	// A stanza has no dots.
	return fmt.Sprintf("%s-%s", scope, strings.ReplaceAll(s.VersionOf(generation), ".", "-"))
}

func repositoryOf(namespace, name string) string { return "/" + namespace + "/" + name }

// ArchiveBacklog that is allowed, in bytes. While members get volumes for their logs, both places have to hold it.
func ArchiveBacklog(s *facts.Cluster) int64 {
	storage, apart := s.Spec.Storage.Value(), s.Sizes.UsableWAL.Value()
	if q := s.Spec.Backup.MaxArchiveBacklog; q != nil && s.Sizes.WALMoves {
		return min(q.Value(), storage/2)
	} else if q != nil {
		return q.Value()
	}
	// Whole MiB, which people can read.
	beside, own := max(storage/partOfStorage>>20<<20, minArchiveBacklogMB), max(apart/partOfWALStorage>>20<<20, minArchiveBacklogMB)
	switch {
	case apart == 0:
		return beside
	case s.Sizes.WALMoves:
		return min(own, beside)
	}
	return own
}

// File of this Database, or nil where there never were backups.
func File(s *facts.Cluster) *engine.Backup {
	if s.Spec.Backup == nil {
		return nil
	}
	f := &engine.Backup{
		Enabled: s.TakesBackups(), Stanza: Stanza(s), Path: repositoryOf(s.Namespace, s.Name), Repository: repositoryAddress(s), Queue: ArchiveBacklog(s),
		UntilLow:     s.Spec.Backup.MaxArchiveBacklog == nil,
		StartEmpty:   s.Spec.Backup.OnExisting == v1alpha1.ExistingLeft,
		RestorePoint: string(s.Spec.Backup.RestorePoint), Encrypted: Key(s).Encrypted(), Verify: verifyFile(s), Processes: parallel(s),
	}
	f.RetentionDays, f.RetentionFull = retention(s.Spec.Backup.Retention)
	f.Former = formerStanzas(s)
	for _, letter := range s.Expected() {
		f.Members = append(f.Members, s.PodHost(letter))
	}
	return f
}

// formerStanzas are stanzas of generations that are no longer kept. While a restore or an upgrade is under way, or a restore is
// requested, there are none: what it reads must not go.
func formerStanzas(s *facts.Cluster) []string {
	m := s.Memory
	if r := s.Spec.Restore; m.Step != nil || s.Generation != m.Generation() || r != nil && pending(m, r) {
		return nil
	}
	var former []string
	for g := 1; g <= m.Last; g++ {
		if g != s.Generation && !m.Keeps(g) {
			former = append(former, StanzaOf(s, g))
		}
	}
	return former
}

// pending reports whether a restore or its undo is requested and was not carried out.
func pending(m memory.Memory, r *v1alpha1.DatabaseRestore) bool {
	if r.Undo != "" {
		done, _ := m.Restored(r.Undo)
		return done.State != v1alpha1.RestoreUndone
	}
	_, done := m.Restored(r.ID)
	return !done
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

// Schedule of backups: the one in the spec, or once a night. When in the night follows from namespace and name, so that not
// all Databases begin at once.
func Schedule(s *facts.Cluster) string {
	minute := s.Hashed() % (hoursOfNight * 60)
	return cmp.Or(s.Spec.Backup.Schedule, fmt.Sprintf("%d %d * * *", minute%60, minute/60))
}

// Pod inputs of a member that archives: the Secret of the place of backups, their key, and the role that opens buckets.
const (
	InputPlace = "backup"
	InputKey   = "backupKey"
	InputRole  = "role"
)

// ArchivesAs is what of backups reaches the pods, for the revision.
func ArchivesAs(s *facts.Cluster, e map[string]any) {
	if Archives(s) {
		e[InputPlace] = BucketSecret(s)
	}
	if k := Key(s); Archives(s) && k.Encrypted() {
		e[InputKey] = k.Text()
	}
	if role := s.Role(); role != "" {
		e[InputRole] = role
	}
	if name := SourceSecret(s); name != "" {
		e["source"] = name
	}
	if k := SourceKey(s); k.Encrypted() {
		e["sourceKey"] = k.Text()
	}
}

const defaultKey = "passphrase"

func keyOf(e *v1alpha1.BackupEncryption) facts.KeyRef {
	if e == nil {
		return facts.KeyRef{}
	}
	return facts.KeyRef{Secret: e.SecretRef.Name, Key: cmp.Or(e.SecretRef.Key, defaultKey)}
}

// Key of the backups. A Database that no longer mentions backups keeps the one it had, as it does the bucket's Secret.
func Key(s *facts.Cluster) facts.KeyRef {
	if s.Spec.Backup != nil {
		return keyOf(s.Spec.Backup.Encryption)
	}
	for _, letter := range compose.SortedKeys(s.Sets) {
		if s.Sets[letter].BucketSecret != "" {
			return s.Sets[letter].BackupKey
		}
	}
	return facts.KeyRef{}
}
