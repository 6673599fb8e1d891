// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
)

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
