// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
)

// kindsOfKeyTrouble are the reasons for what members report of the key, with the remedies.
var kindsOfKeyTrouble = map[string]struct {
	reason  xpv2.ConditionReason
	message string
}{
	observev1alpha1.KeyMissing: {
		v1alpha1.ReasonKeyMissing, "the value %[2]s of Secret %[1]q is missing, so nothing is backed up: restore the Secret from your copy, with the same value",
	},
	observev1alpha1.KeyInvalid: {
		v1alpha1.ReasonKeyInvalid, "the value %[2]s of Secret %[1]q is not one line of 24 to 1024 printable ASCII characters: " +
			"if there are backups already, restore their key from your copy; otherwise create one, for instance with openssl rand -base64 48",
	},
	observev1alpha1.KeyMismatch: {
		v1alpha1.ReasonKeyMismatch, "the value %[2]s of Secret %[1]q does not decrypt the existing backups of this Database, so nothing is backed up: " +
			"restore the key that these backups were encrypted with; the key cannot be changed",
	},
}

// backupEncrypted reports whether the key of backups is valid, and always what depends on it.
func backupEncrypted(s *decision.Pass) xpv2.Condition {
	if s.Spec.Backup == nil || s.Spec.Backup.Encryption == nil {
		return xpv2.Condition{}
	}
	k, b := backup.Key(s.Cluster), s.BackupReport()
	depends := fmt.Sprintf("without the value %s of Secret %q the backups are lost: Capstan has no copy of it; keep one outside of this cluster", k.Key, k.Secret)
	trouble, blocked := kindsOfKeyTrouble[b.Key]
	switch {
	case !s.TakesBackups():
		return no(v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true. Existing backups stay encrypted: "+depends)
	case blocked:
		return no(trouble.reason, fmt.Sprintf(trouble.message, k.Secret, k.Key))
	case !b.Asked:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not reported yet whether the key decrypts the existing backups: see the condition BackupFresh; "+depends)
	default:
		return yes(v1alpha1.ReasonKeyHeld, "backups and archive are encrypted before they leave the cluster: "+depends)
	}
}
