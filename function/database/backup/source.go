// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"

	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
)

// SourceFile of the backup that the Database begins with, or nil.
func SourceFile(s *facts.Cluster) *engine.Source {
	if s.Generation > 1 {
		return filledFrom(s)
	}
	switch from := s.Spec.From; {
	case from == nil, from.Server != nil, from.Dump != nil:
		return nil
	case from.Database != nil:
		return &engine.Source{
			Path: repositoryOf(s.Namespace, from.Database.Name), Either: RepositoryHost(s.Namespace, from.Database.Name), At: facts.Moment(from.Database.At),
			RestorePoint: string(from.Database.RestorePoint), Encrypted: SourceKey(s).Encrypted(), Processes: parallel(s), Mask: maskFile(s),
			Snapshot: snapshotFile(s),
		}
	default:
		b := from.Backup
		return &engine.Source{
			Path: repositoryOf(cmp.Or(b.Namespace, s.Namespace), b.Database), Stanza: b.Stanza, At: facts.Moment(b.At),
			RestorePoint: string(b.RestorePoint), Encrypted: SourceKey(s).Encrypted(), Processes: parallel(s), Follow: b.Follow, Mask: maskFile(s),
			Snapshot: snapshotFile(s),
		}
	}
}

// maskFile is what is changed in the restored data; nil for nothing.
func maskFile(s *facts.Cluster) *engine.Mask {
	if len(s.Spec.From.Mask) == 0 {
		return nil
	}
	m := &engine.Mask{Preload: s.Engine.Libraries(s.Fields())}
	for _, st := range s.Spec.From.Mask {
		m.Statements = append(m.Statements, engine.Statement{Database: st.Database, SQL: st.SQL})
	}
	return m
}

// SourceSecret opens the bucket of the backup that the Database begins with.
func SourceSecret(s *facts.Cluster) string {
	// It stays after the restore, or members would be restarted.
	if s.Generation > 1 {
		return BucketSecret(s)
	}
	switch from := s.Spec.From; {
	case from == nil, from.Server != nil, from.Dump != nil:
		return ""
	case from.Database != nil:
		return from.Database.Name + "-" + names.SuffixBackupBucket
	default:
		return from.Backup.ConnectionSecretRef.Name
	}
}

// SourceDatabase is the Database of this namespace that this one begins with a copy of, if it does and the engine keeps backups on
// volumes. Whether its backups are in a bucket or on a volume is not known here.
func SourceDatabase(s *facts.Cluster) string {
	if s.Generation > 1 || s.Spec.From == nil || s.Spec.From.Database == nil || s.Engine.Lacks(engine.FeatureBackupVolume) != "" {
		return ""
	}
	return s.Spec.From.Database.Name
}

// SourceKey of the backup that the Database begins with.
func SourceKey(s *facts.Cluster) facts.KeyRef {
	// It stays after the restore, as the bucket's Secret does.
	if s.Generation > 1 {
		return Key(s)
	}
	switch from := s.Spec.From; {
	case from == nil, from.Server != nil, from.Dump != nil:
		return facts.KeyRef{}
	case from.Database != nil:
		return keyOf(from.Database.Encryption)
	default:
		return keyOf(from.Backup.Encryption)
	}
}

// filledFrom is what a later generation begins with, as long as it comes up. After that it has data: were its volumes lost, it
// must not begin with that moment again.
func filledFrom(s *facts.Cluster) *engine.Source {
	if !s.ComesUpBy(memory.StepRestore) {
		return nil
	}
	step := s.Memory.Step
	return &engine.Source{
		Path: repositoryOf(s.Namespace, s.Name), Repository: repositoryAddress(s), Stanza: StanzaOf(s, step.From), At: facts.Moment(step.At),
		RestorePoint: string(step.RestorePoint), Encrypted: SourceKey(s).Encrypted(), Processes: parallel(s),
	}
}
