// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// defaultKey in a Secret.
const defaultKey = "passphrase"

// keyOf the encryption in a spec.
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
