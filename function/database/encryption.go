// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

const (
	volumeBackupKey = "backup-key"
	volumeSourceKey = "source-key"

	// keyFile is what the key is called where it is mounted, whatever it is called in its Secret.
	keyFile = "passphrase"

	// defaultKey in a Secret.
	defaultKey = "passphrase"
)

// keyRef is where the key of backups is. Without a Secret backups are not encrypted.
type keyRef struct{ secret, key string }

// keyOf what a spec says.
func keyOf(e *v1alpha1.BackupEncryption) keyRef {
	if e == nil {
		return keyRef{}
	}
	return keyRef{secret: e.SecretRef.Name, key: cmp.Or(e.SecretRef.Key, defaultKey)}
}

// encrypted reports whether there is a key.
func (k keyRef) encrypted() bool { return k.secret != "" }

// text for the revision of those who have it.
func (k keyRef) text() string { return k.secret + "/" + k.key }

// volume with the key alone, whatever else the Secret has.
func (k keyRef) volume(name string) *applycorev1.VolumeApplyConfiguration {
	return applycorev1.Volume().WithName(name).
		WithSecret(applycorev1.SecretVolumeSource().
			WithSecretName(k.secret).
			WithDefaultMode(0o440).
			WithItems(applycorev1.KeyToPath().WithKey(k.key).WithPath(keyFile)))
}

// optional volume with the key: who mounts it starts without it.
func (k keyRef) optional(name string) *applycorev1.VolumeApplyConfiguration {
	v := k.volume(name)
	v.Secret.WithOptional(true)
	return v
}

// keyIn a volume of a pod template, if there is one.
func keyIn(volumes []any, name string) keyRef {
	for _, v := range volumes {
		volume, ok := v.(map[string]any)
		if !ok || volume["name"] != name {
			continue
		}
		for _, i := range compose.List(volume, "secret", "items") {
			if item, ok := i.(map[string]any); ok {
				return keyRef{secret: compose.Text(volume, "secret", "secretName"), key: compose.Text(item, "key")}
			}
		}
	}
	return keyRef{}
}

// backupKey of the backups. A Database that no longer mentions backups keeps the one it had, as it does the bucket's Secret.
func (s *cluster) backupKey() keyRef {
	if s.spec.Backup != nil {
		return keyOf(s.spec.Backup.Encryption)
	}
	for _, letter := range compose.SortedKeys(s.sets) {
		if s.sets[letter].bucketSecret != "" {
			return s.sets[letter].backupKey
		}
	}
	return keyRef{}
}

// sourceKey of the backup that the Database begins with.
func (s *cluster) sourceKey() keyRef {
	// It stays after the restore, as the bucket's Secret does.
	if s.generation > 1 {
		return s.backupKey()
	}
	switch from := s.spec.From; {
	case from == nil:
		return keyRef{}
	case from.Database != nil:
		return keyOf(from.Database.Encryption)
	default:
		return keyOf(from.Backup.Encryption)
	}
}

// withKey mounts the key into a pod that works with backups. Without its Secret the pod waits, and goes on when it is there.
func (s *cluster) withKey(pod *applycorev1.PodSpecApplyConfiguration) {
	k := s.backupKey()
	if !k.encrypted() {
		return
	}
	pod.WithVolumes(k.volume(volumeBackupKey))
	pod.Containers[0].WithVolumeMounts(mount(volumeBackupKey, "/etc/capstan/"+volumeBackupKey, true))
}

// checkEncryption holds what the schema cannot say: a block that was removed and put back has no value before.
func (s *cluster) checkEncryption() []check.Problem {
	if s.spec.Backup == nil {
		return nil
	}
	now := s.backupKey()
	for _, letter := range compose.SortedKeys(s.sets) {
		o := s.sets[letter]
		if o.bucketSecret == "" || o.backupKey.encrypted() == now.encrypted() {
			continue
		}
		remedy := "the backups in the bucket are not encrypted, and " + s.traits.BackupTool + " cannot encrypt later in the same place: remove the field, " +
			"or make another Database with spec.from.database and a key"
		if !now.encrypted() {
			remedy = fmt.Sprintf("the backups in the bucket are encrypted with the value %s of Secret %q, and %s cannot turn encryption off in the same place: set the field back to it",
				o.backupKey.key, o.backupKey.secret, s.traits.BackupTool)
		}
		return []check.Problem{check.Invalid("spec.backup.encryption", now.secret, remedy)}
	}
	return nil
}

// kindsOfKeyTrouble are the reasons of what members tell about the key, with the remedies.
var kindsOfKeyTrouble = map[string]struct {
	reason  xpv2.ConditionReason
	message string
}{
	observev1alpha1.KeyMissing: {
		v1alpha1.ReasonKeyMissing, "the value %[2]s of Secret %[1]q is not there, and nothing is backed up without it: bring the Secret back from your copy, with the same value",
	},
	observev1alpha1.KeyInvalid: {
		v1alpha1.ReasonKeyInvalid, "the value %[2]s of Secret %[1]q is not one line of 24 to 1024 printable ASCII characters: " +
			"if there are backups already, bring their key back from your copy; else make one, for instance with openssl rand -base64 48",
	},
	observev1alpha1.KeyMismatch: {
		v1alpha1.ReasonKeyMismatch, "the value %[2]s of Secret %[1]q does not open what the bucket has of this Database, and nothing is backed up: " +
			"bring the key back that its backups were made with; it cannot be changed",
	},
}

// backupEncrypted reports whether the key of backups is there, and from the first day on what depends on it.
func backupEncrypted(s *state) xpv2.Condition {
	if s.spec.Backup == nil || s.spec.Backup.Encryption == nil {
		return xpv2.Condition{}
	}
	k, b := s.backupKey(), s.backupReport()
	depends := fmt.Sprintf("whoever loses the value %s of Secret %q loses the backups: Capstan has no copy of it; keep one outside of this cluster", k.key, k.secret)
	trouble, hindered := kindsOfKeyTrouble[b.Key]
	switch {
	case !s.takesBackups():
		return no(v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true. Those that there are stay encrypted: "+depends)
	case hindered:
		return no(trouble.reason, fmt.Sprintf(trouble.message, k.secret, k.key))
	case !b.Asked:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not told yet whether the key opens the bucket's backups: see the condition BackupFresh. "+depends)
	default:
		return yes(v1alpha1.ReasonKeyHeld, "backups and archive are encrypted before they leave the cluster: "+depends)
	}
}
