// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"encoding/json"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// memberFile is what the program in members reads.
func memberFile(m engine.Member) string {
	c := pgmember.Config{
		Databases: m.Databases, Extensions: m.Extensions, Volumes: m.Volumes, Pooled: m.Pooled,
		From: sourceFile(m.From), Upgrade: (*pgmember.Upgrade)(m.Upgrade), Replicators: m.Replicators, Queries: m.Queries,
		Reinitialize: m.Reinitialize, Fence: m.Fence, Import: m.Import.File(imports.TLS), Dumps: dumpsFile(m.Dumps), TakeOver: (*pgmember.TakeOver)(m.TakeOver),
	}
	switch {
	case c.From != nil && c.From.Snapshot != nil:
		c.Version = pgmember.SnapshotVersion
	case c.From != nil && c.From.Mask != nil:
		c.Version = pgmember.MaskVersion
	}
	for _, s := range m.Slots {
		c.Slots = append(c.Slots, pgmember.Slot(s))
	}
	for _, p := range m.Publications {
		c.Publications = append(c.Publications, pgmember.Publication(p))
	}
	if b := m.Backup; b != nil {
		c.Backup = &pgmember.Backup{
			Enabled: b.Enabled, Stanza: b.Stanza, Path: b.Path, Repository: b.Repository, Queue: b.Queue, UntilLow: b.UntilLow, Members: b.Members,
			RetentionDays: b.RetentionDays, RetentionFull: b.RetentionFull, Former: b.Former, StartEmpty: b.StartEmpty, RestorePoint: b.RestorePoint,
			Encrypted: b.Encrypted, Verify: verify(b.Verify), Processes: b.Processes,
		}
	}
	return encoding.JSON(c)
}

// verify says how backups are verified, if they are.
func verify(v *engine.Verify) *pgmember.Verify {
	if v == nil {
		return nil
	}
	out := &pgmember.Verify{MaxRestoreSeconds: v.MaxRestoreSeconds, Preload: v.Preload}
	for _, a := range v.Assertions {
		out.Assertions = append(out.Assertions, pgmember.Assertion(a))
	}
	return out
}

// sourceFile is the backup that a Database begins with, if any.
func sourceFile(s *engine.Source) *pgmember.Source {
	if s == nil {
		return nil
	}
	return &pgmember.Source{
		Path: s.Path, Repository: s.Repository, Either: s.Either, Stanza: s.Stanza, Follow: s.Follow, At: s.At, RestorePoint: s.RestorePoint,
		Encrypted: s.Encrypted, Processes: s.Processes, Mask: mask(s.Mask),
		Snapshot: (*pgmember.Snapshot)(s.Snapshot),
	}
}

// mask of restored data, if there is one.
func mask(m *engine.Mask) *pgmember.Mask {
	if m == nil {
		return nil
	}
	out := &pgmember.Mask{Preload: m.Preload}
	for _, s := range m.Statements {
		out.Statements = append(out.Statements, pgmember.Statement(s))
	}
	return out
}

// Recorded in a file of the member. That there is data is recorded by Patroni alone.
func (postgreSQL) Recorded(files map[string]string) engine.Recorded {
	var c pgmember.Config
	if json.Unmarshal([]byte(files[pgmember.FileConfig]), &c) != nil {
		return engine.Recorded{}
	}
	r := engine.Recorded{Volumes: c.Volumes}
	if c.From != nil {
		r.Snapshot = (*engine.Snapshot)(c.From.Snapshot)
	}
	return r
}
