// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// backups are taken of a copy, with a server over it that shows which transactions it has. A verification executes binary logs as well,
// with workers that each hold a transaction.
var backups = engine.Backups{
	Copies:    true,
	Taking:    engine.Memory{Request: resource.MustParse("512Mi"), Most: resource.MustParse("1Gi")},
	Verifying: engine.Memory{Request: resource.MustParse("512Mi"), Most: resource.MustParse("1536Mi")},
}

// backupFile is what the program in members reads of backups, if there ever were any.
func backupFile(b *engine.Backup) *mysqlmember.Backup {
	if b == nil {
		return nil
	}
	return &mysqlmember.Backup{
		Enabled: b.Enabled, Stanza: b.Stanza, Path: b.Path, Repository: b.Repository, Queue: b.Queue, UntilLow: b.UntilLow, Members: b.Members,
		RetentionDays: b.RetentionDays, RetentionFull: b.RetentionFull, Former: b.Former, StartEmpty: b.StartEmpty, RestorePoint: b.RestorePoint,
		Encrypted: b.Encrypted, Verify: verifyFile(b.Verify),
	}
}

// verifyFile says how backups are verified, if they are.
func verifyFile(v *engine.Verify) *mysqlmember.Verify {
	if v == nil {
		return nil
	}
	out := &mysqlmember.Verify{MaxRestoreSeconds: v.MaxRestoreSeconds}
	for _, a := range v.Assertions {
		out.Assertions = append(out.Assertions, mysqlmember.Assertion(a))
	}
	return out
}

// sourceFile is the backup that a generation begins with, if any.
func sourceFile(s *engine.Source) *mysqlmember.Source {
	if s == nil {
		return nil
	}
	return &mysqlmember.Source{
		Path: s.Path, Repository: s.Repository, Either: s.Either, Stanza: s.Stanza, At: s.At, RestorePoint: s.RestorePoint, Encrypted: s.Encrypted,
	}
}
